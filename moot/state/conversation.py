"""ConversationState: everything that a debate is, channel by channel.

LangGraph writes a checkpoint every super-step with all ordinary channel values inline, so every channel that
grows or is large is a `DeltaChannel`, which stores each write once and a whole snapshot now and then. A delta
channel takes no `Optional` type: `{}`, `[]` and `""` mean none.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

from langchain_core.messages import AnyMessage
from langgraph.channels import DeltaChannel, EphemeralValue
from typing_extensions import TypedDict

from moot.state.entries import Entry, EntryUsage, GivenEntry, JsonObject
from moot.state.ledger import CruxCard, Note, Reflection, Room
from moot.state.reducers import add_up, append, fold_window, latest, merge
from moot.state.verdict import Decision, Verdict

SCHEMA_VERSION = 2
"""Raised when a stored debate needs migration to be read: see `earlier_builds`."""

SNAPSHOT_EVERY = 1000
"""Updates of a channel between whole snapshots: fewer make a larger file, more a slower load."""

OVER = frozenset({"done", "limit"})
"""Statuses of debates that have ended."""

_EVERY = {"snapshot_frequency": SNAPSHOT_EVERY}

StateValues = Mapping[str, Any]
"""A `ConversationState` as it is read from outside the graph, where channels may be missing."""


class Floor(TypedDict):
    """One speaker's floor within a step."""

    speaker: str
    targets: list[str]
    """Ids of debaters or entries that are answered."""
    instruction: str
    """What the speaker is asked to do, besides the phase's prompt."""
    room: str
    """Crux room, `""` on the main floor."""


StepKind = Literal["turn", "clarify", "judge", "close"]


class EndedBy(TypedDict):
    """What ends a debate."""

    by: Literal["limit", "protocol", "import"]
    what: str
    """The setting that bounds it, as the user writes it, where a limit does; else `""`."""
    reason: str
    """Why, in words for the report."""


class Step(TypedDict, total=False):
    """What happens next: floors of one phase, taken at the same time. `{}` is the step before the first."""

    no: int
    """Counts steps from 1; part of the journal's key."""
    kind: StepKind
    """Node that carries it out."""
    phase: str
    round: int
    aspect: str
    """Aspect of the topic that it is about, `overall` for all of them; `""` where the topic is not split."""
    floors: list[Floor]
    after: int
    """Entries there were as it was planned: as many as there are until it is carried out."""
    again: bool
    """Whether it was begun before, and what a person said since is the answer that it waits for."""
    last_words: bool
    """Whether nobody speaks any more after it, by the protocol's rules: what is in dispute then stays so."""
    ended_by: EndedBy
    """Why the debate ends, on a closing step alone."""
    memo: JsonObject
    """What the protocol wants to remember: `plan` merges it into `protocol_state` and drops it here."""
    rooms: dict[str, Room]
    """Crux rooms that it opens or moves on: `plan` merges them into `crux_rooms` and drops them here."""


class Clarifications(TypedDict, total=False):
    """How far debaters have asked a person, before the first round."""

    rounds: int
    """Times that they were asked for questions."""
    settled: bool
    """Whether nobody had a question left."""


class ConvergenceCheck(TypedDict):
    """How far a council's proposals agreed at the end of a round."""

    round: int
    agreement: float | None
    """Share of agreement, 0 to 1; `null` where it could not be found out."""
    in_dispute: list[str]
    """What was still in dispute, one point each."""


def step_no(state: StateValues) -> int:
    """Return the number of the step that a state is at, 0 before the first."""
    return int((state.get("step") or {}).get("no", 0))


class SummaryFacts(TypedDict):
    """One version of a summary and its provenance, but for what is behind its text."""

    kind: str
    """`rolling`, `perspective` or `judge`."""
    owner: str
    """The debater whose perspective it is; `""` for the shared one."""
    version: int
    text: str
    covers_from_seq: int
    covers_through_seq: int
    """Every entry up to this `seq` is folded in; -1 for none."""
    messages: int
    """Messages folded in so far."""
    before_tokens: int
    """Tokens of the old summary and the messages that went in."""
    after_tokens: int
    before_chars: int
    after_chars: int
    method: str
    """Summariser that made it; `rule-based (after llm: …)` where another failed."""
    model: str
    """Model that was asked; `""` where none was."""
    provider: NotRequired[str]
    """Who answered for it; absent, as `tokens_used`, in debates stored by earlier builds."""
    temperature: float | None
    latency_s: float
    tokens_used: NotRequired[int]
    """Tokens of model calls, prompts and answers, for this version and all before it."""
    created_at: str
    updated_at: str


class Summary(SummaryFacts):
    """A current summary, which can be gone on with."""

    points: JsonObject
    """What is behind the text: a pool of points, each with its speaker and message ids."""


