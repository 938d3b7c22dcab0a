"""A state whose ledger grows as its channels would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moot.nodes.blackboard.by_rule import RuleReader
from moot.nodes.blackboard.digest import render_blackboard
from moot.nodes.blackboard.folding import ledger_of
from moot.nodes.blackboard.minutes import Minutes
from moot.nodes.blackboard.standing import Ledger
from moot.nodes.text.tokens import counter
from moot.state.entries import Entry, make_entry
from moot.state.ledger import MOTION, Event, EventKind, Note, Reader
from moot.state.reducers import append

NAMES = {"ada": "Ada", "bob": "Bob", "cyd": "Cyd"}
TOPIC = "Should the ferries be closed?"
COUNT = counter()
FERRIES = "Ferries cut traffic in winter storms"
LEVY = "The levy falls on the poorest households"
TOPIC_ENTRY = make_entry(0, "user", "topic", TOPIC)


class Board:
    """A state whose ledger grows as its channels would."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {"topic": TOPIC, "full_transcript": [TOPIC_ENTRY], "minutes": []}

    @property
    def ledger(self) -> Ledger:
        return ledger_of(self.state)

    def entry(self, speaker: str, text: str, *, round_no: int = 1, targets: Sequence[str] = ()) -> Entry:
        seq = len(self.state["full_transcript"])
        entry = make_entry(seq, speaker, "speech", text, round=round_no, targets=list(targets))
        self.state["full_transcript"] = [*self.state["full_transcript"], entry]
        self.state["round"] = round_no
        return entry

    def say(self, speaker: str, text: str, *, round_no: int = 1, targets: Sequence[str] = ()) -> Entry:
        """Say something that the rules read."""
        before = self.state["full_transcript"]
        entry = self.entry(speaker, text, round_no=round_no, targets=targets)
        self.take([entry, *before], "rule", RuleReader(NAMES, TOPIC, self.ledger).read([entry], before))
        return entry

    def take(self, entries: Sequence[Entry], by: Reader, operations: Any) -> Minutes:
        minutes = Minutes(
            known=self.state["minutes"],
            topic=TOPIC,
            entries={entry["id"]: entry for entry in entries},
            debaters=list(NAMES),
            by=by,
        )
        minutes.take(operations)
        self.state["minutes"] = append(self.state["minutes"], [minutes.close(entries[0]["seq"])])
        return minutes

    def note(
        self, speaker: str, kind: EventKind, text: str, *, by: Reader = "model", round_no: int = 1
    ) -> Entry:
        """Say something that does this to the proposition `text`; on the motion where that is empty."""
        entry = self.entry(speaker, f"I say of this: {kind}. {text}.", round_no=round_no)
        self.take(
            [entry], by, {"propositions": [{"ref": "n1", "text": text}], "events": [event(entry, kind, text)]}
        )
        return entry

    def view(self, speaker: str, max_tokens: int = 400, answering: Sequence[str] = ()) -> str:
        return render_blackboard(
            self.state, speaker, max_tokens=max_tokens, count=COUNT, names=NAMES, answering=answering
        )


def event(entry: Entry, kind: EventKind, text: str, **fields: Any) -> dict[str, Any]:
    base = {"condition": "", "ground": False, "confidence": 0.9, "quote": f"I say of this: {kind}."}
    about = "n1" if text else MOTION
    return {"message_id": entry["id"], "proposition": about, "kind": kind, **base, **fields}


def plain(number: int, debater: str, kind: EventKind, key: str = "p001", **fields: Any) -> Event:
    """Return an event that stands in message `number`."""
    noted: Event = {
        "note": "event",
        "id": f"e{number:03d}",
        "kind": kind,
        "proposition": key,
        "debater": debater,
        "message_id": f"m{number:06d}",
        "quote": f"{debater} {kind}",
        "condition": "",
        "ground": False,
        "by": "model",
        "confidence": 0.9,
    }
    return {**noted, **fields}  # type: ignore[typeddict-item]  # fields of an event


def opened(*keys: str) -> list[Note]:
    return [
        {"note": "proposition", "id": key, "text": f"Statement {key}", "aspect": "overall", "seq": 1}
        for key in keys
    ]


def retracted(key: str, by: Reader) -> Note:
    return {"note": "retraction", "of": key, "why": "", "by": by}
