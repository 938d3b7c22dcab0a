"""Requests to judges, the schema of a reply, its check, and the display of verdict fields."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from math import isfinite
from statistics import fmean
from types import MappingProxyType
from typing import Annotated, Any, Union, cast, get_origin

from pydantic import BaseModel, Field, GetJsonSchemaHandler, WithJsonSchema, create_model
from pydantic_core import CoreSchema

from moot.calls.model_calls import ModelCall, Reply
from moot.config.rubrics import Rubric
from moot.judging.blinding import Blinding
from moot.judging.defects import defect_of, text_notes
from moot.prompts.request import between, cause_type, citation_type, many, narrow_schema, one_of
from moot.prompts.structured_calls import match_debater
from moot.state import verdict as verdict_types
from moot.state.entries import Entry, EntryUsage, cited_id
from moot.text.plain_text import clip, count_noun
from moot.text.terms import same_statement

MAX_POINTS = 12
"""Maximum number of position changes in a judge's response. The reasons for all answers together have the
same limit, and so have the reasons against them."""
MAX_REASONS = 3
"""Maximum number of reasons for a debater's answer. The same limit applies to reasons against the answer. The
numbers are lower with more than four debaters."""
SCORE_TOKENS = 80
"""Estimated number of tokens for one score in a judge's JSON response. `VerdictField.tokens` has the tokens
of other fields."""
REASON_TOKENS = 60
"""Estimated number of tokens for one reason in a judge's JSON response."""


@dataclass(frozen=True)
class JudgeSpec:
    """Default settings for the judge of a debate protocol."""

    instruction: str = ""
    """Additional instruction for the judge, placed at the end of the prompt."""
    judging: verdict_types.Judging = "contest"
    """Judging mode, such as `contest` or `design`, which determines the fields of a verdict."""
    subject: str = "a debate"
    """Phrase that completes the sentence "You judge …" in the judge's prompt. It is used if `interactive` is
    true."""
    rubric: str = "debate"
    swap: bool = True
    """True if each judge gives one verdict for each order of the debaters."""
    interactive: bool = True
    """True if the debaters can read each other's messages."""
    judged: bool = True
    """True if debates with this protocol are judged."""
    reads_summary: bool = True
    """True if the judge's prompt shows the rolling summary. If no prompt shows the summary, none is made."""

    @property
    def solution(self) -> bool:
        """Return True if the judge's verdict includes a solution.

        The judge then also checks whether it meets the requirements.
        """
        return self.judging in verdict_types.SOLVED


class CriterionScore(BaseModel):
    """Score that a judge gives one debater on one criterion."""

    debater: str
    criterion: str
    reason: str = ""
    citations: list[str] = []
    score: float


class CitedReason(BaseModel):
    """Reason for or against an answer, with the ids of the messages that it cites.

    It is about the debated question, not about the quality of the arguments.
    """

    text: str = Field(description="Reason that is clear to a reader who has not seen the debate.")
    citations: list[str] = []


class DebaterCase(BaseModel):
    """Reasons for and against one debater's answer."""

    debater: str
    pros: list[CitedReason] = []
    cons: list[CitedReason] = []


class UnmetRequirement(BaseModel):
    """Requirement in the topic that the judge's decision does not meet."""

    text: str
    major: bool = Field(False, description="True if the result is unusable until this requirement is met.")


class FinalPosition(BaseModel):
    """Position of one debater at the end of the debate."""

    debater: str
    position: str


class DebaterMove(BaseModel):
    """A judge's statement that a debater changed its position during the debate."""

    debater: str
    before: str
    after: str
    message_id: str = ""


class JudgeResponse(BaseModel):
    """Response of a judge.

    The fields are in the order in which the judge fills them in: reasoning, answer, scores. `response_type`
    adds the fields that the judging mode asks for.
    """

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the JSON schema with the most important fields required.

        A response that lacks required fields can still be read.
        """
        schema = handler.resolve_ref_schema(handler(core_schema))
        required = [name for name in cls.model_fields if name in verdict_types.VERDICT_FIELDS]
        schema["required"] = [name for name in required if verdict_types.VERDICT_FIELDS[name].required]
        return schema


def reasons_each(sides: int) -> int:
    """Return how many reasons a judge may give for each answer.

    The same limit applies to reasons against an answer.
    """
    return max(1, min(MAX_REASONS, MAX_POINTS // max(1, sides)))


def response_tokens(sides: int, criteria: int, *, judging: verdict_types.Judging) -> int:
    """Return the expected number of tokens in a judge's response."""
    reason_tokens = 0 if judging == "scores" else 2 * REASON_TOKENS * reasons_each(sides)
    tokens_per_side = SCORE_TOKENS * criteria + reason_tokens
    row_kinds = (dict[str, str], list[verdict_types.Move])
    field_tokens = sum(
        field.tokens * (sides if field.kind in row_kinds else 1)
        for field in verdict_types.asked_fields(judging)
    )
    return tokens_per_side * sides + field_tokens


