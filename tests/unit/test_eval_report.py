"""Evaluation reports: accuracy, discussions, judges and seeds."""

from __future__ import annotations

from typing import Any

import krippendorff
import pytest

from moot.config.config_files import make_config
from moot.plugins.evals.arms import Arm
from moot.plugins.evals.items import ItemSet, PairItem, QuestionItem, TopicItem
from moot.plugins.evals.report import evaluation_report
from moot.plugins.evals.report_pages import further_html, report_html, report_markdown
from moot.plugins.evals.results import EvaluationRecord, ItemOutcome

DEBATE = Arm("council.yaml", "debate", make_config({"protocol": "council"}))
VOTE = Arm("vote@tokens", "vote", make_config({"protocol": "vote"}), match="tokens")
PANEL = Arm("judge:panel.yaml", "judge", make_config({"protocol": "pairwise"}))


def questions(number: int) -> ItemSet:
    items = [
        QuestionItem(id=str(n), question=f"Question {n}?", choices=("x", "y", "z"), answer="A")
        for n in range(number)
    ]
    return ItemSet("set.jsonl", "question", tuple(items))


def report_of(items: ItemSet, arms: tuple[Arm, ...], outcomes: list[ItemOutcome], seeds: int = 1) -> Any:
    record = EvaluationRecord("e", items, arms, seeds, "2026-11-01T00:00:00+00:00")
    return evaluation_report(record, {each.key: each for each in outcomes})


def debate_outcome(item: int, *rounds: str, seed: int = 1) -> ItemOutcome:
    """Return the outcome of a debate. Each string holds the debaters' answers in one round."""
    answers = tuple({str(who): f"Answer: {letter}" for who, letter in enumerate(each)} for each in rounds)
    return ItemOutcome(
        str(item), DEBATE.name, seed, texts=(f"Answer: {rounds[-1][0]}",), rounds=answers, tokens=300
    )


def test_report_starts_with_what_the_discussion_changed() -> None:
    outcomes = [
        debate_outcome(0, "AAA", "AAB", "AAA"),  # one goes wrong in round 1 and right again in round 2
        debate_outcome(1, "BBA", "ABA", "AAA"),  # the vote goes from wrong to right
        debate_outcome(2, "ABC", "BBB", "BBB"),  # a tie, whose first answer was right, becomes a wrong vote
        debate_outcome(3, "AAA", "AAA", "AAA"),
        *(
            ItemOutcome(str(n), VOTE.name, 1, texts=(f"Answer: {'A' if n else 'B'}",), tokens=100)
            for n in range(4)
        ),
    ]
    report = report_of(questions(4), (DEBATE, VOTE), outcomes)
    council = report["arms"][0]
    assert [(each["right_to_wrong"], each["wrong_to_right"]) for each in council["changes"]] == [
        (2, 1),
        (0, 2),
    ]
    assert council["vote_changed"] == 0.5
    assert report["findings"] == [
        "The discussion in council.yaml turned 3 wrong answers right and 2 right answers wrong. It changed "
        "the vote in 50.0 % of 4 debates.",
        "Where the first answers of council.yaml all agree (2 answers), council.yaml is right in 100.0 % and "
        "vote@tokens is right in 50.0 %.",
        "Where the first answers of council.yaml have a majority (1 answer), council.yaml is right in "
        "100.0 % and vote@tokens is right in 100.0 %.",
        "Where the first answers of council.yaml have no majority (1 answer), council.yaml is right in 0.0 % "
        "and vote@tokens is right in 100.0 %.",
    ]
    text, page = report_markdown(report), report_html(report)
    assert text.index("turned 3 wrong") < text.index("| arm |")
    assert page.index("turned 3 wrong") < page.index("<svg") < page.index("<table")


def test_headline_compares_debates_and_findings_compare_votes() -> None:
    single = Arm("single", "debate", make_config({"protocol": "single"}))
    texts = {DEBATE.name: "A", VOTE.name: "B", single.name: "B"}
    outcomes = [
        ItemOutcome(str(n), arm, 1, texts=(f"Answer: {letter if n < 3 else 'A'}",))
        for n in range(30)
        for arm, letter in texts.items()
    ]
    report = report_of(questions(30), (single, VOTE, DEBATE), outcomes)
    assert [each.split(" ")[0] for each in report["headline"]] == [DEBATE.name]
    assert report["findings"][0].startswith("single and vote@tokens were equally accurate")


