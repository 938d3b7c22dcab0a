from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from moot.nodes.models.offline import OfflineModel
from moot.nodes.models.offline.prose import compose
from moot.nodes.models.offline.reading import Reading, read
from moot.nodes.models.offline.words import focus

TOPIC = "Should a mid-size city make public transport free?"
RULES = HumanMessage(f"You take part in a debate.\n\n# Topic\n{TOPIC}\n\n# Debaters\n- Ada\n- Ben\n")
NAMES = {"ada": "Ada Lovelace", "ben": "Ben", "cy": "Cy"}
PHASES = ["opening", "argument", "propose", "critique", "refine", "clarify", "take", "respond", "reply"]
PHASES += ["position", "steelman", "closing", "summary", "never heard of"]


def say(messages: list[BaseMessage], seed: int = 0, **hints: Any) -> str:
    """Let the model speak."""
    return str(OfflineModel().respond(messages, hints=hints, seed=seed).content)


def shown(speaker: str, seq: int, text: str) -> HumanMessage:
    """An entry as prompts show it."""
    return HumanMessage(f"{NAMES[speaker]} [m{seq:06d}]:\n{text}", name=speaker)


def debate(turns: int, phase: str = "argument") -> list[HumanMessage]:
    """A debate of three, each of whom sees the last eleven messages."""
    said: list[HumanMessage] = []
    for turn in range(turns):
        speaker = list(NAMES)[turn % 3]
        stance = ("for", "against", "")[turn % 3]
        words = say([RULES, *said[-11:]], phase=phase, speaker=speaker, topic=TOPIC, stance=stance)
        said.append(shown(speaker, turn, words))
    return said


def test_the_same_seed_and_prompt_give_the_same_words() -> None:
    talk = debate(5)
    assert say([RULES, *talk], 7, speaker="ada") == say([RULES, *talk], 7, speaker="ada")
    assert say([RULES, *talk], 7, speaker="ada") != say([RULES, *talk], 8, speaker="ada")
    assert say([RULES, *talk], 7, speaker="ada") != say([RULES, *talk[1:]], 7, speaker="ada")
    assert say([RULES, *talk], 7, speaker="ada") != say([RULES, *talk], 7, speaker="ben")


def test_one_message_in_a_notebook_is_enough() -> None:
    said = OfflineModel().invoke("Should towns plant more trees?").text
    assert "plant" in said.lower() or "trees" in said.lower()
    assert len(said.split()) > 25


def test_speeches_are_of_a_fair_length_and_about_the_topic() -> None:
    speeches = [message.text.split("\n", 1)[1] for message in debate(40)]
    lengths = sorted(len(speech.split()) for speech in speeches)
    assert lengths[0] >= 35
    assert lengths[-1] <= 160
    assert 60 <= lengths[20] <= 140
    assert all(re.search("public transport|mid-size city", speech, re.IGNORECASE) for speech in speeches)


def test_speakers_name_whom_they_answer_and_quote_their_words() -> None:
    talk = debate(12)
    for before, after in pairwise(talk[2:]):
        quotes = re.findall("“([^”]+)”", after.text)
        earlier = " ".join(" ".join(message.text.split()) for message in talk)
        assert any(quote.rstrip("…") in earlier for quote in quotes), (before.text, after.text)
        assert sum(name in after.text.split("\n", 1)[1] for name in NAMES.values()) >= 1


def test_hardly_a_sentence_is_said_twice_within_ten_turns() -> None:
    talk = [message.text.split("\n", 1)[1] for message in debate(60)]
    sentences = [[line for line in re.split(r"(?<=[.?!])\s", speech) if len(line) > 40] for speech in talk]
    repeated = sum(
        sentence in earlier
        for turn, own in enumerate(sentences)
        for sentence in own
        for earlier in sentences[max(0, turn - 10) : turn]
    )
    assert repeated <= 2


def test_debaters_concede_ask_and_sometimes_shift() -> None:
    talk = " ".join(message.text for message in debate(120)).lower()
    assert len(re.findall(r"\b(?:concede|grant|fair point|has a point)\b", talk)) > 5
    assert talk.count("?") > 20
    assert re.search(r"i have changed my mind|i now think|my view has moved", talk)


