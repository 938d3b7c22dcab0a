"""Answers to questions without a model: quoted passages of the debate."""

from __future__ import annotations

import pytest

from moot.asking.answer import NO_MODEL, NO_PASSAGE, extract_for
from moot.state.entries import Entry, make_entry

NAMES = {"ada": "Ada Quay", "ben": "Ben Ray"}
FILLER = "The council met again and looked at the calendar of the coming year without much joy. "
POOL = "The connection pool is shared by reporting and checkout."
FREEZE = "Hiring was frozen yesterday, so plan with the people we are."


def _entries() -> list[Entry]:
    messages = [("ada", f"{FILLER * 4}{POOL} {FILLER * 4}"), ("ben", FREEZE)]
    messages += [(("ada", "ben")[n % 2], FILLER * 3) for n in range(20)]
    return [
        {**make_entry(seq, who, "speech", text), "tokens": len(text) // 4}
        for seq, (who, text) in enumerate(messages, 1)
    ]


def test_relevant_passage_is_quoted_with_its_id() -> None:
    text, ids = extract_for("What is said about the connection pool?", _entries(), NAMES)
    assert ids == ("m000001",)
    assert text.startswith(f"{NO_MODEL}\n\n- [m000001] Ada Quay: […] ")
    assert POOL in text
    assert len(text) < 500


def test_other_questions_get_other_passages() -> None:
    text, ids = extract_for("Is there a hiring freeze?", _entries(), NAMES)
    assert (text, ids) == (f"{NO_MODEL}\n\n- [m000002] Ben Ray: {FREEZE}", ("m000002",))


@pytest.mark.parametrize("question", ["What did Ben say about the pool?", "Why penguins?"])
def test_no_other_passage_is_quoted_if_none_matches(question: str) -> None:
    assert extract_for(question, _entries(), NAMES) == (NO_PASSAGE, ())


def test_message_requested_by_id_is_quoted() -> None:
    text, ids = extract_for("What does m000002 say?", _entries(), NAMES, [2])
    assert (FREEZE in text, ids) == (True, ("m000002",))
