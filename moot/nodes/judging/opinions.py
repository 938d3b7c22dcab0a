"""What a judging model may say (`JudgeOpinion`), and how it becomes what Moot records (`Verdict`).

They are two types on purpose: the opinion is a model's data, the verdict is checked against the debate.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from pydantic import BaseModel, ConfigDict

from moot.nodes.judging.decision import APPROVED, Ballot
from moot.nodes.judging.rubrics import Rubric
from moot.state.entries import EntryUsage, clean_text
from moot.state.verdict import SYNTHESIS, TIE, Flip, ScoreRecord, Unmet, Verdict

MAJOR_CAP = 40.0
"""Most confidence that a verdict with an unmet major requirement may have."""


class CriterionScore(BaseModel):
    """A judge's score of one debater on one criterion."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    debater: str
    """The debater, as named in the debate you were shown."""
    criterion: str
    """Id of the criterion."""
    reason: str = ""
    """Why, in a sentence or two."""
    citations: list[str] = []
    """Ids of the messages that show it, such as m000012."""
    score: float
    """The score, on the criterion's scale."""


class UnmetRequirement(BaseModel):
    """Something that was asked for and that no proposal gives."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    text: str
    """The requirement and what is missing."""
    major: bool = False
    """Whether the result cannot be used without it."""


class JudgeOpinion(BaseModel):
    """What a judge may say. The reasoning comes first, so that scores follow from it and not it from them."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    reasoning: str
    """Weigh the debate: what each side established, what was answered, what was not."""
    scores: list[CriterionScore] = []
    """One score for every debater on every criterion."""
    winner: str
    """The debater who did better; "tie" if none did; "synthesis" if the best answer unites several."""
    confidence: float
    """How sure you are of the winner, 0 to 100."""
    unmet_requirements: list[UnmetRequirement] = []
    """What was asked for and is missing."""
    open_questions: list[str] = []
    """What the debate left undecided."""
    solution_markdown: str = ""
    """The answer that should be acted on, in Markdown; empty where only a winner was asked for."""
    tradeoffs: list[str] = []
    """What the solution gives up, and for what."""
    recommendations: list[str] = []
    """What to do next."""


@dataclass
class _Checked:
    """Scores that stand, and what was dropped on the way."""

    scores: dict[str, dict[str, ScoreRecord]] = field(default_factory=dict)
    dropped_citations: int = 0
    dropped_scores: int = 0
    clamped_scores: int = 0


def check_opinion(
    opinion: JudgeOpinion,
    debaters: Sequence[str],
    known_ids: Collection[str],
    rubric: Rubric,
    *,
    judge: str = "",
    model: str = "",
    order: Sequence[str] = (),
    lengths: Mapping[str, int] | None = None,
    usage: EntryUsage | None = None,
) -> Verdict:
    """Turn what a judge said into a verdict that the debate bears out.

    Args:
        opinion: unblinded, so that it names debaters by id.
        debaters: ids of those who took part.
        known_ids: ids of the messages that exist; a set, when there are many.
        rubric: what was to be scored.
        judge: slug id of the judge.
        model: the model it ran on.
        order: the order of presentation, by default that of `debaters`.
        lengths: tokens a debater.
        usage: of the call.

    Returns:
        Scores are clamped to their scales, citations of unknown messages and scores of unknown debaters or
        criteria are dropped and counted, the winner is one of `debaters`, `tie` or `synthesis`. An opinion
        with neither a valid winner nor a valid score becomes a `failed` verdict.
    """
    checked = _check_scores(opinion.scores, debaters, known_ids, rubric)
    winner = _winner(opinion.winner, debaters)
    verdict = failed_verdict(judge, "", model=model, rubric=rubric.name, order=order or debaters, usage=usage)
    verdict["lengths"] = dict(lengths or {})
    verdict["dropped_citations"] = checked.dropped_citations
    verdict["dropped_scores"] = checked.dropped_scores
    verdict["clamped_scores"] = checked.clamped_scores
    if winner is None and not checked.scores:
        verdict["error"] = f"the judge named {opinion.winner!r} as winner and scored no debater"
        return verdict
    verdict.update(_said(opinion))
    verdict["status"] = "ok"
    verdict["criteria"] = rubric.scales()
    verdict["scores"] = checked.scores
    verdict["totals"] = _totals(checked.scores, rubric)
    verdict["winner"] = winner or TIE
    verdict["confidence"] = cap_confidence(opinion.confidence, verdict["unmet_requirements"])
    verdict["flip"]["winners"] = [verdict["winner"]]
    verdict["notes"] = _notes(verdict, opinion)
    return verdict


def failed_verdict(
    judge: str,
    error: str,
    *,
    model: str = "",
    rubric: str = "",
    order: Sequence[str] = (),
    usage: EntryUsage | None = None,
) -> Verdict:
    """Return the verdict of a judge that gave none; `error` says why."""
    return Verdict(
        status="failed",
        error=error,
        judge=judge,
        model=model,
        rubric=rubric,
        order=list(order),
        reasoning="",
        scores={},
        totals={},
        winner="",
        confidence=0.0,
        unmet_requirements=[],
        open_questions=[],
        solution_markdown="",
        tradeoffs=[],
        recommendations=[],
        dropped_citations=0,
        dropped_scores=0,
        clamped_scores=0,
        notes=[],
        flip=Flip(orders=[list(order)], winners=[], flipped=None),
        lengths={},
        usage=usage.copy() if usage else EntryUsage(),
    )


def ballots_of(verdicts: Iterable[Verdict]) -> list[Ballot]:
    """Return the ballots of the verdicts that did not fail; the judge's winner is approved of in any case."""
    return [_ballot(verdict) for verdict in verdicts if verdict["status"] == "ok"]