class SummaryPoint(TypedDict):
    """A statement that a summary shows."""

    text: str
    speaker: str
    message_ids: list[str]


class SummaryVersion(SummaryFacts):
    """A summary as the list of versions keeps it."""

    points: list[SummaryPoint]
    """What is behind the text: of the pool, those that it shows."""


class Problem(TypedDict):
    """Something that failed; where the debate's `status` is not `failed`, it was got over."""

    step: int
    node: str
    error: str
    at: NotRequired[str]
    """When a run stopped because of it; not there where the debate went on at once."""
    run: NotRequired[str]
    """UUID of the run that stopped; its usage is counted once."""


class LeftOut(TypedDict):
    """What had no room in a view."""

    what: str
    """A message's id, or what sort of thing it is."""
    why: str
    tokens: int
    count: NotRequired[int]
    """How many such notes this one stands for."""


MemoryKind = Literal[
    "rolling summary",
    "perspective",
    "judge's summary",
    "ledger",
    "reflections",
    "cruxes",
    "retrieved",
    "earlier debates",
    "own texts",
    "pinned",
]
"""What a view may hold beside the messages of its window, its contract and its instruction."""


class ViewRecord(TypedDict):
    """What every receipt says of the view that was shown."""

    budget: int
    """Tokens that the view may have."""
    total_tokens: int
    """Tokens that it has, by exact count."""
    sections: dict[str, int]
    """Tokens by section."""
    message_ids: list[str]
    """First and last message in it, `[]` where it shows none by its id."""
    left_out: list[LeftOut]
    memory: NotRequired[dict[MemoryKind, int]]
    """Tokens of each kind, about; absent in debates stored by earlier builds."""


class RequestRecord(ViewRecord):
    """What every receipt says of the request: where it was made, and how it is made again."""

    step: int
    floor: int
    digest: str
    """SHA-256 of the request."""
    checkpoint: str
    """Checkpoint from whose state the view can be assembled again; `""` where there is none."""


class Receipt(RequestRecord):
    """The record of one view."""

    entry_id: str
    """The entry that came of it."""
    seq: int
    speaker: str
    phase: str
    round: int
    retrieved: list[str]
    """Ids of what was retrieved into it."""
    summary_version: int


class CallReceipt(RequestRecord):
    """The record of a call that is no speech: a summary, minutes, a card, a verdict, a moderator's choice."""

    id: str
    """`c000012`: "c" and its number among these calls."""
    purpose: str
    makes: str
    """`MemoryKind` that the answer becomes, `""` for none."""
    node: str
    model: str
    """Model that answered."""
    usage: EntryUsage
    error: str
    """Why there is no answer, `""` where there is one."""
    options: NotRequired[JsonObject]
    """What `moot judge` was told otherwise than the debate's configuration says."""


class InputSettings(TypedDict, total=False):
    """What a run's input says of the debate itself, over its `context`: any setting, these above all."""

    protocol: str
    """Rules of the debate."""
    turns: int
    """Utterances in all, for protocols that count turns; others count `rounds` or have their own settings."""
    debaters: list[dict[str, str]]
    """`{name, role, stance, model}` each; a name is enough."""
    model: str
    """Model of everybody who names none, of those that the operator allows."""


class ConversationInput(TypedDict, total=False):
    """What a run may be given."""

    topic: str
    """What is argued; without it the first human message is the topic."""
    messages: Annotated[list[AnyMessage], DeltaChannel(fold_window, list, **_EVERY)]
    """A first human message is the topic; in a running debate, an interjection from the floor."""
    full_transcript: Annotated[list[GivenEntry], DeltaChannel(append, list, **_EVERY)]
    """A transcript to continue: `{speaker, content}` at least, in order."""
    context_documents: Annotated[list[dict[str, str]], DeltaChannel(append, list, **_EVERY)]
    """`{name, content}` each."""
    settings: Annotated[InputSettings, EphemeralValue]
    """How it is argued, for clients that give no `context`: agents over A2A, in a data part."""


class ConversationOutput(TypedDict, total=False):
    """What a run returns; the whole state is in the checkpoint."""

    topic: str
    """What was argued."""
    verdict: Annotated[Decision, DeltaChannel(latest, dict, **_EVERY)]
    """What the judges decided; empty without judges and before they have."""
    solution: Annotated[str, DeltaChannel(latest, str, **_EVERY)]
    """The answer that a design debate came to, Markdown."""
    status: str
    """`running`, or `done` once it is over."""
    messages: Annotated[list[AnyMessage], DeltaChannel(fold_window, list, **_EVERY)]
    """The most recent words, `name` = speaker; the last one is the outcome, of `judge`."""


