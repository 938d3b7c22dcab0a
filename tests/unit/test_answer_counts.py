"""Agreement before and after the debate, counted from what is stored."""

from __future__ import annotations

from typing import Any

import pytest

from moot.config.config_files import make_config
from moot.judging.verdict_fields import confidence_note
from moot.protocols.answer_counts import answer_counts
from moot.state.entries import make_entry
from tests.support.ledger_state import stance_event
from tests.unit.test_moving_proposals import MAREN, NAMES, OPENINGS, says

MESSAGES = ("maren", "joost", "maren", "joost")
AGREED = [*MAREN, says(4, "joost", "conditional", "p001", "if the cellars stay open")]


def counts(events: Any = (), texts: Any = ("",) * 4, stages: Any = (), **settings: Any) -> Any:
    entries = [
        make_entry(seq, speaker, "speech", text)
        for seq, (speaker, text) in enumerate(zip(MESSAGES, texts, strict=True), 1)
    ]
    state: Any = {"full_transcript": entries, "claim_events": list(events), "topic": "Close it?"}
    config = make_config({"debaters": [{"id": key, "name": name} for key, name in NAMES.items()], **settings})
    result = answer_counts(state, config, stages)
    return result and (result["debaters"], result["openings"], result["end"])


def option(number: int, debater: str, answer: str) -> Any:
    return stance_event(number, debater, "asserts", "p000", option=answer)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (OPENINGS, (2, 2, 2)),
        (AGREED, (2, 2, 1)),
        ([*OPENINGS, says(4, "joost", "concedes")], (2, 2, 1)),
        ([*OPENINGS, says(4, "joost", "withdraws")], None),
        ([*OPENINGS, says(4, "joost", "unsure")], None),
        ([says(3, "maren", "asserts"), says(2, "joost", "denies")], None),
        ([says(1, "maren", "asserts")], None),
        ([option(1, "maren", "A"), option(2, "joost", "B"), option(4, "joost", "A")], (2, 2, 1)),
        ([], None),
    ],
    ids=[
        *("no change", "a changed proposal", "a concession", "withdrawn", "unsure"),
        *("no position in the opening", "one debater", "options", "no claims"),
    ],
)
def test_answers_come_from_the_ledger(events: Any, expected: Any) -> None:
    assert counts(events) == expected


def test_answers_come_from_answer_lines() -> None:
    texts = ("Answer: A", "It is better.\nAnswer: B", "Answer: a", "Answer: A")
    assert counts(texts=texts, options=["A", "B"]) == (2, 2, 1)
    assert counts(texts=("Answer: A", "B", "Answer: A", "Answer: A"), options=["A", "B"]) is None


def test_answers_come_from_the_stages_before_and_after_the_debate() -> None:
    stages = [{"votes": votes} for votes in ({"a": 1.0}, {"a": 1.0, "b": 2.0}, {"b": 3.0})]
    assert counts(stages=stages) == (3, 2, 1)
    assert counts(stages=stages[:2]) is None


def test_the_note_says_it_in_words() -> None:
    verdict: Any = {"answers": {"debaters": 3, "openings": 3, "end": 1}}
    assert confidence_note(verdict) == "Their answers: 3 different in the openings, 3 equal at the end."
    assert confidence_note({}) == ""  # type: ignore[typeddict-item]  # nothing is known
