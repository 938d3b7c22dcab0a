"""The table of summarisers, and those that other packages bring."""

from __future__ import annotations

from functools import lru_cache

from moot.nodes.memory.summarizers.hierarchical import Hierarchical
from moot.nodes.memory.summarizers.llm import Llm
from moot.nodes.memory.summarizers.rule_based import RuleBased
from moot.nodes.memory.summarizers.summarizer import Summarizer
from moot.state.errors import ConfigError
from moot.state.plugins import plugged_in, plugin_of

ENTRY_POINT_GROUP = "moot.summarizers"
"""A package brings a summariser by an entry point of this group that names a `Summarizer` class."""

SUMMARIZERS: dict[str, Summarizer] = {
    summarizer.name: summarizer for summarizer in (RuleBased(), Llm(), Hierarchical())
}
GONE = frozenset({"semantic", "retrieval"})
"""Methods of earlier versions, which told less of a meeting than its longest sentences do."""


@lru_cache(maxsize=32)
def summarizer_named(name: str) -> Summarizer:
    """Return the summariser of this name, shipped or plugged in.

    Raises:
        ConfigError: there is none, or it cannot be made.
    """
    if name in SUMMARIZERS:
        return SUMMARIZERS[name]
    plugged = plugged_in(ENTRY_POINT_GROUP)
    if name not in plugged:
        known = ", ".join(sorted({*SUMMARIZERS, *plugged}))
        why = f"has gone, {RuleBased.name!r} tells more" if name in GONE else "is unknown"
        raise ConfigError(f"memory.summarizer: the method {name!r} {why}: use one of {known}")
    point = plugged[name]
    made: Summarizer = plugin_of(point, "memory.summarizer")
    if not callable(getattr(made, "summarize", None)):
        raise ConfigError(f"memory.summarizer: {point.name!r} ({point.value}) has no method `summarize`")
    return made
