"""Fields and JSON schema of a judge's reply."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, Field, GetJsonSchemaHandler, WithJsonSchema, create_model
from pydantic_core import CoreSchema

from moot.config.rubrics import Rubric
from moot.prompts.request import between, cause_type, citation_type, many, narrow_schema, one_of
from moot.state import verdict as verdict_types

MAX_POINTS = 12
"""Maximum number of position changes in a judge's response. The options have the same limit."""
SCORE_TOKENS = 80
"""Estimated number of tokens for one score in a judge's JSON response. `VerdictField.tokens` has the tokens
of other fields."""
RESULT_TOKENS = 40
"""Estimated number of tokens for how far a decision meets one criterion."""


class CriterionScore(BaseModel):
    """Score that a judge gives one debater on one criterion."""

    debater: str
    criterion: str
    reason: str = ""
    citations: list[str] = []
    score: float


class FindingOnOption(BaseModel):
    """What the debate showed about an option by one criterion."""

    criterion: str
    rating: Literal["good", "neutral", "bad"] = "neutral"
    finding: str = Field("", description="What was said, with its figures, in at most 20 words.")


class WeighedOption(BaseModel):
    """Option that the debate considered."""

    option: str
    outcome: Literal["chosen", "part of the decision", "rejected"]
    because: str = Field("", description="The reason that decided it, clear to a reader of this line alone.")
    findings: list[FindingOnOption] = []
    citations: list[str] = []


class CriterionMet(BaseModel):
    """How far the decision meets one criterion."""

    criterion: str
    met: Literal["met", "partly met", "not met"]
    because: str = ""


class CheckToMake(BaseModel):
    """Question to answer before somebody acts on the decision."""

    question: str
    how: str = Field("", description="How it can be answered.")
    who: str = ""
    cost: str = ""
    by: str = Field("", description="Date by which the answer is needed.")
    if_yes: str = Field("", description="What changes in the decision.")
    if_no: str = ""


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
    stated_in: str = ""
    caused_by: str = ""


class JudgeResponse(BaseModel):
    """Response of a judge.

    The fields are in the order in which the judge fills them in: reasoning, answer, scores. `response_type`
    adds the fields that the judging mode asks for.
    """

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Require the main fields in the schema. Responses without them are read."""
        schema = handler.resolve_ref_schema(handler(core_schema))
        required = [name for name in cls.model_fields if name in verdict_types.VERDICT_FIELDS]
        schema["required"] = [name for name in required if verdict_types.VERDICT_FIELDS[name].required]
        return schema


def response_tokens(sides: int, criteria: int, *, judging: verdict_types.Judging) -> int:
    """Return the expected number of tokens in a judge's response."""
    score_tokens = 0 if judging in verdict_types.SOLVED else SCORE_TOKENS * criteria * sides
    result_tokens = RESULT_TOKENS * criteria if judging in verdict_types.SOLVED else 0
    row_kinds = (dict[str, str], list[verdict_types.Move], list[verdict_types.ConsideredOption])
    field_tokens = sum(
        field.tokens * (sides if field.kind in row_kinds else 1)
        for field in verdict_types.asked_fields(judging)
    )
    return score_tokens + result_tokens + field_tokens


def response_type(
    judging: verdict_types.Judging,
    types: Mapping[str, Any] = MappingProxyType({}),
    descriptions: Mapping[str, str] = MappingProxyType({}),
) -> type[JudgeResponse]:
    """Return the Pydantic class that defines the fields of a judge's response.

    The fields depend on the judging mode.
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
    list[verdict_types.ConsideredOption]: list[WeighedOption],
    list[verdict_types.CriterionResult]: list[CriterionMet],
    list[verdict_types.OpenCheck]: list[CheckToMake],
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
    criterion_field = {"criterion": one_of([criterion.id for criterion in rubric.criteria], "Criterion")}
    # The rubric of a contest is about arguments, not about options.
    is_solution = judging in verdict_types.SOLVED
    finding = narrow_schema(FindingOnOption, criterion_field if is_solution else {})
    types_by_kind: dict[Any, Any] = {
        float | None: Annotated[
            float | None, WithJsonSchema({"type": "integer", "minimum": 0, "maximum": 100})
        ],
        dict[str, str]: many(narrow_schema(FinalPosition, debater_field), 0, len(sides)),
        list[verdict_types.Move]: many(
            narrow_schema(
                DebaterMove, {**debater_field, "stated_in": cause_type(ids), "caused_by": cause_type(ids)}
            ),
            0,
            MAX_POINTS,
        ),
        list[verdict_types.ConsideredOption]: many(
            narrow_schema(
                WeighedOption,
                {
                    "findings": many(finding, 0, len(rubric.criteria)),
                    "citations": citation_type(ids),
                },
            ),
            0,
            MAX_POINTS,
        ),
        list[verdict_types.CriterionResult]: many(
            narrow_schema(CriterionMet, criterion_field), 0, len(rubric.criteria)
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
