"""Blinding: labels replace names in what a judge reads, and names replace labels in its response."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from moot.judging.blinding import SOMEONE, Blinding, is_everyday, make_blinding

PEOPLE = {
    "ada": "Ada Lovelace",
    "grace-2": "Dr. Grace Hopper",
    "tanaka": "田中さくら",
    "zoe": "Zoë Müller-Żak",
    "minsu": "김민수",
}


def blinding(people: Mapping[str, str] = PEOPLE, *, seed: int = 1, texts: tuple[str, ...] = ()) -> Blinding:
    order = list(people)
    Random(seed).shuffle(order)
    return make_blinding(people, texts).in_order(order)


FORMS = [
    ("Ada Lovelace", "ada"),
    ("ADA LOVELACE", "ada"),
    ("ada\nlovelace", "ada"),
    ("ada", "ada"),
    ("Ada", "ada"),
    ("Lovelace", "ada"),
    ("@grace-2", "grace-2"),
    ("Dr. Grace Hopper", "grace-2"),
    ("Hopper", "grace-2"),
    ("Grace", "grace-2"),
    ("田中さくら", "tanaka"),
    ("Tanaka", "tanaka"),
    ("Zoe\u0308 Mu\u0308ller-Z\u0307ak", "zoe"),
    ("Zoë", "zoe"),
    ("김민수", "minsu"),
]


@pytest.mark.parametrize(("form", "debater"), FORMS)
@pytest.mark.parametrize(
    "frame", ["{}", "I agree with {}.", "{}'s claim", "{}’s", "**{}**:", "({}), and", "«{}»"]
)
def test_every_form_of_a_name_is_blinded(form: str, debater: str, frame: str) -> None:
    names = blinding()
    label = names.labels[debater]
    prefix = "@" if form.startswith("@") else ""
    assert names.blind_text(frame.format(form)) == frame.format(prefix + label)


@pytest.mark.parametrize(
    ("text", "debater"),
    [("私は田中さくらに賛成です", "tanaka"), ("김민수가 말했다", "minsu"), ("これはAdaの主張", "ada")],
)
def test_names_are_blinded_in_scripts_without_spaces(text: str, debater: str) -> None:
    names = blinding()
    assert names.mentions(text) == [debater]
    assert names.labels[debater] in names.blind_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "Adam said no",
        "Canada",
        "ada_2",
        "lovelace poems",
        "by grace of",
        "hopper cars",
        "m000012",
        "[m1234567]",
    ],
)
def test_other_words_and_message_ids_are_unchanged(text: str) -> None:
    assert blinding().blind_text(text) == text


def test_longest_matching_name_wins() -> None:
    names = blinding({"d1": "Ann", "d2": "Ann Marie Fox"})
    assert names.mentions("Ann Marie Fox, Ann, Fox") == ["d2", "d1", "d2"]


def test_shared_first_name_is_not_blinded() -> None:
    names = blinding({"d1": "Ann Fox", "d2": "Ann Marsh"})
    assert names.blind_text("Ann spoke") == "Ann spoke"


def test_shared_full_name_is_blinded_without_a_letter() -> None:
    names = blinding({"d1": "GPT", "d2": "GPT"})
    assert names.blind_text("GPT is right") == f"{SOMEONE} is right"


def test_part_of_a_role_is_not_blinded_if_the_debate_uses_the_word() -> None:
    expert = {"sec": "Security Expert"}
    text = "Security matters, as security always does. The Security Expert knows."
    assert blinding(expert, texts=(text,)).blind_text(text).startswith("Security matters")
    assert blinding(expert, texts=(text,)).mentions(text) == ["sec"]
    assert blinding(expert).mentions("Security said so") == ["sec"]


def test_one_letter_name_matches_only_where_it_is_no_word() -> None:
    names = blinding({"a": "A", "b": "B"})
    assert names.mentions("A plan, a plan") == []
    assert names.mentions("A: yes. @b, and B's point") == ["a", "b", "b"]


def test_labels_do_not_clash_with_the_debaters_own_names() -> None:
    names = blinding({"x": "Debater A", "y": "Debater B"})
    assert not any(label.startswith("Debater") for label in names.labels.values())
    assert names.mentions(names.unblind_text(names.blind_text("Debater B beat Debater A"))) == ["y", "x"]


def test_labels_avoid_a_label_word_that_the_debate_uses() -> None:
    assert blinding(texts=("As Debater B said",)).kind == "Speaker"


def test_text_that_looks_like_a_label_names_no_debater() -> None:
    names = blinding()
    assert names.mentions(names.unblind_text(names.blind_text("debater A and Debaters B, C"))) == []


def test_labels_follow_the_presentation_order() -> None:
    assert list(make_blinding(PEOPLE).labels) == list(PEOPLE)
    order = [*PEOPLE][::-1]
    labels = make_blinding(PEOPLE).in_order(order).labels
    assert [labels[debater][-1] for debater in order] == ["A", "B", "C", "D", "E"]


def test_labels_do_not_depend_on_the_order_of_debaters() -> None:
    other = make_blinding(dict(reversed(PEOPLE.items())))
    assert other.in_order([*PEOPLE]).labels == make_blinding(PEOPLE).labels


def test_many_debaters_get_labels_with_two_letters() -> None:
    labels = list(make_blinding({f"d{at}": "" for at in range(60)}).labels.values())
    assert (labels[25], labels[26], labels[59]) == ("Debater Z", "Debater AA", "Debater BH")
    assert len(set(labels)) == 60


def test_more_debaters_than_labels_are_rejected() -> None:
    with pytest.raises(ValueError, match="at most 702 debaters can be hidden, but there are 703"):
        make_blinding({f"d{at}": "" for at in range(703)})


pieces = st.sampled_from(
    [form for form, _ in FORMS]
    + ["m000012", "Debater A", "debaters B and C", "A", "so", "田", "it’s", "Speaker Q"]
)


@settings(deadline=None)
@given(
    parts=st.lists(st.tuples(pieces, st.sampled_from([" ", ", ", ".\n", "; ", ") ("])), max_size=12),
    seed=st.integers(0, 9),
)
def test_round_trip_keeps_the_mentioned_people_and_messages(parts: list[tuple[str, str]], seed: int) -> None:
    names = blinding(seed=seed)
    text = "".join(piece + "," + gap for piece, gap in parts)
    blinded = names.blind_text(text)
    back = names.unblind_text(blinded)
    assert names.mentions(back) == names.mentions(text)
    assert names.mentions(blinded) == []
    assert re.findall(r"m\d+", back) == re.findall(r"m\d+", text)


@settings(deadline=None)
@given(text=st.text(max_size=80), seed=st.integers(0, 3))
def test_text_without_names_survives_a_round_trip(text: str, seed: int) -> None:
    names = blinding(seed=seed)
    if not names.mentions(text):
        assert names.unblind_text(names.blind_text(text)) == text


@settings(deadline=None)
@given(
    ids=st.lists(
        st.from_regex(r"[a-z][a-z0-9-]{1,8}", fullmatch=True), unique=True, min_size=2, max_size=6
    ).filter(lambda ids: not any(map(is_everyday, ids)))
)
def test_any_debater_ids_survive_a_round_trip(ids: list[str]) -> None:
    names = make_blinding(dict.fromkeys(ids, ""))
    text = "; ".join(ids)
    assert names.mentions(names.unblind_text(names.blind_text(text))) == ids


def test_speakers_and_text_are_blinded_but_message_ids_are_not() -> None:
    names = blinding()
    assert [names.label_of(each) for each in ("grace-2", "m000003")] == [names.labels["grace-2"], "m000003"]
    assert names.blind_text("Hopper errs in m000003.") == f"{names.labels['grace-2']} errs in m000003."


def test_moderator_keeps_its_name() -> None:
    assert blinding().label_of("moderator") == "moderator"


def test_verdict_is_unblinded_in_fields_keys_and_prose() -> None:
    names = blinding()
    ada, grace = names.labels["ada"], names.labels["grace-2"]
    response = {
        "reasoning": f"{ada}'s case (m000004) beats {grace.upper()[:-1]}{grace[-1]}'s.",
        "winner": ada.lower(),
        "scores": [{"debater": grace[-1], "score": 3, "citations": ["m000004"]}],
        "totals": {ada: 80, "tie": 0},
    }
    assert names.unblind_data(response) == {
        "reasoning": "Ada Lovelace's case (m000004) beats Dr. Grace Hopper's.",
        "winner": "ada",
        "scores": [{"debater": "grace-2", "score": 3, "citations": ["m000004"]}],
        "totals": {"ada": 80, "tie": 0},
    }


def test_enumerated_labels_are_unblinded() -> None:
    names = blinding({"x": "Xu", "y": "Yi", "z": "Zed"})
    by_letter = {label[-1]: names.names[debater] for debater, label in names.labels.items()}
    expected = f"{by_letter['A']}, {by_letter['B']}, and {by_letter['C']} agree"
    assert names.unblind_text("Debaters A, B, and C agree") == expected


def test_unassigned_label_is_unchanged() -> None:
    assert blinding().unblind_text("Debater Q") == "Debater Q"


@pytest.mark.parametrize("text", ["{}", "debater {letter}", "Debater_{letter}", "{letter}", " {} "])
def test_debater_of_accepts_many_spellings_of_a_label(text: str) -> None:
    names = blinding()
    label = names.labels["zoe"]
    assert names.debater_of(text.format(label, letter=label[-1])) == "zoe"


def test_letter_means_the_label_even_if_it_is_a_debater_id() -> None:
    names = make_blinding({"a": "", "b": ""}).in_order(["b", "a"])
    assert names.labels["a"] == "Debater B"
    assert names.debater_of("B") == "a"


@pytest.mark.parametrize("text", ["tie", "synthesis", "", "somebody"])
def test_debater_of_returns_none_for_text_that_names_nobody(text: str) -> None:
    assert blinding().debater_of(text) is None


@pytest.mark.parametrize(
    ("text", "blinded"),
    [
        ("Vice President Joe Biden spoke.", "Debater A spoke."),
        ("Vice President Biden spoke.", "Debater A spoke."),
        ("Mr. Vice President Joe Biden spoke.", "Debater A spoke."),
        ("President Biden, Mr. Biden and Joe Biden", "Debater A, Debater A and Debater A"),
        ("the vice president said that President Lincoln", "the vice president said that President Lincoln"),
        ("Donald Trump met Trump. Dr. Trump!", "Debater B met Debater B. Debater B!"),
        ("Vice President\nDonald J. Trump", "Debater B"),
    ],
)
def test_title_is_blinded_only_together_with_a_name(text: str, blinded: str) -> None:
    people = {
        "vice-president-joe-biden": "Vice President Joe Biden",
        "president-donald-j-trump": "President Donald J. Trump",
    }
    texts = ["a vice president and a president"]
    labels = {"vice-president-joe-biden": "Debater A", "president-donald-j-trump": "Debater B"}
    blinding = replace(make_blinding(people, texts), labels=labels)
    assert blinding.blind_text(text) == blinded
    restored = blinding.unblind_text(blinded)
    assert "Vice President Vice President" not in restored
    assert "President President" not in restored


def test_gendered_pronouns_near_a_label_are_made_neutral() -> None:
    blinding = make_blinding({"ann": "Ann", "ben": "Ben"})
    ann, ben = blinding.label_of("ann"), blinding.label_of("ben")
    she = blinding.blind_text("Ann said she trusts her own counts; I asked her for them and doubt hers.")
    he = blinding.blind_text("Ben said he trusts his own counts; I asked him for them and doubt his.")
    assert she.replace(ann, ben) == he
    assert "he or she trusts his or her own counts; I asked him or her for them" in he
    assert blinding.blind_text("The mayor kept her word.") == "The mayor kept her word."


def test_labels_use_letters_that_the_debate_does_not_use() -> None:
    blinding = make_blinding(PEOPLE, ["A rule is a rule, I think, and region B pays."])
    assert [label[-1] for label in blinding.labels.values()] == ["C", "D", "E", "F", "G"]


def test_single_letter_is_unblinded_if_the_debate_does_not_use_it() -> None:
    blinding = make_blinding({"ann": "Ann", "bo": "Bo"}, ["A rule is a rule, and region C pays."])
    assert set(blinding.labels.values()) == {"Debater A", "Debater B"}
    text = "A sum: B conceded it, and B's sum stands; region C pays, by B-grade reasons, as in B. Smith."
    bo = next(name for debater, name in blinding.names.items() if blinding.labels[debater] == "Debater B")
    assert blinding.unblind_text(text) == (
        f"A sum: {bo} conceded it, and {bo}'s sum stands; region C pays, by B-grade reasons, as in B. Smith."
    )


def test_the_article_a_alone_is_not_unblinded() -> None:
    blinding = make_blinding({"ann": "Ann", "bo": "Bo"}, ["I take it."])
    assert blinding.unblind_text("A cost that B pays; Debater A too.") == "A cost that Bo pays; Ann too."
