"""Registry of protocols, and selection of a debate's next step by its protocol and limits."""

from collections.abc import Mapping
from typing import Any

from moot.config import DebateConfig
from moot.config.section import protocol_sections
from moot.judging.rubrics import rubric_for
from moot.memory.summarizers.registry import check_summarizers
from moot.protocols import escalate, long_form, pairwise, single, vote, voting
from moot.protocols.base import Protocol
from moot.protocols.council.council import Council
from moot.protocols.dialogue.dialogue import Dialogue
from moot.protocols.schedule import ConsultModels, End
from moot.state.conversation import ConversationState, StateValues, Step
from moot.state.entries import tokens_of
from moot.state.errors import ConfigError
from moot.state.settings import load_plugin, plugin_entry_points

PROTOCOLS: dict[str, Protocol] = {
    protocol.name: protocol
    for protocol in (
        long_form.RoundRobin(),
        long_form.Moderated(),
        long_form.RandomOrder(),
        Council(),
        Dialogue(),
        single.Single(),
        vote.Vote(),
        escalate.Escalate(),
        pairwise.Pairwise(),
    )
}
"""Protocols registered in this process, keyed by protocol name."""
ENTRY_POINT_GROUP = "moot.protocols"
"""Entry-point group in which packages register protocol plug-ins. An entry point has the protocol's name
and refers to its class."""


def register(protocol: Protocol) -> None:
    """Register a protocol for use by debates in this process.

    A process that resumes a debate must register its protocol too. An installed package uses an entry point
    of the group `moot.protocols` instead.

    Raises:
        ConfigError: the name is empty or taken, or the key of the settings is taken.
    """
    name = getattr(protocol, "name", "")
    if not name or type(PROTOCOLS.get(name, protocol)) is not type(protocol):
        raise ConfigError(f"the protocol name {name!r} is empty or already in use: choose another `name`")
    settings = protocol.settings
    if settings and protocol_sections(PROTOCOLS).get(settings.key, settings) is not settings:
        raise ConfigError(
            f"the settings key {settings.key!r} of protocol {name!r} already belongs to another protocol: "
            "choose another key"
        )
    if settings and settings.key in DebateConfig.model_fields:
        raise ConfigError(
            f"the settings key {settings.key!r} of protocol {name!r} is reserved: choose another key"
        )
    PROTOCOLS[name] = protocol


def protocol_named(name: str) -> Protocol:
    """Return the protocol with this name. An unknown one is a `ConfigError`."""
    protocol = find_protocol(name)
    if protocol is None:
        raise ConfigError(
            f"unknown protocol {name!r}: use one of {', '.join(protocol_names())}, or install the package "
            "that provides it"
        )
    return protocol


def protocol_names() -> list[str]:
    """Return the sorted names of all protocols that are registered or installed as plug-ins."""
    return sorted({*PROTOCOLS, *plugin_entry_points(ENTRY_POINT_GROUP)})


def find_protocol(name: str) -> Protocol | None:
    """Return the protocol with this name, or `None` if there is none."""
    if name not in PROTOCOLS and (point := plugin_entry_points(ENTRY_POINT_GROUP).get(name)):
        register(load_plugin(point, "protocol"))
    return PROTOCOLS.get(name)


def protocol_of(document: Mapping[str, Any]) -> Protocol:
    """Return the protocol of a debate document, or a generic protocol if it is not installed."""
    name = document.get("protocol") or document["config"].get("protocol") or ""
    return find_protocol(name) or Protocol()


def turns_planned(config: DebateConfig) -> int | None:
    """Return a debate's planned number of turns, or `None` if it is not known in advance."""
    protocol = find_protocol(config.protocol)  # the protocol of a stored debate may not be installed
    turns = protocol.turns(config) if protocol else None
    return turns.planned if turns and turns.planned == turns.most else None


def load_plugins() -> None:
    """Register the protocols of all installed plug-in packages."""
    for name in plugin_entry_points(ENTRY_POINT_GROUP):
        find_protocol(name)


def next_step(state: ConversationState, config: DebateConfig) -> Step | End | ConsultModels:
    """Return the debate's next step, or `End` if a limit or a `stop` condition is reached."""
    protocol = protocol_named(config.protocol)
    end = limit_reached(state, config)
    if end is None and protocol.compares_answers and (reason := voting.stop_reason(state, config)):
        end = End(reason)
    return end or protocol.next_step(state, config)


def limit_reached(state: StateValues, config: DebateConfig) -> End | None:
    """Return `End` if the debate has reached its limit on tokens, cost or time."""
    usage, limits = state.get("usage") or {}, config.limits
    measurements = (
        ("limits.total_tokens", tokens_of(usage), limits.total_tokens),
        ("limits.cost_usd", usage.get("cost_usd", 0), limits.cost_usd),
        ("limits.wall_clock_s", usage.get("elapsed_s", 0), limits.wall_clock_s),
    )
    for name, spent, limit in measurements:
        if limit is not None and spent >= limit:
            return End(f"{name} of {limit:g} is reached", limit=name)
    return None


def check_names(config: DebateConfig) -> None:
    """Check that the protocol, the summarizers and the rubrics that a configuration names exist.

    Raises:
        ConfigError: A name is unknown, or the protocol cannot run the configuration.
    """
    protocol = protocol_named(config.protocol)
    protocol.check(config)
    check_summarizers(config)
    for judge in config.judge.judges():
        rubric_for(judge, config, protocol.judge_spec.rubric)