def test_the_stance_decides_the_side() -> None:
    sides = {
        stance: read([RULES], {"speaker": "x", "stance": stance}, 0).side
        for stance in ("for: cheap", "against, too dear", "sceptical", "in favour")
    }
    assert sides == {"for: cheap": 1, "against, too dear": -1, "sceptical": -1, "in favour": 1}


def test_a_target_is_answered_before_the_last_speaker() -> None:
    talk = debate(9)
    said = [say([RULES, *talk], seed, speaker="ada", phase="critique", targets=["ben"]) for seed in range(8)]
    assert all("Ben" in text or "Cy" not in text for text in said)
    assert any("Ben" in text for text in said)


@pytest.mark.parametrize(
    ("phase", "heading"),
    [
        ("propose", "## Proposal"),
        ("refine", "## What changes"),
        ("critique", "**What holds.**"),
        ("clarify", "1. "),
    ],
)
def test_each_phase_has_its_form(phase: str, heading: str) -> None:
    assert say([RULES, *debate(6)], speaker="ada", phase=phase).startswith(heading)


@pytest.mark.parametrize("phase", PHASES)
def test_every_phase_has_something_to_say_with_and_without_a_debate(phase: str) -> None:
    for talk in ([], debate(4)):
        said = say([RULES, *talk], speaker="ada", phase=phase)
        assert len(said) > 40
        assert "{" not in said


def test_a_summary_names_speakers_and_entries() -> None:
    said = say([RULES, *debate(8)], purpose="summary")
    assert len(re.findall(r"^- (?:Ada Lovelace|Ben|Cy): .+ \[m\d{6}\]$", said, re.MULTILINE)) == 8


def test_prompts_are_read_in_every_layout() -> None:
    transcript = "# Transcript\n[m000003] Ada: Trams are cheap.\n\nBen [m000004]:\nThey are slow.\n"
    messages: list[BaseMessage] = [SystemMessage("Topic: trams"), HumanMessage(transcript)]
    messages += [AIMessage("I said so."), HumanMessage("Hello all.", name="cy")]
    reading = read(messages, {}, 0)
    assert [(item.who, item.id, item.text) for item in reading.said] == [
        ("Ada", "m000003", "Trams are cheap."),
        ("Ben", "m000004", "They are slow."),
        ("", "", "I said so."),
        ("cy", "", "Hello all."),
    ]
    assert reading.topic == "trams"
    assert reading.ids == ("m000003", "m000004")


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        (TOPIC, {"mid-size city", "public transport"}),
        ("自治体は公共交通を無料にすべきか", {"自治体", "公共交通", "無料"}),
        ("Стоит ли городу строить трамвай", {"трамвай"}),
        ("هل يجب أن تكون الحافلات مجانية", {"الحافلات"}),
        ("?!", set()),
    ],
)
def test_the_words_of_a_topic_are_found_in_any_script(topic: str, words: set[str]) -> None:
    found = focus(topic)
    assert found
    assert all(any(word in phrase for phrase in found) for word in words)


def test_an_answer_keeps_to_its_room() -> None:
    talk = debate(6)
    long = str(OfflineModel().respond([RULES, *talk], hints={"phase": "propose"}, max_tokens=2_000).content)
    short = str(OfflineModel().respond([RULES, *talk], hints={"phase": "propose"}, max_tokens=60).content)
    assert len(short) <= 180 < len(long)


def test_it_streams_what_it_says() -> None:
    model = OfflineModel()
    chunks = list(model.stream([RULES]))
    assert "".join(chunk.text for chunk in chunks) == model.invoke([RULES]).text
    assert len(chunks) > 20


def test_usage_is_reported() -> None:
    message = OfflineModel().respond([RULES], prompt_tokens=123)
    assert message.usage_metadata is not None
    assert message.usage_metadata["input_tokens"] == 123


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["ada", "ben", "user", "moot"]), st.text(max_size=120)), max_size=5),
    st.sampled_from(PHASES),
    st.text(max_size=60),
)
def test_no_prompt_breaks_it(talk: list[tuple[str, str]], phase: str, topic: str) -> None:
    messages: list[BaseMessage] = [HumanMessage(text or " ", name=name) for name, text in talk]
    hints = {"phase": phase, "speaker": "ada", "topic": topic, "targets": ["ben"], "stance": topic}
    reading: Reading = read([*messages, HumanMessage(topic)], hints, 1)
    assert compose(reading)
