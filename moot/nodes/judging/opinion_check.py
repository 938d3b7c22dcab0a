"""From what a judge said to what Moot records of it: only what the debate and the rubric bear out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

from pydantic import BaseModel

from moot.nodes.calls import ModelCall, Reply
from moot.nodes.judging.blinding import Blinding
from moot.nodes.judging.opinions import (
    CriterionScore,
    DebaterCase,
    JudgeOpinion,
    SolutionOpinion,
    reasons_each,
)
from moot.nodes.judging.rubrics import Rubric
from moot.nodes.text.plain import clip
from moot.state.entries import EntryUsage, cited_id
from moot.state.verdict import SYNTHESIS, TIE, Case, Flip, Reason, ScoreRecord, Unmet, Verdict, tenths

MAJOR_CAP = 40.0
"""Most confidence that a verdict with an unmet major requirement may have."""
NOTED_CHARS = 160
"""Characters of a requirement within a note; the whole stands in the list."""


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
    names: Mapping[str, str] = field(default_factory=dict)
    """Display names, for notes."""

    def failed(self, error: str, *, model: str = "", usage: EntryUsage | None = None) -> Verdict:
        """Return the verdict of a judge that gave none; `error` says why."""
        rubric = self.rubric.name
        return failed_verdict(self.judge, error, model=model, rubric=rubric, order=self.sides, usage=usage)

    def score_verdict(self, scores: Iterable[CriterionScore], reply: Reply) -> Verdict:
        """Return a verdict of scores alone, without a winner.

        They are clamped to their scales; citations of unknown messages, and scores of unknown sides or
        criteria, are dropped and counted.
        """
        verdict = self.failed("", model=reply.model, usage=reply.usage)
        exact: dict[str, dict[str, float]] = {}
        for given in scores:
            side, criterion = _side_meant(given.debater, self.sides), self.rubric.criterion(given.criterion)
            of_side = verdict["scores"].get(side or "", {})
            if side is None or criterion is None or criterion.id in of_side or not isfinite(given.score):
                verdict["dropped_scores"] += 1
                continue
            kept = self._existing_ids(given.citations, verdict)
            score = criterion.clamp(given.score)
            verdict["clamped_scores"] += score != given.score
            record = ScoreRecord(score=tenths(score), reason=given.reason, citations=kept)
            verdict["scores"].setdefault(side, {})[criterion.id] = record
            exact.setdefault(side, {})[criterion.id] = score
        for side, scored in exact.items():
            total = self.rubric.total(scored)
            if total is not None:
                verdict["totals"][side] = tenths(total)
        verdict["status"] = "ok"
        if reply.placeholder:
            verdict["placeholder"] = True
        verdict["criteria"] = self.rubric.scales()
        verdict["lengths"] = dict(self.lengths)
        return verdict

    def opinion_verdict(self, opinion: JudgeOpinion, reply: Reply) -> Verdict:
        """Return the verdict of an opinion that is unblinded, so that it names debaters by id.

        The winner is one of the sides, `tie` or `synthesis`. An opinion with neither a valid winner nor a
        valid score becomes a `failed` verdict.
        """
        verdict = self.score_verdict(opinion.scores, reply)
        outcome = opinion.winner.strip().casefold()
        winner = _side_meant(opinion.winner, self.sides) or (outcome if outcome in (TIE, SYNTHESIS) else None)
        if winner is None and not verdict["scores"]:
            del verdict["criteria"]
            verdict["status"] = "failed"
            verdict["error"] = f"the judge named {opinion.winner!r} as winner and scored no debater"
            return verdict
        verdict["reasoning"] = opinion.reasoning
        verdict["winner"] = winner or TIE
        if cases := self._cases(opinion.cases, verdict):
            verdict["cases"] = cases
        verdict["unmet_requirements"] = [
            Unmet(text=each.text, major=each.major) for each in opinion.unmet_requirements
        ]
        verdict["open_questions"] = opinion.open_questions
        verdict["recommendations"] = opinion.recommendations
        if winner is None:
            verdict["notes"].append(
                f"The judge named {opinion.winner!r} as winner, who took no part; recorded as a tie."
            )
        self._answer_for_totals(verdict, opinion.despite_scores.strip())
        verdict["flip"]["winners"] = [verdict["winner"]]
        confidence = min(max(opinion.confidence, 0.0), 100.0) if isfinite(opinion.confidence) else 0.0
        verdict["confidence"] = None if verdict["winner"] == TIE else float(round(confidence))
        if isinstance(opinion, SolutionOpinion):
            verdict["solution_markdown"] = opinion.solution_markdown
            verdict["tradeoffs"] = opinion.tradeoffs
            cap_confidence(verdict)
        return verdict

    def _cases(self, given: Iterable[DebaterCase], verdict: Verdict) -> dict[str, Case]:
        """Return what speaks for each side and against it; of nobody, or empty, it is left out."""
        cases: dict[str, Case] = {}
        for each in given:
            side = _side_meant(each.debater, self.sides)
            if side is None:
                continue
            case = cases.setdefault(side, Case(pros=[], cons=[]))
            for kept, reasons in ((case["pros"], each.pros), (case["cons"], each.cons)):
                kept += [
                    Reason(text=reason.text.strip(), citations=self._existing_ids(reason.citations, verdict))
                    for reason in reasons
                    if reason.text.strip()
                ]
        most = reasons_each(len(self.sides))
        return {
            side: Case(pros=case["pros"][:most], cons=case["cons"][:most]) for side, case in cases.items()
        }

    def _existing_ids(self, citations: Iterable[str], verdict: Verdict) -> list[str]:
        """Return the ids cited that exist, each once; the others are counted."""
        cited = list(dict.fromkeys(map(cited_id, citations)))
        kept = [citation for citation in cited if citation in self.known_ids]
        verdict["dropped_citations"] += len(cited) - len(kept)
        return kept

    def _answer_for_totals(self, verdict: Verdict, why: str) -> None:
        """Note why a winner whose total is not the highest won all the same; unexplained, it is a tie."""
        totals, winner = verdict["totals"], verdict["winner"]
        if winner not in totals or totals[winner] == max(totals.values()):
            return
        best = max(totals, key=lambda side: totals[side])
        named, ahead = (self.names.get(side, side) for side in (winner, best))
        figures = f"{ahead} has {totals[best]:.1f} of 100, {named} {totals[winner]:.1f}"
        if why:
            verdict["notes"].append(f"The judge named {named} in spite of a lower total ({figures}): {why}")
        else:
            verdict["winner"] = TIE
            verdict["notes"].append(f"The judge named {named} and does not say why: {figures}. A tie.")


@dataclass(frozen=True)
class Sitting:
    """What a judge is asked, and what its answer is held to."""

    call: ModelCall
    check: OpinionCheck
    blinding: Blinding | None = None

    def opinion(self, reply: Reply) -> BaseModel | None:
        """Return what the judge said, names and all; `None` where it gave no structured answer."""
        if not reply.ok or reply.data is None or self.call.schema is None:
            return None
        data = self.blinding.unblind_data(reply.data) if self.blinding else reply.data
        return self.call.schema.model_validate(data)

    def failed(self, reply: Reply) -> Verdict:
        """Return the verdict where there is no opinion."""
        error = reply.error or "the judge gave no structured answer"
        return self.check.failed(error, model=self.call.model, usage=reply.usage)


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
        confidence=None,
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


def cap_confidence(verdict: Verdict) -> None:
    """Hold a verdict's confidence to `MAJOR_CAP` where a major requirement is unmet, and note it."""
    major = next((each["text"] for each in verdict["unmet_requirements"] if each["major"]), None)
    if major is not None and (verdict["confidence"] or 0.0) > MAJOR_CAP:
        verdict["confidence"] = MAJOR_CAP
        verdict["notes"].append(
            f"Confidence capped at {MAJOR_CAP:.0f}: a major requirement is unmet: {clip(major, NOTED_CHARS)}"
        )


def confidence_of(verdict: Verdict) -> int | None:
    """Return a verdict's confidence as it is shown; earlier builds gave ties a number."""
    stated = verdict["confidence"]
    return None if stated is None or verdict["winner"] == TIE else round(min(max(stated, 0.0), 100.0))


def changed_text(verdict: Verdict) -> str:
    """Return what of a verdict did not count as it was said, in a sentence; `""` for nothing."""
    counts = (
        (verdict["dropped_scores"], "scores given twice, or of nobody"),
        (verdict["clamped_scores"], "scores brought within their scale"),
        (verdict["dropped_citations"], "citations of messages that do not exist"),
    )
    said = [f"{count} {which}" for count, which in counts if count]
    return f"Not taken as given: {'; '.join(said)}." if said else ""


def _side_meant(said: str, sides: Sequence[str]) -> str | None:
    """The side meant: the very id, else the one id that differs in case or surrounding space alone."""
    wanted = said.strip()
    if said in sides or wanted in sides:
        return said if said in sides else wanted
    alike = [side for side in sides if side.casefold() == wanted.casefold()]
    return alike[0] if len(alike) == 1 else None
