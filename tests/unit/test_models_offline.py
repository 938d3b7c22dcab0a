from __future__ import annotations

import re
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from moot.nodes.calls import Hints, Utterance
from moot.nodes.models.noun_phrases import noun_phrases
from moot.nodes.models.offline import OfflineModel
from moot.nodes.models.speeches import compose, side_of

TOPIC = "Should a mid-size city make public transport free?"
RULES = HumanMessage(f"You take part in a debate.\n\n# Topic\n{TOPIC}\n\n# Debaters\n- Ada\n- Ben\n")
NAMES = {"ada": "Ada Lovelace", "ben": "Ben", "cy": "Cy"}
PHASES = ["opening", "argument", "propose", "critique", "refine", "take", "respond", "reply", "answer"]
PHASES += ["crux-positions", "crux-steelman", "closing", "summary", "never heard of"]


def say(talk: list[Utterance], seed: int = 0, speaker: str = "ada", **hints: Any) -> str:
    """Let the model speak after what was said."""
    given_hints: Hints = {"topic": TOPIC, "speaker": NAMES[speaker], "said": talk[-11:], **hints}  # type: ignore[typeddict-item]
    messages = [RULES, *map(shown, given_hints["said"])]
    return str(OfflineModel().respond(messages, hints=given_hints, seed=seed).content)


def shown(entry: Utterance) -> BaseMessage:
    """An entry as prompts show it."""
    return HumanMessage(f"{entry['who']} [{entry['id']}]:\n{entry['text']}")


def debate(turns: int, phase: str = "argument") -> list[Utterance]:
    """A debate of three, each of whom sees the last eleven messages."""
    talk: list[Utterance] = []
    for turn in range(turns):
        speaker = list(NAMES)[turn % 3]
        words = say(talk, phase=phase, speaker=speaker, stance=("for", "against", "")[turn % 3])
        talk.append({"id": f"m{turn:06d}", "who": NAMES[speaker], "text": words})
    return talk


def test_the_same_seed_and_prompt_give_the_same_words() -> None:
    talk = debate(5)
    assert say(talk, 7) == say(talk, 7)
    assert say(talk, 7) != say(talk, 8)
    assert say(talk, 7) != say(talk[1:], 7)
    assert say(talk, 7) != say(talk, 7, "ben")


def test_one_message_in_a_notebook_is_enough() -> None:
    said = OfflineModel().invoke("Should towns plant more trees?").text
    assert "plant" in said.lower() or "trees" in said.lower()
    assert len(said.split()) > 15


def test_a_speech_is_two_to_four_short_sentences_about_the_topic() -> None:
    for speech in (each["text"] for each in debate(60)):
        outside = re.sub("“[^”]*”", "“”", speech)
        assert 2 <= len(re.findall(r"[.?!](?= |$)", outside)) <= 4, speech
        assert 12 <= len(speech.split()) <= 80
        assert re.search("public transport|mid-size city", speech, re.IGNORECASE), speech


def test_sentences_begin_with_a_capital_and_leave_no_slot_open() -> None:
    for speech in (each["text"] for each in debate(60)):
        assert "{" not in speech
        assert "  " not in speech
        assert not re.search(r"(?:^|[.?!] )[a-z]", speech), speech


def test_speakers_name_whom_they_answer_and_quote_their_words() -> None:
    talk = debate(24)
    for before, after in pairwise(talk[2:]):
        quotes = re.findall("“([^”]+)”", after["text"])
        earlier = " ".join(each["text"] for each in talk)
        assert all(quote.rstrip("…") in earlier for quote in quotes), (before, after)
        assert sum(name in after["text"] for name in NAMES.values()) >= 1


def test_hardly_a_sentence_is_said_twice_within_ten_turns() -> None:
    talk = [each["text"] for each in debate(60)]
    sentences = [[line for line in re.split(r"(?<=[.?!])\s", speech) if len(line) > 40] for speech in talk]
    repeated = sum(
        sentence in earlier
        for turn, own in enumerate(sentences)
        for sentence in own
        for earlier in sentences[max(0, turn - 10) : turn]
    )
    assert repeated <= 2


def test_debaters_concede_ask_and_sometimes_shift() -> None:
    talk = " ".join(each["text"] for each in debate(160)).lower()
    assert len(re.findall(r"\b(?:concede|grant|has a point)\b", talk)) > 5
    assert talk.count("?") > 20
    assert re.search(r"i have changed my mind|i now think", talk)


def test_the_stance_decides_the_side() -> None:
    sides = {
        stance: side_of({"speaker": "x", "stance": stance})
        for stance in ("for: cheap", "against, too dear", "sceptical", "in favour")
    }
    assert sides == {"for: cheap": 1, "against, too dear": -1, "sceptical": -1, "in favour": 1}


def test_a_target_is_answered_before_the_last_speaker() -> None:
    talk = debate(9)
    said = [say(talk, seed, phase="critique", targets=["Ben"]) for seed in range(8)]
    assert all("Ben" in text for text in said)
    assert all("Cy" not in text for text in said)


