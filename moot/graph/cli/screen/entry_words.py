"""What is said of an entry beside its words: what it is, whom it answers, where, and who speaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moot.graph.cli.screen.terminal_text import one_line

if TYPE_CHECKING:
    from moot.state.entries import Entry


def entry_words(entry: Entry, names: Mapping[str, str]) -> str:
    """Return an entry's kind (a speech's phase), what it answers and its crux room, on one safe line."""
    kind, room = entry["kind"].replace("_", " "), entry["room"]
    what = entry["phase"] or kind if kind == "speech" else kind
    targets = ", ".join(names.get(target, target) for target in entry["targets"])
    answering = f" → {targets}" if targets else ""
    return one_line(f"{what}{answering}{f' · in {room}' if room else ''}", 160)


def debater_names(config: Mapping[str, Any], width: int = 40) -> dict[str, str]:
    """Return the debaters' names by id, each on one safe line of so many characters at most."""
    return {each["id"]: one_line(each["name"], width) for each in config.get("debaters", [])}
