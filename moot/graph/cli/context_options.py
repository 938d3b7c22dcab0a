"""`--context` and `--tools`: what debaters may look at, and with what."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from moot.graph.cli.screen.output import remark
from moot.state.config import DebateConfig
from moot.state.errors import InputError


def context_folder(paths: Sequence[Path]) -> str | None:
    """Return the folder among `--context`, absolute; `None` without one.

    Raises:
        InputError: there are several.
    """
    folders = [path for path in paths if path.is_dir()]
    if len(folders) > 1:
        raise InputError(f"--context: give one folder, not {', '.join(map(str, folders))}")
    return str(folders[0].absolute()) if folders else None


def give_tools(config: DebateConfig, tools: str | None) -> DebateConfig:
    """Return the configuration with tools for those debaters who list none.

    Raises:
        ConfigError: a tool is unknown, or lacks the folder that it needs.
    """
    if tools is not None:
        names = tuple(name.strip() for name in tools.split(",") if name.strip())
        debaters = tuple(
            each if each.is_human or each.tools else each.model_copy(update={"tools": names})
            for each in config.debaters
        )
        config = config.model_copy(update={"debaters": debaters})
        from moot.graph.preflight import check_config
        from moot.nodes.driving.environment import Environment

        check_config(config, Environment())
    if config.context and Path(config.context).is_dir() and not any(each.tools for each in config.debaters):
        remark("warning: nobody has tools to look into the context folder: give --tools search,read_file")
    return config
