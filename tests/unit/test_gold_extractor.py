"""Labelled extractions give the labelled statuses; inverted and invented ones are detected."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from benchmarks.minutes import DATA, read_excerpt
from moot.claims.claim_status import Ledger
from moot.claims.ledger_from_events import ledger_of
from moot.state.claim_events import MAIN_QUESTION
from tests.support.gold_extractor import STATUS, GoldExtractor, labelled_events

OWN = Path(__file__).parents[1] / "data" / "gold-minutes.jsonl"
ITEMS = [
    json.loads(line)
    for path in (OWN, DATA)
    if path.exists()
    for line in path.read_text(encoding="utf-8").splitlines()
]

STATED = [item for item in ITEMS if labelled_events(item)["events"]]
DENIED = [
    item for item in STATED if any(each["kind"] == "denies" for each in labelled_events(item)["events"])
]


def _read(item: Mapping[str, Any], reader: GoldExtractor) -> Ledger:
    return ledger_of(read_excerpt(item, "some-model", reader))


def _statuses(item: Mapping[str, Any], ledger: Ledger) -> dict[str, str]:
    by_text = {each["text"][:80]: key for key, each in ledger.claims.items()}
    wanted = [each["text"] for each in item["gold"]["propositions"]]
    return {text: ledger.status(by_text[text[:80]]) for text in wanted}


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item["id"])
def test_what_is_read_rightly_stands_as_it_was_labelled_and_every_quotation_is_kept(item: Any) -> None:
    ledger = _read(item, GoldExtractor(labelled_events(item)))
    assert _statuses(item, ledger) == {
        each["text"]: STATUS[each["status"]] for each in item["gold"]["propositions"]
    }
    assert not any(ledger.dropped.values())


def _inverted(minutes: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Return an extraction in which the first denial is an assertion, and its number.

    The denied claim is the main question: only its events are verified.
    """
    wrong = deepcopy(dict(minutes))
    number = next(n for n, each in enumerate(wrong["events"]) if each["kind"] == "denies")
    denied = wrong["events"][number]["claim"]
    for each in wrong["events"]:
        if each["claim"] == denied:
            each["claim"] = MAIN_QUESTION
    wrong["events"][number]["kind"] = "asserts"
    return wrong, number


class _Looking(GoldExtractor):
    """Looks at each quotation again, and says what it really does."""

    def __init__(self, minutes: Mapping[str, Any], kinds: Mapping[str, str]) -> None:
        super().__init__(minutes)
        self.kinds = kinds

    async def __call__(self, call: Any, *_: Any, **__: Any) -> Any:
        if self.calls:
            shown = "\n".join(each["content"] for each in call.messages[1:])
            quotes = re.findall(r"^(\d+)\. Quotation: (.*)", shown, re.MULTILINE)
            self.looks = {int(n): self.kinds[quote] for n, quote in quotes}
        return await super().__call__(call)


@pytest.mark.parametrize("item", DENIED, ids=lambda item: item["id"])
def test_an_inverted_quotation_is_caught_by_the_second_look(item: Any) -> None:
    right = labelled_events(item)
    wrong, number = _inverted(right)
    ledger = _read(item, _Looking(wrong, {each["quote"]: each["kind"] for each in right["events"]}))
    quote = wrong["events"][number]["quote"]
    kept, noted = ([each["quote"] for each in events] for events in (ledger.events, wrong["events"]))
    assert kept.count(quote) == noted.count(quote) - 1
    assert ledger.dropped["verification"] == 1


@pytest.mark.parametrize("item", STATED, ids=lambda item: item["id"])
def test_an_invented_quotation_is_dropped_and_counted(item: Any) -> None:
    wrong = labelled_events(item)
    wrong["events"][0]["quote"] = "I never said anything of the kind."
    ledger = _read(item, GoldExtractor(wrong))
    assert len(ledger.events) == len(wrong["events"]) - 1
    assert ledger.dropped["quotation not found"] == 1
