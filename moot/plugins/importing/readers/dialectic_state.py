"""Debate states of the program dialectic."""

from collections.abc import Mapping
from typing import Literal

from moot.plugins.importing.message_objects import TEXT_KEYS, first_text
from moot.plugins.importing.reader import ParsedMessage, ParsedTranscript, Reader, Source

_KINDS: Mapping[str, Literal["proposal", "critique", "refinement"]] = {
    "proposal": "proposal",
    "critique": "critique",
    "refinement": "refinement",
}
"""Moot's entry kind for each contribution type."""


def _read(source: Source) -> ParsedTranscript | None:
    state = source.json
    if not isinstance(state, dict) or not isinstance(state.get("rounds"), list):
        return None
    messages = [
        ParsedMessage(
            first_text(contribution, ("agentId", "agentRole")),
            first_text(contribution, TEXT_KEYS),
            kind=_KINDS.get(str(contribution.get("type")), "proposal"),
            round=number,
            target=first_text(contribution, ("targetAgentId",)),
        )
        for number, debate_round in enumerate(state["rounds"], start=1)
        if isinstance(debate_round, dict)
        for contribution in debate_round.get("contributions") or ()
        if isinstance(contribution, dict)
    ]
    return ParsedTranscript(messages, first_text(state, ("problem",)), _solution(state.get("finalSolution")))


def _solution(final: object) -> str:
    """Convert the solution of a state to Markdown text."""
    if not isinstance(final, dict):
        return str(final or "")
    parts = [first_text(final, TEXT_KEYS)]
    for key, title in (("tradeoffs", "Trade-offs"), ("recommendations", "Recommendations")):
        items: object = final.get(key)
        if points := [str(each) for each in items if each] if isinstance(items, list) else []:
            parts.append(f"## {title}\n\n" + "\n".join(f"- {point}" for point in points))
    return "\n\n".join(filter(None, parts))


READER = Reader("dialectic debate", "json", _read)
