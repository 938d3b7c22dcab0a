"""The table of protocols, and what comes next in a debate by the one that it is held by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moot.nodes.protocols.baselines.single import Single
from moot.nodes.protocols.baselines.vote import Vote
from moot.nodes.protocols.council.council_rules import Council
from moot.nodes.protocols.dialogue.dialogue_rules import Dialogue
from moot.nodes.protocols.long_form.long_form import RandomOrder, RoundRobin
from moot.nodes.protocols.long_form.moderated import Moderated
from moot.nodes.protocols.protocol import Consult, End, Protocol
from moot.state.config import DebateConfig
from moot.state.config.section import protocol_sections
from moot.state.conversation import ConversationState, StateValues, Step
from moot.state.entries import tokens_of
from moot.state.errors import ConfigError
from moot.state.plugins import plugged_in, plugin_of

PROTOCOLS: dict[str, Protocol] = {
    protocol.name: protocol
    for protocol in (RoundRobin(), Moderated(), RandomOrder(), Council(), Dialogue(), Single(), Vote())
}
"""Protocols by name; a new one is one folder and one row here."""

ENTRY_POINT_GROUP = "moot.protocols"
"""A package brings a protocol by an entry point of this group, of the same name, that leads to its class."""


def register(protocol: Protocol) -> None:
    """Add a protocol of one's own to the table, for this process.

    Whoever resumes its debates in another process registers it there too, or installs it as an entry point.

    Raises:
        ConfigError: its name is empty or that of another one, or its section's key is taken.
    """
    name = getattr(protocol, "name", "")
    if not name or type(PROTOCOLS.get(name, protocol)) is not type(protocol):
        raise ConfigError(f"a protocol needs a name of its own, not {name!r}")
    settings = protocol.settings
    if settings and protocol_sections().get(settings.key, settings) is not settings:
        raise ConfigError(f"protocol {name!r}: the section {settings.key!r} is another protocol's already")
    if settings and settings.key in DebateConfig.model_fields:
        raise ConfigError(f"protocol {name!r}: {settings.key!r} is a key of every debate's configuration")
    PROTOCOLS[name] = protocol


def protocol_named(name: str) -> Protocol:
    """Return the protocol of this name, of the table or plugged in.

    Raises:
        ConfigError: there is none.
    """
    found = find_protocol(name)
    if found is None:
        known = ", ".join(sorted({*PROTOCOLS, *plugged_in(ENTRY_POINT_GROUP)}))
        raise ConfigError(f"unknown protocol {name!r}: use one of {known}")
    return found


def find_protocol(name: str) -> Protocol | None:
    """Return the protocol of this name, of the table or plugged in, `None` where there is none."""
    if name not in PROTOCOLS and (point := plugged_in(ENTRY_POINT_GROUP).get(name)):
        register(plugin_of(point, "protocol"))
    return PROTOCOLS.get(name)


def rules_of(document: Mapping[str, Any]) -> Protocol:
    """Return the protocol that a debate's document was held by, by which its result is told.

    Of one that is not installed, what all protocols have in common.
    """
    name = document.get("protocol") or document["config"].get("protocol") or ""
    return find_protocol(name) or Protocol()


def load_plugged() -> None:
    """Put every protocol that installed packages bring into the table."""
    for name in plugged_in(ENTRY_POINT_GROUP):
        find_protocol(name)


def next_step(state: ConversationState, config: DebateConfig) -> Step | End | Consult:
    """Return what comes next: the end at a limit, else what the protocol says."""
    return limit_reached(state, config) or protocol_named(config.protocol).next_step(state, config)


def limit_reached(state: StateValues, config: DebateConfig) -> End | None:
    """Return the end at a limit that the debate has reached, `None` while it is within all of them."""
    usage, limits = state.get("usage") or {}, config.limits
    measured = (
        ("limits.total_tokens", tokens_of(usage), limits.total_tokens),
        ("limits.cost_usd", usage.get("cost_usd", 0), limits.cost_usd),
        ("limits.wall_clock_s", usage.get("elapsed_s", 0), limits.wall_clock_s),
    )
    for name, spent, limit in measured:
        if limit is not None and spent >= limit:
            return End(f"{name} of {limit:g} is reached", limit=name)
    return None
