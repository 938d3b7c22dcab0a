"""Requests to judges, and the check that turns a judge's reply into a verdict."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, cast

from pydantic import BaseModel

from moot.calls.model_calls import ModelCall, Reply
from moot.config.rubrics import Rubric
from moot.judging.blinding import Blinding
from moot.judging.defects import defect_of, text_notes
from moot.judging.response_schema import CriterionScore, JudgeResponse
from moot.judging.verdict_fields import empty_value
from moot.prompts.structured_calls import match_debater
from moot.state import verdict as verdict_types
from moot.state.entries import EntryUsage, JsonObject, cited_id, ids_in
from moot.text.plain_text import clip

MAJOR_CAP = 40.0
"""Maximum confidence of a verdict that fails a major requirement, from 0 to 100."""
NOTED_CHARS = 160
"""Maximum length of a quotation in a verdict's note, in characters. The quotation is from a requirement or a
decision. The list of requirements has the full text."""


_ID_FIELDS = ("citations", "stated_in", "caused_by", "criterion", "debater", "winner")
"""Fields of a judge's reply that hold only ids."""


NO_SOURCE = r"\g<0> (no source)"
"""Replacement that marks a figure without a source."""
MIN_FIGURE_CHARS = 4
"""Minimum length of a marked figure, in characters. A shorter one may be any number."""


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a copy of JSON data with all texts changed, except in fields that hold only ids."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_map_texts(each, change) for each in value]
    if isinstance(value, dict):
        return {key: each if key in _ID_FIELDS else _map_texts(each, change) for key, each in value.items()}
    return value


