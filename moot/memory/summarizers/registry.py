"""Registry of summarizers, including those of other packages."""

from functools import lru_cache

from moot.config import DebateConfig
from moot.config.memory_config import NO_SUMMARY
from moot.memory.summarizers.hierarchical import Hierarchical
from moot.memory.summarizers.llm import Llm
from moot.memory.summarizers.rule_based import RuleBased
from moot.memory.summarizers.summarizer import Summarizer
from moot.state.errors import ConfigError
from moot.state.settings import load_plugin, plugin_entry_points

ENTRY_POINT_GROUP = "moot.summarizers"
"""Name of the entry point group where packages register a `Summarizer` class."""

SUMMARIZERS: dict[str, Summarizer] = {
    summarizer.name: summarizer for summarizer in (RuleBased(), Llm(), Hierarchical())
}
REMOVED_SUMMARIZERS = frozenset({"semantic", "retrieval"})
"""Names of summarizers that Moot no longer provides."""


FALLBACK_SUMMARIZER = RuleBased.name
"""Name of the summarizer that replaces the configured one, for example after a failure. This summarizer
calls no model."""


def register(summarizer: Summarizer) -> None:
    """Register a summarizer for this Python process.

    An installed package uses an entry point of the group `moot.summarizers` instead.

    Raises:
        ConfigError: the name is empty or taken.
    """
    name = getattr(summarizer, "name", "")
    if not name or name == NO_SUMMARY or type(SUMMARIZERS.get(name, summarizer)) is not type(summarizer):
        raise ConfigError(
            f"the summarizer name {name!r} is empty or already registered: choose another `name`"
        )
    SUMMARIZERS[name] = summarizer
    summarizer_named.cache_clear()


def summarizer_names() -> list[str]:
    """Return the names of all registered or installed summarizers, sorted."""
    return sorted({*SUMMARIZERS, *plugin_entry_points(ENTRY_POINT_GROUP)})


@lru_cache(maxsize=32)
def summarizer_named(name: str) -> Summarizer:
    """Return a summarizer. One that is unknown or cannot be created is a `ConfigError`."""
    if name in SUMMARIZERS:
        return SUMMARIZERS[name]
    entry_points = plugin_entry_points(ENTRY_POINT_GROUP)
    if name not in entry_points:
        known_names = ", ".join(summarizer_names())
        note = f"; it was removed, and {RuleBased.name!r} keeps more" if name in REMOVED_SUMMARIZERS else ""
        raise ConfigError(f"memory.summarizer: {name!r} is not a summarizer{note}: use one of {known_names}")
    entry_point = entry_points[name]
    summarizer: Summarizer = load_plugin(entry_point, "memory.summarizer")
    if not callable(getattr(summarizer, "summarize", None)):
        raise ConfigError(
            f"memory.summarizer: the summarizer {entry_point.name!r} ({entry_point.value}) has no method "
            "`summarize`"
        )
    return summarizer


def check_summarizers(config: DebateConfig) -> None:
    """Raise a `ConfigError` if a configured summarizer is unknown or cannot be created."""
    perspectives = (config.judge.summary, *(debater.perspective for debater in config.debaters))
    methods = [each.method for each in (config.memory.perspectives, *perspectives) if each]
    for name in sorted({config.memory.summarizer, *methods} - {NO_SUMMARY}):
        summarizer_named(name)


def asks_model(name: str) -> bool:
    """Return True if a summarizer calls a model. `none`, which makes no summary, does not."""
    return name != NO_SUMMARY and getattr(summarizer_named(name), "asks_model", True)