def response_type(
    judging: verdict_types.Judging,
    types: Mapping[str, Any] = MappingProxyType({}),
    descriptions: Mapping[str, str] = MappingProxyType({}),
) -> type[JudgeResponse]:
    """Return the Pydantic class that defines the fields of a judge's response.

    The fields depend on the judging mode.

    Args:
        judging: judging mode.
        types: types that replace those of single fields.
        descriptions: descriptions that replace those of single fields.
    """
    fields: dict[str, Any] = {}
    for verdict_field in verdict_types.asked_fields(judging):
        kind = types.get(verdict_field.name, _REPLY_TYPES.get(verdict_field.kind, verdict_field.kind))
        default = _UNSAID.get(verdict_field.kind, [])
        if verdict_field.name in _NEEDED:
            default = ...
        description = descriptions.get(verdict_field.name, verdict_field.ask) or None
        fields[verdict_field.name] = (Annotated[kind, Field(description=description)], default)
    return create_model("JudgeResponse", __base__=JudgeResponse, __doc__="The verdict.", **fields)


_REPLY_TYPES: Mapping[Any, Any] = {
    float | None: Annotated[float | None, WithJsonSchema({"type": "number"})],
    dict[str, str]: list[FinalPosition],
    list[verdict_types.Move]: list[DebaterMove],
    list[verdict_types.Unmet]: list[UnmetRequirement],
    dict[str, verdict_types.Case]: list[DebaterCase],
    dict[str, dict[str, verdict_types.ScoreRecord]]: list[CriterionScore],
}
"""Field types in a judge's response, keyed by the matching types in a stored verdict."""
_UNSAID: Mapping[Any, Any] = {str: "", float | None: None}
"""Default values for missing response fields, keyed by field type."""
REASONING_OF_SCORES = "Weigh the debaters' arguments, in at most 100 words."
"""Description of the field `reasoning` for judges that give only scores. It is part of the JSON schema."""
WINNER_OF_SOLUTION = 'The debater whose solution should be used unchanged; else "synthesis".'
"""Description of the field `winner` for judges that also write a solution. It is part of the JSON schema."""
_NEEDED = ("reasoning", "winner")
"""Fields without which a judge's response is not valid."""


def response_schema(
    rubric: Rubric,
    sides: Sequence[str],
    ids: Sequence[str],
    *,
    judging: verdict_types.Judging,
    options: Sequence[str] = (),
) -> type[JudgeResponse]:
    """Return the Pydantic class for judges' responses in one debate.

    The class allows only the debate's ids and scales. Each valid instance is a usable response.

    Args:
        rubric: the rubric, with criteria and scales.
        sides: names or labels of the debaters.
        ids: ids of the messages in the prompt.
        judging: judging mode.
        options: options of the question. The decision is one of them or `undecided`.
    """
    scales: dict[tuple[float, float], list[str]] = {}
    for criterion in rubric.criteria:
        scales.setdefault((criterion.scale_min, criterion.scale_max), []).append(criterion.id)
    row_types: list[Any] = [
        narrow_schema(
            CriterionScore,
            {
                "debater": one_of(sides, "Debater"),
                "criterion": one_of(criteria),
                "citations": citation_type(ids),
                "score": between(*scale),
            },
            f"ScoreOf{number}to{scale[1]:g}" if len(scales) > 1 else "",
        )
        for number, (scale, criteria) in enumerate(scales.items(), 1)
    ]
    row_count, debater_field = len(sides) * len(rubric.criteria), {"debater": one_of(sides, "Debater")}
    reasons = many(narrow_schema(CitedReason, {"citations": citation_type(ids)}), 0, reasons_each(len(sides)))
    types_by_kind: dict[Any, Any] = {
        float | None: Annotated[
            float | None, WithJsonSchema({"type": "integer", "minimum": 0, "maximum": 100})
        ],
        dict[str, str]: many(narrow_schema(FinalPosition, debater_field), 0, len(sides)),
        list[verdict_types.Move]: many(
            narrow_schema(DebaterMove, {**debater_field, "message_id": cause_type(ids)}), 0, MAX_POINTS
        ),
        dict[str, verdict_types.Case]: many(
            narrow_schema(DebaterCase, {**debater_field, "pros": reasons, "cons": reasons}),
            len(sides),
            len(sides),
        ),
        dict[str, dict[str, verdict_types.ScoreRecord]]: many(Union[tuple(row_types)], row_count, row_count),  # noqa: UP007  # built at run time
    }
    fields = verdict_types.asked_fields(judging)
    types = {field.name: types_by_kind[field.kind] for field in fields if field.kind in types_by_kind}
    # Only a verdict with a decision can combine positions, and a solution cannot be a tie.
    other_winners = [
        *(() if judging in verdict_types.SOLVED else (verdict_types.TIE,)),
        *(() if judging == "scores" else (verdict_types.SYNTHESIS,)),
    ]
    types["winner"] = one_of([*sides, *other_winners])
    descriptions = {"reasoning": REASONING_OF_SCORES} if judging == "scores" else {}
    if judging in verdict_types.SOLVED:
        descriptions["winner"] = WINNER_OF_SOLUTION
    if options:
        types["decision"] = one_of([*options, verdict_types.UNDECIDED])
        descriptions["decision"] = ""  # the prompt describes the options
    return response_type(judging, types, descriptions)


