"""Repeated extraction of claims, and crux rooms whose claim is already settled."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast

import pytest

from moot.calls.model_calls import ModelCall, Reply
from moot.claims.claim_extraction import ClaimExtraction, find_quotation
from moot.claims.crux_cards import current_claim, make_room, rooms_to_assess, with_entries
from moot.claims.model_extraction import extract_claims, extraction_batches, extraction_tokens, ledger_lines
from moot.config import DebateConfig
from moot.config.memory_config import Budget, MemoryConfig
from moot.protocols.dialogue.crux_rooms import room_step
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, make_entry
from tests.support.ledger_state import COUNT_TOKENS, FERRIES, LEVY, NAMES, TOPIC, Board, stance_operation

CONFIG = DebateConfig.model_validate(
    {"protocol": "dialogue", "model": "m", "debaters": [{"name": name} for name in NAMES.values()]}
)
LISTS = ("claims", "events", "challenges", "questions", "answers", "evidence", "gaps", "same")


def _extraction_calls(
    extraction: ClaimExtraction, entries: list[Entry], checks: list[str], **operations: Any
) -> list[ModelCall]:
    """Return the calls of an extraction. The first call returns `operations`, the second `checks`."""
    flow, calls = extract_claims(extraction, CONFIG, entries, COUNT_TOKENS), list[ModelCall]()
    seen = [{"number": number, "reasoning": "", "kind": kind} for number, kind in enumerate(checks, 1)]
    first = {"reasoning": "", **{name: [] for name in (*LISTS, "retractions")}, **operations}
    asked = next(flow)
    try:
        while True:
            calls += asked
            asked = flow.send([Reply(data=first if len(calls) == 1 else {"checks": seen})])
    except StopIteration:
        return calls


def _new_extraction(*entries: Entry) -> ClaimExtraction:
    return ClaimExtraction([], TOPIC, {entry["id"]: entry for entry in entries}, list(NAMES), "model")


MESSAGES = [
    make_entry(n, who, "speech", f"{text}.") for n, who, text in ((1, "ada", FERRIES), (2, "bob", LEVY))
]


def test_claim_refs_of_two_extractions_do_not_collide() -> None:
    extraction = _new_extraction(*MESSAGES)
    for entry, text in zip(MESSAGES, (FERRIES, LEVY), strict=True):
        stance = stance_operation(entry, "asserts", "n1", quote=text)
        _extraction_calls(
            extraction, [entry], ["asserts"], claims=[{"ref": "n1", "text": text}], events=[stance]
        )
    claims = {key: extraction.ledger.claims[key]["text"] for key in extraction.ledger.timelines}
    assert claims == {"p001": FERRIES, "p002": LEVY}


@pytest.mark.parametrize(("check", "recorded"), [("open", "unsure"), ("denies", "")])
def test_unsure_stance_is_recorded_only_if_the_check_finds_it_open(check: str, recorded: str) -> None:
    extraction = _new_extraction(*MESSAGES)
    _extraction_calls(
        extraction,
        MESSAGES[:1],
        [check],
        claims=[],
        events=[stance_operation(MESSAGES[0], "unsure", "", quote=FERRIES)],
    )
    assert [each["kind"] for each in extraction.ledger.events] == [recorded] * bool(recorded)
    assert "p001" not in extraction.ledger.claims


def test_change_from_conditional_no_to_conditional_yes_is_verified() -> None:
    extraction = _new_extraction(*MESSAGES)
    no = stance_operation(MESSAGES[0], "denies", "", quote=FERRIES) | {"condition": "unless it is paid"}
    _extraction_calls(extraction, MESSAGES[:1], ["conditional"], events=[no])
    assert "ada denies (e001)" in "\n".join(ledger_lines(extraction.ledger))
    yes = stance_operation(MESSAGES[0], "conditional", "", quote=FERRIES) | {"condition": "if it is paid"}
    assert len(_extraction_calls(extraction, MESSAGES[:1], ["conditional"], events=[yes])) == 2


def test_extraction_reply_limit_grows_with_the_batch() -> None:
    long = [make_entry(n, "ada", "speech", "So. " * 400, tokens=800) for n in range(1, 9)]
    batches = extraction_batches(long, CONFIG)
    max_batch_tokens = (8192 - 400) // 4
    assert (
        max(sum(entry["tokens"] for entry in batch) for batch in batches)
        <= max_batch_tokens
        < extraction_tokens(CONFIG)
    )
    calls = [
        _extraction_calls(_new_extraction(*entries), entries, [])[0] for entries in (MESSAGES, batches[0])
    ]
    assert [call.max_tokens for call in calls] == [1500, 400 + 4 * 1600]


def test_long_batch_is_split_and_more_messages_allow_more_claims() -> None:
    ten = [make_entry(n, "ada", "speech", "So. " * 100, tokens=200) for n in range(1, 11)]
    assert [len(batch) for batch in extraction_batches(ten, CONFIG)] == [5, 5]
    limits = []
    for entries in (ten[:2], ten[:9]):
        (call,) = _extraction_calls(_new_extraction(*entries), entries, [])
        assert call.schema
        limits.append(call.schema.model_json_schema()["properties"]["claims"]["maxItems"])
    assert limits == [12, 27]


def test_an_extraction_divides_messages_that_it_would_cut() -> None:
    short = [make_entry(n, "ada", "speech", f"Fact {n} holds. " * 9, tokens=60) for n in range(1, 31)]
    config = CONFIG.model_copy(update={"memory": MemoryConfig(budget=Budget(total=2600))})
    (batch,) = extraction_batches(short[:9], config)
    flow, prompts = extract_claims(_new_extraction(*batch), config, batch, COUNT_TOKENS), list[str]()
    asked = next(flow)
    with suppress(StopIteration):
        while True:
            prompts.append(str([message["content"] for message in asked[0].messages]))
            asked = flow.send([Reply(data={})])
    assert len(prompts) > 1
    assert all(any(repr(entry["content"])[1:-1] in prompt for prompt in prompts) for entry in batch)


def test_quotation_keeps_the_quotation_marks_inside_it() -> None:
    text = 'She said: "Boats first" is wrong, and **bold** it is not.'
    start, end = find_quotation('"Boats first" is wrong', text) or (0, 0)
    assert text[start:end] == '"Boats first" is wrong'
    start, end = find_quotation("**bold** it is not", text) or (0, 0)
    assert text[start:end] == "bold** it is not"


def test_room_moves_on_to_the_claim_that_its_participants_dispute_now() -> None:
    board = Board()
    board.add_stance("ada", "asserts", LEVY)
    board.add_stance("bob", "denies", LEVY)
    room = {**make_room("room-01", "p001", ("ada", "bob"), ("m000001", "m000002"), 1), "stage": "positions"}
    entries = [board.add_stance("ada", "concedes", LEVY), board.add_stance("ada", "asserts", FERRIES)]
    entries.append(board.add_stance("bob", "denies", FERRIES))
    room_entries = [{**entry, "room": "room-01"} for entry in board.state["full_transcript"][3:]]
    rooms = with_entries({"room-01": cast(Any, room)}, cast(Any, room_entries))
    state = cast(ConversationState, {**board.state, "crux_rooms": rooms, "round": 1})
    step = room_step(state, CONFIG, rooms)
    assert current_claim(state, rooms["room-01"]) == step["rooms"]["room-01"]["claim"] == "p002"
    assert FERRIES in step["turns"][0]["instruction"]
    assert [each["id"] for each in rooms_to_assess(state)] == ["room-01"]
    board.add_stance("bob", "concedes", FERRIES)
    over = cast(ConversationState, {**board.state, "crux_rooms": rooms})
    assert [each["id"] for each in rooms_to_assess(over)] == ["room-01"]
