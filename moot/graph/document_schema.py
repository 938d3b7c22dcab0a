"""The JSON Schema of `moot.debate/1`, made from the types that a debate is stored in.

`python -m moot.graph.document_schema > docs/debate.schema.json` writes the copy in the documentation.
"""

from __future__ import annotations

import json
from typing import Any, Literal, NotRequired

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from moot.graph.field_docs import describe
from moot.nodes.people.questions import Question
from moot.state.blackboard import Claim, CruxCard, LedgerRow, Reflection, RoundRecord
from moot.state.conversation import Receipt, Summary
from moot.state.entries import Entry
from moot.state.progress import ConvergenceCheck


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


class Blackboard(TypedDict):
    """What the orchestrator has extracted."""

    ledger: dict[str, LedgerRow]
    """Position ledger by debater."""
    claims: list[Claim]
    rounds: list[RoundRecord]
    reflections: list[Reflection]
    cards: list[CruxCard]


class Problem(TypedDict):
    """Something that failed; where the debate's `status` is not `failed`, it was got over."""

    step: int
    node: str
    error: str
    at: NotRequired[str]
    """When a run stopped because of it; not there where the debate went on at once."""
    run: NotRequired[str]
    """UUID of the run that stopped; its usage is counted once."""


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
    config: dict[str, Any]
    """The frozen configuration, defaults included; see `moot config schema`."""
    transcript: list[Entry]
    """Every entry ever, in `seq` order."""
    summaries: list[Summary]
    """Every version of every summary, oldest first."""
    receipts: list[Receipt]
    """One for each prompt of a debater."""
    blackboard: Blackboard
    verdicts: list[dict[str, Any]]
    """The panel's."""
    verdict: dict[str, Any] | None
    """The decision: `status` is `ok` or `failed`, `winner` an id, `tie` or `synthesis`; `null` for none."""
    solution: str
    """Markdown, `""` for none."""
    convergence: NotRequired[list[ConvergenceCheck]]
    """What the judge found after each round, where a council ends on convergence."""
    usage: Usage
    planned: NotRequired[dict[str, Any]]
    """What the run was forecast to take: `calls`, `prompt_tokens`, `completion_tokens`, upper bounds of both,
    the critical path and the batches; `{}` where the protocol cannot say."""
    errors: list[Problem]
    questions: NotRequired[list[Question]]
    """What a person is asked before the debate can go on; empty where nothing is."""
    prompt_sources: dict[str, str]
    """SHA-256 of each prompt file used, by name."""
    agreement: NotRequired[dict[str, Any]]
    """How far the panel agrees: `judges`, `failed`, `alpha`, `kappa`, `flip_rate`, `unanimous`, `dissent`, …:
    the decision's own."""
    state: NotRequired[dict[str, Any]]
    """What going on with the debate needs beside all this: current summaries with what is behind them, what
    the protocol remembers, crux rooms and how far the blackboard has read, the current step."""
    parent: str
    """The debate that this one was forked from, `""` for none."""
    created_at: str
    updated_at: str
    schema_version: int


KINDS: tuple[type, ...] = (
    Blackboard,
    Claim,
    ConvergenceCheck,
    CruxCard,
    DebateDocument,
    Entry,
    LedgerRow,
    Problem,
    Question,
    Receipt,
    Reflection,
    RoundRecord,
    Summary,
    Usage,
)


def document_schema() -> dict[str, Any]:
    """Return the schema; keys that it does not know are allowed, so that documents can grow."""
    schema = TypeAdapter(DebateDocument).json_schema()
    schema["$defs"]["Summary"]["properties"]["points"] = _shown_points()
    describe(schema, {kind.__name__: kind for kind in KINDS})
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "moot.debate/1", **schema}


def _shown_points() -> dict[str, Any]:
    """Return the schema of a version's points: unlike the current summary, a version keeps what it shows."""
    text = {"type": "string"}
    ids = {"type": "array", "items": text}
    return {
        "type": "array",
        "description": "What is behind the text.",
        "items": {
            "type": "object",
            "properties": {"text": text, "speaker": text, "message_ids": ids},
            "required": ["text", "speaker", "message_ids"],
        },
    }


if __name__ == "__main__":
    print(json.dumps(document_schema(), indent=2, ensure_ascii=False))
