"""The `moot.debate/1` document: one debate as JSON, for programs, reports, exports and imports.

Reports and imports refuse an invalid document. They read only part of its configuration, because it may have
settings of plug-ins that are not installed here.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from moot.claims.claim_status import Ledger, Status, with_all_conditions
from moot.claims.crux_cards import claim_statuses
from moot.claims.ledger_from_events import ledger_of
from moot.claims.ledger_rendering import cards_of, side_conceded, stance_text
from moot.claims.model_extraction import uses_model
from moot.claims.round_records import RoundRecord, round_records
from moot.config.channel_values import check_storable
from moot.config.model_settings import OFFLINE
from moot.config.section import errors_in
from moot.people import PersonQuestion
from moot.protocols.registry import protocol_of
from moot.protocols.result import final_answer
from moot.state import claim_events as ledger_events, conversation, settings
from moot.state.entries import Entry, JsonObject, entry_id
from moot.state.errors import InputError
from moot.state.verdict import FinalAnswer, PanelReport, PanelVerdict, Verdict
from moot.storage.catalogue import DebateRow
from moot.text.terms import title_of

FORMAT: Literal["moot.debate/1"] = "moot.debate/1"

# `MaybeNone` is `Any` for type checkers, as in typeshed, so that a program can use the verdict of a judged
# debate without a check.
if TYPE_CHECKING:
    MaybeNone: TypeAlias = Any
else:
    MaybeNone = None


class Stance(ledger_events.StanceFields):
    """A debater's latest stance on a claim, with a quotation as evidence."""

    message_id: str
    quote: str
    history: list[str]
    """Ids of the claim events that record the debater's stances on the claim, oldest first. The last one
    records this stance."""


class ClaimStatusRecord(TypedDict):
    """A claim with its current status and each debater's stance on it."""

    id: str
    text: str
    aspect: str
    status: Status
    label: str
    """Text that reports and web pages show for the claim's status."""
    side: str
    """The debaters' agreed answer to the claim, such as `yes`, `no` or an option. Empty if they
    contradict each other."""
    conditions: list[str]
    """Conditions under which the debaters agree on the claim."""
    was_disputed: bool
    """True if debaters disagreed on the claim at any time during the debate."""
    stances: dict[str, Stance]
    """Latest stances on the claim, keyed by debater id."""
    card: str
    """Id of the side discussion's record, or `""` if the claim was not discussed separately. The record,
    called a crux card, states the result of an exchange between two debaters."""


class PositionChange(TypedDict):
    """Concession or other change in a debater's stance on a claim."""

    event: str
    debater: str
    claim: str
    core: bool
    """True if the stance is on the main question, or on a claim that was a reason for the debater's
    answer."""
    message_id: str
    quote: str
    before: str
    """Quotation of the debater's earlier statement about the claim, or `""` if there is none."""
    stance: str
    """The debater's stance on the claim after the change, such as `yes`."""
    stance_before: str
    """The debater's stance on the claim before the change, or `""` if it is unknown."""
    new_conditions: str
    """Text such as `added a condition` if the debater changed only the conditions of its answer. Empty if the
    answer changed."""


class ClaimStatuses(TypedDict):
    """Statuses of all claims in a debate, computed from the claim events.

    Importing a document recomputes them.
    """

    claims: list[ClaimStatusRecord]
    """All claims of the debate, each with its status. The main question comes first, then the others by
    importance."""
    concessions: list[PositionChange]
    changes: list[PositionChange]
    open_challenges: list[str]
    open_questions: list[str]
    rounds: list[RoundRecord]
    dropped: dict[str, int]
    """Number of claims and claim events that Moot rejected, keyed by the reason."""


class Blackboard(TypedDict):
    """Information that Moot extracted from a debate, such as claims and reflections."""

    claim_events: list[ledger_events.ClaimEvent]
    """Events in which debaters assert, deny or concede claims, in chronological order."""
    standing: ClaimStatuses
    reflections: list[ledger_events.Reflection]
    cards: list[ledger_events.CruxCard]


