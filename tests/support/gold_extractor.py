"""A claim extractor that answers with the labels of an excerpt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.minutes import import_excerpt, overlap
from moot.calls.effects import ModelCall, Reply
from moot.claims.claim_extraction import Operations

STATUS = {
    "disputed": "disputed",
    "settled_by_concession": "settled",
    "unanswered": "open",
    "agreed": "agreed",
}
"""How the ledger calls what the labels say of a proposition."""


def _id(message: int) -> str:
    return f"m{message + 1:06d}"


def _concession(label: Mapping[str, Any], gold: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the concession that a label of a proposition is the words of."""
    for each in gold["concessions"]:
        place = (each["speaker"], each["message"]) == (label["speaker"], label["message"])
        if place and (label["text"] in each["text"] or overlap(label["text"], each["text"]) >= 0.5):
            return dict(each)
    return None


def labelled_events(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the operations that an excerpt's labels come to."""
    ids = {one.name: one.id for one in import_excerpt(item).speakers}
    extraction: dict[str, Any] = {"reasoning": "", **{name: [] for name in Operations.__annotations__}}
    for number, proposition in enumerate(item["gold"]["propositions"], 1):
        ref = f"n{number}"
        extraction["claims"].append({"ref": ref, "text": proposition["text"]})
        labels = [(label, kind) for kind in ("asserts", "denies") for label in proposition[kind]]
        for label, kind in sorted(labels, key=lambda each: each[0]["message"]):
            settled = proposition["status"] == "settled_by_concession"
            given = _concession(label, item["gold"]) if settled else None
            if given:
                extraction["challenges"] += _pressed(item, given, ids, ref)
            said = {"message_id": _id(label["message"]), "claim": ref, "quote": label["text"]}
            event = {"kind": "concedes" if given else kind, "condition": "", "ground": False}
            extraction["events"].append({**said, **event, "confidence": 0.9})
    return extraction


def _pressed(
    item: Mapping[str, Any], given: Mapping[str, Any], ids: Mapping[str, str], ref: str
) -> list[dict[str, Any]]:
    """Return the challenge that a concession follows: the last words of whom it is made to."""
    earlier = [
        number
        for number, each in enumerate(item["messages"][: given["message"]])
        if each["speaker"] == given["to"]
    ]
    if not earlier or given["to"] == given["speaker"]:
        return []
    words = item["messages"][earlier[-1]]["text"][:60]
    said = {"message_id": _id(earlier[-1]), "to": ids[given["speaker"]], "quote": words}
    return [{**said, "claim": ref, "answered_in": "", "answer": ""}]


class GoldExtractor:
    """Answers the reading with labels, and a second look with what it is given."""

    def __init__(self, extraction: Mapping[str, Any], looks: Mapping[int, str] | None = None) -> None:
        self.extraction, self.looks = extraction, looks
        self.calls: list[ModelCall] = []

    async def __call__(self, call: ModelCall, *_: Any, **__: Any) -> Reply:
        """Return the reply to a call."""
        self.calls.append(call)
        if len(self.calls) == 1:
            return Reply(data=dict(self.extraction), model="m")
        if self.looks is None:
            return Reply(error="not asked for", model="m")
        looks = [{"number": number, "reasoning": "", "kind": kind} for number, kind in self.looks.items()]
        return Reply(data={"checks": looks}, model="m")
