"""`ConversationState`: the channels of a debate's state.

LangGraph writes a checkpoint after every super-step, with the values of all ordinary channels. Channels that
are large or grow are therefore `DeltaChannel`s, which store each write once and a snapshot now and then. A
delta channel takes no `Optional` type: `{}`, `[]` and `""` mean none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired

from langchain_core.messages import AnyMessage
from langgraph.channels import DeltaChannel, EphemeralValue
from typing_extensions import TypedDict

from moot.state import reducers
from moot.state.claim_events import ClaimEvent, CruxCard, Reflection, Room
from moot.state.entries import Entry, EntryUsage, InputEntry, JsonObject, ModelFacts
from moot.state.errors import InputError
from moot.state.verdict import FinalAnswer, PanelVerdict, Verdict

SCHEMA_VERSION = 2
"""Version number of the format in which debates are stored. `check_schema_version` refuses other versions."""

SNAPSHOT_FREQUENCY = 1000
"""Number of updates between LangGraph's full snapshots of a state channel. A lower value makes the
database larger, and a higher value makes loading slower."""

ENDED_STATUSES = frozenset({"done", "limit"})
"""Values of `status` that mean the debate has ended."""

_DELTA = {"snapshot_frequency": SNAPSHOT_FREQUENCY}

StateValues = Mapping[str, Any]
"""Values of a `ConversationState`, as read by code outside the LangGraph graph. Any channel may be
missing."""


def check_schema_version(values: StateValues) -> None:
    """Raise an `InputError` that says what to do if `schema_version` is not `SCHEMA_VERSION`."""
    version = values.get("schema_version", SCHEMA_VERSION)
    if version == SCHEMA_VERSION:
        return
    newer = isinstance(version, int) and version > SCHEMA_VERSION
    todo = "update Moot" if newer else "read it with the version that stored it, or start the debate again"
    raise InputError(
        f"{'a newer' if newer else 'another'} version of Moot stored this debate: {todo} (the debate has "
        f"schema_version {version}, this Moot reads {SCHEMA_VERSION})"
    )


class Turn(TypedDict):
    """Planned turn of one speaker within a step of the debate."""

    speaker: str
    targets: list[str]
    """Ids of the debaters or transcript entries that the speaker replies to in this turn."""
    instruction: str
    """Extra instruction for the speaker in this turn, added to the phase's prompt."""
    room: str
    """Id of the side discussion to which this turn belongs, or `""` if the turn belongs to none. Such a side
    discussion is called a crux room."""


StepKind = Literal["turn", "clarify", "judge", "close"]


class EndReason(TypedDict):
    """Reason why a debate ended."""

    cause: Literal["limit", "protocol", "import", "person"]
    setting: str
    """Dotted key of the limit that ended the debate, or `""` if no limit ended it."""
    reason: str
    """Explanation of why the debate ended, shown in the report."""


class Step(TypedDict, total=False):
    """Next step of the debate, consisting of one or more simultaneous turns."""

    number: int
    """Sequence number of this step within the debate, starting at 1. The journal uses the number as part of
    its key."""
    kind: StepKind
    """Name of the graph node that executes the step."""
    phase: str
    round: int
    aspect: str
    """Part of the topic that the debaters discuss in this step. `overall` means all parts, and `""` a topic
    that is not split."""
    turns: list[Turn]
    entry_count: int
    """Number of entries in the transcript when this step was planned. The number stays the same while the
    step waits to run."""
    resumed: bool
    """True if this step waited for a person, and a person's message continues it. Messages that people sent
    since then are replies to the step's question."""
    is_final: bool
    """True if no debater speaks after this step. The protocol determines this."""
    end_reason: EndReason
    """Reason why the debate ends with this step, set only in the last step."""
    protocol_update: JsonObject
    """Changes to `protocol_state` that the `plan` node applies. The node then removes this key from the
    step."""
    rooms: dict[str, Room]
    """Side discussions that this step opens or continues, keyed by id. They are called crux rooms. The `plan`
    node moves them to `crux_rooms`."""


