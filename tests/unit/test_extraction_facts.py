"""What is found in a message, with and without cue words."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.nodes.reading.exhibits import find_evidence
from moot.nodes.reading.facts import Facts, extract
from moot.nodes.reading.importance import importance
from moot.nodes.reading.names import mentions
from moot.nodes.reading.question_answers import answers, as_reply
from moot.nodes.text.likeness import likeness
from moot.nodes.text.plain import inert
from moot.nodes.text.terms import terms
from moot.state.entries import Entry, make_entry

NAMES = {"ada": "Ada Lovelace", "ben": "Ben", "chen": "陈明", "will": "Will Power"}
LISTS = "claims", "evidence", "concessions", "questions", "challenges", "agreements", "positions", "shifts"


def facts_of(text: str, speaker: str = "ada", **fields: Any) -> Facts:
    return extract(make_entry(3, speaker, fields.pop("kind", "speech"), text, **fields), NAMES)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I concede that the cost is high.", "concessions"),
        ("You’re right that rents rose.", "concessions"),
        ("Fair point, Ben.", "concessions"),
        ("Ben is right that it is slow.", "concessions"),
        ("我承认成本很高。", "concessions"),
        ("Je concède que c'est cher.", "concessions"),
        ("I now think the tax should fall.", "shifts"),
        ("I've changed my mind about nuclear power.", "shifts"),
        ("I withdraw my second claim.", "shifts"),
        ("我改变了看法。", "shifts"),
        ("I disagree with that premise.", "challenges"),
        ("That's simply false.", "challenges"),
        ("這是錯的，陈明。", "challenges"),
        ("I agree with Ben on the costs.", "agreements"),
        ("I believe cities should close their centres to cars.", "positions"),
        ("私はそう考えます。", "positions"),
    ],
)
def test_words_show_what_a_sentence_does(text: str, kind: str) -> None:
    found = facts_of(text)[kind]  # type: ignore[literal-required]  # one of the lists
    assert [item["text"] for item in found] == [text]
    assert found[0]["message_id"] == "m000003"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I don't agree with Ben.", "agreements"),
        ("Even if you're right that it rains, we go.", "concessions"),
        ("I will never concede that.", "concessions"),
        ("I have not changed my mind.", "shifts"),
        ("我不同意你。", "agreements"),
    ],
)
def test_negated_words_do_not_count(text: str, kind: str) -> None:
    assert facts_of(text)[kind] == []  # type: ignore[literal-required]  # one of the lists


@pytest.mark.parametrize(
    ("text", "form", "value"),
    [
        ("It rose by 12.5 % last year.", "percent", "12.5 %"),
        ("下降了百分之三十。", "percent", "百分之三十"),
        ("It costs $3.2 million a year.", "number", "$3.2 million"),
        ("In ١٩٩٩ it ended.", "number", "١٩٩٩"),
        ("See https://example.org/a?b=1 for more.", "link", "https://example.org/a?b=1"),
        ("Smith et al. (2019) found it.", "citation", "Smith et al. (2019)"),
        ("This was shown (Jones, 2020) before.", "citation", "(Jones, 2020)"),
        ("As said in m000012 above.", "citation", "m000012"),
        ("He wrote “we shall never give up on this”.", "quote", "“we shall never give up on this”"),
        ("他说「我们绝不放弃」。", "quote", "「我们绝不放弃」"),
    ],
)
def test_evidence_is_seen_by_its_form(text: str, form: str, value: str) -> None:
    assert (form, value) in [(exhibit.form, exhibit.value) for exhibit in find_evidence(text)]


def test_a_lone_digit_is_no_evidence() -> None:
    assert find_evidence("There are 2 sides to it.") == []


def test_who_is_contradicted_is_told_by_name_then_by_target() -> None:
    named = facts_of("Ben overlooks the cost.", targets=["chen"])["challenges"]
    targeted = facts_of("That overlooks the cost.", targets=["chen", "m000001"])["challenges"]
    assert [item["about"] for item in named] == [["ben"]]
    assert [item["about"] for item in targeted] == [["chen"]]


def test_challenges_are_mild_or_strong() -> None:
    found = facts_of("I doubt this figure. It is simply wrong.")["challenges"]
    assert [item["strength"] for item in found] == ["mild", "strong"]


def test_a_critique_without_known_words_still_challenges_its_target() -> None:
    found = facts_of("Kustannukset nousevat liikaa joka vuosi.", kind="critique", targets=["ben"])
    assert [(c["about"], c["strength"]) for c in found["challenges"]] == [(["ben"], "mild")]


def test_a_proposal_without_known_words_still_takes_a_position() -> None:
    assert facts_of("Rakennetaan uusi rautatie pohjoiseen.", kind="proposal")["positions"]


@pytest.mark.parametrize(
    "text", ["Why not?", "为什么？", "لماذا؟", "そうですか。", "你同意吗", "Γιατί\u037e", "“So?”"]
)
def test_questions_are_seen_in_any_script(text: str) -> None:
    assert [question["text"] for question in facts_of(text)["questions"]] == [text]


def test_the_word_you_addresses_the_target_of_the_message() -> None:
    assert facts_of("Can you show one figure?", targets=["ben"])["questions"][0]["to"] == ["ben"]


def test_a_question_that_its_speaker_talks_past_is_rhetorical() -> None:
    text = "What is fairness? It is equal treatment. It is hard. So we legislate. Ben, do you object?"
    assert [q["rhetorical"] for q in facts_of(text)["questions"]] == [True, False]


def test_names_are_found_by_case_and_script() -> None:
    assert mentions("Lovelace and 陈明说 will agree with Ben's plan", NAMES) == ["ada", "chen", "ben"]
    assert mentions("Benefits of benches, @will", NAMES) == ["will"]


def test_salience_finds_the_matter_where_no_cue_word_is_known() -> None:
    text = (
        "Hyvää iltaa. Ydinvoima vähentää päästöjä, ydinvoima korvaa hiilen. Päästöjä syntyy hiilestä. Niin."
    )
    best = max(facts_of(text)["claims"], key=lambda claim: claim["score"])
    assert best["text"].startswith("Ydinvoima vähentää")


def test_unspaced_scripts_are_compared_by_their_bigrams() -> None:
    assert terms("核电安全") == ["核电", "电安", "安全"]
    assert likeness("核电是安全的", "核电是很安全的") > likeness("核电是安全的", "税应该提高") == 0


def test_a_long_sentence_is_shortened_around_what_was_found() -> None:
    [found] = facts_of("word " * 200 + "and here I concede the whole point " + "more " * 200)["concessions"]
    assert "I concede the whole point" in found["text"]
    assert len(found["text"]) <= 280


@given(st.text(st.characters(max_codepoint=127)))
def test_plain_english_has_the_same_terms_by_the_quicker_way(text: str) -> None:
    assert [*terms(text), "é"] == terms(f"{text} é")


def answered(said: list[Entry]) -> list[str]:
    """Return for every question the id of the first message that answers it, `""` for none."""
    read = [(entry, extract(entry, NAMES)) for entry in said]
    questions = [(entry["speaker"], question) for entry, facts in read for question in facts["questions"]]
    return [
        next(
            (
                entry["id"]
                for entry, facts in read
                if answers(
                    as_reply(entry, facts),
                    text=question["text"],
                    asker=asker,
                    asked_in=question["message_id"],
                    to=question["to"],
                )
            ),
            "",
        )
        for asker, question in questions
    ]


def test_answers_are_found_by_their_terms_and_their_targets() -> None:
    said = [
        make_entry(0, "ada", "speech", "Ben, what would the railway cost the taxpayers?"),
        make_entry(1, "ada", "speech", "Ben, who supervises the regulator?"),
        make_entry(2, "ben", "speech", "The railway would cost taxpayers four billion."),
        make_entry(3, "chen", "speech", "Nobody mentions birds."),
    ]
    assert answered(said) == ["m000002", ""]
    said[3]["speaker"], said[3]["targets"] = "ben", ["m000001"]
    assert answered(said) == ["m000002", "m000003"]


def test_a_speaker_does_not_answer_itself_and_a_counter_question_is_no_answer() -> None:
    said = [
        make_entry(0, "ada", "speech", "What does the railway cost?"),
        make_entry(1, "ada", "speech", "The railway has a cost, surely."),
        make_entry(2, "ben", "speech", "What does the railway cost in your view?"),
    ]
    assert answered(said)[0] == ""


@pytest.mark.parametrize(
    ("text", "least"), [("I concede this.", 7), ("I've changed my mind.", 8), ("我改变了看法。", 8)]
)
def test_concessions_and_shifts_are_important(text: str, least: int) -> None:
    assert importance(make_entry(3, "ada", "speech", text)) >= least


def test_a_courtesy_is_unimportant() -> None:
    assert importance(make_entry(3, "ada", "speech", "Thank you.")) == 1


@given(st.text(), st.sampled_from(["speech", "critique", "proposal", "question", "tool_result", "notice"]))
def test_any_message_gives_json_within_bounds_and_something_if_it_says_something(
    text: str, kind: str
) -> None:
    entry = make_entry(3, "ada", kind, text, targets=["ben"])  # type: ignore[arg-type]  # an entry kind
    facts = extract(entry, NAMES)
    assert json.loads(json.dumps(facts)) == facts
    found = [item for name in LISTS for item in facts[name]]  # type: ignore[literal-required]
    assert all(
        item["text"] and len(item["text"]) <= 280 and item["message_id"] == entry["id"] for item in found
    )
    assert found or not inert(entry["content"])
    assert 1 <= importance(entry) <= 10


@pytest.mark.parametrize("piece", ["a", "i ", "1,", "a-", "你好。", "that's a ", "(", "http://", "Abc. "])
def test_a_megabyte_of_anything_is_read_in_linear_time(piece: str) -> None:
    entry = make_entry(3, "ada", "speech", piece * (1_000_000 // len(piece)))
    began = time.process_time()
    extract(entry, NAMES)
    assert time.process_time() - began < 20
