"""Claim extractor that replies with the labels of an excerpt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.extraction import import_excerpt, overlap
from moot.calls.model_calls import ModelCall, Reply
from moot.claims.claim_extraction import Operations

STATUS_BY_LABEL = {
    "disputed": "disputed",
    "settled_by_concession": "settled",
    "unanswered": "open",
    "agreed": "agreed",
}
"""Claim status in the ledger, by status in the labels."""


def _id(message: int) -> str:
    return f"m{message + 1:06d}"


def _concession(label: Mapping[str, Any], gold: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the labelled concession with the words of a claim's label, if there is one."""
    for each in gold["concessions"]:
        place = (each["speaker"], each["message"]) == (label["speaker"], label["message"])
        if place and (label["text"] in each["text"] or overlap(label["text"], each["text"]) >= 0.5):
            return dict(each)
    return None


def labelled_operations(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the extraction operations that match an excerpt's labels."""
    ids = {one.name: one.id for one in import_excerpt(item).speakers}
    extraction: dict[str, Any] = {"reasoning": "", **{name: [] for name in Operations.__annotations__}}
    for number, claim in enumerate(item["gold"]["propositions"], 1):
        ref = f"n{number}"
        extraction["claims"].append({"ref": ref, "text": claim["text"]})
        labels = [(label, kind) for kind in ("asserts", "denies") for label in claim[kind]]
        for label, kind in sorted(labels, key=lambda each: each[0]["message"]):
            settled = claim["status"] == "settled_by_concession"
            concession = _concession(label, item["gold"]) if settled else None
            if concession:
                extraction["challenges"] += _challenge(item, concession, ids, ref)
            place = {"message_id": _id(label["message"]), "claim": ref, "quote": label["text"]}
            event = {"kind": "concedes" if concession else kind, "condition": "", "ground": False}
            extraction["events"].append({**place, **event, "confidence": 0.9})
    return extraction


def _challenge(
    item: Mapping[str, Any], concession: Mapping[str, Any], ids: Mapping[str, str], ref: str
) -> list[dict[str, Any]]:
    """Return the challenge before a concession, from the last message of the debater it is made to."""
    earlier = [
        number
        for number, each in enumerate(item["messages"][: concession["message"]])
        if each["speaker"] == concession["to"]
    ]
    if not earlier or concession["to"] == concession["speaker"]:
        return []
    words = item["messages"][earlier[-1]]["text"][:60]
    place = {"message_id": _id(earlier[-1]), "to": ids[concession["speaker"]], "quote": words}
    return [{**place, "claim": ref, "answered_in": "", "answer": ""}]


class GoldExtractor:
    """Model that replies to the extraction with `extraction`, and to the quotation checks with `checks`."""

    def __init__(self, extraction: Mapping[str, Any], checks: Mapping[int, str] | None = None) -> None:
        self.extraction, self.checks = extraction, checks
        self.calls: list[ModelCall] = []

    async def __call__(self, call: ModelCall, *_: Any, **__: Any) -> Reply:
        """Return the reply to a call."""
        self.calls.append(call)
        if len(self.calls) == 1:
            return Reply(data=dict(self.extraction), model="m")
        if self.checks is None:
            return Reply(error="not asked for", model="m")
        checks = [{"number": number, "reasoning": "", "kind": kind} for number, kind in self.checks.items()]
        return Reply(data={"checks": checks}, model="m")