class Clarifications(TypedDict, total=False):
    """Progress of the questions that debaters ask before the first round.

    A person answers them.
    """

    rounds: int
    """Number of question rounds that have taken place."""
    settled: bool
    """True if no debater has any questions left."""


class AdoptedPoint(TypedDict):
    """Point of criticism that a proposal says it adopts."""

    message_id: str
    """Id of the proposal."""
    point: str
    """Label of the point, such as `2D.4`."""
    sentence: str
    """Sentence of the proposal that does what the point asks, verbatim. Empty: there is no such sentence."""


class ConvergenceCheck(TypedDict):
    """How far the proposals agree at the end of a round, and which criticism they adopted."""

    round: int
    agreement: float | None
    """Level of agreement between the proposals, from 0 to 1, or `null` if unknown."""
    in_dispute: list[str]
    """Points on which the proposals still disagree."""
    adopted: NotRequired[list[AdoptedPoint]]
    """Points of the round's criticism that proposals say they adopt. Missing if this was not checked."""


class PromptFile(TypedDict):
    """File that a prompt was loaded from."""

    path: str
    """Path of the file inside the package, such as `moot/prompts/rules.md`."""
    sha256: str
    """SHA-256 hash of the file's text."""


class QuestionCriterion(TypedDict):
    """Criterion by which answers to the debated question are judged."""

    name: str
    description: str


class DebateQuestion(TypedDict, total=False):
    """Question, options and criteria that a model found in the topic before the debate."""

    question: str
    """Question to be decided, written on one line."""
    options: list[str]
    """Possible answers to the question, at least two. The key is missing for a yes-or-no question."""
    criteria: list[QuestionCriterion]
    """Three to five criteria for judging answers to this question. The key is missing if a rubric is
    configured, or if the model found fewer."""


def options_of(state: StateValues) -> list[str]:
    """Return the answer options from the configuration, or those found in the topic."""
    sources = (state.get("config") or {}, state.get("question") or {})
    return next((list(each["options"]) for each in sources if each.get("options")), [])


def step_number(state: StateValues) -> int:
    """Return the sequence number of the debate's current step, or 0 before the first step."""
    return int((state.get("step") or {}).get("number", 0))


class SummaryMetadata(TypedDict):
    """Metadata of one version of a summary."""

    kind: str
    """Kind of summary, either `rolling`, `perspective` or `judge`."""
    owner: str
    """Id of the debater whose perspective is summarised, or `""` for a shared summary."""
    role: NotRequired[str]
    """Role of the debater whose perspective is summarised. Other summaries lack this field."""
    round: NotRequired[int]
    """Round of the last message that the summary covers. Debates stored by older versions lack this field."""
    version: int
    text: str
    covers_from_seq: int
    covers_through_seq: int
    """Transcript position (`seq`) of the last entry that the summary covers, or -1 if it covers none."""
    messages: int
    """Number of messages that the summary covers."""
    before_tokens: int
    """Number of tokens in the texts that were summarised. These are the previous summary and the new
    messages, as prompts show them."""
    after_tokens: int
    before_chars: int
    after_chars: int
    method: str
    """Name of the summarizer that wrote this version of the summary, such as `llm`. A fallback is stored as
    `rule-based (after llm: …)`."""
    model: str
    """Name of the model that was called for this version of the summary, or `""` if no model was called."""
    provider: NotRequired[str]
    """Provider of the model that was called to write this version of the summary. Debates stored by older
    versions lack this field and `tokens_used`."""
    temperature: float | None
    latency_s: float
    tokens_used: NotRequired[int]
    """Prompt and completion tokens used for this and all earlier versions of the summary."""
    created_at: str
    updated_at: str
    failure: NotRequired[str]
    """Reason why the configured summarizer failed. Set only if a fallback wrote this version of the
    summary or a part of it."""


class Summary(SummaryMetadata):
    """Latest version of a summary.

    The next version builds on its `points`.
    """

    points: JsonObject
    """Statements on which the summary's text is based, each with its speaker and message ids."""


