"""Dialogue protocol: steps, crux rooms and prompts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.calls.effects import Reply
from moot.claims.crux_cards import make_room
from moot.claims.ledger_from_events import ledger_of
from moot.debates.dry_run import estimate
from moot.memory.cross_debate_memory import matching_passages, reference_text, retrieval_query
from moot.protocols.base import ConsultModels, make_turn
from moot.protocols.dialogue.crux_rooms import new_rooms, room_step
from moot.protocols.dialogue.dialogue import LENSES, Dialogue, aspects_by_rule, pair_opponents, pair_replies
from moot.protocols.prompt_context import PromptContext, turn_suffix_block
from moot.state.claim_events import OVERALL, CruxCard
from moot.state.config import DebateConfig
from moot.state.config.participants import ReferenceDocument
from moot.state.conversation import ConversationState, Step
from moot.state.entries import make_entry
from moot.state.errors import ConfigError
from moot.text.tokens import counter
from tests.support.personas import STATEMENTS, TOPIC, ScriptedDebaters, run_scripted_debate, scripted_debaters
from tests.support.snapshots import check_snapshot, prompt_markdown

AB = ("Ada Quay", "Bob", STATEMENTS[0])


def _contest(
    text: str = STATEMENTS[0],
    between: tuple[str, str] = ("ada", "bob"),
    *,
    confidence: float = 0.9,
    aspect: str = "freight",
    key: str = "p001",
    ends: Sequence[str] = ("asserts", "denies"),
    ground: bool = False,
) -> list[Any]:
    """Return the notes of a claim on which a pair differs."""
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


# The main floor


def test_a_dialogue_opens_takes_each_aspect_in_minirounds_and_closes() -> None:
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


def test_in_a_response_everybody_is_answered_once_and_replies_to_whoever_answered() -> None:
    values = run_scripted_debate(scripted_debaters(4), ScriptedDebaters())
    for round_no in (2, 3):
        said = {phase: {} for phase in ("respond", "reply")}  # type: dict[str, dict[str, str]]
        for entry in values["full_transcript"]:
            if entry["round"] == round_no and entry["phase"] in said:
                said[entry["phase"]][entry["speaker"]] = entry["targets"][0]
        assert sorted(said["respond"].values()) == sorted(said["respond"])
        assert all(said["reply"][target] == who for who, target in said["respond"].items())


def _answers(config: DebateConfig, notes: Sequence[Any], **place: Any) -> dict[str, str]:
    """Return whom each debater answers in a response after the aspect's first takes."""
    memo = {"stage": "take", "aspect": 0, "mini": 0, **place}
    memory = {"aspects": ["freight", "who pays"], "dialogue": memo}
    state = _state(config, claim_events=list(notes), protocol_state=memory)
    step = cast(Step, Dialogue().next_step(state, config))
    assert step["phase"] == "respond"
    return {turn["speaker"]: turn["targets"][0] for turn in step["turns"]}


def test_whoever_opposes_somebody_most_strongly_on_the_aspect_answers() -> None:
    config = scripted_debaters(3)
    assert _answers(config, []) == {"ada": "bob", "bob": "cyd", "cyd": "ada"}
    opposed = _contest(between=("ada", "cyd"))
    assert _answers(config, opposed) == {"ada": "cyd", "bob": "cyd", "cyd": "ada"}
    stronger = [*opposed, *_contest(STATEMENTS[1], between=("bob", "cyd"), key="p002", confidence=1.0)]
    assert _answers(config, stronger) == {"ada": "cyd", "bob": "cyd", "cyd": "bob"}


def test_a_disagreement_on_another_aspect_pairs_nobody() -> None:
    config = scripted_debaters(3)
    elsewhere = _contest(between=("ada", "cyd"), aspect="who pays")
    assert _answers(config, elsewhere) == _answers(config, [])
    assert _answers(config, elsewhere, aspect=1)["ada"] == "cyd"


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
    told = {turn["speaker"]: turn["instruction"] for turn in step["turns"]}
    assert [who for who, text in told.items() if "objection to your position" in text] == ["ada", "cyd"]
    assert "None of the latest messages responds to you" in told["bob"]


