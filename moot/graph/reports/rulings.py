"""How a panel came to its decision, ready to be shown: its rule, what that counted, and who disagrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moot.graph.reports.cast import People
from moot.graph.reports.fields import as_dict, as_dicts, as_number, as_text
from moot.nodes.judging.decision import RULES
from moot.state.verdict import PANEL, SYNTHESIS, TIE

CHOICES = {TIE: "a tie", SYNTHESIS: "a synthesis"}
"""What a choice is called that is nobody's victory."""


@dataclass(frozen=True)
class Ruling:
    """The count behind a decision."""

    rule: str
    counted: str
    """What the rule counts, in words."""
    tally: tuple[tuple[str, float], ...]
    """Who, or which choice, got how much, the most first."""
    dissent: tuple[tuple[str, str], ...]
    """Judges who chose otherwise, and what."""
    speaker: str
    """The judge whose reasons stand for the panel's; `""` where that is not known."""
    speaker_chose: str
    """What that judge chose, where it is not the decision."""


def read_ruling(raw: dict[str, Any], people: People) -> Ruling | None:
    """Build the ruling of a panel's decision; `None` for anything else."""
    outcome = as_dict(raw.get("outcome"))
    if as_text(raw.get("judge")) != PANEL or not outcome:
        return None
    rule, speaker = as_text(outcome.get("rule")), as_text(raw.get("speaker"))
    counts = {
        _choice(key, people): as_number(value) or 0.0 for key, value in as_dict(outcome.get("tally")).items()
    }
    dissent = {
        as_text(each.get("judge")): _choice(as_text(each.get("winner")), people)
        for each in as_dicts(outcome.get("dissent"))
    }
    return Ruling(
        rule=rule,
        counted=RULES[rule].counts if rule in RULES else "",
        tally=tuple(sorted(counts.items(), key=lambda row: -row[1])),
        dissent=tuple(dissent.items()),
        speaker=speaker,
        speaker_chose=dissent.get(speaker, ""),
    )


def _choice(said: str, people: People) -> str:
    return CHOICES.get(said) or (people[said].name if said in people else said)