@dataclass(frozen=True)
class ShownLine:
    """One displayed line of a verdict field.

    `citations` has the ids of the messages that the line cites.
    """

    text: str
    citations: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShownField:
    """Non-empty verdict field, formatted for display."""

    name: str
    label: str
    lines: tuple[ShownLine, ...]
    single: bool
    """True if the field is displayed on one line with its label. False if the field is displayed as a
    list."""
    percent: int | None = None
    """Confidence as a number from 0 to 100, or `None` if the field is not a confidence."""
    lead: bool = False
    """True if the field belongs to the short answer at the top of screens and reports."""

    @property
    def text(self) -> str:
        """Return all lines of this verdict field as one text, joined with semicolons."""
        return "; ".join(line.text for line in self.lines)


def empty_value(field: verdict_types.VerdictField) -> Any:
    """Return the empty value of a verdict field, such as `""` or `[]`."""
    if field.kind is str:
        return ""
    return cast(Any, get_origin(field.kind))() if get_origin(field.kind) in (list, dict) else None


def combine(field: verdict_types.VerdictField, verdicts: Sequence[Mapping[str, Any]], how: str) -> Any:
    """Combine the values of one field from several verdicts.

    Args:
        field: the field.
        verdicts: the verdicts to combine.
        how: rule for combining the values: `first`, `union` or `mean`.
    """
    values = [each.get(field.name) for each in verdicts]
    filled_values = [value for value in values if value not in (None, "", [], {})]
    if not filled_values:
        return empty_value(field)
    if how == "mean":
        return float(round(fmean(filled_values)))
    if how != "union" or isinstance(filled_values[0], str):
        return deepcopy(filled_values[0])
    if isinstance(filled_values[0], Mapping):
        return _union_of_maps(filled_values, reasons_each(len(verdicts[0]["order"])))
    return stated_once(chain.from_iterable(filled_values))


def _union_of_maps(maps: Sequence[Mapping[str, Any]], max_reasons: int) -> dict[str, Any]:
    union: dict[str, Any] = {}
    for key in dict.fromkeys(chain.from_iterable(maps)):
        values = [each[key] for each in maps if key in each]
        if isinstance(values[0], Mapping):  # alternate between the verdicts' lists of reasons
            union[key] = {
                part: stated_once(filter(None, chain(*zip_longest(*(value[part] for value in values)))))[
                    :max_reasons
                ]
                for part in values[0]
            }
        else:
            union[key] = values[0]
    return union


def stated_once(statements: Iterable[Any]) -> list[Any]:
    """Return the given statements without duplicates.

    Of two statements that say the same, the first is kept, with the citations of both.
    """
    unique_statements: list[Any] = []
    for statement in statements:
        original = next((known for known in unique_statements if _same(known, statement)), None)
        if original is None:
            unique_statements.append(deepcopy(statement))
        elif isinstance(original, dict):
            _merge(original, statement)
    return unique_statements


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, str):
        return one == other or same_statement(one, other)
    if "text" in one:
        return same_statement(one["text"], other["text"])
    # Two verdicts word the same move differently, so debater and message identify the move.
    return one == other or bool(
        one.get("message_id")
        and (one.get("debater"), one["message_id"]) == (other.get("debater"), other.get("message_id"))
    )