@given(
    size=st.integers(2, 8),
    shift=st.integers(0, 12),
    contests=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.floats(0.1, 1)), max_size=6),
)
def test_everybody_answers_and_replies_to_another_whoever_disagrees(
    size: int, shift: int, contests: list[tuple[int, int, float]]
) -> None:
    debaters = [f"d{number}" for number in range(size)]
    notes: list[Any] = []
    for number, (one, other, confidence) in enumerate(contests, 1):
        pair = (debaters[one % size], debaters[other % size])
        if len({*pair}) == 2:
            notes += _contest(between=pair, key=f"p{number:03d}", confidence=confidence)
    state = cast(ConversationState, {"topic": TOPIC, "claim_events": notes})
    answers = pair_opponents(state, debaters, "freight", shift=shift)
    assert [*answers] == debaters
    assert notes or sorted(answers.values()) == debaters  # each is answered once where nobody disagrees
    for pairs in (answers, pair_replies(answers)):
        assert all(who != target for who, target in pairs.items())
        assert {*pairs.values()} <= {*debaters}
    answered = {*answers.values()}
    assert all(answers[target] == who for who, target in pair_replies(answers).items() if who in answered)


def test_the_model_splits_the_topic_where_the_configuration_does_not() -> None:
    values = run_scripted_debate(
        scripted_debaters(2, dialogue={"aspects": [], "max_aspects": 2}), ScriptedDebaters()
    )
    assert values["protocol_state"]["aspects"] == ["freight", "who pays"]


def test_without_a_model_the_topic_s_own_parts_are_its_aspects() -> None:
    config = scripted_debaters(2, dialogue={"aspects": []})
    step = Dialogue().next_step(_state(config, protocol_state={}), config)
    assert isinstance(step, ConsultModels)
    decided = cast(Step, step.decide([Reply(error="down")]))
    assert decided["phase"] == "opening"
    assert aspects_by_rule("Ship noise; ship smoke; ship wages", 2) == ["Ship noise", "ship smoke"]
    assert aspects_by_rule("Dredging?", 5) == list(LENSES)


def test_a_dialogue_with_oneself_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 2"):
        Dialogue().check(scripted_debaters(1))


def test_a_speaker_that_fails_is_noted_and_the_dialogue_goes_on() -> None:
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
    ("notes", "earlier"),
    [
        pytest.param(_contest(confidence=0.5), {}, id="not sure enough"),
        pytest.param(_contest("Barges sink"), {}, id="not specific"),
        pytest.param(_contest("Grammar matters more than style", aspect="prose"), {}, id="beside the topic"),
        pytest.param(_contest(ends=("asserts", "concedes")), {}, id="settled"),
        pytest.param(_contest(ends=("asserts", "asserts")), {}, id="both hold the same view"),
        pytest.param(_contest(between=("ada", "zoe")), {}, id="somebody who is not there"),
        pytest.param(_contest(), {"between": ["bob", "ada"], "rounds": [1]}, id="the pair cools down"),
        pytest.param(_contest(), {"between": ["cyd", "ada"], "rounds": [-9] * 4}, id="no more rooms"),
    ],
)
def test_no_room_opens_for(notes: list[Any], earlier: dict[str, Any]) -> None:
    config = scripted_debaters(3)
    state = _state(config, claim_events=notes)
    state["crux_rooms"] = {
        key: {**make_room(key, "p009", earlier["between"], (), round_no), "closed": True}
        for key, round_no in ((f"room-{n}", no) for n, no in enumerate(earlier.get("rounds", ())))
    }
    assert new_rooms(state, config) == {}


