"""Judging in two presentation orders."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from moot.calls.model_calls import Reply
from moot.config.rubrics import Criterion, Rubric
from moot.judging.orders import flip_rate, flip_rates, merge_decisions, presentation_orders, reconcile
from moot.judging.response_check import ResponseCheck, failed_verdict
from moot.judging.response_schema import (
    CriterionScore,
    UnmetRequirement,
    response_type,
)
from moot.state.verdict import UNDECIDED, Rate, Verdict

RUBRIC = Rubric(name="small", criteria=(Criterion(id="merit", name="Merit", scale_min=0),))
DEBATERS = ["ada", "bo"]


def overall_flip_rate(verdicts: list[Verdict]) -> Rate:
    return flip_rate(verdict["flip"]["flipped"] for verdict in verdicts)


def verdict(
    order: list[str],
    winner: str,
    *,
    judge: str = "j1",
    merit: float = 5,
    confidence: float = 60,
    major: bool = False,
) -> Verdict:
    response = response_type("contest")(
        reasoning=f"For {winner}.",
        scores=[
            CriterionScore(debater="ada", criterion="merit", score=merit, citations=["m000001", "m000404"])
        ],
        winner=winner,
        confidence=confidence,
        unmet_requirements=[UnmetRequirement(text="speed", major=major)],
        dissent=["Why?"],
    )
    reply = Reply(usage={"prompt_tokens": 100, "cost_usd": 0.5})
    return ResponseCheck(RUBRIC, order, {"m000001"}, judge).response_verdict(response, reply)


def judge_all(choose: Callable[[list[str]], str], debates: int = 40, judge: str = "j1") -> list[Verdict]:
    return [
        reconcile(*(verdict(order, choose(order), judge=judge) for order in presentation_orders(DEBATERS)))
        for _ in range(debates)
    ]


def test_judge_that_always_prefers_the_first_debater_only_ties() -> None:
    verdicts = judge_all(lambda order: order[0])
    assert {one["winner"] for one in verdicts} == {"tie"}
    assert overall_flip_rate(verdicts)["rate"] == 1


def test_an_unbiased_judge_never_flips() -> None:
    verdicts = judge_all(lambda order: "bo")
    assert {one["winner"] for one in verdicts} == {"bo"}
    assert overall_flip_rate(verdicts)["rate"] == 0


def test_flip_rates_are_reported_per_judge_with_intervals() -> None:
    chance = random.Random(0)
    verdicts = judge_all(lambda order: order[0], judge="biased") + judge_all(
        lambda order: order[0] if chance.random() < 0.1 else "ada", judge="steady"
    )
    rates = flip_rates(verdicts)
    assert list(rates) == ["biased", "steady"]
    assert rates["biased"]["low"] > rates["steady"]["high"]
    assert rates["steady"]["n"] == 40


def test_agreeing_orders_keep_the_winner_and_average_the_rest() -> None:
    merged = reconcile(
        verdict(["ada", "bo"], "ada", merit=6, confidence=60),
        verdict(["bo", "ada"], "ada", merit=8, confidence=80),
    )
    assert (merged["winner"], merged["confidence"], merged["totals"]) == ("ada", 70, {"ada": 70})
    assert merged["scores"]["ada"]["merit"] == {"score": 7, "reason": "", "citations": ["m000001"]}
    assert merged["flip"] == {
        "orders": [["ada", "bo"], ["bo", "ada"]],
        "winners": ["ada", "ada"],
        "flipped": False,
    }
    assert (merged["dropped_citations"], merged["dissent"]) == (2, ["Why?"])
    assert merged["usage"] == {"prompt_tokens": 200, "cost_usd": 1.0}


def test_flip_becomes_a_tie_with_both_reasonings() -> None:
    merged = reconcile(verdict(["ada", "bo"], "ada"), verdict(["bo", "ada"], "bo"))
    assert (merged["winner"], merged["confidence"], merged["flip"]["flipped"]) == ("tie", None, True)
    assert merged["flip"]["winners"] == ["ada", "bo"]
    assert "For ada." in merged["reasoning"]
    assert "For bo." in merged["reasoning"]


def test_a_tie_against_a_winner_is_a_flip_too() -> None:
    merged = reconcile(verdict(["ada", "bo"], "tie"), verdict(["bo", "ada"], "bo"))
    assert (merged["winner"], merged["flip"]["flipped"]) == ("tie", True)


def scored_verdict(order: list[str], winner: str, ada: float, bo: float, **fields: str) -> Verdict:
    scores = [
        CriterionScore(debater=who, criterion="merit", score=score)
        for who, score in (("ada", ada), ("bo", bo))
    ]
    response = response_type("contest")(
        reasoning="So.", scores=scores, winner=winner, confidence=75, **fields
    )
    return ResponseCheck(RUBRIC, order, names={"ada": "Ada", "bo": "Bo"}).response_verdict(response, Reply())


@pytest.mark.parametrize("other", ["synthesis", "tie"])
def test_debater_ahead_in_both_orders_wins_if_one_order_names_none(other: str) -> None:
    orders = scored_verdict(["ada", "bo"], "ada", 8, 5), scored_verdict(["bo", "ada"], other, 7, 6)
    merged = reconcile(*orders, names={"ada": "Ada", "bo": "Bo"})
    assert (merged["winner"], merged["flip"]["flipped"]) == ("ada", True)
    assert merged["totals"] == {"ada": 75, "bo": 55}
    (note,) = merged["notes"]
    assert "Ada in the order Ada, Bo;" in note
    assert note.endswith("in the order Bo, Ada. Ada has the highest total in both orders.")


def test_flip_is_a_tie_if_the_leader_or_the_named_winner_changes() -> None:
    changed = reconcile(
        scored_verdict(["ada", "bo"], "ada", 8, 5), scored_verdict(["bo", "ada"], "synthesis", 5, 8)
    )
    explained = scored_verdict(["bo", "ada"], "bo", 7, 6, despite_scores="One point decides.")
    assert changed["winner"] == "tie"
    assert reconcile(scored_verdict(["ada", "bo"], "ada", 8, 5), explained)["winner"] == "tie"


def test_tie_and_synthesis_do_not_count_as_a_flip() -> None:
    merged = reconcile(
        scored_verdict(["ada", "bo"], "synthesis", 8, 8), scored_verdict(["bo", "ada"], "tie", 8, 8)
    )
    assert (merged["winner"], merged["flip"]["flipped"]) == ("synthesis", False)


def test_note_names_the_order_whose_totals_it_shows() -> None:
    explained = scored_verdict(["bo", "ada"], "bo", 7, 6, despite_scores="One point decides.")
    merged = reconcile(scored_verdict(["ada", "bo"], "bo", 5, 8), explained, names={"ada": "Ada", "bo": "Bo"})
    (note,) = merged["notes"]
    assert note.startswith("In the order Bo, Ada: The judge named Bo in spite of a lower total (Ada has 70.0")


def test_unmet_major_requirement_in_one_order_caps_the_confidence() -> None:
    passes = [
        verdict(["ada", "bo"], "ada", confidence=90),
        verdict(["bo", "ada"], "ada", confidence=40, major=True),
    ]
    merged = reconcile(*passes, capped=True)
    assert merged["unmet_requirements"] == [{"text": "speed", "major": True}]
    assert merged["confidence"] == 40
    assert merged["notes"] == ["Confidence capped at 40: a major requirement is unmet: speed"]
    assert reconcile(*passes)["confidence"] == 65


def test_requirement_in_two_wordings_is_listed_once() -> None:
    first, second = verdict(["ada", "bo"], "ada"), verdict(["bo", "ada"], "ada")
    first["unmet_requirements"] = [{"text": "A count of car traffic before and after", "major": False}]
    second["unmet_requirements"] = [
        {"text": "A count of the car traffic, before and after.", "major": True},
        {"text": "Who pays after 2030", "major": False},
    ]
    wordings = [(each["text"][:5], each["major"]) for each in reconcile(first, second)["unmet_requirements"]]
    assert wordings == [("A cou", True), ("Who p", False)]


def test_flip_reasoning_uses_names_of_debaters() -> None:
    names = {"ada": "Ada Lane", "bo": "Bo Ray"}
    merged = reconcile(verdict(["ada", "bo"], "ada"), verdict(["bo", "ada"], "bo"), names=names)
    assert "Presented as Bo Ray, Ada Lane: Bo Ray." in merged["reasoning"]


@pytest.mark.parametrize("swapped", [False, True])
def test_failed_order_is_noted_and_the_other_order_counts(swapped: bool) -> None:
    failed = failed_verdict("j1", "no JSON", order=["bo", "ada"], usage={"prompt_tokens": 7})
    passes = [verdict(["ada", "bo"], "ada"), failed]
    merged = reconcile(*(passes[::-1] if swapped else passes))
    assert (merged["status"], merged["winner"], merged["flip"]["flipped"]) == ("ok", "ada", None)
    assert "no JSON" in merged["notes"][-1]
    assert merged["usage"]["prompt_tokens"] == 107
    assert overall_flip_rate([merged])["n"] == 0


def test_two_failed_orders_give_a_failed_verdict() -> None:
    merged = reconcile(failed_verdict("j1", "no JSON"), failed_verdict("j1", "timed out"))
    assert (merged["status"], merged["winner"], merged["error"]) == ("failed", "", "no JSON; timed out")


def test_reconcile_changes_neither_verdict() -> None:
    first, second = verdict(["ada", "bo"], "ada"), verdict(["bo", "ada"], "bo")
    reconcile(first, second)
    assert (first, second) == (verdict(["ada", "bo"], "ada"), verdict(["bo", "ada"], "bo"))


def test_presentation_orders_are_the_given_and_the_reversed_order() -> None:
    assert presentation_orders(["a", "b", "c"]) == [["a", "b", "c"], ["c", "b", "a"]]
    assert presentation_orders(["a", "b"], swap=False) == [["a", "b"]]
    assert presentation_orders(["a"]) == [["a"]]


def test_decision_is_taken_from_the_order_that_has_options() -> None:
    first, second = verdict(DEBATERS, "ada"), verdict(DEBATERS[::-1], "ada")
    first |= {"options": ["merge", "hold"], "decision": "merge", "confidence": 80.0}
    both = reconcile(first, second)
    assert (both["decision"], both["confidence"]) == ("merge", 80.0)
    assert not any("different options" in note for note in both["notes"])


@pytest.mark.parametrize("number", [0, 1])
def test_a_placeholder_in_one_of_two_orders_makes_the_verdict_a_placeholder(number: int) -> None:
    passes = [verdict(DEBATERS, "ada"), verdict(DEBATERS[::-1], "ada")]
    passes[number]["placeholder"] = True
    assert reconcile(*passes).get("placeholder")


def test_a_single_decision_without_a_confidence_keeps_none() -> None:
    first, second = verdict(DEBATERS, "ada"), verdict(DEBATERS[::-1], "ada")
    first |= {"options": ["merge", "hold"], "decision": "merge", "confidence": None}
    both = reconcile(first, second)
    assert (both["decision"], both["confidence"]) == ("merge", None)


def test_two_decisions_without_a_confidence_have_none_and_not_0() -> None:
    first, second = verdict(DEBATERS, "ada"), verdict(DEBATERS[::-1], "ada")
    for each in (first, second):
        each |= {"options": ["merge", "hold"], "decision": "merge", "confidence": None}
    assert reconcile(first, second)["confidence"] is None


def test_the_confidence_of_a_decision_counts_other_options_as_zero() -> None:
    chosen = (("merge", 90.0), ("hold", 60.0), ("merge", 75.0))
    verdicts = [
        {
            **verdict(DEBATERS, "ada"),
            "options": ["merge", "hold"],
            "decision": option,
            "confidence": confidence,
        }
        for option, confidence in chosen
    ]
    merged = verdict(DEBATERS, "ada")
    merge_decisions(merged, verdicts)  # type: ignore[arg-type]  # verdicts with options
    assert (merged["decision"], merged["confidence"]) == ("merge", 55.0)
    assert merged["notes"][-1].endswith("different options: merge (2 of 3), hold (1 of 3).")


def test_two_decisions_with_equally_many_verdicts_are_undecided() -> None:
    first, second = verdict(DEBATERS, "ada"), verdict(DEBATERS[::-1], "ada")
    first |= {"options": ["merge", "hold"], "decision": "merge", "confidence": 90.0}
    second |= {"options": ["merge", "hold"], "decision": "hold", "confidence": 60.0}
    both = reconcile(first, second)
    assert (both["decision"], both["confidence"]) == (UNDECIDED, None)