class Usage(TypedDict):
    """Total usage of all model calls in a debate."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    """Number of prompt tokens that the provider read from its prompt cache."""
    reasoning_tokens: int
    """Number of completion tokens that models used for reasoning."""
    cost_usd: float
    """Cost in US$ of the calls to models with a known price."""
    elapsed_s: float
    """Running time of the debate in seconds, excluding pauses."""


class CarriedState(TypedDict, total=False):
    """State values that an imported debate needs to continue."""

    options: list[str]
    """Possible answers to the debate's question."""
    question: conversation.DebateQuestion
    """Question of the debate with its options and criteria. A model found them in the topic and
    background."""
    final_answers: list[FinalAnswer]
    """Final answers that the debaters gave independently after the discussion, for a vote."""
    rolling_summary: conversation.Summary
    perspective_summaries: dict[str, conversation.Summary]
    judge_summary: conversation.Summary
    protocol_state: JsonObject
    """Values that the debate's protocol stores between its steps."""
    crux_rooms: dict[str, ledger_events.Room]
    pinned: list[str]
    """Ids of the messages that a person pinned to keep them in prompts."""
    clarifications: conversation.Clarifications
    planned_interjections_used: int
    step: conversation.Step
    turn_count: int
    round: int


# Unknown keys are kept: programs may add their own. JSON has no infinity, so it is rejected.
@with_config(ConfigDict(extra="allow", allow_inf_nan=False))
class DebateDocument(TypedDict):
    """A complete debate as a JSON document in the format `moot.debate/1`."""

    format: Literal["moot.debate/1"]
    id: str
    """UUID of the debate, used as its LangGraph thread id."""
    name: str
    """Name of the debate. It was given with `--id`, or else is the debate's UUID."""
    topic: str
    status: Literal["new", "running", "paused", "waiting", "done", "limit", "failed"]
    ended_because: str
    """Reason why the debate ended, or `""` if it has not ended."""
    protocol: str
    """Name of the debate's protocol, such as `council`."""
    config: JsonObject
    """Configuration of the debate, with all defaults filled in. Its schema: `moot config schema`."""
    transcript: list[Entry]
    """All transcript entries, ordered by sequence number."""
    summaries: list[conversation.SummaryVersion]
    """Every version of every summary, oldest first."""
    receipts: list[conversation.Receipt]
    """Records of the prompts of all debaters' turns. Such a record is called a receipt."""
    calls: list[conversation.CallReceipt]
    """Records of all model calls except debaters' turns, such as calls for summaries or verdicts."""
    blackboard: Blackboard
    verdicts: list[Verdict]
    """All verdicts of all judges, including failed and replaced ones."""
    verdict: PanelVerdict | MaybeNone
    """Decision of the judge or panel, or `null` if the debate has not been judged."""
    solution: str
    """Solution of the debate in Markdown, or `""` if there is none."""
    final_answer: str
    """Decision and solution of the debate, in Markdown."""
    convergence: list[conversation.ConvergenceCheck]
    """Agreement between the proposals after each round. Only council debates that end when the proposals
    agree have it."""
    usage: Usage
    planned: NotRequired[JsonObject]
    """Estimate of the debate's calls, tokens and duration, as computed by `moot plan`.

    Only documents that were made for a report have this key.
    """
    errors: list[conversation.ErrorRecord]
    questions: NotRequired[list[PersonQuestion]]
    """Questions that a person must answer before the debate can continue."""
    prompt_sources: dict[str, conversation.PromptFile | str]
    """SHA-256 digests of the debate's prompt templates, keyed by template name."""
    agreement: PanelReport
    """Statistics on how far the judges of the panel agree, or `{}` if there is no panel."""
    state: CarriedState
    """Values that are needed to continue the debate after an import into another database."""
    parent: str
    """Id of the original debate if this debate is a fork, otherwise `""`."""
    created_at: str
    updated_at: str
    imported_at: NotRequired[str]
    """Time of the import in ISO 8601 format. Only debates whose verdict comes from an imported file have this
    key."""
    schema_version: int


_ADAPTER: TypeAdapter[DebateDocument] = TypeAdapter(DebateDocument)


def empty_document() -> DebateDocument:
    """Return the document of a debate that has not begun."""
    row = DebateRow(
        id="",
        name="",
        topic="",
        protocol="",
        status="new",
        turns=0,
        tokens=0,
        cost_usd=0.0,
        parent="",
        created_at="",
        updated_at="",
    )
    return make_document(row, {})


