"""The table of protocols."""

from __future__ import annotations

from importlib.metadata import entry_points

from moot.nodes.protocols.baselines.single import Single
from moot.nodes.protocols.baselines.vote import Vote
from moot.nodes.protocols.council.council_rules import Council
from moot.nodes.protocols.dialogue.dialogue_rules import Dialogue
from moot.nodes.protocols.long_form.moderated import Moderated
from moot.nodes.protocols.long_form.random_order import RandomOrder
from moot.nodes.protocols.long_form.round_robin import RoundRobin
from moot.nodes.protocols.protocol import Protocol
from moot.state.errors import ConfigError

PROTOCOLS: dict[str, Protocol] = {
    protocol.name: protocol
    for protocol in (RoundRobin(), Moderated(), RandomOrder(), Council(), Dialogue(), Single(), Vote())
}
"""Protocols by name; a new one is one file and one row here."""


ENTRY_POINT_GROUP = "moot.protocols"
"""A package brings a protocol by an entry point of this group that names a `Protocol` class."""


def register(protocol: Protocol) -> None:
    """Add a protocol of one's own to the table, for this process.

    Whoever resumes its debates in another process registers it there too, or installs it as an entry point.

    Raises:
        ConfigError: its name is empty or that of another one.
    """
    name = getattr(protocol, "name", "")
    if not name or type(PROTOCOLS.get(name, protocol)) is not type(protocol):
        raise ConfigError(f"a protocol needs a name of its own, not {name!r}")
    PROTOCOLS[name] = protocol


def protocol_named(name: str) -> Protocol:
    """Return the protocol of this name, of the table or plugged in.

    Raises:
        ConfigError: there is none.
    """
    if name not in PROTOCOLS:
        plugged = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
        if name not in plugged:
            known = ", ".join(sorted({*PROTOCOLS, *plugged}))
            raise ConfigError(f"unknown protocol {name!r}: use one of {known}")
        register(plugged[name].load()())
    return PROTOCOLS[name]