def test_headline_doubts_a_difference_if_test_and_interval_disagree() -> None:
    outcomes = [
        ItemOutcome(str(n), arm.name, 1, texts=(f"Answer: {'A' if right else 'B'}",))
        for n in range(30)
        for arm, right in ((DEBATE, n < 9 or n > 10), (VOTE, n > 8))
    ]
    (sentence,) = report_of(questions(30), (DEBATE, VOTE), outcomes)["headline"]
    assert sentence == (
        "council.yaml beat vote@tokens by 23.3 points (95 % 1.9 to 42.6): not shown to be worth it, because "
        "the test (p 0.065) and the interval disagree."
    )


def test_report_page_names_the_preferred_lineup() -> None:
    lineups = tuple(Arm(name, "lineup", make_config({})) for name in ("a.yaml", "b.yaml"))
    topics = tuple(TopicItem(id=str(n), topic=f"Topic {n}") for n in range(12))
    won = [ItemOutcome(each.id, "a.yaml vs b.yaml", 1, winners=("a.yaml",)) for each in topics]
    report = report_of(ItemSet("topics.jsonl", "topic", topics), lineups, won)
    (sentence,) = report["headline"]
    assert sentence.startswith("a.yaml was preferred to b.yaml in 100.0 %")
    assert sentence in report_html(report)


def test_only_ties_give_no_interval() -> None:
    lineups = tuple(Arm(name, "lineup", make_config({})) for name in ("a.yaml", "b.yaml"))
    topics = tuple(TopicItem(id=str(n), topic=f"Topic {n}") for n in range(12))
    tied = [ItemOutcome(each.id, "a.yaml vs b.yaml", 1, winners=("tie",)) for each in topics]
    report = report_of(ItemSet("topics.jsonl", "topic", topics), lineups, tied)
    assert report["headline"] == ["a.yaml and b.yaml were preferred equally often: no preference is shown."]
    assert "50.0 to 50.0" not in report_markdown(report)


def test_report_page_keeps_its_tables_with_many_unreadable_answers() -> None:
    unreadable = "I cannot tell <which> one of the two is right. " * 4
    outcomes = [ItemOutcome(str(n), VOTE.name, 1, texts=(unreadable,)) for n in range(200)]
    report = report_of(questions(200), (VOTE,), outcomes)
    page, cells = report_html(report), str(further_html(report))
    assert (page.count("<table"), cells.count("<table")) == (2, 1)
    rows = [text.count('<td dir="auto">I cannot tell &lt;which&gt; one') for text in (page, cells)]
    assert rows == [200, 200]
    assert '<td class="number" dir="auto">200</td>' in page


def test_panel_agreement_matches_the_krippendorff_package() -> None:
    items = ItemSet(
        "pairs.jsonl",
        "pair",
        tuple(PairItem(id=str(n), input=f"Task {n}", a="x", b="y", better="a") for n in range(6)),
    )
    chosen = {"one": "aababaabbaab", "two": "aababbabbaab", "three": "abbabaabbbab"}
    outcomes = []
    for n in range(6):
        judges = {judge: tuple(letters[2 * n : 2 * n + 2]) for judge, letters in chosen.items()}
        outcomes.append(ItemOutcome(str(n), PANEL.name, 1, winners=("a", "b"), judges=judges))
    (row,) = report_of(items, (PANEL,), outcomes)["arms"]
    data = [[" ab".index(letter) for letter in letters] for letters in chosen.values()]
    assert row["alpha_judges"] == pytest.approx(krippendorff.alpha(data, level_of_measurement="nominal"))
    kappas = {(each["first"], each["second"]): each["kappa"] for each in row["kappa_judges"]}
    assert kappas["one", "two"] == pytest.approx((11 / 12 - 0.5) / 0.5)
    text = report_markdown(report_of(items, (PANEL,), outcomes))
    assert "| judge:panel.yaml | one | two | 12 |" in text


def test_seed_agreement_matches_the_krippendorff_package() -> None:
    letters = ("ABAC", "ABBC", "ABAA")
    outcomes = [
        ItemOutcome(str(n), VOTE.name, seed, texts=(f"Answer: {each[n]}",))
        for seed, each in enumerate(letters, 1)
        for n in range(4)
    ]
    (row,) = report_of(questions(4), (VOTE,), outcomes, seeds=3)["arms"]
    data = [[" ABC".index(letter) for letter in each] for each in letters]
    assert row["alpha_seeds"] == pytest.approx(krippendorff.alpha(data, level_of_measurement="nominal"))
    (steady,) = report_of(questions(4), (VOTE,), outcomes[:4])["arms"]
    assert "alpha_seeds" not in steady


def test_an_arm_without_answers_is_no_baseline() -> None:
    report = report_of(
        questions(2), (DEBATE, VOTE), [debate_outcome(0, "AAA", "AAA"), debate_outcome(1, "AAA", "AAA")]
    )
    assert report["baseline"] == DEBATE.name
    assert any("vote@tokens 2" in note for note in report["notes"])
