"""State with a ledger, for tests of claim events and of the blackboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moot.claims.blackboard import render_blackboard
from moot.claims.claim_extraction import ClaimExtraction
from moot.claims.claim_status import Ledger
from moot.claims.ledger_from_events import ledger_of
from moot.state.claim_events import MAIN_QUESTION, ClaimEvent, Extractor, StanceEvent, StanceKind
from moot.state.entries import Entry, make_entry
from moot.state.reducers import append
from moot.text.tokens import counter

NAMES = {"ada": "Ada", "bob": "Bob", "cyd": "Cyd"}
TOPIC = "Should the ferries be closed?"
COUNT_TOKENS = counter()
FERRIES = "Ferries cut traffic in winter storms"
LEVY = "The levy falls on the poorest households"
TOPIC_ENTRY = make_entry(0, "user", "topic", TOPIC)


class Board:
    """State that applies entries and claim events as its channels would."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {"topic": TOPIC, "full_transcript": [TOPIC_ENTRY], "claim_events": []}

    @property
    def ledger(self) -> Ledger:
        return ledger_of(self.state)

    def add_entry(self, speaker: str, text: str, *, round_no: int = 1, targets: Sequence[str] = ()) -> Entry:
        seq = len(self.state["full_transcript"])
        entry = make_entry(seq, speaker, "speech", text, round=round_no, targets=list(targets))
        self.state["full_transcript"] = [*self.state["full_transcript"], entry]
        self.state["round"] = round_no
        return entry

    def apply_operations(self, entries: Sequence[Entry], by: Extractor, operations: Any) -> ClaimExtraction:
        extraction = ClaimExtraction(
            known=self.state["claim_events"],
            topic=TOPIC,
            entries={entry["id"]: entry for entry in entries},
            debaters=list(NAMES),
            by=by,
        )
        extraction.apply(operations)
        self.state["claim_events"] = append(
            self.state["claim_events"], [extraction.finish(entries[0]["seq"])]
        )
        return extraction

    def add_stance(
        self, speaker: str, kind: StanceKind, text: str, *, by: Extractor = "model", round_no: int = 1
    ) -> Entry:
        """Add a message with a stance on the claim `text`, or on the main question if it is empty."""
        entry = self.add_entry(speaker, f"I say of this: {kind}. {text}.", round_no=round_no)
        self.apply_operations(
            [entry],
            by,
            {"claims": [{"ref": "n1", "text": text}], "events": [stance_operation(entry, kind, text)]},
        )
        return entry

    def prompt_section(self, speaker: str, max_tokens: int = 400, answering: Sequence[str] = ()) -> str:
        return render_blackboard(
            self.state, speaker, max_tokens=max_tokens, count=COUNT_TOKENS, names=NAMES, answering=answering
        )


def stance_operation(entry: Entry, kind: StanceKind, text: str, **fields: Any) -> dict[str, Any]:
    base = {"condition": "", "ground": False, "confidence": 0.9, "quote": f"I say of this: {kind}."}
    about = "n1" if text else MAIN_QUESTION
    return {"message_id": entry["id"], "claim": about, "kind": kind, **base, **fields}


def stance_event(
    number: int, debater: str, kind: StanceKind, key: str = "p001", **fields: Any
) -> StanceEvent:
    """Return the stance of a debater in message `number`."""
    event: StanceEvent = {
        "type": "event",
        "id": f"e{number:03d}",
        "kind": kind,
        "claim": key,
        "debater": debater,
        "message_id": f"m{number:06d}",
        "quote": f"{debater} {kind}",
        "condition": "",
        "ground": False,
        "by": "model",
        "confidence": 0.9,
    }
    return {**event, **fields}  # type: ignore[typeddict-item]  # fields of an event


def new_claim_events(*keys: str) -> list[ClaimEvent]:
    return [
        {"type": "claim", "id": key, "text": f"Statement {key}", "aspect": "overall", "seq": 1}
        for key in keys
    ]


def retraction_event(key: str, by: Extractor) -> ClaimEvent:
    return {"type": "retraction", "of": key, "why": "", "by": by}