class SummaryPoint(TypedDict):
    """Statement in a summary, with its speaker and the ids of its source messages."""

    text: str
    speaker: str
    message_ids: list[str]


class SummaryVersion(SummaryMetadata):
    """One version of a summary, stored in the history of summaries.

    The state channel `summary_versions` holds this history.
    """

    points: list[SummaryPoint]
    """Statements that appear in the summary's text, each with its speaker and message ids."""


class ErrorRecord(TypedDict):
    """Record of an error that occurred during a debate.

    If the debate's `status` is not `failed`, the debate continued.
    """

    step: int
    node: str
    error: str
    at: NotRequired[str]
    """Time at which the error stopped the run. Missing if the debate continued without stopping."""
    run: NotRequired[str]
    """UUID of the run that the error stopped. The id prevents the run's usage from being counted twice."""


class Omission(TypedDict):
    """Record of content that was left out of a prompt."""

    what: str
    """Id of the omitted message, or the kind of content that was omitted."""
    why: str
    tokens: int
    count: NotRequired[int]
    """Number of omitted prompt items."""


MemoryKind = Literal[
    "rolling summary",
    "perspective",
    "judge's summary",
    "ledger",
    "reflections",
    "cruxes",
    "retrieved",
    "cross-debate memory",
    "reference documents",
    "pinned",
]
"""Kind of memory in a prompt, such as a summary or the retrieved messages."""


class PromptRecord(TypedDict):
    """Record of a prompt's contents, stored with the model call."""

    budget: int
    """Maximum number of tokens that the prompt may contain."""
    total_tokens: int
    """Exact number of tokens in the prompt."""
    sections: dict[str, int]
    """Number of tokens in each section of the prompt, keyed by the section's name."""
    message_ids: list[str]
    """Ids of the first and last message in the prompt, or `[]` if the prompt contains no messages."""
    omitted: list[Omission]
    memory: NotRequired[dict[MemoryKind, int]]
    """Approximate number of prompt tokens for each kind of memory. Debates stored by older versions lack this
    field."""


class RequestRecord(PromptRecord):
    """Record of a request to a model, stored with the model call."""

    step: int
    call_index: int
    digest: str
    """SHA-256 hash of the request sent to the model."""
    checkpoint: str
    """Id of the checkpoint from which the prompt can be rebuilt, or `""` if there is none."""


class Receipt(RequestRecord):
    """Record of the prompt that was sent to a model for one debater's turn."""

    entry_id: str
    """Id of the transcript entry that contains the model's reply."""
    seq: int
    speaker: str
    phase: str
    round: int
    retrieved: list[str]
    """Ids of the earlier messages that retrieval added to the prompt."""
    summary_version: int


class CallReceipt(RequestRecord):
    """Record of a model call that is not a debater's turn, such as a judge's call."""

    id: str
    """Id of this record of a model call, such as `c000012`."""
    purpose: str
    memory_kind: str
    """Kind of memory that the model's reply updates, or `""` if it updates none. For example,
    `reflections`."""
    node: str
    model: str
    """Name of the model that replied."""
    usage: EntryUsage
    error: str
    """Error message if the call failed, or `""` if it succeeded."""
    options: NotRequired[JsonObject]
    """Options of the `moot judge` command that override the debate's configuration."""


class UIMessage(TypedDict):
    """Data for a component of a client's user interface, in LangGraph's generative UI format."""

    type: Literal["ui"]
    id: str
    """Id of this UI message, formed from the id of the result message and the component's name."""
    name: str
    """Name of the UI component, either `verdict` or `positions`."""
    props: JsonObject
    """Properties that are passed to the UI component."""
    metadata: JsonObject
    """Metadata that links this UI component to a chat message. The key `message_id` holds the id of the
    message."""


