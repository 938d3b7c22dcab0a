"""The configuration that an operator's file, environment and flags make together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from moot.graph.cli.complaint import complain
from moot.graph.cli.named_files import Data, with_files
from moot.state.config import DebateConfig
from moot.state.config.config_files import load_config, make_config, with_settings
from moot.state.settings import default_config_path, default_model


def file_data(path: Path | None) -> Data:
    """Return what the configuration file says, with the files that it names read into it; `{}` without one.

    Args:
        path: `--config`; where it is not given, `MOOT_CONFIG` counts.

    Raises:
        ConfigError: it cannot be read.
    """
    chosen = path or default_config_path()
    if chosen is None:
        return {}
    data, folder = load_config(chosen), Path(chosen).parent
    from moot.graph.importing.dialectic import from_dialectic, is_dialectic  # with all readers of transcripts

    if is_dialectic(data):
        converted = from_dialectic(data, folder)
        for warning in converted.warnings:
            complain(f"warning: {warning}")
        data = converted.data
    elif isinstance(data.get("context"), str):
        data["context"] = str((folder / data["context"]).absolute())
    return with_files(data, folder)


def configured(path: Path | None, flags: Mapping[str, object]) -> DebateConfig:
    """Return the configuration that flags, `--config`, `MOOT_MODEL` and the defaults make, in this order.

    Raises:
        ConfigError: it is none.
    """
    return make_config(usual_data(path, flags))


def usual_data(path: Path | None, flags: Mapping[str, object]) -> Data:
    """Return the data of a configuration that flags, `--config`, `MOOT_MODEL` make, in this order."""
    model = default_model()
    return with_settings({**({"model": model} if model else {}), **file_data(path)}, flags)
