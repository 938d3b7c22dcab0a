"""Read the meeting transcripts of QMSum (Zhong et al. 2021, MIT licence), one JSON file each."""

import argparse
import os
from pathlib import Path

DEFAULT_DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "qmsum-val"


def meetings_parser(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options `--data` and `--quick`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("MOOT_QMSUM", DEFAULT_DATA)),
        help="folder with QMSum's files",
    )
    parser.add_argument("--quick", action="store_true", help="use three meetings")
    return parser


def meeting_files(name: str, options: argparse.Namespace) -> list[Path]:
    """Return the files to use. If there are none, print a message with the name of the benchmark."""
    paths = sorted(options.data.glob("*.json"))
    if not paths:
        print(f"{name}: no QMSum files in {options.data}; give --data or MOOT_QMSUM")
    return paths[:: max(1, len(paths) // 3)] if options.quick else paths
