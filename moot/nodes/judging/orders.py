"""Presentation orders: every judge judges twice, once in reversed order, and only what holds in both counts.

Judges, models above all, favour what they read first or last (Wang et al. 2023, *Large Language Models are
not Fair Evaluators*; Zheng et al. 2023, *Judging LLM-as-a-Judge*, section 3.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from moot.nodes.judging.agreement import flip_rate
from moot.nodes.judging.opinions import cap_confidence
from moot.state.reducers import add_up
from moot.state.verdict import TIE, Flip, Rate, ScoreRecord, Unmet, Verdict


def presentation_orders(debaters: Sequence[str], *, swap: bool = True) -> list[list[str]]:
    """Return the orders to judge in: as given and reversed; one only where there is nothing to swap."""
    order = list(debaters)
    return [order, order[::-1]] if swap and len(order) > 1 else [order]


def reconcile(first: Verdict, second: Verdict) -> Verdict:
    """Unite the verdicts of one judge from two presentation orders.

    Returns:
        - Both name the same winner: that winner, with mean scores and confidence.
        - They differ in any way (`tie` against a winner too): a tie, `flip.flipped` true, both reasonings.
        - One failed: the other, `flip.flipped` `None`, with a note that one order alone was judged.
        - Both failed: a failed verdict with both errors.

        Usage, dropped citations and the other counts are sums in any case.
    """
    if first["status"] == "failed" or second["status"] == "failed":
        return _one_sided(first, second)
    flipped = first["winner"] != second["winner"]
    verdict = _counted(first, first, second)
    unmet = _united_unmet([*first["unmet_requirements"], *second["unmet_requirements"]])
    confidence = (first["confidence"] + second["confidence"]) / 2
    verdict["scores"] = _mean_scores(first["scores"], second["scores"])
    verdict["totals"] = _mean_values(first["totals"], second["totals"])
    verdict["unmet_requirements"] = unmet
    # How sure a judge was of two contrary winners says nothing about how sure the tie is.
    verdict["confidence"] = 0.0 if flipped else cap_confidence(confidence, unmet)
    verdict["open_questions"] = _united(first["open_questions"], second["open_questions"])
    verdict["tradeoffs"] = _united(first["tradeoffs"], second["tradeoffs"])
    verdict["recommendations"] = _united(first["recommendations"], second["recommendations"])
    verdict["solution_markdown"] = first["solution_markdown"] or second["solution_markdown"]
    verdict["flip"] = Flip(
        orders=[first["order"], second["order"]], winners=[first["winner"], second["winner"]], flipped=flipped
    )
    if flipped:
        verdict["winner"] = TIE
        verdict["reasoning"] = "\n\n".join(_reasoning(each) for each in (first, second))
        verdict["notes"] = _united(
            verdict["notes"], ["The winner changed with the order of presentation: a tie."]
        )
    return verdict


def flip_rates(verdicts: Iterable[Verdict], confidence: float = 0.95) -> dict[str, Rate]:
    """Return how often each judge's winner changed with the order, over the verdicts judged in two orders."""
    flips: dict[str, list[bool | None]] = {}
    for verdict in verdicts:
        flips.setdefault(verdict["judge"], []).append(verdict["flip"]["flipped"])
    return {judge: flip_rate(of_judge, confidence) for judge, of_judge in sorted(flips.items())}


def _one_sided(first: Verdict, second: Verdict) -> Verdict:
    judged = [each for each in (first, second) if each["status"] == "ok"]
    verdict = _counted(judged[0] if judged else first, first, second)
    verdict["flip"] = Flip(
        orders=[first["order"], second["order"]], winners=[each["winner"] for each in judged], flipped=None
    )
    errors = _united([first["error"]], [second["error"]])
    if judged:
        verdict["notes"] = _united(
            verdict["notes"], [f"Judged in one order alone; the other failed: {errors[-1]}"]
        )
    else:
        verdict["error"] = "; ".join(errors)
    return verdict


def _counted(base: Verdict, first: Verdict, second: Verdict) -> Verdict:
    """A copy of `base` with the counts of both passes."""
    verdict = base.copy()
    verdict["dropped_citations"] = first["dropped_citations"] + second["dropped_citations"]
    verdict["dropped_scores"] = first["dropped_scores"] + second["dropped_scores"]
    verdict["clamped_scores"] = first["clamped_scores"] + second["clamped_scores"]
    verdict["notes"] = _united(first["notes"], second["notes"])
    verdict["lengths"] = {**second["lengths"], **first["lengths"]}
    verdict["usage"] = add_up(first["usage"], [second["usage"]])
    return verdict


def _mean_values(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    both = (first, second)
    given = {key: [values[key] for values in both if key in values] for key in (*first, *second)}
    return {key: sum(values) / len(values) for key, values in given.items()}


def _mean_scores(
    first: Mapping[str, Mapping[str, ScoreRecord]], second: Mapping[str, Mapping[str, ScoreRecord]]
) -> dict[str, dict[str, ScoreRecord]]:
    scores: dict[str, dict[str, ScoreRecord]] = {}
    for debater in dict.fromkeys([*first, *second]):
        here, there = first.get(debater, {}), second.get(debater, {})
        criteria = dict.fromkeys([*here, *there])
        scores[debater] = {
            each: mean_score(records[each] for records in (here, there) if each in records)
            for each in criteria
        }
    return scores


def mean_score(records: Iterable[ScoreRecord]) -> ScoreRecord:
    """Return the mean of several scores of one debater on one criterion, at least one, with all reasons."""
    given = list(records)
    return ScoreRecord(
        score=sum(record["score"] for record in given) / len(given),
        reason="\n".join(_united(*([record["reason"]] for record in given))),
        citations=_united(*(record["citations"] for record in given)),
    )


def _united(*lists: Iterable[str]) -> list[str]:
    """The non-empty texts of all `lists`, each once, in order."""
    return list(dict.fromkeys(text for texts in lists for text in texts if text))


def _united_unmet(requirements: Iterable[Unmet]) -> list[Unmet]:
    major: dict[str, bool] = {}
    for requirement in requirements:
        major[requirement["text"]] = major.get(requirement["text"], False) or requirement["major"]
    return [Unmet(text=text, major=is_major) for text, is_major in major.items()]


def _reasoning(verdict: Verdict) -> str:
    return f"Presented as {', '.join(verdict['order'])}: {verdict['winner']}.\n\n{verdict['reasoning']}"