@dataclass(frozen=True)
class ResponseCheck:
    """Checker that makes a verdict of known debaters, criteria and messages from a response."""

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
    """Debaters' names to show in notes, keyed by debater id."""
    options: Sequence[str] = ()
    """Possible answers to the debate's question. The decision must be one of them or `undecided`."""
    read: verdict_types.MessagesRead | None = None
    """How many messages the judge's prompt shows. `None`: unknown."""
    transcript_ids: Collection[str] = frozenset()
    """Ids of all messages of the debate. Other ids in a text are marked. Empty: no id is checked."""

    @property
    def _side_names(self) -> dict[str, str]:
        return {side: self.names.get(side, side) for side in self.sides}

    def failed(
        self, error: str, *, model: str = "", usage: EntryUsage | None = None
    ) -> verdict_types.Verdict:
        """Return a failed verdict for the judge, with `error` as the reason."""
        rubric = self.rubric.name
        return failed_verdict(self.judge, error, model=model, rubric=rubric, order=self.sides, usage=usage)

    def score_verdict(self, scores: Iterable[CriterionScore], reply: Reply) -> verdict_types.Verdict:
        """Return a verdict that contains the judge's scores but no winner.

        Scores are clamped to their scales. Citations of unknown messages, and scores of unknown debaters or
        criteria, are dropped and counted. A placeholder has no scores.
        """
        verdict = self.failed("", model=reply.model, usage=reply.usage)
        exact_scores: dict[str, dict[str, float]] = {}
        for row in () if reply.placeholder else scores:
            side = match_debater(row.debater, self._side_names)
            criterion = self.rubric.criterion(row.criterion)
            side_scores = verdict["scores"].get(side, {})
            if not side or criterion is None or criterion.id in side_scores or not isfinite(row.score):
                verdict["dropped_scores"] += 1
                continue
            citations = self._existing_ids(row.citations, verdict)
            score = criterion.clamp(row.score)
            verdict["clamped_scores"] += score != row.score
            record = verdict_types.ScoreRecord(
                score=verdict_types.tenths(score), reason=row.reason, citations=citations
            )
            verdict["scores"].setdefault(side, {})[criterion.id] = record
            exact_scores.setdefault(side, {})[criterion.id] = score
        for side, criterion_scores in exact_scores.items():
            total = self.rubric.total(criterion_scores)
            if total is not None:
                verdict["totals"][side] = verdict_types.tenths(total)
        verdict["status"] = "ok"
        if reply.placeholder:
            verdict["placeholder"] = True
        verdict["criteria"] = self.rubric.scales()
        verdict["lengths"] = dict(self.lengths)
        if self.read:
            verdict["read"] = self.read
        return verdict

    def response_verdict(self, response: JudgeResponse, reply: Reply) -> verdict_types.Verdict:
        """Convert a judge's response to a verdict.

        Labels in the response must have been replaced with debater ids. The winner is a debater, `tie` or
        `synthesis`. A response that names another winner, or most of whose scores cannot be used, becomes a
        failed verdict. A placeholder is always a tie.
        """
        data, invented = self._with_marks(response.model_dump())
        scores = [CriterionScore.model_validate(row) for row in data.get("scores", ())]
        verdict = self.score_verdict(scores, reply)
        verdict["dropped_citations"] += invented
        winner_text = data["winner"]
        if reply.placeholder:
            verdict["reasoning"], verdict["winner"] = data["reasoning"], verdict_types.TIE
            verdict["flip"]["winners"] = [verdict_types.TIE]
            return verdict
        winner = match_debater(winner_text, {**self._side_names, **verdict_types.NO_WINNER})
        error = defect_of(verdict)
        if not winner:
            error = f"the judge named {clip(winner_text, NOTED_CHARS)!r} as winner, who took no part"
        if error:
            return self.failed(error, model=reply.model, usage=reply.usage)
        record = cast(dict[str, Any], verdict)
        for name, verdict_field in verdict_types.VERDICT_FIELDS.items():
            if name in data and name not in ("winner", "scores"):
                record[name] = self._recorded(verdict_field, data[name], verdict)
        if self.options:
            verdict["options"] = list(self.options)
            if "decision" in data:  # the second presentation order may be asked for scores alone
                self._restrict_decision(verdict)
        verdict["winner"] = winner
        verdict["notes"] += text_notes(data)
        self._answer_for_totals(verdict, verdict["despite_scores"])
        verdict["flip"]["winners"] = [verdict["winner"]]
        clear_confidence(verdict)
        if "solution_markdown" in data:
            cap_confidence(verdict)
        return verdict

    def _with_marks(self, data: JsonObject) -> tuple[JsonObject, int]:
        """Mark ids of missing messages and figures without a source in all texts, and count the ids."""
        invented: list[str] = []

        def mark_ids(text: str) -> str:
            missing = [key for key in ids_in(text) if self.transcript_ids and key not in self.transcript_ids]
            invented.extend(missing)
            for key in missing:
                text = re.sub(rf"\b{key}\b", f"{key} (no such message)", text)
            return text

        marked = _map_texts(data, mark_ids)
        figures = [each.strip(" .") for each in marked.get("unsourced", ()) if re.search(r"\d", each)]
        figures = sorted((each for each in figures if len(each) >= MIN_FIGURE_CHARS), key=len, reverse=True)
        pattern = "|".join(r"\s+".join(map(re.escape, each.split())) for each in figures) or "(?!)"
        figure = re.compile(rf"(?<![\w.,])(?:{pattern})(?!\w|[.,]\d)")
        for name in {*marked} - {"unsourced", "question", *(["decision"] if self.options else [])}:
            marked[name] = _map_texts(marked[name], lambda text: figure.sub(NO_SOURCE, text))
        return marked, len(invented)

    def _restrict_decision(self, verdict: verdict_types.Verdict) -> None:
        """Replace a decision that is no option with `undecided`, and note it."""
        decision = verdict["decision"]
        allowed = [*self.options, verdict_types.UNDECIDED]
        matches = [each for each in allowed if each.casefold() == decision.strip(" .`\"'“”*").casefold()]
        verdict["decision"] = matches[0] if matches else verdict_types.UNDECIDED
        if not matches:
            verdict["notes"].append(
                f"The judge's decision was none of the options, so it counts as {verdict_types.UNDECIDED}: "
                f"{clip(decision, NOTED_CHARS)}"
            )

    def _recorded(self, field: verdict_types.VerdictField, value: Any, verdict: verdict_types.Verdict) -> Any:
        """Convert a field to its stored value, without unknown debaters and message ids."""
        if isinstance(value, str):
            return value.strip()
        if isinstance(value, int | float):
            return float(round(min(max(value, 0.0), 100.0))) if isfinite(value) else 0.0
        if value is None:
            return None
        if field.kind == list[str]:
            return [text.strip() for text in value if text.strip()]
        rows = [row for each in value if (row := self._row(each, verdict)) is not None]
        if field.kind == dict[str, str]:
            return {row["debater"]: row["position"].strip() for row in rows if row["position"].strip()}
        return rows

    def _row(self, response_row: Mapping[str, Any], verdict: verdict_types.Verdict) -> dict[str, Any] | None:
        """Check the debater and the message id of an item in a judge's response.

        Return a copy of the item. The name of the debater becomes the debater's id. An unknown message id
        becomes `""`. Return `None` if the debater is unknown.
        """
        row = dict(response_row)
        if "debater" in row:
            side = match_debater(row["debater"], self._side_names)
            if not side:
                return None
            row["debater"] = side
        if "met" in row and self.rubric.criterion(row["criterion"]) is None:
            return None
        if "findings" in row:
            row["findings"] = [finding for each in row["findings"] if (finding := self._row(each, verdict))]
            row["citations"] = self._existing_ids(row["citations"], verdict)
        for name in ("stated_in", "caused_by"):
            if message_id := row.get(name):
                row[name] = next(iter(self._existing_ids([message_id], verdict)), "")
        return row

    def _existing_ids(self, citations: Iterable[str], verdict: verdict_types.Verdict) -> list[str]:
        """Return the cited ids of known messages, and count the others in the verdict."""
        cited_ids = list(dict.fromkeys(map(cited_id, citations)))
        existing_ids = [citation for citation in cited_ids if citation in self.known_ids]
        verdict["dropped_citations"] += len(cited_ids) - len(existing_ids)
        return existing_ids

    def _answer_for_totals(self, verdict: verdict_types.Verdict, reason: str) -> None:
        """Declare a tie if a lower total wins without a reason. A reason becomes a note."""
        totals, winner = verdict["totals"], verdict["winner"]
        if winner not in totals or totals[winner] == max(totals.values()):
            return
        best = max(totals, key=lambda side: totals[side])
        winner_name, best_name = (self.names.get(side, side) for side in (winner, best))
        figures = f"{best_name} has {totals[best]:.1f} of 100, {winner_name} {totals[winner]:.1f}"
        if reason:
            verdict["notes"].append(
                f"The judge named {winner_name} in spite of a lower total ({figures}): {reason}"
            )
        else:
            verdict["winner"] = verdict_types.TIE
            verdict["notes"].append(f"The judge named {winner_name} and does not say why: {figures}. A tie.")


