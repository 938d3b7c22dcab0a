"""The `moot.debate/1` document: one debate as JSON, for programs, reports and exports."""

from typing import Literal, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from moot.nodes.blackboard.standing import Stage, Status
from moot.nodes.people.questions import PersonQuestion
from moot.state.conversation import (
    CallReceipt,
    Clarifications,
    ConvergenceCheck,
    Problem,
    Receipt,
    Step,
    Summary,
    SummaryVersion,
)
from moot.state.entries import Entry, JsonObject
from moot.state.ledger import CruxCard, Note, Reflection, Room, Saying
from moot.state.verdict import Decision, PanelReport, Verdict

FORMAT: Literal["moot.debate/1"] = "moot.debate/1"


class Stance(Saying):
    """What one debater says of a proposition, at last."""

    message_id: str
    quote: str
    history: list[str]
    """Ids of all its events on the proposition, oldest first."""


class PropositionStanding(TypedDict):
    """How one proposition stands."""

    id: str
    text: str
    aspect: str
    status: Status
    stage: Stage
    """How far a dispute has come, `""` where there is none."""
    stances: dict[str, Stance]
    """By debater."""
    card: str
    """Crux card that came of it, `""` for none."""


class Admission(TypedDict):
    """A concession or a change of mind."""

    event: str
    debater: str
    proposition: str
    core: bool
    """Whether it gives up the motion, or what the debater's stance on it rests on."""
    message_id: str
    quote: str
    before: str
    """What was held before, in the debater's words; `""` where that was not noted."""


class RoundRecord(TypedDict):
    """What one round brought."""

    round: int
    positions: dict[str, str]
    """What each debater said last of the topic, or of anything, in it, in its own words."""
    new_disputes: list[str]
    """Ids of propositions on which in it for the first time one said yes and another no."""
    moved: list[str]
    """Ids of the events in it by which somebody conceded or changed its mind."""


class Standing(TypedDict):
    """How things stand; computed from the notes, and not read when a document is imported."""

    propositions: list[PropositionStanding]
    """The motion first, then by what rests on each."""
    concessions: list[Admission]
    changes: list[Admission]
    open_challenges: list[str]
    open_questions: list[str]
    rounds: list[RoundRecord]
    dropped: dict[str, int]
    """How many operations of its readers the ledger did not take, by the reason."""


class Blackboard(TypedDict):
    """What was noted of the debate."""

    minutes: list[Note]
    """The ledger's notes, in order; empty in documents of earlier builds, whose notes are read no more."""
    standing: Standing
    reflections: list[Reflection]
    cards: list[CruxCard]


class Usage(TypedDict):
    """What all calls of a debate used."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    """Prompt tokens read from a provider's cache."""
    reasoning_tokens: int
    """Completion tokens that were thought, not said."""
    cost_usd: float
    """Counted where prices are configured."""
    elapsed_s: float
    """Seconds of running, pauses not counted."""


class CarriedState(TypedDict, total=False):
    """Channels that a document carries as they are, so that the debate can be gone on with elsewhere."""

    rolling_summary: Summary
    perspective_summaries: dict[str, Summary]
    judge_summary: Summary
    protocol_state: JsonObject
    """What the protocol remembers."""
    crux_rooms: dict[str, Room]
    pinned: list[str]
    """Ids of messages that stand in every view."""
    clarifications: Clarifications
    interjections_taken: int
    step: Step
    turn_count: int
    round: int


# What is not known is kept, so that documents can grow; JSON has no word for infinity.
@with_config(ConfigDict(extra="allow", allow_inf_nan=False))
class DebateDocument(TypedDict):
    """One debate as JSON."""

    format: Literal["moot.debate/1"]
    id: str
    """UUID, the LangGraph thread's id."""
    name: str
    """What `--id` gave, else the UUID."""
    topic: str
    status: Literal["new", "running", "paused", "waiting", "done", "limit", "failed"]
    ended_because: NotRequired[str]
    """Why it is over, in words: what the protocol says, or which limit is reached; `""` while it goes on."""
    protocol: str
    """Name of the protocol."""
    config: JsonObject
    """The frozen configuration, defaults included; see `moot config schema`."""
    transcript: list[Entry]
    """Every entry ever, in `seq` order."""
    summaries: list[SummaryVersion]
    """Every version of every summary, oldest first."""
    receipts: list[Receipt]
    """One for each prompt of a debater."""
    calls: NotRequired[list[CallReceipt]]
    """One for each other call: summaries, minutes, cards, verdicts."""
    blackboard: Blackboard
    verdicts: list[Verdict]
    """Every judge's, of all judgings, failed ones too."""
    verdict: Decision | None
    """`null` where nobody has judged."""
    solution: str
    """Markdown, `""` for none."""
    convergence: NotRequired[list[ConvergenceCheck]]
    """What the judge found after each round, where a council ends on convergence."""
    usage: Usage
    planned: NotRequired[JsonObject]
    """What the run was forecast to take: `calls`, `prompt_tokens`, `completion_tokens`, upper bounds of both,
    the critical path and the batches; `{}` where the protocol cannot say."""
    errors: list[Problem]
    questions: NotRequired[list[PersonQuestion]]
    """What a person is asked before the debate can go on; empty where nothing is."""
    prompt_sources: dict[str, str]
    """SHA-256 of each prompt file used, by name."""
    agreement: NotRequired[PanelReport]
    """The decision's own; `{}` where it has none."""
    state: NotRequired[CarriedState]
    """What going on with the debate needs beside all this."""
    parent: str
    """The debate that this one was forked from, `""` for none."""
    created_at: str
    updated_at: str
    schema_version: int