def test_rooms_open_for_disjoint_pairs_the_surest_claim_first() -> None:
    config = scripted_debaters(4, flips=False)
    notes = [
        *_contest(confidence=0.7, between=("cyd", "bob")),
        *_contest(STATEMENTS[1], confidence=0.9, between=("bob", "cyd"), key="p002"),
        *_contest(STATEMENTS[2], confidence=0.8, between=("ada", "dan"), key="p003"),
    ]
    rooms = new_rooms(_state(config, claim_events=notes), config)
    assert [room["between"] for room in rooms.values()] == [["bob", "cyd"], ["ada", "dan"]]
    assert list(rooms) == ["room-01", "room-02"]


def test_the_contest_on_which_more_rests_goes_before_the_surer_one() -> None:
    config = scripted_debaters(2)
    notes = [
        *_contest(confidence=0.9),
        *_contest(STATEMENTS[1], confidence=0.7, key="p002", ground=True),
    ]
    (room,) = new_rooms(_state(config, claim_events=notes), config).values()
    assert room["claim"] == "p002"


def test_a_room_that_goes_in_circles_closes_before_its_cap() -> None:
    class Parrot(ScriptedDebaters):
        def _speech(self, call: Any) -> str:
            return f"{call.hints['speaker']} speaks in the phase respond and says the same thing as ever."

    config = scripted_debaters(2, dialogue={"aspects": ["freight"], "crux": {"cycles": 6, "max_rooms": 1}})
    values = run_scripted_debate(config, Parrot({"respond": (AB,)}))
    room = [entry["phase"] for entry in values["full_transcript"] if entry["room"]]
    assert room.count("crux-steelman") == 2 * 2


def test_a_new_room_is_entered_with_both_ends_of_the_contradiction() -> None:
    config = scripted_debaters(2)
    (room,) = new_rooms(_state(config, claim_events=_contest(key="p002")), config).values()
    assert room["trigger"] == ["m000004", "m000005"]


# What is seen


@cache
def _prompts() -> ScriptedDebaters:
    model = ScriptedDebaters({"respond": (AB,), "opening": (("Cyd", "Bob", STATEMENTS[2]),)})
    run_scripted_debate(
        scripted_debaters(3, blackboard={"reflection_threshold": 2, "verify_changes": True}), model
    )
    return model


@pytest.mark.parametrize(
    "phase",
    ["opening", "take", "respond", "reply", "crux-positions", "crux-exchange", "crux-steelman", "closing"],
)
def test_the_prompt_of_a_phase_is_as_reviewed(phase: str) -> None:
    check_snapshot(f"dialogue-{phase}", prompt_markdown(_prompts().in_phase(phase)[0].messages))


@pytest.mark.parametrize("schema", ["ExtractedClaims", "QuotationChecks", "CruxFinding", "Reflections"])
def test_the_prompt_of_the_blackboard_s_model_is_as_reviewed(schema: str) -> None:
    calls = [call for call in _prompts().calls if call.schema and call.schema.__name__ == schema]
    check_snapshot(f"blackboard-{schema}", prompt_markdown(calls[-1].messages))


def _shown(model: ScriptedDebaters, phase: str) -> str:
    return "\n".join(message["content"] for message in model.in_phase(phase)[0].messages)


def test_an_opening_is_a_cold_start() -> None:
    model = ScriptedDebaters()
    run_scripted_debate(scripted_debaters(3), model)
    seen = _shown(model, "opening")
    assert "speaks in" not in seen
    assert "freight" in seen
    assert "Cyd" in seen


@pytest.mark.parametrize("phase", ["take", "respond", "reply", "closing"])
def test_no_rule_of_a_dialogue_asks_for_more_than_its_phase(phase: str) -> None:
    assert "make a new one" not in _shown(_prompts(), phase)


def test_the_takes_on_the_first_aspect_see_all_openings_and_no_take() -> None:
    seen = _shown(_prompts(), "take")
    for name in ("Ada Quay", "Bob", "Cyd"):
        assert f"\n{name} speaks in the phase opening (" in seen
    assert "speaks in the phase take" not in seen