def make_document(row: DebateRow, values: conversation.StateValues) -> DebateDocument:
    """Make a `moot.debate/1` document from a debate's metadata and state."""
    config, topic, verdict = values.get("config", {}), values.get("topic", ""), values.get("verdict") or None
    # The last step keeps the reason until the debate continues.
    end_reason = (
        values.get("step", {}).get("end_reason")
        if values.get("status") in conversation.ENDED_STATUSES
        else None
    )
    carried_state = {
        key: value
        for key, value in values.items()
        if key in CarriedState.__annotations__ and value not in ({}, [], "")
    }
    return {
        "format": FORMAT,
        "id": row.id,
        "name": row.name,
        "topic": topic,
        "status": cast(Any, row.status),  # the catalogue stores only this text
        "ended_because": end_reason["reason"] if end_reason else "",
        "protocol": config.get("protocol", row.protocol),
        "config": _without_passwords(config),
        "transcript": values.get("full_transcript", []),
        "summaries": values.get("summary_versions", []),
        "receipts": values.get("receipts", []),
        "calls": values.get("calls", []),
        "blackboard": board_document(values),
        "verdicts": values.get("verdicts", []),
        "verdict": verdict,
        "agreement": verdict.get("agreement", {}) if verdict else {},
        "solution": values.get("solution", ""),
        "final_answer": final_answer(values) if values.get("config") else "",
        "convergence": values.get("convergence", []),
        "usage": _usage(values.get("usage", {})),
        "errors": values.get("errors", []),
        "prompt_sources": values.get("prompt_sources", {}),
        "state": cast(CarriedState, carried_state),
        "parent": row.parent,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "schema_version": conversation.SCHEMA_VERSION,
    }


def _without_passwords(value: Any) -> Any:
    """Return a copy of a configuration in which URLs contain no passwords."""
    if isinstance(value, dict):
        return {key: _without_passwords(part) for key, part in value.items()}
    return settings.redact_urls(value) if isinstance(value, str) and "://" in value else value


def _usage(usage: dict[str, float]) -> Usage:
    return {
        "calls": int(usage.get("calls", 0)),
        "prompt_tokens": int(usage.get("prompt_tokens", 0)),
        "completion_tokens": int(usage.get("completion_tokens", 0)),
        "cached_tokens": int(usage.get("cached_tokens", 0)),
        "reasoning_tokens": int(usage.get("reasoning_tokens", 0)),
        "cost_usd": round(usage.get("cost_usd", 0.0), 6),
        "elapsed_s": round(usage.get("elapsed_s", 0.0), 3),
    }


def board_document(state: conversation.StateValues) -> Blackboard:
    """Return the claims, reflections and records of side discussions in a debate's state."""
    return {
        "claim_events": list(state.get("claim_events") or []),
        "standing": claim_statuses_of(state),
        "reflections": list(state.get("reflections") or []),
        "cards": cards_of(state),
    }


def claim_statuses_of(state: conversation.StateValues) -> ClaimStatuses:
    """Return the status of each claim in a debate."""
    ledger, statuses = ledger_of(state), claim_statuses(state)
    cards = {card["claim"]: card["id"] for card in cards_of(state)}
    changes = {change.event["id"]: change for change in ledger.changes}

    def admission(event: ledger_events.StanceEvent) -> PositionChange:
        change = changes.get(event["id"])
        former = change.before if change else None
        return {
            "event": event["id"],
            "debater": event["debater"],
            "claim": event["claim"],
            "core": ledger.is_core(event),
            "message_id": event["message_id"],
            "quote": event["quote"],
            "before": former["quote"] if former else "",
            "stance": f"{stance_text(event)}{side_conceded(ledger, event)}",
            "stance_before": stance_text(former) if former else "",
            "new_conditions": change.conditions_note if change else "",
        }

    return {
        "claims": [
            {
                "id": key,
                "text": ledger.claims[key]["text"],
                "aspect": ledger.claims[key]["aspect"],
                "status": status.status,
                "label": status.label,
                "side": status.side,
                "conditions": list(status.conditions),
                "was_disputed": status.was_disputed,
                "stances": _stances(ledger, key),
                "card": cards.get(key, ""),
            }
            for key, status in statuses.items()
        ],
        "concessions": [admission(event) for event in ledger.concessions()],
        "changes": [admission(with_all_conditions(change)) for change in ledger.changes],
        "open_challenges": [each["id"] for each in ledger.open_challenges()],
        "open_questions": [each["id"] for each in ledger.open_questions()],
        "rounds": round_records(ledger, state.get("full_transcript") or []),
        "dropped": dict(ledger.dropped),
    }


