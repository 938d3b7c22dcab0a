"""Dialogue protocol: steps, crux rooms and prompts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st

from moot.calls.model_calls import Reply
from moot.claims.crux_cards import make_room
from moot.claims.ledger_from_events import ledger_of
from moot.config import DebateConfig
from moot.config.participants import ReferenceDocument
from moot.debates.dry_run import estimate
from moot.memory.cross_debate_memory import matching_passages, reference_text, retrieval_query
from moot.protocols.dialogue.crux_rooms import new_rooms, room_step
from moot.protocols.dialogue.dialogue import LENSES, Dialogue, aspects_by_rule, pair_opponents, pair_replies
from moot.protocols.long_form import INSTRUCTIONS
from moot.protocols.prompt_context import PromptContext, PromptSource
from moot.protocols.schedule import ConsultModels, make_turn
from moot.protocols.suffix import turn_suffix_block
from moot.state.claim_events import OVERALL, CruxCard
from moot.state.conversation import ConversationState, Step
from moot.state.entries import make_entry
from moot.state.errors import ConfigError
from moot.text.tokens import counter
from tests.support.personas import STATEMENTS, TOPIC, ScriptedDebaters, run_scripted_debate, scripted_debaters
from tests.support.snapshots import check_snapshot, prompt_markdown

DISAGREEMENT = ("Ada Quay", "Bob", STATEMENTS[0])


def _contested_claim(
    text: str = STATEMENTS[0],
    between: tuple[str, str] = ("ada", "bob"),
    *,
    confidence: float = 0.9,
    aspect: str = "freight",
    key: str = "p001",
    ends: Sequence[str] = ("asserts", "denies"),
    ground: bool = False,
) -> list[Any]:
    """Return the claim events of a claim on which two debaters disagree."""
    number = int(key[1:])
    events = [
        {
            "type": "event",
            "id": f"e{2 * number + place:03d}",
            "kind": kind,
            "claim": key,
            "debater": who,
            "message_id": f"m{2 * number + place:06d}",
            "quote": "…",
            "condition": "",
            "ground": ground,
            "by": "model",
            "confidence": confidence,
        }
        for place, (who, kind) in enumerate(zip(between, ends, strict=True))
    ]
    return [{"type": "claim", "id": key, "text": text, "aspect": aspect, "seq": 1}, *events]


def _state(config: DebateConfig, **fields: Any) -> ConversationState:
    base: dict[str, Any] = {
        "topic": TOPIC,
        "config": config.to_json(),
        "full_transcript": [make_entry(0, "user", "topic", TOPIC), make_entry(1, "ada", "speech", "…")],
        "round": 2,
        "protocol_state": {
            "aspects": ["freight"],
            "dialogue": {"stage": "respond", "aspect": 0, "mini": 0},
        },
    }
    return cast(ConversationState, {**base, **fields})


def _phases(values: Mapping[str, Any]) -> list[str]:
    phases = [entry["phase"] for entry in values["full_transcript"][1:]]
    return [phase for place, phase in enumerate(phases) if not place or phases[place - 1] != phase]


# Steps


def test_a_dialogue_has_an_opening_minirounds_per_aspect_and_a_closing() -> None:
    config = scripted_debaters(3, dialogue={"aspects": ["freight", "who pays"], "minirounds": 2})
    mini = ["respond", "reply", "respond", "reply"]
    assert _phases(run_scripted_debate(config, ScriptedDebaters())) == [
        "opening",
        "take",
        *mini,
        "take",
        *mini,
        "closing",
    ]


def test_each_debater_gets_one_response_and_replies_to_its_author() -> None:
    values = run_scripted_debate(scripted_debaters(4), ScriptedDebaters())
    for round_no in (2, 3):
        targets = {phase: {} for phase in ("respond", "reply")}  # type: dict[str, dict[str, str]]
        for entry in values["full_transcript"]:
            if entry["round"] == round_no and entry["phase"] in targets:
                targets[entry["phase"]][entry["speaker"]] = entry["targets"][0]
        assert sorted(targets["respond"].values()) == sorted(targets["respond"])
        assert all(targets["reply"][target] == who for who, target in targets["respond"].items())


def _response_targets(config: DebateConfig, claim_events: Sequence[Any], **place: Any) -> dict[str, str]:
    """Return whom each debater answers in the phase `respond` after the takes on an aspect."""
    memo = {"stage": "take", "aspect": 0, "mini": 0, **place}
    memory = {"aspects": ["freight", "who pays"], "dialogue": memo}
    state = _state(config, claim_events=list(claim_events), protocol_state=memory)
    step = cast(Step, Dialogue().next_step(state, config))
    assert step["phase"] == "respond"
    return {turn["speaker"]: turn["targets"][0] for turn in step["turns"]}


def test_debaters_respond_to_their_strongest_opponent_on_the_aspect() -> None:
    config = scripted_debaters(3)
    assert _response_targets(config, []) == {"ada": "bob", "bob": "cyd", "cyd": "ada"}
    opposed = _contested_claim(between=("ada", "cyd"))
    assert _response_targets(config, opposed) == {"ada": "cyd", "bob": "cyd", "cyd": "ada"}
    stronger = [
        *opposed,
        *_contested_claim(STATEMENTS[1], between=("bob", "cyd"), key="p002", confidence=1.0),
    ]
    assert _response_targets(config, stronger) == {"ada": "cyd", "bob": "cyd", "cyd": "bob"}


def test_a_disagreement_on_another_aspect_pairs_nobody() -> None:
    config = scripted_debaters(3)
    elsewhere = _contested_claim(between=("ada", "cyd"), aspect="who pays")
    assert _response_targets(config, elsewhere) == _response_targets(config, [])
    assert _response_targets(config, elsewhere, aspect=1)["ada"] == "cyd"


def test_a_reply_goes_to_a_debater_that_answered() -> None:
    mutual_first = {"ada": "cyd", "bob": "cyd", "cyd": "ada"}
    assert pair_replies(mutual_first) == {"ada": "cyd", "bob": "cyd", "cyd": "ada"}
    assert pair_replies({"ada": "bob", "bob": "cyd", "cyd": "ada"}) == {
        "ada": "cyd",
        "bob": "ada",
        "cyd": "bob",
    }


def test_only_a_debater_with_a_response_is_told_to_answer_an_objection() -> None:
    answers = {"ada": "cyd", "bob": "cyd", "cyd": "ada"}
    place = {"stage": "respond", "aspect": 0, "mini": 0, "answers": answers}
    state = _state(scripted_debaters(3), protocol_state={"aspects": ["freight"], "dialogue": place})
    step = cast(Step, Dialogue().next_step(state, scripted_debaters(3)))
    instructions = {turn["speaker"]: turn["instruction"] for turn in step["turns"]}
    assert [who for who, text in instructions.items() if "objection to your position" in text] == [
        "ada",
        "cyd",
    ]
    assert "None of the latest messages responds to you" in instructions["bob"]


@given(
    size=st.integers(2, 8),
    shift=st.integers(0, 12),
    contests=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.floats(0.1, 1)), max_size=6),
)
def test_every_debater_responds_and_replies_to_another_debater(
    size: int, shift: int, contests: list[tuple[int, int, float]]
) -> None:
    debaters = [f"d{number}" for number in range(size)]
    claim_events: list[Any] = []
    for number, (one, other, confidence) in enumerate(contests, 1):
        pair = (debaters[one % size], debaters[other % size])
        if len({*pair}) == 2:
            claim_events += _contested_claim(between=pair, key=f"p{number:03d}", confidence=confidence)
    state = cast(ConversationState, {"topic": TOPIC, "claim_events": claim_events})
    answers = pair_opponents(state, debaters, "freight", shift=shift)
    assert [*answers] == debaters
    assert claim_events or sorted(answers.values()) == debaters  # without disagreement, each is answered once
    for pairs in (answers, pair_replies(answers)):
        assert all(who != target for who, target in pairs.items())
        assert {*pairs.values()} <= {*debaters}
    answered = {*answers.values()}
    assert all(answers[target] == who for who, target in pair_replies(answers).items() if who in answered)


def test_the_model_chooses_aspects_that_are_not_configured() -> None:
    values = run_scripted_debate(
        scripted_debaters(2, dialogue={"aspects": [], "max_aspects": 2}), ScriptedDebaters()
    )
    assert values["protocol_state"]["aspects"] == ["freight", "who pays"]


def test_aspects_come_from_the_topic_if_the_model_fails() -> None:
    config = scripted_debaters(2, dialogue={"aspects": []})
    step = Dialogue().next_step(_state(config, protocol_state={}), config)
    assert isinstance(step, ConsultModels)
    decided = cast(Step, step.decide([Reply(error="down")]))
    assert decided["phase"] == "opening"
    assert aspects_by_rule("Ship noise; ship smoke; ship wages", 2) == ["Ship noise", "ship smoke"]
    assert aspects_by_rule("Dredging?", 5) == list(LENSES)


def test_a_dialogue_needs_at_least_two_debaters() -> None:
    with pytest.raises(ConfigError, match="at least 2"):
        Dialogue().check(scripted_debaters(1))


def test_a_failed_turn_leaves_a_notice_and_the_dialogue_continues() -> None:
    class Mute(ScriptedDebaters):
        def reply(self, call: Any) -> Reply:
            silent = call.purpose == "turn" and call.hints["speaker"] == "Bob"
            return Reply(error="no line") if silent else super().reply(call)

    values = run_scripted_debate(scripted_debaters(3), Mute())
    assert values["status"] == "done"
    assert any(
        e["kind"] == "notice" and "The message of Bob is missing" in e["content"]
        for e in values["full_transcript"]
    )


# Crux rooms


@pytest.mark.parametrize(
    ("claim_events", "earlier"),
    [
        pytest.param(_contested_claim(confidence=0.5), {}, id="low confidence"),
        pytest.param(_contested_claim("Barges sink"), {}, id="unspecific claim"),
        pytest.param(
            _contested_claim("Grammar matters more than style", aspect="prose"), {}, id="off-topic claim"
        ),
        pytest.param(_contested_claim(ends=("asserts", "concedes")), {}, id="conceded claim"),
        pytest.param(_contested_claim(ends=("asserts", "asserts")), {}, id="same view"),
        pytest.param(_contested_claim(between=("ada", "zoe")), {}, id="unknown debater"),
        pytest.param(
            _contested_claim(), {"between": ["bob", "ada"], "rounds": [1]}, id="recent room of the pair"
        ),
        pytest.param(
            _contested_claim(), {"between": ["cyd", "ada"], "rounds": [-9] * 4}, id="room limit reached"
        ),
    ],
)
def test_no_crux_room_opens(claim_events: list[Any], earlier: dict[str, Any]) -> None:
    config = scripted_debaters(3)
    state = _state(config, claim_events=claim_events)
    state["crux_rooms"] = {
        key: {**make_room(key, "p009", earlier["between"], (), round_no), "closed": True}
        for key, round_no in ((f"room-{n}", no) for n, no in enumerate(earlier.get("rounds", ())))
    }
    assert new_rooms(state, config) == {}


def test_crux_rooms_open_for_disjoint_pairs_by_confidence() -> None:
    config = scripted_debaters(4, flips=False)
    claim_events = [
        *_contested_claim(confidence=0.7, between=("cyd", "bob")),
        *_contested_claim(STATEMENTS[1], confidence=0.9, between=("bob", "cyd"), key="p002"),
        *_contested_claim(STATEMENTS[2], confidence=0.8, between=("ada", "dan"), key="p003"),
    ]
    rooms = new_rooms(_state(config, claim_events=claim_events), config)
    assert [room["between"] for room in rooms.values()] == [["bob", "cyd"], ["ada", "dan"]]
    assert list(rooms) == ["room-01", "room-02"]


def test_a_claim_that_is_a_reason_outranks_a_more_confident_one() -> None:
    config = scripted_debaters(2)
    claim_events = [
        *_contested_claim(confidence=0.9),
        *_contested_claim(STATEMENTS[1], confidence=0.7, key="p002", ground=True),
    ]
    (room,) = new_rooms(_state(config, claim_events=claim_events), config).values()
    assert room["claim"] == "p002"


def test_a_repetitive_crux_room_closes_before_its_limit() -> None:
    class Parrot(ScriptedDebaters):
        def _message(self, call: Any) -> str:
            return f"{call.hints['speaker']} speaks in the phase respond and says the same thing as ever."

    config = scripted_debaters(2, dialogue={"aspects": ["freight"], "crux": {"cycles": 6, "max_rooms": 1}})
    values = run_scripted_debate(config, Parrot({"respond": (DISAGREEMENT,)}))
    room = [entry["phase"] for entry in values["full_transcript"] if entry["room"]]
    assert room.count("crux-steelman") == 2 * 2


def test_a_new_crux_room_refers_to_both_contradicting_messages() -> None:
    config = scripted_debaters(2)
    (room,) = new_rooms(_state(config, claim_events=_contested_claim(key="p002")), config).values()
    assert room["trigger"] == ["m000004", "m000005"]


# Prompts


@cache
def _prompts() -> ScriptedDebaters:
    model = ScriptedDebaters({"respond": (DISAGREEMENT,), "opening": (("Cyd", "Bob", STATEMENTS[2]),)})
    run_scripted_debate(
        scripted_debaters(3, blackboard={"reflection_threshold": 2, "verify_changes": True}), model
    )
    return model


@pytest.mark.parametrize(
    "phase",
    ["opening", "take", "respond", "reply", "crux-positions", "crux-exchange", "crux-steelman", "closing"],
)
def test_the_prompt_of_each_phase_matches_its_snapshot(phase: str) -> None:
    check_snapshot(f"dialogue-{phase}", prompt_markdown(_prompts().turns_in_phase(phase)[0].messages))


@pytest.mark.parametrize("schema", ["ExtractedClaims", "QuotationChecks", "CruxFinding", "Reflections"])
def test_each_blackboard_prompt_matches_its_snapshot(schema: str) -> None:
    calls = [call for call in _prompts().calls if call.schema and call.schema.__name__ == schema]
    check_snapshot(f"blackboard-{schema}", prompt_markdown(calls[-1].messages))


def _first_prompt(model: ScriptedDebaters, phase: str) -> str:
    return "\n".join(message["content"] for message in model.turns_in_phase(phase)[0].messages)


def test_an_opening_prompt_shows_no_other_message() -> None:
    model = ScriptedDebaters()
    run_scripted_debate(scripted_debaters(3), model)
    seen = _first_prompt(model, "opening")
    assert "speaks in" not in seen
    assert "freight" in seen
    assert "Cyd" in seen


@pytest.mark.parametrize("phase", ["take", "respond", "reply", "closing"])
def test_no_dialogue_prompt_asks_for_a_new_argument(phase: str) -> None:
    assert "new point" in INSTRUCTIONS["argument"]  # what debaters of other protocols are asked for
    prompts = [prompt_markdown(call.messages) for call in _prompts().turns_in_phase(phase)]
    assert phase != "reply" or {"None of the latest" in prompt for prompt in prompts} == {True, False}
    assert not re.search(r"\bnew (point|argument|reason|one)\b", "\n".join(prompts), re.I)


def test_takes_on_the_first_aspect_show_all_openings_and_no_take() -> None:
    seen = _first_prompt(_prompts(), "take")
    for name in ("Ada Quay", "Bob", "Cyd"):
        assert f"\n{name} speaks in the phase opening (" in seen
    assert "speaks in the phase take" not in seen


@pytest.mark.parametrize("phase", ["respond", "reply"])
def test_prompts_show_the_openings_until_the_ledger_covers_them(phase: str) -> None:
    model = ScriptedDebaters()
    run_scripted_debate(scripted_debaters(2), model)
    first, later = model.turns_in_phase(phase)[0], model.turns_in_phase(phase)[-1]
    openings = [
        sum("speaks in the phase opening" in m["content"] for m in each.messages) for each in (first, later)
    ]
    assert openings[0] == 2
    assert openings[1] < 2


def test_takes_on_a_later_aspect_show_the_blackboard_and_own_opening() -> None:
    seen = "\n".join(message["content"] for message in _prompts().turns_in_phase("take")[3].messages)
    since = "with the results of the side rooms since"
    assert f"# Where the debate stood at [m000012], {since}, as recorded" in seen
    assert "\nAda Quay speaks in the phase opening (" in seen
    assert "\nBob speaks in the phase opening (" not in seen


def test_a_crux_room_prompt_shows_claim_trigger_and_all_room_messages() -> None:
    model = ScriptedDebaters({"respond": (DISAGREEMENT,)})
    run_scripted_debate(scripted_debaters(2), model)
    seen = _first_prompt(model, "crux-steelman")
    for text in (
        STATEMENTS[0],
        "speaks in the phase respond",
        "speaks in the phase crux-positions",
        "speaks in the phase crux-exchange",
    ):
        assert text in seen
    # It is listed once, for the pair, and not in the list of either debater.
    assert seen.count("differ on: Night trains carry more") == 1


def test_each_crux_room_message_names_its_author_and_partner() -> None:
    model = ScriptedDebaters({"respond": (DISAGREEMENT,)})
    run_scripted_debate(scripted_debaters(2), model)
    for phase in ("crux-steelman", "closing"):
        call = next(call for call in model.calls if call.hints["phase"] == phase)
        contents = [
            m["content"]
            for m in call.messages
            if "speaks in the phase crux" in m["content"] and "[m0" in m["content"]
        ]
        messages = [text for text in contents if not text.startswith("#")]
        assert messages
        label = re.compile(
            r"Ada Quay \[m\d+\]: \(side room with Bob\)|Bob \[m\d+\]: \(side room with Ada Quay\)"
        )
        assert all(label.match(text) for text in messages)


def test_crux_room_partners_alternate_after_stating_their_positions() -> None:
    model = ScriptedDebaters({"respond": (DISAGREEMENT,)})
    room_entries = [
        e
        for e in run_scripted_debate(scripted_debaters(2), model)["full_transcript"]
        if e["room"] == "room-01"
    ]
    order = [(entry["phase"], entry["speaker"]) for entry in room_entries]
    stages = ("positions", "exchange", "steelman", "exchange", "steelman")
    assert order == [(f"crux-{stage}", who) for stage in stages for who in ("ada", "bob")]
    calls = [str(call.messages) for call in model.calls if call.hints["phase"] == "crux-exchange"]
    first = f"[{room_entries[2]['id']}]"
    assert [first in messages for messages in calls[:2]] == [False, True]


def test_a_crux_room_follows_the_replies_and_is_shown_to_closings() -> None:
    model = ScriptedDebaters({"respond": (DISAGREEMENT,)})
    run_scripted_debate(scripted_debaters(2), model)
    assert "speaks in the phase crux" not in _first_prompt(model, "reply")
    assert "speaks in the phase crux-steelman" in _first_prompt(model, "closing")


def test_a_closing_shows_ledger_cards_reflections_and_own_opening() -> None:
    seen = _first_prompt(_prompts(), "closing")
    for heading in (
        "# Where the debate stands",
        "# Results of the side rooms",
        "# Remarks of an observer",
        "Ada Quay [m000001]: <<",
    ):
        assert seen.count(heading) == 1
    assert seen.count("Ada and Bob talk about different years.") == 1


def test_a_closing_retrieves_messages_by_the_topic() -> None:
    state = {"topic": "Trams?", "step": {"aspect": OVERALL}, "full_transcript": []}
    assert retrieval_query(state, [], make_turn("ada")).query == "Trams?"  # type: ignore[arg-type]


def test_different_final_positions_are_reported_as_changes_of_mind() -> None:
    values = run_scripted_debate(scripted_debaters(2), ScriptedDebaters())
    changed = {change.event["debater"] for change in ledger_of(values).changes}
    assert changed == {"ada", "bob"}
    assert "## Changes of mind\n- Ada Quay" in values["solution"]


def test_reference_documents_are_retrieved_by_their_words_and_cited() -> None:
    seen = _first_prompt(_prompts(), "take")
    assert "- [logbook §1] Night trains were late" not in seen  # shares no word with an aspect about freight
    rooms = [
        call for call in _prompts().turns_in_phase("crux-positions") if call.hints["speaker"] == "Ada Quay"
    ]
    assert "- [logbook §1] Night trains were late on nine days." in rooms[0].messages[-1]["content"]


def test_unrelated_reference_documents_are_not_retrieved() -> None:
    reference_documents = (
        ReferenceDocument(name="diary", text="Gulls nest on the crane. " * 40),
        ReferenceDocument(name="b", text="Oysters die."),
    )
    assert matching_passages(reference_documents, "timetables") == []
    assert [passage.mark for passage in matching_passages(reference_documents, "oyster oysters")] == ["b §1"]
    assert counter()(reference_text(reference_documents, "gulls oysters", 40, counter())) <= 40


def test_the_persona_contract_is_in_the_prompt() -> None:
    seen = _first_prompt(_prompts(), "opening")
    assert "What is at stake for you: her licence" in seen
    assert "What would change your mind: a winter without delays" in seen


@pytest.mark.parametrize("aspects", [["freight"], []], ids=["configured aspects", "aspects of the model"])
@pytest.mark.slow
def test_calls_of_a_dialogue_without_crux_rooms_match_the_estimate(aspects: list[str]) -> None:
    config, model = scripted_debaters(3, dialogue={"aspects": aspects, "max_aspects": 2}), ScriptedDebaters()
    run_scripted_debate(config, model)
    planned = estimate(config)
    assert planned is not None
    assert planned.calls_at_least <= len(model.calls) <= planned.calls_at_most


@pytest.mark.parametrize("crux", ["", "Do more trains run at night?"])
def test_crux_room_instructions_use_the_question_of_the_crux_card(crux: str) -> None:
    config, room = scripted_debaters(2), make_room("room-01", "", ("ada", "bob"), (), 2)
    state = _state(config, protocol_state={"aspects": ["freight"]})
    if crux:
        room["card"] = cast(CruxCard, {"question": crux})
    turn = room_step(state, config, {"room-01": {**room, "stage": "positions"}})["turns"][0]
    expected = "Say whether the question above is the right one." if crux else "State the disagreement as one"
    assert expected in turn["instruction"]


def test_the_turn_suffix_cites_new_interjections_of_a_person() -> None:
    config = scripted_debaters(2, protocol="round-robin", turns=4)
    entries = [
        make_entry(1, "ada", "speech", "Yes."),
        make_entry(2, "user", "interjection", "It sank."),
    ]
    entries.append(make_entry(3, "bob", "speech", "No."))
    state = _state(
        config,
        full_transcript=[make_entry(0, "user", "topic", TOPIC), *entries],
        messages=[],
        user_provided=[2],
    )
    suffixes = {}
    for who in ("ada", "bob"):
        ctx = PromptContext(PromptSource(state, config, counter()), make_turn(who, "Speak."))
        suffixes[who] = turn_suffix_block(ctx).message["content"]
    assert suffixes["ada"].endswith(
        "written since your last message: [m000002]. Say first what that changes."
    )
    assert suffixes["bob"].endswith("Speak.")
