"""Check of a judge's response, which turns the response into a valid verdict."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, cast

from pydantic import BaseModel

from moot.calls.effects import ModelCall, Reply
from moot.judging.blinding import Blinding
from moot.judging.judge_response import CriterionScore, DebaterCase, JudgeResponse, empty_value, reasons_each
from moot.judging.rubrics import Rubric
from moot.state.entries import EntryUsage, cited_id
from moot.state.verdict import (
    SYNTHESIS,
    TIE,
    UNDECIDED,
    VERDICT_FIELDS,
    Case,
    Flip,
    Reason,
    ScoreRecord,
    Verdict,
    VerdictField,
    tenths,
)
from moot.text.plain_text import clip, count_noun

MAJOR_CAP = 40.0
"""Maximum confidence (0 to 100) of a verdict if a major requirement is unmet."""
NOTED_CHARS = 160
"""Maximum number of characters that a note quotes from an unmet requirement. The list of requirements
has the full text."""


@dataclass(frozen=True)
class ResponseCheck:
    """Checker that turns a judge's response into a verdict.

    The verdict contains only known debaters, criteria and messages.
    """

    rubric: Rubric
    sides: Sequence[str]
    """Ids of the debaters to score, in presentation order."""
    known_ids: Collection[str] = frozenset()
    """Ids of the messages that the judge may cite. A set makes lookups fast if there are many ids."""
    judge: str = ""
    """Id of the judge whose response is checked."""
    lengths: Mapping[str, int] = field(default_factory=dict)
    """Number of tokens that each debater wrote in the debate, keyed by debater id."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Display names of the debaters for use in notes, keyed by debater id."""
    options: Sequence[str] = ()
    """Options of the question. The decision must be one of them or `undecided`."""

    def failed(self, error: str, *, model: str = "", usage: EntryUsage | None = None) -> Verdict:
        """Return a failed verdict for the judge, with `error` as the reason for the failure."""
        rubric = self.rubric.name
        return failed_verdict(self.judge, error, model=model, rubric=rubric, order=self.sides, usage=usage)

    def score_verdict(self, scores: Iterable[CriterionScore], reply: Reply) -> Verdict:
        """Return a verdict that contains the judge's scores but no winner.

        Scores are clamped to their scales. Citations of unknown messages, and scores of unknown debaters or
        criteria, are dropped and counted. A placeholder has no scores.
        """
        verdict = self.failed("", model=reply.model, usage=reply.usage)
        exact: dict[str, dict[str, float]] = {}
        for given in () if reply.placeholder else scores:
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

    def response_verdict(self, response: JudgeResponse, reply: Reply) -> Verdict:
        """Convert a judge's response to a verdict. The response contains debater ids instead of labels.

        The winner is a debater, `tie` or `synthesis`. A response without a valid winner and without a valid
        score becomes a failed verdict. A placeholder is always a tie.
        """
        said = response.model_dump()
        scores = [CriterionScore.model_validate(each) for each in said.get("scores", ())]
        verdict = self.score_verdict(scores, reply)
        named = said["winner"]
        if reply.placeholder:
            verdict["reasoning"], verdict["winner"] = said["reasoning"], TIE
            verdict["flip"]["winners"] = [TIE]
            return verdict
        outcome = named.strip().casefold()
        winner = _side_meant(named, self.sides) or (outcome if outcome in (TIE, SYNTHESIS) else None)
        if winner is None and not verdict["scores"]:
            del verdict["criteria"]
            verdict["status"] = "failed"
            verdict["error"] = f"the judge named {named!r} as winner and scored no debater"
            return verdict
        record = cast(dict[str, Any], verdict)
        for name, each in VERDICT_FIELDS.items():
            if name in said and name not in ("winner", "scores"):
                record[name] = self._recorded(each, said[name], verdict)
        if self.options:
            verdict["options"] = list(self.options)
            if "decision" in said:  # the second presentation order may be asked for scores alone
                self._restrict_decision(verdict)
        verdict["winner"] = winner or TIE
        if winner is None:
            verdict["notes"].append(
                f"The judge named {named!r} as winner, who took no part; recorded as a tie."
            )
        self._answer_for_totals(verdict, verdict["despite_scores"])
        verdict["flip"]["winners"] = [verdict["winner"]]
        clear_confidence(verdict)
        if "solution_markdown" in said:
            cap_confidence(verdict)
        return verdict

    def _restrict_decision(self, verdict: Verdict) -> None:
        """Replace a decision that is not among the options with `undecided`, and add a note."""
        said = verdict["decision"]
        allowed = [*self.options, UNDECIDED]
        named = [each for each in allowed if each.casefold() == said.strip(" .`\"'“”*").casefold()]
        verdict["decision"] = named[0] if named else UNDECIDED
        if not named:
            verdict["notes"].append(
                f"The judge's decision was none of the options, so it counts as {UNDECIDED}: "
                f"{clip(said, NOTED_CHARS)}"
            )

    def _recorded(self, field: VerdictField, said: Any, verdict: Verdict) -> Any:
        """Convert a field of a judge's response to the form in which it is stored.

        Unknown debaters and message ids are dropped.
        """
        if isinstance(said, str):
            return said.strip()
        if isinstance(said, int | float):
            return float(round(min(max(said, 0.0), 100.0))) if isfinite(said) else 0.0
        if said is None:
            return None
        if field.kind == dict[str, Case]:
            return self._cases(map(DebaterCase.model_validate, said), verdict)
        if field.kind == list[str]:
            return [text.strip() for text in said if text.strip()]
        rows = [row for each in said if (row := self._row(each, verdict)) is not None]
        if field.kind == dict[str, str]:
            return {row["debater"]: row["position"].strip() for row in rows if row["position"].strip()}
        return rows

    def _row(self, said: Mapping[str, Any], verdict: Verdict) -> dict[str, Any] | None:
        """Return a copy of one row of a judge's response without references to unknown debaters or messages.

        Return `None` if the debater is unknown.
        """
        row = dict(said)
        if "debater" in row:
            side = _side_meant(row["debater"], self.sides)
            if side is None:
                return None
            row["debater"] = side
        if cited := row.get("message_id"):
            row["message_id"] = next(iter(self._existing_ids([cited], verdict)), "")
        return row

    def _cases(self, given: Iterable[DebaterCase], verdict: Verdict) -> dict[str, Case]:
        """Return the valid reasons for and against each debater's answer.

        Empty reasons and citations of missing messages are dropped.
        """
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
        """Return the cited ids that belong to known messages, and count the unknown ids."""
        cited = list(dict.fromkeys(map(cited_id, citations)))
        kept = [citation for citation in cited if citation in self.known_ids]
        verdict["dropped_citations"] += len(cited) - len(kept)
        return kept

    def _answer_for_totals(self, verdict: Verdict, why: str) -> None:
        """Add a note or declare a tie if the judge's winner does not have the highest total score.

        If the judge gave a reason, add a note with this reason.

        Without a reason the result is a tie.
        """
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
class JudgeRequest:
    """Model call that asks a judge for a verdict, together with the data for processing the response."""

    call: ModelCall
    check: ResponseCheck
    blinding: Blinding | None = None

    def response(self, reply: Reply) -> BaseModel | None:
        """Return the judge's response with debaters' ids and names in place of the labels.

        `None` if the judge gave no structured reply.
        """
        if not reply.ok or reply.data is None or self.call.schema is None:
            return None
        data = self.blinding.unblind_data(reply.data) if self.blinding else reply.data
        return self.call.schema.model_validate(data)

    def failed(self, reply: Reply) -> Verdict:
        """Return a failed verdict for a reply that contains no valid response."""
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
    """Return a verdict with status `failed` and empty fields. `error` contains the reason."""
    said = {name: empty_value(each) for name, each in VERDICT_FIELDS.items()}
    record = {
        "status": "failed",
        "error": error,
        "judge": judge,
        "model": model,
        "rubric": rubric,
        "order": list(order),
        "totals": {},
        **said,
        "dropped_citations": 0,
        "dropped_scores": 0,
        "clamped_scores": 0,
        "notes": [],
        "flip": Flip(orders=[list(order)], winners=[], flipped=None),
        "lengths": {},
        "usage": usage.copy() if usage else EntryUsage(),
    }
    return cast(Verdict, record)