def _stances(ledger: Ledger, key: str) -> dict[str, Stance]:
    history: dict[str, list[str]] = {}
    for turn in ledger.timeline(key):
        history.setdefault(turn.event["debater"], []).append(turn.event["id"])
    stances: dict[str, Stance] = {}
    for debater, event in ledger.stances(key).items():
        fields = {name: value for name, value in event.items() if name in Stance.__annotations__}
        stances[debater] = cast(Stance, {**fields, "history": history[debater]})
    return stances


def document_title(document: Mapping[str, Any]) -> str:
    """Return the title of a debate. The judge's wording stands for a topic that is longer than one line."""
    verdict = document.get("verdict") or {}
    is_usable = verdict.get("status") == "ok" and not verdict.get("placeholder")
    return title_of(document["topic"], (verdict.get("question") or "") if is_usable else "")


IMPORT_HINT = ". To import only its messages, remove the `format` key"


def read_document(raw_document: object, hint: str = "") -> DebateDocument:
    """Validate a `moot.debate/1` document.

    Raises:
        InputError: The document is invalid or incomplete. The message names the key and ends with `hint`.
    """
    try:
        _ADAPTER.validate_python(raw_document, strict=True)
    except ValidationError as error:
        mistake, *others = errors_in(error)
        suffix = f" ({len(others)} more)" if others else ""
        raise InputError(
            f"the debate is not a valid moot.debate/1 document: {mistake}{suffix}{hint}"
        ) from error
    # The original value is returned, not the validated copy, to keep key order and number formats.
    return cast(DebateDocument, raw_document)


def whole_document(raw_document: Mapping[str, object]) -> DebateDocument:
    """Validate a `moot.debate/1` document that is stored as a debate.

    Raises:
        InputError: The document is invalid, incomplete or cannot be stored. The message names the key.
    """
    for key, value in raw_document.items():
        check_storable(str(key), value)
    document = read_document(raw_document, IMPORT_HINT)
    conversation.check_schema_version(document)
    for seq, entry in enumerate(document["transcript"]):
        if entry["seq"] != seq or entry["id"] != entry_id(seq):
            raise InputError(
                f"transcript.{seq}: the entry has `seq` {entry['seq']} and `id` {entry['id']!r}, "
                f"but must have `seq` {seq} and `id` {entry_id(seq)!r}"
            )
    carried_state = document.get("state", {})
    shared_summaries = [carried_state.get("rolling_summary"), carried_state.get("judge_summary")]
    for summary in (*shared_summaries, *carried_state.get("perspective_summaries", {}).values()):
        if summary and not -1 <= summary["covers_through_seq"] < len(document["transcript"]):
            raise InputError(
                f"state: a summary covers the messages up to number {summary['covers_through_seq']} "
                "(`covers_through_seq`), but the transcript has no such message"
            )
    return document


class DocumentDebater(BaseModel):
    """Settings of one debater, as stored in a debate's JSON document."""

    id: str = ""
    name: str = ""
    role: str = ""
    stance: str = ""


class DocumentJudge(BaseModel):
    """Settings of one judge, as stored in a debate's JSON document."""

    rubric: object = None
    """The judge's rubric, or the name of a built-in rubric."""


class DocumentPanel(DocumentJudge):
    """Settings of a debate's judge or panel of judges, as stored in the debate's JSON document."""

    panel: list[DocumentJudge] = []


class Termination(BaseModel):
    """Settings that determine when a council debate ends."""

    threshold: float | None = None


class ShownBoard(BaseModel):
    """Claim extraction settings, as stored under `blackboard` in a debate's JSON document."""

    extraction: Literal["auto", "llm", "none"] = "auto"
    model: str | None = None


class DocumentConfig(BaseModel):
    """Part of a debate's configuration that reports and imports read."""

    model: str = OFFLINE
    blackboard: ShownBoard = ShownBoard()
    debaters: list[DocumentDebater] = []
    judge: DocumentPanel = DocumentPanel()
    termination: Termination = Termination()


def document_config(document: Mapping[str, Any]) -> DocumentConfig:
    """Return the part of a document's configuration that reports and imports read.

    Raises:
        InputError: The configuration is invalid. The message names the key.
    """
    try:
        return DocumentConfig.model_validate(document["config"])
    except ValidationError as error:
        raise InputError(f"the debate's configuration is invalid: config.{errors_in(error)[0]}") from error


def extracts_claims(document: Mapping[str, Any]) -> bool:
    """Return True if the document's debate uses a model to extract claims."""
    config, protocol = document_config(document), protocol_of(document)
    return uses_model(config.blackboard, config.model, auto=protocol.extracts_by_default)
