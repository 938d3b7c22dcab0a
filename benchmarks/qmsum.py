"""The meetings that benchmarks are measured on: QMSum (Zhong et al. 2021, MIT), a JSON file a meeting."""

import argparse
import os
from pathlib import Path

DEFAULT_DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "qmsum-val"


def meetings_parser(description: str) -> argparse.ArgumentParser:
    """Return a parser that knows where the meetings are, and `--quick`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MOOT_QMSUM", DEFAULT_DATA)))
    parser.add_argument("--quick", action="store_true", help="three meetings only")
    return parser


def meeting_files(name: str, given: argparse.Namespace) -> list[Path]:
    """Return the files asked for; where there are none, say so under the benchmark's name."""
    paths = sorted(given.data.glob("*.json"))
    if not paths:
        print(f"{name}: no QMSum files in {given.data}; give --data or MOOT_QMSUM")
    return paths[:: max(1, len(paths) // 3)] if given.quick else paths
