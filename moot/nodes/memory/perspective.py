"""What one debater has at stake: its own proposals and refinements, and the critiques that it received."""

from collections.abc import Sequence
from dataclasses import dataclass

from moot.nodes.text.tokens import cut_middle
from moot.state.config import DebateConfig
from moot.state.config.debaters import DebaterConfig
from moot.state.config.memory_config import PerspectiveConfig
from moot.state.conversation import StateValues
from moot.state.entries import Entry, kind_of


@dataclass(frozen=True)
class Perspective:
    """A debater's perspective as a view may show it."""

    summary: str
    """Text of the current summary, `""` while everything is shown in full."""
    entries: list[Entry]
    """What the summary does not cover, oldest first."""


def perspective_entries(transcript: Sequence[Entry], debater: str) -> list[Entry]:
    """Return a debater's own proposals and refinements and the critiques it received, oldest first."""
    return [entry for entry in transcript if _concerns(entry, debater)]


def _concerns(entry: Entry, debater: str) -> bool:
    if entry["kind"] == "critique":
        return debater in entry["targets"]
    return kind_of(entry).proposes and entry["speaker"] == debater


def latest_proposals(transcript: Sequence[Entry]) -> dict[str, Entry]:
    """Return each debater's last proposal or refinement, in the order of the transcript."""
    latest = {entry["speaker"]: entry for entry in transcript if kind_of(entry).proposes}
    return dict(sorted(latest.items(), key=lambda item: item[1]["seq"]))


def perspective_of(state: StateValues, debater: str) -> Perspective:
    """Return a debater's perspective: the summary and what came after it, or all while that is short."""
    summary = (state.get("perspective_summaries") or {}).get(debater) or {}
    covered = summary.get("covers_through_seq", -1)
    entries = perspective_entries(state["full_transcript"], debater)
    return Perspective(summary.get("text", ""), [entry for entry in entries if entry["seq"] > covered])


def perspective_settings(config: DebateConfig, debater: DebaterConfig) -> PerspectiveConfig:
    """Return a debater's settings: its own where it has any, else the debate's."""
    return config.memory.perspectives.merged(debater.perspective)


def past_threshold(entries: Sequence[Entry], settings: PerspectiveConfig) -> bool:
    """Return whether entries are long enough to be summarised."""
    chars = sum(len(entry["content"]) for entry in entries)
    return settings.is_passed(chars, sum(entry["tokens"] for entry in entries))


def summary_room(entries: Sequence[Entry], settings: PerspectiveConfig, most: int) -> int:
    """Return the tokens that a summary of entries may have, at most `most`.

    A limit in characters is turned into tokens at the rate of the entries themselves, whatever their script.
    """
    if settings.max_tokens is not None:
        return min(most, settings.max_tokens)
    chars = sum(len(entry["content"]) for entry in entries)
    rate = sum(entry["tokens"] for entry in entries) / chars if chars else 0.25
    return max(16, min(most, int(settings.max_chars * rate)))


def within_chars(text: str, settings: PerspectiveConfig) -> str:
    """Return a summary within its limit in characters, where that is how the limit is given."""
    return text if settings.max_tokens is not None else cut_middle(text, settings.max_chars, len)