class ConversationState(TypedDict, total=False):
    """The state of one debate: one LangGraph thread."""

    topic: Annotated[str, DeltaChannel(latest, str, **_EVERY)]
    """What is argued."""
    full_transcript: Annotated[list[Entry], DeltaChannel(append, list, **_EVERY)]
    """Every entry ever, append-only, in `seq` order."""
    messages: Annotated[list[AnyMessage], DeltaChannel(fold_window, list, **_EVERY)]
    """The window: the most recent entries as LangChain messages, `name` = speaker, same ids."""
    gifts: Annotated[list[int], DeltaChannel(append, list, **_EVERY)]
    """`seq` of each entry with which people gave something: no view looks through the transcript for them."""
    pinned: Annotated[list[str], DeltaChannel(latest, list, **_EVERY)]
    """Ids of messages that stand in every view that has room, in the order in which they were pinned."""
    context_documents: Annotated[list[dict[str, str]], DeltaChannel(append, list, **_EVERY)]
    """Documents given with the topic; `open` makes entries of them."""
    settings: Annotated[InputSettings, EphemeralValue]
    """What the run's input says of a new debate; `config` holds what came of it."""
    rolling_summary: Annotated[Summary, DeltaChannel(latest, dict, **_EVERY)]
    """Current `Summary` of what the messages before the window said; `{}` before the first."""
    perspective_summaries: Annotated[dict[str, Summary], DeltaChannel(merge, dict, **_EVERY)]
    """Current `Summary` of each debater's own perspective."""
    judge_summary: Annotated[Summary, DeltaChannel(latest, dict, **_EVERY)]
    """The judge's `Summary` of the final round."""
    summary_versions: Annotated[list[SummaryVersion], DeltaChannel(append, list, **_EVERY)]
    """Every version of every `Summary`, oldest first; of its points those shown, `{text, message_ids, …}`."""
    minutes: Annotated[list[Note], DeltaChannel(append, list, **_EVERY)]
    """The ledger: notes of what was said, append-only; how things stand is computed from them."""
    reflections: Annotated[list[Reflection], DeltaChannel(append, list, **_EVERY)]
    crux_cards: Annotated[dict[str, CruxCard], DeltaChannel(merge, dict, **_EVERY)]
    """Crux cards by id."""
    receipts: Annotated[list[Receipt], DeltaChannel(append, list, **_EVERY)]
    """One for each view."""
    calls: Annotated[list[CallReceipt], DeltaChannel(append, list, **_EVERY)]
    """One for each call that is no speech."""
    config: Annotated[JsonObject, DeltaChannel(latest, dict, **_EVERY)]
    """`DebateConfig` as JSON, frozen by `open`."""
    prompt_sources: Annotated[dict[str, str], DeltaChannel(merge, dict, **_EVERY)]
    """SHA-256 of each prompt file used, by name."""
    protocol_state: Annotated[JsonObject, DeltaChannel(merge, dict, **_EVERY)]
    """What the protocol itself remembers, and nobody else reads."""
    crux_rooms: Annotated[dict[str, Room], DeltaChannel(merge, dict, **_EVERY)]
    """Every crux room that was opened, by id; a closed one's card tells what came of it."""
    clarifications: Annotated[Clarifications, DeltaChannel(merge, dict, **_EVERY)]
    """How far debaters have asked a person."""
    convergence: Annotated[list[ConvergenceCheck], DeltaChannel(append, list, **_EVERY)]
    """How far the proposals agreed, round by round, where somebody looked."""
    recollections: Annotated[JsonObject, DeltaChannel(merge, dict, **_EVERY)]
    """What debaters argued in earlier debates, by debater: looked up once, as the debate opened."""
    heard: Annotated[int, DeltaChannel(latest, int, **_EVERY)]
    """Number of the last interjection from the floor that was taken up; 0 for none."""
    interjections_taken: Annotated[int, DeltaChannel(latest, int, **_EVERY)]
    """How many of the configuration's interjections were taken up."""
    step: Annotated[Step, DeltaChannel(latest, dict, **_EVERY)]
    usage: Annotated[dict[str, float], DeltaChannel(add_up, dict, **_EVERY)]
    """Totals: `calls`, `prompt_tokens`, `completion_tokens`, `cached_tokens`, `cost_usd`, `elapsed_s`."""
    errors: Annotated[list[Problem], DeltaChannel(append, list, **_EVERY)]
    verdicts: Annotated[list[Verdict], DeltaChannel(append, list, **_EVERY)]
    """The panel's verdicts."""
    verdict: Annotated[Decision, DeltaChannel(latest, dict, **_EVERY)]
    """The decision; `{}` before there is one."""
    solution: Annotated[str, DeltaChannel(latest, str, **_EVERY)]
    """The synthesised solution, Markdown."""
    turn_count: int
    """Utterances by debaters so far."""
    round: int
    current_speaker: str
    status: str
    """`new`, `running`, `waiting`, `done`, `limit` or `failed`."""
    schema_version: int