class EarlierPosition(TypedDict):
    """Position that a debater took in an earlier debate."""

    topic: str
    stance: str
    """The debater's final answer to the main question, with its conditions and a quotation."""
    changes: NotRequired[list[str]]
    """The debater's changes of mind, each with the earlier and the later answer, the newest first."""
    positions: list[str]
    """The debater's stances on other claims that it still held, each with the claim and a quotation."""
    concessions: list[str]
    """The debater's concessions, each with the claim and a quotation."""
    challenged: NotRequired[list[str]]
    """Challenges that the debater did not answer."""
    last: str
    """Beginning of the debater's last message."""
    winner: bool
    """True if the debate was decided in the debater's favour."""
    debate: str
    """LangGraph thread id of the debate."""
    at: str
    """Date on which the debate ended."""


class InputSettings(TypedDict, total=False):
    """Debate settings that a caller passes as part of a run's input.

    They override the settings in the run's `context`. Every setting is accepted.
    """

    protocol: str
    """Name of the protocol that sets the rules of the debate."""
    turns: int
    """Total number of turns across all debaters, for protocols that count turns. Other protocols count
    `rounds` or use their own settings."""
    debaters: list[dict[str, str]]
    """Debaters that take part, each given as a name or as `{name, role, stance, model}`."""
    model: str
    """Name of the default model. The operator must allow the model."""


class ConversationInput(TypedDict, total=False):
    """Input that starts or continues a run of a debate."""

    topic: str
    """Topic that the debaters discuss. If omitted, the first human message is the topic."""
    messages: Annotated[list[AnyMessage], DeltaChannel(reducers.fold_window, list, **_DELTA)]
    """Messages that users send to the debate. The first message is the topic of a new debate. Messages to a
    running debate are interjections."""
    full_transcript: Annotated[list[InputEntry], DeltaChannel(reducers.append, list, **_DELTA)]
    """Transcript of an earlier debate that the new debate continues. Each entry needs at least `{speaker,
    content}`."""
    context_documents: Annotated[list[dict[str, str]], DeltaChannel(reducers.append, list, **_DELTA)]
    """Documents that the debaters discuss, each given as `{name, content}`."""
    settings: Annotated[InputSettings, EphemeralValue]
    """Debate settings from a client that cannot send them as `context`, such as an A2A agent."""


class ConversationOutput(TypedDict, total=False):
    """Output of a debate run. The checkpoint holds the whole state."""

    topic: str
    """Topic that the debaters discuss."""
    verdict: Annotated[PanelVerdict, DeltaChannel(reducers.latest, dict, **_DELTA)]
    """Verdict of the judges. Empty if the debate has no judges or has not been judged yet."""
    solution: Annotated[str, DeltaChannel(reducers.latest, str, **_DELTA)]
    """Solution that a design debate produced, in Markdown."""
    answer: Annotated[str, DeltaChannel(reducers.latest, str, **_DELTA)]
    """Final answer of the debate in Markdown, with the decision and the solution. Empty before the end."""
    status: str
    """Status of the debate, which is `running`, `done` or `limit`."""
    messages: Annotated[list[AnyMessage], DeltaChannel(reducers.fold_window, list, **_DELTA)]
    """Most recent messages of the debate. Each message has its speaker as `name`. The last message is the
    result, from `judge`."""
    ui: Annotated[list[UIMessage], DeltaChannel(reducers.replace_by_id, list, **_DELTA)]
    """Verdict and positions as data for a chat client's user interface. Each item belongs to a result
    message."""


