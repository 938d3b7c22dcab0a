"""Repeated extraction of claims, and crux rooms whose claim is already settled."""

from __future__ import annotations

from typing import Any, cast

import pytest

from moot.calls.effects import ModelCall, Reply
from moot.claims.claim_extraction import ClaimExtraction, find_quotation
from moot.claims.crux_cards import current_claim, make_room, rooms_to_assess, with_entries
from moot.claims.model_extraction import extract_claims, extraction_batches, extraction_tokens, ledger_lines
from moot.protocols.dialogue.crux_rooms import room_step
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, make_entry
from tests.support.ledger_state import COUNT, FERRIES, LEVY, NAMES, TOPIC, Board, event

CONFIG = DebateConfig.model_validate(
    {"protocol": "dialogue", "model": "m", "debaters": [{"name": name} for name in NAMES.values()]}
)
LISTS = ("claims", "events", "challenges", "questions", "answers", "evidence", "gaps", "same")


def _read(minutes: ClaimExtraction, entries: list[Entry], looks: list[str], **found: Any) -> list[ModelCall]:
    """Return the calls of one reading that finds this, and whose second look sees those kinds."""
    flow, calls = extract_claims(minutes, CONFIG, entries, COUNT), list[ModelCall]()
    seen = [{"number": number, "reasoning": "", "kind": kind} for number, kind in enumerate(looks, 1)]
    first = {"reasoning": "", **{name: [] for name in (*LISTS, "retractions")}, **found}
    asked = next(flow)
    try:
        while True:
            calls += asked
            asked = flow.send([Reply(data=first if len(calls) == 1 else {"checks": seen})])
    except StopIteration:
        return calls


def _minutes(*entries: Entry) -> ClaimExtraction:
    return ClaimExtraction([], TOPIC, {entry["id"]: entry for entry in entries}, list(NAMES), "model")


SAID = [make_entry(n, who, "speech", f"{text}.") for n, who, text in ((1, "ada", FERRIES), (2, "bob", LEVY))]


def test_what_a_second_reading_opens_is_not_what_the_first_one_called_so() -> None:
    minutes = _minutes(*SAID)
    for entry, text in zip(SAID, (FERRIES, LEVY), strict=True):
        said = event(entry, "asserts", "n1", quote=text)
        _read(minutes, [entry], ["asserts"], claims=[{"ref": "n1", "text": text}], events=[said])
    held = {key: minutes.ledger.claims[key]["text"] for key in minutes.ledger.timelines}
    assert held == {"p001": FERRIES, "p002": LEVY}


@pytest.mark.parametrize(("look", "noted"), [("open", "unsure"), ("denies", "")])
def test_what_is_left_open_is_noted_and_what_nobody_said_opens_no_proposition(look: str, noted: str) -> None:
    minutes = _minutes(*SAID)
    _read(minutes, SAID[:1], [look], claims=[], events=[event(SAID[0], "unsure", "", quote=FERRIES)])
    assert [each["kind"] for each in minutes.ledger.events] == [noted] * bool(noted)
    assert "p001" not in minutes.ledger.claims


def test_a_conditional_no_that_becomes_a_conditional_yes_is_verified_and_shown_as_a_denial() -> None:
    minutes = _minutes(*SAID)
    no = event(SAID[0], "denies", "", quote=FERRIES) | {"condition": "unless it is paid"}
    _read(minutes, SAID[:1], ["conditional"], events=[no])
    assert "ada denies (e001)" in "\n".join(ledger_lines(minutes.ledger))
    yes = event(SAID[0], "conditional", "", quote=FERRIES) | {"condition": "if it is paid"}
    assert len(_read(minutes, SAID[:1], ["conditional"], events=[yes])) == 2


def test_an_answer_has_room_for_the_notes_of_all_that_is_read() -> None:
    long = [make_entry(n, "ada", "speech", "So. " * 400, tokens=800) for n in range(1, 9)]
    batches = extraction_batches(long, CONFIG)
    most = (8192 - 400) // 4
    assert (
        max(sum(entry["tokens"] for entry in batch) for batch in batches) <= most < extraction_tokens(CONFIG)
    )
    calls = [_read(_minutes(*entries), entries, [])[0] for entries in (SAID, batches[0])]
    assert [call.max_tokens for call in calls] == [1500, 400 + 4 * 1600]


def test_a_long_batch_is_halved_and_more_messages_may_have_more_claims() -> None:
    ten = [make_entry(n, "ada", "speech", "So. " * 100, tokens=200) for n in range(1, 11)]
    assert [len(batch) for batch in extraction_batches(ten, CONFIG)] == [5, 5]
    limits = []
    for entries in (ten[:2], ten[:9]):
        (call,) = _read(_minutes(*entries), entries, [])
        assert call.schema
        limits.append(call.schema.model_json_schema()["properties"]["claims"]["maxItems"])
    assert limits == [12, 27]


def test_a_quotation_keeps_both_marks_of_what_it_quotes() -> None:
    text = 'She said: "Boats first" is wrong, and **bold** it is not.'
    start, end = find_quotation('"Boats first" is wrong', text) or (0, 0)
    assert text[start:end] == '"Boats first" is wrong'
    start, end = find_quotation("**bold** it is not", text) or (0, 0)
    assert text[start:end] == "bold** it is not"


def test_a_room_goes_on_with_what_its_two_differ_on_now_and_ends_where_that_is_nothing() -> None:
    board = Board()
    board.note("ada", "asserts", LEVY)
    board.note("bob", "denies", LEVY)
    room = {**make_room("room-01", "p001", ("ada", "bob"), ("m000001", "m000002"), 1), "stage": "positions"}
    said = [board.note("ada", "concedes", LEVY), board.note("ada", "asserts", FERRIES)]
    said.append(board.note("bob", "denies", FERRIES))
    heard = [{**entry, "room": "room-01"} for entry in board.state["full_transcript"][3:]]
    rooms = with_entries({"room-01": cast(Any, room)}, cast(Any, heard))
    state = cast(ConversationState, {**board.state, "crux_rooms": rooms, "round": 1})
    step = room_step(state, CONFIG, rooms)
    assert current_claim(state, rooms["room-01"]) == step["rooms"]["room-01"]["claim"] == "p002"
    assert FERRIES in step["turns"][0]["instruction"]
    assert [each["id"] for each in rooms_to_assess(state)] == ["room-01"]
    board.note("bob", "concedes", FERRIES)
    over = cast(ConversationState, {**board.state, "crux_rooms": rooms})
    assert [each["id"] for each in rooms_to_assess(over)] == ["room-01"]