@pytest.mark.parametrize("phase", ["respond", "reply"])
def test_two_debaters_see_the_openings_until_the_ledger_covers_them(phase: str) -> None:
    model = ScriptedDebaters()
    run_scripted_debate(scripted_debaters(2), model)
    first, later = model.in_phase(phase)[0], model.in_phase(phase)[-1]
    openings = [
        sum("speaks in the phase opening" in m["content"] for m in each.messages) for each in (first, later)
    ]
    assert openings[0] == 2
    assert openings[1] < 2


def test_the_takes_on_a_later_aspect_see_the_blackboard_and_the_own_opening() -> None:
    seen = "\n".join(message["content"] for message in _prompts().in_phase("take")[3].messages)
    since = "with the results of the side rooms since"
    assert f"# Where the debate stood at [m000012], {since}, as recorded" in seen
    assert "\nAda Quay speaks in the phase opening (" in seen
    assert "\nBob speaks in the phase opening (" not in seen


def test_a_room_sees_claim_trigger_positions_and_the_whole_room() -> None:
    model = ScriptedDebaters({"respond": (AB,)})
    run_scripted_debate(scripted_debaters(2), model)
    seen = _shown(model, "crux-steelman")
    for text in (
        STATEMENTS[0],
        "speaks in the phase respond",
        "speaks in the phase crux-positions",
        "speaks in the phase crux-exchange",
    ):
        assert text in seen
    # Between the two; neither's own list repeats it.
    assert seen.count("differ on: Night trains carry more") == 1


def test_every_message_of_a_room_names_its_author_and_its_partner() -> None:
    model = ScriptedDebaters({"respond": (AB,)})
    run_scripted_debate(scripted_debaters(2), model)
    for phase in ("crux-steelman", "closing"):
        call = next(call for call in model.calls if call.hints["phase"] == phase)
        said = [
            m["content"]
            for m in call.messages
            if "speaks in the phase crux" in m["content"] and "[m0" in m["content"]
        ]
        messages = [text for text in said if not text.startswith("#")]
        assert messages
        label = re.compile(
            r"Ada Quay \[m\d+\]: \(side room with Bob\)|Bob \[m\d+\]: \(side room with Ada Quay\)"
        )
        assert all(label.match(text) for text in messages)


def test_in_a_room_they_take_turns_once_both_have_said_where_they_stand() -> None:
    model = ScriptedDebaters({"respond": (AB,)})
    said = [
        e
        for e in run_scripted_debate(scripted_debaters(2), model)["full_transcript"]
        if e["room"] == "room-01"
    ]
    order = [(entry["phase"], entry["speaker"]) for entry in said]
    stages = ("positions", "exchange", "steelman", "exchange", "steelman")
    assert order == [(f"crux-{stage}", who) for stage in stages for who in ("ada", "bob")]
    calls = [str(call.messages) for call in model.calls if call.hints["phase"] == "crux-exchange"]
    first = f"[{said[2]['id']}]"
    assert [first in messages for messages in calls[:2]] == [False, True]


def test_a_room_opens_after_the_replies_and_a_closing_knows_what_was_said_in_it() -> None:
    model = ScriptedDebaters({"respond": (AB,)})
    run_scripted_debate(scripted_debaters(2), model)
    assert "speaks in the phase crux" not in _shown(model, "reply")
    assert "speaks in the phase crux-steelman" in _shown(model, "closing")


def test_a_closing_sees_ledger_cards_reflections_and_how_it_opened() -> None:
    seen = _shown(_prompts(), "closing")
    for heading in (
        "# Where the debate stands",
        "# Results of the side rooms",
        "# Remarks of an observer",
        "Ada Quay [m000001]: <<",
    ):
        assert seen.count(heading) == 1
    assert seen.count("Ada and Bob talk about different years.") == 1


