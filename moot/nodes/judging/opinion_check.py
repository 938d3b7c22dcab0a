"""From what a judge said to what Moot records of it: only what the debate and the rubric bear out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

from moot.nodes.calls import Reply
from moot.nodes.judging.opinions import CriterionScore, JudgeOpinion
from moot.nodes.judging.rubrics import Rubric
from moot.state.entries import EntryUsage, clean_text
from moot.state.verdict import SYNTHESIS, TIE, Flip, ScoreRecord, Unmet, Verdict

MAJOR_CAP = 40.0
"""Most confidence that a verdict with an unmet major requirement may have."""


@dataclass(frozen=True)
class OpinionCheck:
    """What one judge was asked about, and so what it can be held to; makes its verdict."""

    rubric: Rubric
    sides: Sequence[str]
    """Who or what is scored, in the order of presentation: ids of debaters, or the name of one outcome."""
    known_ids: Collection[str] = frozenset()
    """Ids of the messages that exist; a set, when there are many."""
    judge: str = ""
    """Slug id."""
    lengths: Mapping[str, int] = field(default_factory=dict)
    """Tokens a side."""

    def failed(self, error: str, *, model: str = "", usage: EntryUsage | None = None) -> Verdict:
        """Return the verdict of a judge that gave none; `error` says why."""
        rubric = self.rubric.name
        return failed_verdict(self.judge, error, model=model, rubric=rubric, order=self.sides, usage=usage)

    def scored(self, scores: Iterable[CriterionScore], reply: Reply) -> Verdict:
        """Return a verdict of scores alone, without a winner.

        They are clamped to their scales; citations of unknown messages, and scores of unknown sides or
        criteria, are dropped and counted.
        """
        verdict = self.failed("", model=reply.model, usage=reply.usage)
        for given in scores:
            side, criterion = _meant(given.debater, self.sides), self.rubric.criterion(given.criterion)
            of_side = verdict["scores"].get(side or "", {})
            if side is None or criterion is None or criterion.id in of_side or not isfinite(given.score):
                verdict["dropped_scores"] += 1
                continue
            cited = list(dict.fromkeys(_message_id(citation) for citation in given.citations))
            kept = [citation for citation in cited if citation in self.known_ids]
            score = criterion.clamp(given.score)
            verdict["dropped_citations"] += len(cited) - len(kept)
            verdict["clamped_scores"] += score != given.score
            record = ScoreRecord(score=score, reason=clean_text(given.reason), citations=kept)
            verdict["scores"].setdefault(side, {})[criterion.id] = record
        for side, records in verdict["scores"].items():
            total = self.rubric.total({key: record["score"] for key, record in records.items()})
            if total is not None:
                verdict["totals"][side] = total
        verdict["status"] = "ok"
        if reply.placeholder:
            verdict["placeholder"] = True
        verdict["criteria"] = self.rubric.scales()
        verdict["lengths"] = dict(self.lengths)
        return verdict

    def judged(self, opinion: JudgeOpinion, reply: Reply) -> Verdict:
        """Return the verdict of an opinion that is unblinded, so that it names debaters by id.

        The winner is one of the sides, `tie` or `synthesis`. An opinion with neither a valid winner nor a
        valid score becomes a `failed` verdict.
        """
        verdict = self.scored(opinion.scores, reply)
        outcome = opinion.winner.strip().casefold()
        winner = _meant(opinion.winner, self.sides) or (outcome if outcome in (TIE, SYNTHESIS) else None)
        if winner is None and not verdict["scores"]:
            del verdict["criteria"]
            verdict["status"] = "failed"
            verdict["error"] = f"the judge named {opinion.winner!r} as winner and scored no debater"
            return verdict
        unmet = [Unmet(text=clean_text(each.text), major=each.major) for each in opinion.unmet_requirements]
        verdict["reasoning"] = clean_text(opinion.reasoning)
        verdict["winner"] = winner or TIE
        verdict["confidence"] = cap_confidence(opinion.confidence, unmet)
        verdict["unmet_requirements"] = unmet
        verdict["open_questions"] = [clean_text(each) for each in opinion.open_questions]
        verdict["solution_markdown"] = clean_text(opinion.solution_markdown)
        verdict["tradeoffs"] = [clean_text(each) for each in opinion.tradeoffs]
        verdict["recommendations"] = [clean_text(each) for each in opinion.recommendations]
        verdict["flip"]["winners"] = [verdict["winner"]]
        totals, stated = verdict["totals"], opinion.confidence
        if winner is None:
            verdict["notes"].append(
                f"The judge named {opinion.winner!r} as winner, who took no part; recorded as a tie."
            )
        if winner in totals and totals[winner] < max(totals.values()) - 1e-9:
            verdict["notes"].append("The judge's winner does not have its highest total score.")
        if verdict["confidence"] != stated:
            verdict["notes"].append(f"The stated confidence of {stated:g} became {verdict['confidence']:g}.")
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


def cap_confidence(confidence: float, unmet: Iterable[Unmet]) -> float:
    """Return `confidence` within 0–100, and at most 40 with an unmet major requirement."""
    top = MAJOR_CAP if any(requirement["major"] for requirement in unmet) else 100.0
    return min(max(confidence, 0.0), top) if isfinite(confidence) else 0.0


def _meant(said: str, sides: Sequence[str]) -> str | None:
    """The side meant: the very id, else the one id that differs in case or surrounding space alone."""
    wanted = said.strip()
    if said in sides or wanted in sides:
        return said if said in sides else wanted
    alike = [side for side in sides if side.casefold() == wanted.casefold()]
    return alike[0] if len(alike) == 1 else None


def _message_id(citation: str) -> str:
    """The id within a citation such as `[m000012]` or `#m000012`; the citation itself where there is none."""
    found = re.search(r"(?<!\w)m\d{6,}(?!\w)", citation)
    return found[0] if found else citation.strip()
