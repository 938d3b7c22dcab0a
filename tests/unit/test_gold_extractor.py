"""Labelled claim events give the labelled statuses. Inverted and invented quotations are dropped."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from benchmarks.extraction import DATA, extract_excerpt
from moot.claims.claim_status import Ledger
from moot.claims.ledger_from_events import ledger_of
from moot.state.claim_events import MAIN_QUESTION
from tests.support.gold_extractor import STATUS_BY_LABEL, GoldExtractor, labelled_operations

OWN_DATA = Path(__file__).parents[1] / "data" / "gold-claim-events.jsonl"
ITEMS = [
    json.loads(line)
    for path in (OWN_DATA, DATA)
    if path.exists()
    for line in path.read_text(encoding="utf-8").splitlines()
]

STATED = [item for item in ITEMS if labelled_operations(item)["events"]]
DENIED = [
    item for item in STATED if any(each["kind"] == "denies" for each in labelled_operations(item)["events"])
]


def _extract_ledger(item: Mapping[str, Any], extractor: GoldExtractor) -> Ledger:
    return ledger_of(extract_excerpt(item, "some-model", extractor))


def _statuses(item: Mapping[str, Any], ledger: Ledger) -> dict[str, str]:
    by_text = {each["text"][:80]: key for key, each in ledger.claims.items()}
    wanted = [each["text"] for each in item["gold"]["propositions"]]
    return {text: ledger.status(by_text[text[:80]]) for text in wanted}


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item["id"])
def test_labelled_events_give_the_labelled_statuses(item: Any) -> None:
    ledger = _extract_ledger(item, GoldExtractor(labelled_operations(item)))
    assert _statuses(item, ledger) == {
        each["text"]: STATUS_BY_LABEL[each["status"]] for each in item["gold"]["propositions"]
    }
    assert not any(ledger.dropped.values())


def _inverted(extraction: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Return an extraction in which the first denial is an assertion, and the index of that event.

    The events of its claim refer to the main question, because only those are verified.
    """
    wrong = deepcopy(dict(extraction))
    number = next(n for n, each in enumerate(wrong["events"]) if each["kind"] == "denies")
    denied = wrong["events"][number]["claim"]
    for each in wrong["events"]:
        if each["claim"] == denied:
            each["claim"] = MAIN_QUESTION
    wrong["events"][number]["kind"] = "asserts"
    return wrong, number


class _HonestVerifier(GoldExtractor):
    """Verifies each quotation, and answers with its labelled kind."""

    def __init__(self, extraction: Mapping[str, Any], kinds: Mapping[str, str]) -> None:
        super().__init__(extraction)
        self.kinds = kinds

    async def __call__(self, call: Any, *_: Any, **__: Any) -> Any:
        if self.calls:
            shown = "\n".join(each["content"] for each in call.messages[1:])
            quotes = re.findall(r"^(\d+)\. Quotation: (.*)", shown, re.MULTILINE)
            self.checks = {int(n): self.kinds[quote] for n, quote in quotes}
        return await super().__call__(call)


@pytest.mark.parametrize("item", DENIED, ids=lambda item: item["id"])
def test_verification_drops_an_inverted_event(item: Any) -> None:
    right = labelled_operations(item)
    wrong, number = _inverted(right)
    ledger = _extract_ledger(
        item, _HonestVerifier(wrong, {each["quote"]: each["kind"] for each in right["events"]})
    )
    quote = wrong["events"][number]["quote"]
    kept, extracted = ([each["quote"] for each in events] for events in (ledger.events, wrong["events"]))
    assert kept.count(quote) == extracted.count(quote) - 1
    assert ledger.dropped["verification"] == 1


@pytest.mark.parametrize("item", STATED, ids=lambda item: item["id"])
def test_an_invented_quotation_is_dropped_and_counted(item: Any) -> None:
    wrong = labelled_operations(item)
    wrong["events"][0]["quote"] = "I never said anything of the kind."
    ledger = _extract_ledger(item, GoldExtractor(wrong))
    assert len(ledger.events) == len(wrong["events"]) - 1
    assert ledger.dropped["quotation not found"] == 1
