"""What the rules read in a sentence: changes of mind, questions, sides that the topic said again tells."""

import pytest

from benchmarks.minutes import EVERYDAY, as_json, excerpts, measure, read_excerpt
from moot.nodes.reading.moves import asks, concedes, shifts
from moot.nodes.reading.standpoints import standpoint
from tests.support.board import Board

FERRY = "Should the ferries be closed?"


@pytest.mark.parametrize(
    ("text", "shifted"),
    [
        ("I'd no longer call that a pilot.", True),
        ("We counted again, and I'm not asking for the bridge any more.", True),
        ("I came in sure of the toll, and now I think it is the wrong tool.", True),
        ("I was leaning towards the toll, but those figures end it for me.", True),
        ("I'll come round to your view, then.", True),
        ("Scratch my comment on the toll, I want the bridge before the winter.", True),
        ("I came tonight ready to vote for the toll, and I cannot.", True),
        ("I would scratch my comment if I saw the log.", False),
        ("If I no longer need the car I shall sell it.", False),
        ("I no longer remember who said so.", False),
        ("Would you say that you don't want it any more?", False),
        ("Ada said “I am not asking for it any more”.", False),
        ("We revised the estimate of the cost in May.", False),
    ],
)
def test_a_change_of_mind_is_declared_in_the_first_person(text: str, shifted: bool) -> None:
    assert shifts(text) is shifted


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        ("How many ships run at night in winter?", True),
        ("Who pays for the second crew, then?", True),
        ("They run at night as well, don't they?", False),
        ("That is what the chart says, no?", False),
        ("Shall we put it to the harbour board?", False),
        ("And who says so?", False),
    ],
    ids=["how many", "who pays", "a tag", "no", "a suggestion", "an echo"],
)
def test_a_question_waits_for_an_answer_and_a_suggestion_does_not(text: str, waits: bool) -> None:
    assert asks(text) is waits


def test_a_question_to_nobody_in_particular_is_open_until_somebody_else_speaks() -> None:
    board = Board()
    board.say("ada", "The charts are old. How many ships run at night in winter?")
    (question,) = board.ledger.open_questions()
    assert question["to"] == ""
    board.say("ada", "I could not find out.")
    assert board.ledger.open_questions()
    board.say("cyd", "Eleven.")
    assert not board.ledger.open_questions()
    board.say("bob", "Who would count them anew in winter? We have a month.")
    assert not board.ledger.open_questions()


def test_what_somebody_would_have_done_if_it_had_not_looked_is_no_concession() -> None:
    assert not concedes("I'd have said the same if I hadn't looked it up.")
    assert concedes("I hadn't thought of the night crews.")


def test_a_side_is_read_clause_by_clause() -> None:
    found = standpoint("The ferries must be closed, in my view there is no other way.", FERRY)
    assert found
    assert found.side == "for"


@pytest.mark.parametrize(
    "text",
    [
        "Fine, the pier is the older of the two.",
        "That's true, the log says so.",
        "Yes, I had forgotten the night crews.",
        "I shouldn't have called it a pilot.",
        "On the pier I have no quarrel with you.",
        "You've talked me out of the second ship.",
    ],
)
def test_people_concede_in_everyday_words(text: str) -> None:
    assert concedes(text)


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("I'd keep the ferries.", "against"),
        ("I wouldn't close the ferries.", "against"),
        ("Let's close the ferries in spring.", "for"),
        ("I would not want the ferries closed.", "against"),
        ("I should not have closed the ferries in May.", None),
        ("I do not say that ferries are fast.", None),
        ("My answer to the motion remains a clear no.", "against"),
        ("I love it more than my cat.", None),
    ],
)
def test_who_says_what_it_wants_done_takes_a_side(text: str, side: str | None) -> None:
    found = standpoint(text, FERRY)
    assert (found.side if found else None) == side


def test_of_a_long_sentence_the_part_is_quoted_that_shows_the_side() -> None:
    long = (
        "Not one of the three reports that were read to us this morning counts the winter crews, as far"
        " as I can see; I am against closing them."
    )
    found = standpoint(long, FERRY)
    assert found
    assert found.words == "I am against closing them."
    assert found.words in long


def test_on_excerpts_in_everyday_words_few_notes_are_false() -> None:
    tallies, _ = measure(excerpts(EVERYDAY)[::3], read_excerpt)
    figures = as_json(tallies)
    for kind, precision, recall in (("concessions", 0.7, 0.3), ("open_questions", 0.8, 0.3)):
        assert figures[kind]["precision"] >= precision, kind
        assert figures[kind]["recall"] >= recall, kind
    assert figures["stances"]["precision"] >= 0.7
    assert figures["evidence"]["recall"] >= 0.5
    assert figures["traps_avoided"] >= 0.95