def test_a_closing_looks_for_earlier_messages_by_the_topic() -> None:
    state = {"topic": "Trams?", "step": {"aspect": OVERALL}, "full_transcript": []}
    assert retrieval_query(state, [], make_turn("ada")).query == "Trams?"  # type: ignore[arg-type]


def test_shifts_are_detected_when_positions_at_the_end_differ() -> None:
    values = run_scripted_debate(scripted_debaters(2), ScriptedDebaters())
    changed = {change.event["debater"] for change in ledger_of(values).changes}
    assert changed == {"ada", "bob"}
    assert "## Changes of mind\n- Ada Quay" in values["solution"]


def test_anchors_are_retrieved_by_their_words_and_cited() -> None:
    seen = _shown(_prompts(), "take")
    assert (
        "- [logbook §1] Night trains were late" not in seen
    )  # an aspect about freight shares no word with it
    rooms = [call for call in _prompts().in_phase("crux-positions") if call.hints["speaker"] == "Ada Quay"]
    assert "- [logbook §1] Night trains were late on nine days." in rooms[0].messages[-1]["content"]


def test_anchors_that_fit_nothing_stay_away() -> None:
    reference_documents = (
        ReferenceDocument(name="diary", text="Gulls nest on the crane. " * 40),
        ReferenceDocument(name="b", text="Oysters die."),
    )
    assert matching_passages(reference_documents, "timetables") == []
    assert [passage.mark for passage in matching_passages(reference_documents, "oyster oysters")] == ["b §1"]
    assert counter()(reference_text(reference_documents, "gulls oysters", 40, counter())) <= 40


def test_a_persona_s_contract_is_in_its_prompt() -> None:
    seen = _shown(_prompts(), "opening")
    assert "What is at stake for you: her licence" in seen
    assert "What would change your mind: a winter without delays" in seen


@pytest.mark.parametrize("aspects", [["freight"], []], ids=["configured", "asked for"])
@pytest.mark.slow
def test_a_dialogue_without_rooms_makes_calls_within_the_range_that_was_planned(aspects: list[str]) -> None:
    config, model = scripted_debaters(3, dialogue={"aspects": aspects, "max_aspects": 2}), ScriptedDebaters()
    run_scripted_debate(config, model)
    planned = estimate(config)
    assert planned is not None
    assert planned.calls_at_least <= len(model.calls) <= planned.calls_at_most


@pytest.mark.parametrize("crux", ["", "Do more trains run at night?"])
def test_a_debater_in_a_room_checks_the_question_that_a_crux_card_found(crux: str) -> None:
    config, room = scripted_debaters(2), make_room("room-01", "", ("ada", "bob"), (), 2)
    state = _state(config, protocol_state={"aspects": ["freight"]})
    if crux:
        room["card"] = cast(CruxCard, {"question": crux})
    told = room_step(state, config, {"room-01": {**room, "stage": "positions"}})["turns"][0]
    asked = "Say whether the question above is the right one." if crux else "State the disagreement as one"
    assert asked in told["instruction"]


def test_a_debater_is_asked_to_take_up_what_a_person_wrote_since_its_last_message() -> None:
    config = scripted_debaters(2, protocol="round-robin", turns=4)
    said = [
        make_entry(1, "ada", "speech", "Yes."),
        make_entry(2, "user", "interjection", "It sank."),
    ]
    said.append(make_entry(3, "bob", "speech", "No."))
    state = _state(config, full_transcript=[make_entry(0, "user", "topic", TOPIC), *said], user_provided=[2])
    seen = {}
    for who in ("ada", "bob"):
        ctx = PromptContext(state, config, make_turn(who, "Speak."), counter())
        seen[who] = turn_suffix_block(ctx).message["content"]
    assert seen["ada"].endswith("written since your last message: [m000002]. Say first what that changes.")
    assert seen["bob"].endswith("Speak.")