def clear_confidence(verdict: Verdict) -> None:
    """Remove the confidence in the winner if the verdict is a tie.

    If the tie has no decision, also remove the overall confidence.
    """
    if verdict["winner"] == TIE:
        verdict["winner_confidence"] = None
        if not verdict["decision"] or verdict.get("placeholder"):
            verdict["confidence"] = None


def cap_confidence(verdict: Verdict) -> None:
    """Limit the confidence to `MAJOR_CAP` and add a note if a major requirement is unmet."""
    major = next((each["text"] for each in verdict["unmet_requirements"] if each["major"]), None)
    if major is not None and (verdict["confidence"] or 0.0) > MAJOR_CAP:
        verdict["confidence"] = MAJOR_CAP
        verdict["notes"].append(
            f"Confidence capped at {MAJOR_CAP:.0f}: a major requirement is unmet: {clip(major, NOTED_CHARS)}"
        )


def confidence_of(verdict: Verdict) -> int | None:
    """Return the confidence of a verdict for display, as an integer from 0 to 100.

    Return `None` for a tie without a decision.
    """
    stated = verdict["confidence"]
    if stated is None or (verdict["winner"] == TIE and not verdict.get("decision")):
        return None
    return round(min(max(stated, 0.0), 100.0))


def changed_text(verdict: Verdict) -> str:
    """Return a sentence on how many scores and citations in a judge's response were dropped or corrected.

    Return `""` if nothing was dropped or clamped.
    """
    counts = (
        (
            verdict["dropped_scores"],
            "score",
            "ignored (no debater's, unknown criterion, or given twice)",
        ),
        (verdict["clamped_scores"], "score", "outside the scale, set to its nearest end"),
        (verdict["dropped_citations"], "citation", "ignored (no such message)"),
    )
    said = [f"{count_noun(count, noun)} {change}" for count, noun, change in counts if count]
    return f"Corrected in the judge's reply: {'; '.join(said)}." if said else ""


def _side_meant(said: str, sides: Sequence[str]) -> str | None:
    """Return the id of the debater whom the judge named, or `None` if no debater matches.

    Case and surrounding spaces are ignored if only one id matches.
    """
    wanted = said.strip()
    if said in sides or wanted in sides:
        return said if said in sides else wanted
    alike = [side for side in sides if side.casefold() == wanted.casefold()]
    return alike[0] if len(alike) == 1 else None