@dataclass(frozen=True)
class JudgeRequest:
    """Model call that asks a judge for a verdict, and the data to process the response."""

    call: ModelCall
    check: ResponseCheck
    blinding: Blinding | None = None

    def response(self, reply: Reply) -> BaseModel | None:
        """Return the response with real ids and names, `None` without a structured reply."""
        if not reply.ok or reply.data is None or self.call.schema is None:
            return None
        data = self.blinding.unblind_data(reply.data) if self.blinding else reply.data
        return self.call.schema.model_validate(data)

    def failed(self, reply: Reply) -> verdict_types.Verdict:
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
) -> verdict_types.Verdict:
    """Return a verdict with status `failed` and empty fields. `error` contains the reason."""
    empty_fields = {name: empty_value(each) for name, each in verdict_types.VERDICT_FIELDS.items()}
    record = {
        "status": "failed",
        "error": error,
        "judge": judge,
        "model": model,
        "rubric": rubric,
        "order": list(order),
        "totals": {},
        **empty_fields,
        "dropped_citations": 0,
        "dropped_scores": 0,
        "clamped_scores": 0,
        "notes": [],
        "flip": verdict_types.Flip(orders=[list(order)], winners=[], flipped=None),
        "lengths": {},
        "usage": usage.copy() if usage else EntryUsage(),
    }
    return cast(verdict_types.Verdict, record)


def clear_confidence(verdict: verdict_types.Verdict) -> None:
    """Remove the confidence in the winner of a tie, and without a decision all confidence."""
    if verdict["winner"] == verdict_types.TIE:
        verdict["winner_confidence"] = None
        if not verdict["decision"] or verdict.get("placeholder"):
            verdict["confidence"] = None


def cap_confidence(verdict: verdict_types.Verdict) -> None:
    """Limit the confidence to `MAJOR_CAP` if a major requirement is unmet, and note why."""
    major_requirement = next((each["text"] for each in verdict["unmet_requirements"] if each["major"]), None)
    if major_requirement is not None and (verdict["confidence"] or 0.0) > MAJOR_CAP:
        verdict["confidence"] = MAJOR_CAP
        verdict["notes"].append(
            f"Confidence capped at {MAJOR_CAP:.0f}: a major requirement is unmet: "
            f"{clip(major_requirement, NOTED_CHARS)}"
        )
