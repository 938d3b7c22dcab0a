"""What a verdict lacks: judges who failed, messages that nobody read, turns and calls that failed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from moot.state.entries import is_passed, traits_of
from moot.state.verdict import COUNT, NO_WINNER, PanelVerdict, Verdict
from moot.text.plain_text import clip, count_noun

DECISION_CHARS = 80
"""Maximum length of an earlier decision in its sentence, in characters."""
_FAILED_CALLS = {
    "extract": ("extraction of claims", "The recorded claims are incomplete"),
    "summarize": ("summary", "A rule wrote it instead of a model"),
}
"""Name of a failed call and its consequence, keyed by the node that made the call."""


def shortcomings(
    verdict: PanelVerdict | None,
    *,
    verdicts: Sequence[Verdict] = (),
    transcript: Sequence[Mapping[str, Any]] = (),
    errors: Sequence[Mapping[str, Any]] = (),
    names: Mapping[str, str] | None = None,
) -> list[str]:
    """Return what readers must know before they rely on a verdict, one sentence each.

    Every display shows the sentences above the decision. `verdicts` include those of earlier judgings.
    `errors` are those from which the debate recovered.
    """
    names, lines = names or {}, []
    if verdict is None or verdict.get("placeholder"):
        return []
    agreement, counted = verdict.get("agreement", {}), verdict["judge"] == COUNT
    if failed := agreement.get("failed", 0):
        judged = agreement.get("judges", 0)
        lines.append(f"{judged} of {count_noun(judged + failed, 'judge')} gave a verdict.")
    read = verdict.get("read")
    if read and read["full"] < read["of"]:
        part = f", and {read['part']} in part" if read["part"] else ""
        lines.append(f"The judge read {read['full']} of {count_noun(read['of'], 'message')} in full{part}.")
    if verdict["status"] == "ok" and not (verdict["decision"] or verdict["solution_markdown"] or counted):
        lines.append("The judge gave no decision.")
    lines += _untested(verdict)
    for debater, name in names.items():
        turns = [each for each in transcript if each["speaker"] == debater and traits_of(each).ends_turn]
        if turns and all(map(is_passed, turns)):
            lines.append(f"{name} passed every turn.")
    failures = Counter(error.get("node", "") for error in errors)
    for node, (call, consequence) in _FAILED_CALLS.items():
        if failures[node]:
            lines.append(f"{count_noun(failures[node], f'failed {call}')}. {consequence}.")
    return [*lines, *_earlier_verdicts(verdict, verdicts, names)]


def _untested(verdict: PanelVerdict) -> list[str]:
    """Return what the test of the decision left open."""
    findings = verdict["test"]["findings"] if "test" in verdict else []
    if "test" in verdict and verdict["test"]["status"] != "tested":
        return ["The decision was not tested."]
    count = sum(each["outcome"] in ("not found", "unanswered") for each in findings)
    share = f"{count} of {count_noun(len(findings), 'finding')} of the test"
    return [f"The judge neither corrected nor rejected {share}."] if count else []


def _earlier_verdicts(
    verdict: PanelVerdict, verdicts: Sequence[Verdict], names: Mapping[str, str]
) -> list[str]:
    number = verdict.get("judging", 0)
    earlier: dict[int, Verdict] = {}
    for each in verdicts:
        if each.get("judging", 0) < number and each["status"] == "ok" and not each.get("placeholder"):
            earlier.setdefault(each.get("judging", 0), each)
    results = "; ".join(_result(each, names) for each in earlier.values())
    return [f"{count_noun(len(earlier), 'earlier verdict')}: {results}."] if earlier else []


def _result(verdict: Verdict, names: Mapping[str, str]) -> str:
    winner = verdict["winner"]
    text = verdict.get("decision") or NO_WINNER.get(winner, "") or names.get(winner, winner)
    confidence = verdict["confidence"]
    return clip(text.rstrip("."), DECISION_CHARS) + ("" if confidence is None else f", {confidence:.0f}")