class ConversationState(TypedDict, total=False):
    """Complete state of one debate, stored as one LangGraph thread. The channels for readers come first."""

    topic: Annotated[str, DeltaChannel(reducers.latest, str, **_DELTA)]
    """Topic that the debaters discuss."""
    status: str
    """Status of the debate, which is `new`, `running`, `waiting`, `done`, `limit` or `failed`."""
    answer: Annotated[str, DeltaChannel(reducers.latest, str, **_DELTA)]
    """Final answer of the debate in Markdown, with the decision and the solution. Empty before the end."""
    verdict: Annotated[PanelVerdict, DeltaChannel(reducers.latest, dict, **_DELTA)]
    """Combined verdict of all judges, or `{}` if the debate has not been judged yet."""
    solution: Annotated[str, DeltaChannel(reducers.latest, str, **_DELTA)]
    """Solution that a design debate produced, in Markdown."""
    messages: Annotated[list[AnyMessage], DeltaChannel(reducers.fold_window, list, **_DELTA)]
    """Most recent transcript entries, converted to LangChain messages. Each message has the entry's id, and
    the speaker as `name`."""
    full_transcript: Annotated[list[Entry], DeltaChannel(reducers.append, list, **_DELTA)]
    """All transcript entries, sorted by `seq`. Entries are only appended, never changed."""
    rolling_summary: Annotated[Summary, DeltaChannel(reducers.latest, dict, **_DELTA)]
    """Current summary of the older messages, or `{}` if there is none yet. These messages are no longer in
    `messages`."""
    perspective_summaries: Annotated[dict[str, Summary], DeltaChannel(reducers.merge, dict, **_DELTA)]
    """Current summary of each debater's perspective, keyed by debater id."""
    judge_summary: Annotated[Summary, DeltaChannel(reducers.latest, dict, **_DELTA)]
    """Summary of the debate's final round, written for the judge."""
    summary_versions: Annotated[list[SummaryVersion], DeltaChannel(reducers.append, list, **_DELTA)]
    """All versions of all summaries, oldest first. Each version contains only the points that appear in its
    text."""
    claim_events: Annotated[list[ClaimEvent], DeltaChannel(reducers.append, list, **_DELTA)]
    """All claim events, such as claims and stances, in the order in which they were recorded. The status of
    each claim is computed from these events."""
    reflections: Annotated[list[Reflection], DeltaChannel(reducers.append, list, **_DELTA)]
    """Observations about the course of the debate, such as a shift of positions or an escalation."""
    crux_cards: Annotated[dict[str, CruxCard], DeltaChannel(reducers.merge, dict, **_DELTA)]
    """Results of side discussions between debaters, keyed by id. Such a result is called a crux card."""
    crux_rooms: Annotated[dict[str, Room], DeltaChannel(reducers.merge, dict, **_DELTA)]
    """All open and closed side discussions between debaters, keyed by id. They are called crux rooms."""
    convergence: Annotated[list[ConvergenceCheck], DeltaChannel(reducers.append, list, **_DELTA)]
    """How far the debaters' proposals agree at the end of each checked round."""
    final_answers: Annotated[list[FinalAnswer], DeltaChannel(reducers.append, list, **_DELTA)]
    """Final answers that debaters gave separately after the discussion, to be counted in a vote."""
    verdicts: Annotated[list[Verdict], DeltaChannel(reducers.append, list, **_DELTA)]
    """Verdicts of the individual judges on the panel."""
    pinned: Annotated[list[str], DeltaChannel(reducers.latest, list, **_DELTA)]
    """Ids of the pinned messages, in the order in which they were pinned. Prompts include pinned messages if
    the budget allows."""
    context_documents: Annotated[list[dict[str, str]], DeltaChannel(reducers.append, list, **_DELTA)]
    """Documents that were passed in together with the topic. The `open` node turns each document into an
    entry."""
    settings: Annotated[InputSettings, EphemeralValue]
    """Settings that the caller passed as input when the debate was started. `config` holds the resulting
    configuration."""
    config: Annotated[JsonObject, DeltaChannel(reducers.latest, dict, **_DELTA)]
    """Configuration of the debate as JSON data. The `open` node writes it."""
    question: Annotated[DebateQuestion, DeltaChannel(reducers.latest, dict, **_DELTA)]
    """Question that a model found in the topic, or `{}` if no model was asked."""
    options: Annotated[list[str], DeltaChannel(reducers.latest, list, **_DELTA)]
    """Two or more options of the debated question at its start, or `[]` if it has no options. `config` holds
    the current ones."""
    usage: Annotated[dict[str, float], DeltaChannel(reducers.add_totals, dict, **_DELTA)]
    """Total token usage, cost and running time of the debate. The keys are `calls`, `prompt_tokens`,
    `completion_tokens`, `cached_tokens`, `cost_usd` and `elapsed_s`."""
    errors: Annotated[list[ErrorRecord], DeltaChannel(reducers.append, list, **_DELTA)]
    """Errors of model calls and nodes, oldest first. The debate went on after most of them."""
    turn_count: int
    """Number of turns that debaters have taken so far."""
    round: int
    """Round of the current step. A round gives each debater a turn, unless the protocol defines it."""
    current_speaker: str
    """Ids of the debaters whose turns the current step runs, separated by commas."""
    step: Annotated[Step, DeltaChannel(reducers.latest, dict, **_DELTA)]
    """Step that runs next or ran last: its number, phase and turns, or `{}` before the first step."""
    ui: Annotated[list[UIMessage], DeltaChannel(reducers.replace_by_id, list, **_DELTA)]
    """Verdict and positions as data for a chat client's user interface. Each item belongs to a result
    message."""
    user_provided: Annotated[list[int], DeltaChannel(reducers.append, list, **_DELTA)]
    """Transcript positions (`seq`) of all entries that contain a user's document or message. Prompts use this
    list instead of searching the transcript."""
    clarifications: Annotated[Clarifications, DeltaChannel(reducers.merge, dict, **_DELTA)]
    """Progress of the questions that debaters ask a person before the first round."""
    protocol_state: Annotated[JsonObject, DeltaChannel(reducers.merge, dict, **_DELTA)]
    """Data that the protocol stores between the steps of the debate."""
    cross_debate_memory: Annotated[
        dict[str, list[EarlierPosition]], DeltaChannel(reducers.merge, dict, **_DELTA)
    ]
    """Arguments that the debaters made in earlier debates, keyed by debater. The `open` node loads them
    once."""
    receipts: Annotated[list[Receipt], DeltaChannel(reducers.append, list, **_DELTA)]
    """Records of the prompts that were sent for debaters' turns. There is one record for each prompt."""
    calls: Annotated[list[CallReceipt], DeltaChannel(reducers.append, list, **_DELTA)]
    """Records of all model calls that were not made for debaters' turns."""
    model_facts: Annotated[dict[str, ModelFacts], DeltaChannel(reducers.merge_facts, dict, **_DELTA)]
    """What the debate's models have shown about themselves, keyed by model name. Prompts fit these facts."""
    prompt_sources: Annotated[dict[str, PromptFile | str], DeltaChannel(reducers.merge, dict, **_DELTA)]
    """Prompt files used in the debate, keyed by the prompt's name. Older debates have the hash alone."""
    fence: Annotated[str, DeltaChannel(reducers.latest, str, **_DELTA)]
    """Secret word that delimits quoted text in the debate's prompts. A state without it has a fence that is
    derived from the topic."""
    last_inbox_number: Annotated[int, DeltaChannel(reducers.latest, int, **_DELTA)]
    """Number of the last message that was read from the debate's inbox, or 0 if none was read."""
    planned_interjections_used: Annotated[int, DeltaChannel(reducers.latest, int, **_DELTA)]
    """Number of planned interjections inserted so far."""
    schema_version: int
    """Version number of the format of this state."""


@dataclass(frozen=True)
class FailedRun:
    """Failed run of a graph node, with its error and usage."""

    record: ErrorRecord
    """Record to append to the `errors` channel of the debate's state."""
    usage: dict[str, float]
    """Token usage of the failed model calls, and the duration of these calls in seconds. The journal holds
    the usage of successful calls."""


@dataclass(frozen=True)
class InboxMessage:
    """Unread message in a debate's inbox."""

    number: int
    """Row number of the message in the debate's inbox, starting at 1. Later messages have higher numbers."""
    speaker: str
    """Slug of the message's author, such as `moderator`, a debater's id or a guest's slug."""
    content: str
    sent_at: str
    """UTC time at which the message was sent, in ISO 8601 format."""