def _merge(original: dict[str, Any], duplicate: Mapping[str, Any]) -> None:
    if "citations" in original:
        original["citations"] = list(dict.fromkeys([*original["citations"], *duplicate["citations"]]))
    if "major" in original:  # keep the longer wording, and mark it as major if either of the two is
        original["text"] = max(original["text"], duplicate["text"], key=len)
        original["major"] |= duplicate["major"]


def shown(
    verdict: verdict_types.Verdict,
    names: Mapping[str, str],
    *sections: verdict_types.Section,
    headline: str = "",
    winner_label: str = "",
    transcript: Iterable[Entry] = (),
) -> list[ShownField]:
    """Return the verdict fields that have a value, in display order.

    Args:
        verdict: verdict of a judge or of a panel. Fields of newer versions may be missing.
        names: display names, keyed by debater id.
        sections: sections to include. Default: title and answer.
        headline: text for the winner. Default: the winner's name.
        winner_label: label of the winner.
        transcript: messages of the debate. A move that another participant's message caused is then shown as
            a move after that message.
    """
    fields, speakers = [], {entry["id"]: entry["speaker"] for entry in transcript}
    for verdict_field in verdict_types.shown_fields(*(sections or ("title", "answer"))):
        value = cast(Mapping[str, Any], verdict).get(verdict_field.name)
        if verdict_field.name == "decision" and value and headline.startswith(value):
            value = headline  # the headline also names the winner
        elif verdict_field.name == "winner" and value:
            value = headline or verdict_types.NO_WINNER.get(value, "").capitalize() or names.get(value, value)
            value = "" if (decision := verdict.get("decision")) and value.startswith(decision) else value
        lines = tuple(_lines(value, names, speakers))
        if lines:
            is_headline = verdict_field.name == "winner" or (
                verdict_field.name == "decision" and value == headline
            )
            label = winner_label if is_headline and winner_label else verdict_field.label
            if verdict_field.name == "winner_confidence" and verdict["winner"] in verdict_types.NO_WINNER:
                label = "Confidence in this result"
            percent = round(min(max(value, 0.0), 100.0)) if isinstance(value, int | float) else None
            is_single = not isinstance(value, list | dict)
            fields.append(
                ShownField(verdict_field.name, label, lines, is_single, percent, lead=verdict_field.lead)
            )
    return fields


def _lines(value: Any, names: Mapping[str, str], speakers: Mapping[str, str]) -> Iterable[ShownLine]:
    if value is None or value == "":
        return
    if isinstance(value, str):
        yield ShownLine(value)
    elif isinstance(value, int | float):
        yield ShownLine(f"{round(min(max(value, 0.0), 100.0))} of 100")
    elif isinstance(value, Mapping):
        for key, text in value.items():
            if text:
                yield ShownLine(f"{names.get(key, key)}: {text}")
    else:
        for item in value:
            if isinstance(item, str):
                yield ShownLine(item)
            elif "before" in item:
                name, cause = names.get(item["debater"], item["debater"]), item["message_id"]
                change = f"from “{item['before']}” to “{item['after']}”" if item["before"] else item["after"]
                is_own_message = speakers.get(cause, item["debater"]) == item["debater"]
                yield ShownLine(
                    f"{name}: {change}{'' if is_own_message else ', after'}", (cause,) if cause else ()
                )
            else:
                yield ShownLine(f"{'major: ' if item.get('major') else ''}{item['text']}")


