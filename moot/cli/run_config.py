"""Build the configuration of a new debate from a file and options, with warnings on stderr."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from moot.cli.screen.output import print_error
from moot.configuration.configure import read_config
from moot.state.config import DebateConfig, slug
from moot.state.errors import InputError

if TYPE_CHECKING:
    pass


LENGTHS = ("turns", "rounds")
"""Names of the options that set the length of a debate."""


def parse_debaters(given: Sequence[str] | None) -> list[dict[str, str]] | None:
    """Return the debaters given with the option `--debater`, or `None` if the option is absent.

    Raises:
        InputError: a debater has no name.
    """
    debaters = []
    for number, words in enumerate(given or (), start=1):
        parts = [part.strip() for part in words.split(":", 2)]
        if not parts[0]:
            raise InputError(f"--debater {words!r} has no name: write NAME[:ROLE[:STANCE]]")
        made = {} if slug(parts[0]) else {"id": f"debater-{number}"}  # the name has no letters for an id
        debaters.append({**made, **dict(zip(("name", "role", "stance"), parts, strict=False))})
    return debaters or None


def run_config(
    path: Path | None,
    flags: Mapping[str, object],
    tools: Sequence[str] = (),
    *,
    topic: str | None = None,
    imports: bool = True,
) -> DebateConfig:
    """Return the validated configuration of a new debate.

    Args:
        path: value of `--config`.
        flags: settings given by other options, by dotted key.
        tools: tools for debaters whose configuration lists none.
        topic: topic of the debate, used in the warnings. `None` means the topic in the configuration.
        imports: import the Python objects that the configuration names.

    Raises:
        ConfigError: the configuration is invalid. Nothing has been written.
    """
    config = read_config(path, flags, print_error)
    _check_debaters(flags, config)
    if tools:
        debaters = tuple(
            each if each.is_human or each.tools else each.model_copy(update={"tools": tuple(tools)})
            for each in config.debaters
        )
        config = config.model_copy(update={"debaters": debaters})
    # These imports are slow, and most mistakes are found before them.
    from moot.debates.preflight import check_config, warnings_about
    from moot.runtime.environment import Environment
    from moot.state.config.boundary import Permissions

    check_config(Permissions.of_operator(config), Environment(), imports=imports)
    asked = config if topic is None else config.model_copy(update={"topic": topic})
    for warning in warnings_about(asked):
        print_error(f"warning: {warning}")
    return config


def _check_debaters(flags: Mapping[str, object], config: DebateConfig) -> None:
    """Check that the option `--debater` names at least two debaters if the protocol needs them.

    Raises:
        InputError: the only debater would reply to itself.
    """
    from moot.protocols.registry import protocol_named

    if flags.get("debaters") is None or len(config.debaters) > 1 or config.turns == 1:
        return
    if "turns" in (protocol_named(config.protocol).length_settings or ()):
        name = config.debaters[0].name
        raise InputError(
            f"--debater {name!r} is the only debater and would reply to itself: add another --debater, or "
            "use --protocol single to get one answer"
        )


def warn_of_ignored_length(flags: Mapping[str, object], config: DebateConfig) -> None:
    """Warn the user if the protocol ignores the option `--turns` or `--rounds`."""
    from moot.protocols.registry import protocol_named

    bounds = protocol_named(config.protocol).length_settings
    if bounds is None:
        return
    instead = [f"--{name}" for name in LENGTHS if name in bounds] or bounds
    advice = f"use {' or '.join(instead)}" if instead else "its length is fixed"
    for name in LENGTHS:
        if flags.get(name) is not None and name not in bounds:
            print_error(f"warning: --{name} has no effect on protocol {config.protocol!r}: {advice}")