def next_judging(state: Mapping[str, Any]) -> int:
    """Return the number of a debate's next judging: 1 more than its verdicts and its decision have."""
    before = [*(state.get("verdicts") or []), state.get("verdict") or {}]
    numbers = [verdict.get("judging") for verdict in before]
    return 1 + max((number for number in numbers if isinstance(number, int)), default=0)


def cap_confidence(confidence: float, unmet: Iterable[Unmet]) -> float:
    """Return `confidence` within 0–100, and at most 40 with an unmet major requirement."""
    top = MAJOR_CAP if any(requirement["major"] for requirement in unmet) else 100.0
    return min(max(confidence, 0.0), top) if isfinite(confidence) else 0.0


def counted_scores(verdict: Verdict) -> dict[str, dict[str, ScoreRecord]]:
    """Return the scores that count; where a judge's orders contradict each other, everybody has the mean."""
    if not verdict["flip"]["flipped"]:
        return verdict["scores"]
    given: dict[str, list[float]] = {}
    for records in verdict["scores"].values():
        for criterion, record in records.items():
            given.setdefault(criterion, []).append(record["score"])
    level = {criterion: sum(scores) / len(scores) for criterion, scores in given.items()}
    return {
        debater: {criterion: {**record, "score": level[criterion]} for criterion, record in records.items()}
        for debater, records in verdict["scores"].items()
    }


def _ballot(verdict: Verdict) -> Ballot:
    scores = _counted_totals(verdict)
    approved = {debater for debater, total in scores.items() if total >= APPROVED}
    winner = verdict["winner"]
    named = {winner} if winner not in (TIE, SYNTHESIS) else set()
    return Ballot(
        judge=verdict["judge"],
        winner=winner,
        scores=scores,
        approved=sorted(approved | named),
    )


def _counted_totals(verdict: Verdict) -> dict[str, float]:
    """Return the totals that count: a judge whose orders contradict each other puts nobody ahead."""
    totals = verdict["totals"]
    if not verdict["flip"]["flipped"] or not totals:
        return dict(totals)
    return dict.fromkeys(totals, sum(totals.values()) / len(totals))


def _check_scores(
    scores: Iterable[CriterionScore], debaters: Sequence[str], known_ids: Collection[str], rubric: Rubric
) -> _Checked:
    checked = _Checked()
    for given in scores:
        debater, criterion = _match(given.debater, debaters), rubric.criterion(given.criterion)
        if debater is None or criterion is None or not isfinite(given.score):
            checked.dropped_scores += 1
            continue
        of_debater = checked.scores.setdefault(debater, {})
        if criterion.id in of_debater:
            checked.dropped_scores += 1
            continue
        cited = list(dict.fromkeys(_message_id(citation) for citation in given.citations))
        kept = [citation for citation in cited if citation in known_ids]
        score = criterion.clamp(given.score)
        checked.dropped_citations += len(cited) - len(kept)
        checked.clamped_scores += score != given.score
        of_debater[criterion.id] = ScoreRecord(score=score, reason=clean_text(given.reason), citations=kept)
    return checked


def _said(opinion: JudgeOpinion) -> Verdict:
    """The parts of an opinion that are recorded as said, cleaned."""
    unmet = [Unmet(text=clean_text(each.text), major=each.major) for each in opinion.unmet_requirements]
    return {  # type: ignore[typeddict-item]  # a part of a verdict, for `update`
        "reasoning": clean_text(opinion.reasoning),
        "unmet_requirements": unmet,
        "open_questions": [clean_text(each) for each in opinion.open_questions],
        "solution_markdown": clean_text(opinion.solution_markdown),
        "tradeoffs": [clean_text(each) for each in opinion.tradeoffs],
        "recommendations": [clean_text(each) for each in opinion.recommendations],
    }


def _totals(scores: Mapping[str, Mapping[str, ScoreRecord]], rubric: Rubric) -> dict[str, float]:
    totals = {
        debater: rubric.total({criterion: record["score"] for criterion, record in records.items()})
        for debater, records in scores.items()
    }
    return {debater: total for debater, total in totals.items() if total is not None}


def _match(said: str, debaters: Iterable[str]) -> str | None:
    """The debater meant: the very id, else the one id that differs in case or surrounding space alone."""
    wanted = said.strip()
    alike = [debater for debater in debaters if debater.casefold() == wanted.casefold()]
    return wanted if wanted in alike else (alike[0] if len(alike) == 1 else None)


def _winner(said: str, debaters: Iterable[str]) -> str | None:
    debater = _match(said, debaters)
    outcome = said.strip().casefold()
    return debater or (outcome if outcome in (TIE, SYNTHESIS) else None)


def _message_id(citation: str) -> str:
    """The id within a citation such as `[m000012]` or `#m000012`; the citation itself where there is none."""
    found = re.search(r"(?<!\w)m\d{6,}(?!\w)", citation)
    return found[0] if found else citation.strip()


def _notes(verdict: Verdict, opinion: JudgeOpinion) -> list[str]:
    notes = []
    totals, winner = verdict["totals"], verdict["winner"]
    if _winner(opinion.winner, verdict["order"]) is None and winner == TIE:
        notes.append(f"The judge named {opinion.winner!r} as winner, who took no part; recorded as a tie.")
    if winner in totals and totals[winner] < max(totals.values()) - 1e-9:
        notes.append("The judge's winner does not have its highest total score.")
    if verdict["confidence"] != opinion.confidence:
        notes.append(f"The stated confidence of {opinion.confidence:g} became {verdict['confidence']:g}.")
    return notes