MAJOR_CAP = 40.0
"""Maximum confidence of a verdict that fails a major requirement, from 0 to 100."""
NOTED_CHARS = 160
"""Maximum length of a quotation in a verdict's note, in characters. The quotation is from a requirement or a
decision. The list of requirements has the full text."""


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
    """Debaters' names to show in notes, keyed by debater id."""
    options: Sequence[str] = ()
    """Possible answers to the debate's question. The decision must be one of them or `undecided`."""

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
            side, criterion = (
                match_debater(row.debater, self._side_names),
                self.rubric.criterion(row.criterion),
            )
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
        return verdict

    def response_verdict(self, response: JudgeResponse, reply: Reply) -> verdict_types.Verdict:
        """Convert a judge's response to a verdict.

        Labels in the response must have been replaced with debater ids. The winner is a debater, `tie` or
        `synthesis`. A response that names another winner, or most of whose scores cannot be used, becomes a
        failed verdict. A placeholder is always a tie.
        """
        data = response.model_dump()
        scores = [CriterionScore.model_validate(row) for row in data.get("scores", ())]
        verdict = self.score_verdict(scores, reply)
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

    def _restrict_decision(self, verdict: verdict_types.Verdict) -> None:
        """Replace a decision that is not one of the options with `undecided`.

        A note says so.
        """
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
        """Convert the value of a field in a judge's response to the value that the verdict stores.

        Unknown debaters and message ids are dropped.
        """
        if isinstance(value, str):
            return value.strip()
        if isinstance(value, int | float):
            return float(round(min(max(value, 0.0), 100.0))) if isfinite(value) else 0.0
        if value is None:
            return None
        if field.kind == dict[str, verdict_types.Case]:
            return self._valid_cases(map(DebaterCase.model_validate, value), verdict)
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
        if message_id := row.get("message_id"):
            row["message_id"] = next(iter(self._existing_ids([message_id], verdict)), "")
        return row

    def _valid_cases(
        self, debater_cases: Iterable[DebaterCase], verdict: verdict_types.Verdict
    ) -> dict[str, verdict_types.Case]:
        """Return the valid reasons for and against each debater's answer.

        Empty reasons and citations of missing messages are dropped.
        """
        cases: dict[str, verdict_types.Case] = {}
        for debater_case in debater_cases:
            side = match_debater(debater_case.debater, self._side_names)
            if not side:
                continue
            case = cases.setdefault(side, verdict_types.Case(pros=[], cons=[]))
            for valid_reasons, reasons in (
                (case["pros"], debater_case.pros),
                (case["cons"], debater_case.cons),
            ):
                valid_reasons += [
                    verdict_types.Reason(
                        text=reason.text.strip(), citations=self._existing_ids(reason.citations, verdict)
                    )
                    for reason in reasons
                    if reason.text.strip()
                ]
        max_reasons = reasons_each(len(self.sides))
        return {
            side: verdict_types.Case(pros=case["pros"][:max_reasons], cons=case["cons"][:max_reasons])
            for side, case in cases.items()
        }

    def _existing_ids(self, citations: Iterable[str], verdict: verdict_types.Verdict) -> list[str]:
        """Return the cited ids that belong to known messages.

        The other ids are counted in the verdict.
        """
        cited_ids = list(dict.fromkeys(map(cited_id, citations)))
        existing_ids = [citation for citation in cited_ids if citation in self.known_ids]
        verdict["dropped_citations"] += len(cited_ids) - len(existing_ids)
        return existing_ids

    def _answer_for_totals(self, verdict: verdict_types.Verdict, reason: str) -> None:
        """Declare a tie if a winner with a lower total score is not explained.

        If the judge gave a reason, keep the winner, and add a note with the reason.
        """
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
    """Model call that asks a judge for a verdict.

    It includes the data to process the response.
    """

    call: ModelCall
    check: ResponseCheck
    blinding: Blinding | None = None

    def response(self, reply: Reply) -> BaseModel | None:
        """Return the judge's response with the debaters' real ids and names.

        `None` if the judge gave no structured reply.
        """
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
    """Remove the confidence in the winner if the verdict is a tie.

    If the tie has no decision, also remove the overall confidence.
    """
    if verdict["winner"] == verdict_types.TIE:
        verdict["winner_confidence"] = None
        if not verdict["decision"] or verdict.get("placeholder"):
            verdict["confidence"] = None


def cap_confidence(verdict: verdict_types.Verdict) -> None:
    """Limit the confidence if a major requirement is unmet.

    The limit is `MAJOR_CAP`. A note says why.
    """
    major_requirement = next((each["text"] for each in verdict["unmet_requirements"] if each["major"]), None)
    if major_requirement is not None and (verdict["confidence"] or 0.0) > MAJOR_CAP:
        verdict["confidence"] = MAJOR_CAP
        verdict["notes"].append(
            f"Confidence capped at {MAJOR_CAP:.0f}: a major requirement is unmet: "
            f"{clip(major_requirement, NOTED_CHARS)}"
        )


def confidence_of(verdict: verdict_types.Verdict) -> int | None:
    """Return the confidence of a verdict for display, as an integer from 0 to 100.

    Return `None` for a tie without a decision.
    """
    confidence = verdict["confidence"]
    if confidence is None or (verdict["winner"] == verdict_types.TIE and not verdict.get("decision")):
        return None
    return round(min(max(confidence, 0.0), 100.0))


def changed_text(verdict: verdict_types.Verdict) -> str:
    """Return a sentence about what was corrected in a judge's reply.

    It counts the scores and citations that were ignored or changed. Return `""` if there are none.
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
    corrections = [f"{count_noun(count, noun)} {change}" for count, noun, change in counts if count]
    return f"Corrected in the judge's reply: {'; '.join(corrections)}." if corrections else ""
