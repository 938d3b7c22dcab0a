"""The `moot.debate/1` document: one debate as JSON, for programs, reports and exports."""

from typing import Literal, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from moot.graph.documents.board import Blackboard
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
from moot.state.ledger import Room
from moot.state.verdict import Decision, PanelReport, Verdict

FORMAT: Literal["moot.debate/1"] = "moot.debate/1"


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