@pytest.mark.parametrize(
    ("phase", "heading"),
    [("propose", "## Proposal"), ("refine", "## What changes"), ("critique", "**What holds.**")],
)
def test_each_phase_has_its_form(phase: str, heading: str) -> None:
    assert say(debate(6), phase=phase).startswith(heading)


def test_a_refinement_cites_the_messages_that_it_answers() -> None:
    talk = debate(6)
    cited = re.findall(r"\[(m\d{6})\]", say(talk, phase="refine"))
    assert len(cited) == 2
    assert set(cited) <= {each["id"] for each in talk}


@pytest.mark.parametrize("phase", PHASES)
def test_every_phase_has_something_to_say_with_and_without_a_debate(phase: str) -> None:
    for talk in ([], debate(4)):
        said = say(talk, phase=phase)
        assert len(said) > 30
        assert "{" not in said


def test_a_vote_ends_in_an_answer_that_can_be_counted() -> None:
    assert say([], phase="answer", stance="against").splitlines()[-1] == "Answer: no"


def test_a_summary_names_speakers_and_entries() -> None:
    talk = debate(8)
    text = "\n".join(shown(each).text for each in talk)
    said = str(OfflineModel().respond([RULES, HumanMessage(text)], hints={"phase": "summary"}).content)
    found = re.findall(r"^- (Ada Lovelace|Ben|Cy) \[(m\d{6})\]: .+[.?]$", said, re.MULTILINE)
    assert found == [(each["who"], each["id"]) for each in talk]


@pytest.mark.parametrize(
    ("topic", "phrases"),
    [
        (TOPIC, ("a mid-size city", "public transport")),
        (
            "Should remote work be the default for software teams?",
            ("remote work", "the default", "software teams"),
        ),
        ("Should we split the monolith?", ("the monolith",)),
        (
            "Should we move our primary database to a managed service?",
            ("our primary database", "a managed service"),
        ),
        ("Should towns plant more trees?", ("trees",)),
        ("Design a rate limiter for a public API", ("a rate limiter", "a public API")),
        ("Should four-day weeks become law, and who should pay for them?", ("four-day weeks", "law")),
        ("Soll die Stadt Busse kostenlos machen?", ()),
        ("自治体は公共交通を無料にすべきか", ()),
        ("Стоит ли городу строить трамвай", ()),
        ("?!", ()),
    ],
)
def test_only_certain_noun_phrases_are_taken(topic: str, phrases: tuple[str, ...]) -> None:
    assert noun_phrases(topic) == phrases


@pytest.mark.parametrize("topic", ["自治体は公共交通を無料にすべきか", "Стоит ли городу строить трамвай"])
def test_a_topic_in_another_language_is_quoted_and_not_spliced(topic: str) -> None:
    said = say([], topic=topic, phase="opening")
    assert f"“{topic}”" in said
    assert not re.search(r"[^\x00-\x7f“”]", said.replace(f"“{topic}”", ""))


def test_an_answer_keeps_to_its_room() -> None:
    def limited(tokens: int) -> str:
        return str(OfflineModel().respond([RULES], hints={"phase": "propose"}, max_tokens=tokens).content)

    assert len(limited(30)) <= 90 < len(limited(2_000))


def test_it_streams_what_it_says() -> None:
    model = OfflineModel()
    chunks = list(model.stream([RULES]))
    assert "".join(chunk.text for chunk in chunks) == model.invoke([RULES]).text
    assert len(chunks) > 15


def test_usage_is_reported() -> None:
    message = OfflineModel().respond([RULES], prompt_tokens=123)
    assert message.usage_metadata is not None
    assert message.usage_metadata["input_tokens"] == 123


@pytest.mark.parametrize("name", ["search", "search_debate", "list_files", "calculator"])
def test_a_tool_is_called_once(name: str) -> None:
    tools = [{"function": {"name": "unheard_of"}}, {"function": {"name": name}}]
    called = OfflineModel().respond([RULES], tools=tools)
    assert [call["name"] for call in called.tool_calls] == [name]
    after = OfflineModel().respond([RULES, called, ToolMessage("3", tool_call_id="call_1")], tools=tools)
    assert not after.tool_calls
    assert after.text


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["Ada", "Ben", ""]), st.text(max_size=120)), max_size=5),
    st.sampled_from(PHASES),
    st.text(max_size=60),
)
def test_no_prompt_breaks_it(talk: list[tuple[str, str]], phase: str, topic: str) -> None:
    said: list[Utterance] = [{"id": "m000001", "who": who, "text": text} for who, text in talk]
    hints: Hints = {"phase": phase, "speaker": "Ada", "topic": topic, "targets": ["Ben"], "stance": topic}
    assert compose({**hints, "said": said}, topic, Random(1))
    assert OfflineModel().respond([HumanMessage(topic or " ")], hints=hints).text
