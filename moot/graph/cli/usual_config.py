"""The configuration of a command: the operator's, and what would go wrong in it, said on stderr."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from moot.graph.cli.screen.output import complain
from moot.graph.operator_config import usual_config
from moot.state.config import DebateConfig, slug
from moot.state.errors import InputError

LENGTHS = ("turns", "rounds")
"""Flags that say how long a debate is."""


def parse_debaters(given: Sequence[str] | None) -> list[dict[str, str]] | None:
    """Return those whom `--debater NAME[:ROLE[:STANCE]]` names, `None` where it is not given.

    Raises:
        InputError: one has no name.
    """
    debaters = []
    for number, words in enumerate(given or (), start=1):
        parts = [part.strip() for part in words.split(":", 2)]
        if not parts[0]:
            raise InputError(f"--debater {words!r}: give NAME[:ROLE[:STANCE]]")
        made = {} if slug(parts[0]) else {"id": f"debater-{number}"}  # the name makes none
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
    """Return the usual configuration for a new debate, after looking for what would go wrong in it.

    Args:
        path: `--config`.
        flags: values by dotted key.
        tools: of those debaters who list none.
        topic: what is warned about; `None` takes the configuration's.
        imports: whether what it names is imported.

    Raises:
        ConfigError: it cannot be used; nothing has been written.
    """
    config = usual_config(path, flags, complain)
    if tools:
        debaters = tuple(
            each if each.is_human or each.tools else each.model_copy(update={"tools": tuple(tools)})
            for each in config.debaters
        )
        config = config.model_copy(update={"debaters": debaters})
    # Slow to import, and not needed for most mistakes.
    from moot.graph.preflight import check_config, warnings_about
    from moot.nodes.driving.environment import Environment
    from moot.state.config.boundary import Claim

    check_config(Claim.of_operator(config), Environment(), imports=imports)
    asked = config if topic is None else config.model_copy(update={"topic": topic})
    for warning in warnings_about(asked):
        complain(f"warning: {warning}")
    return config


def warn_of_idle(flags: Mapping[str, object], config: DebateConfig) -> None:
    """Say on stderr which flags of length were given although other settings decide the protocol's."""
    from moot.nodes.protocols.protocol_table import protocol_named

    bounds = protocol_named(config.protocol).bounded_by
    if bounds is None:
        return
    instead = [f"--{name}" for name in LENGTHS if name in bounds] or bounds
    advice = f"use {' or '.join(instead)}" if instead else "its length is fixed"
    for name in LENGTHS:
        if flags.get(name) is not None and name not in bounds:
            complain(f"warning: {name} does not bound protocol {config.protocol!r}: {advice}")
