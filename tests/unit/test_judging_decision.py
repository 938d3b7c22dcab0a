"""Decision rules of judge panels."""

from __future__ import annotations

import random
import re
from itertools import combinations
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings, strategies as st

from moot.config import JudgeConfig
from moot.judging.panel import RULES, Ballot, borda_points, decide
from moot.state.errors import ConfigError, JudgeFailed
from moot.state.verdict import Rule

NAMES = ("zoe", "ada", "bo")


def ballot(judge: str, winner: str, approved: tuple[str, ...] = (), **scores: float) -> Ballot:
    return Ballot(judge=judge, winner=winner, scores=scores, approved=list(approved))


panels: st.SearchStrategy[list[Ballot]] = st.lists(
    st.builds(
        Ballot,
        judge=st.sampled_from(["j1", "j2", "j3"]),
        winner=st.sampled_from([*NAMES, "tie", "synthesis"]),
        scores=st.dictionaries(st.sampled_from(NAMES), st.integers(0, 5).map(float)),
        approved=st.lists(st.sampled_from(NAMES), unique=True),
    ),
    min_size=1,
    max_size=6,
)


@settings(deadline=None)
@given(panel=panels)
def test_borda_points_count_pairwise_wins_and_ties(panel: list[Ballot]) -> None:
    debaters = sorted({name for one in panel for name in one["scores"]})
    naive = dict.fromkeys(debaters, 0.0)
    for one in panel:
        for a, b in combinations(debaters, 2):
            score_a, score_b = one["scores"].get(a, -1), one["scores"].get(b, -1)
            naive[a] += 1 if score_a > score_b else 0.5 if score_a == score_b else 0
            naive[b] += 1 if score_b > score_a else 0.5 if score_a == score_b else 0
    assert borda_points(panel) == naive


@pytest.mark.parametrize("rule", get_args(Rule))
@settings(deadline=None)
@given(panel=panels, seed=st.integers(0, 99))
def test_the_order_of_judges_does_not_change_the_decision(rule: Rule, panel: list[Ballot], seed: int) -> None:
    shuffled = random.Random(seed).sample(panel, len(panel))
    assert decide(shuffled, rule) == decide(panel, rule)


@pytest.mark.parametrize("rule", get_args(Rule))
@settings(deadline=None)
@given(panel=panels)
def test_renaming_the_debaters_renames_the_winner(rule: Rule, panel: list[Ballot]) -> None:
    new = {"zoe": "ada", "ada": "bo", "bo": "zoe"}
    renamed = [
        Ballot(
            judge=one["judge"],
            winner=new.get(one["winner"], one["winner"]),
            scores={new[name]: score for name, score in one["scores"].items()},
            approved=[new[name] for name in one["approved"]],
        )
        for one in panel
    ]
    winner = decide(panel, rule)["winner"]
    assert decide(renamed, rule)["winner"] == new.get(winner, winner)


@pytest.mark.parametrize("rule", get_args(Rule))
def test_a_perfect_split_is_a_tie_under_every_rule(rule: Rule) -> None:
    panel = [ballot("j1", "zoe", ("zoe",), zoe=9, ada=1), ballot("j2", "ada", ("ada",), zoe=1, ada=9)]
    outcome = decide(panel, rule)
    assert (outcome["winner"], outcome["tied"]) == ("tie", ["ada", "zoe"])
    assert [one["judge"] for one in outcome["dissent"]] == ["j1", "j2"]


@pytest.mark.parametrize(
    ("rule", "winner"),
    [("mean", "zoe"), ("majority", "ada"), ("ranked", "ada"), ("approval", "bo"), ("unanimous", "tie")],
)
def test_each_rule_chooses_its_own_winner(rule: Rule, winner: str) -> None:
    panel = [
        ballot("j1", "ada", ("ada", "bo"), ada=52, zoe=50, bo=40),
        ballot("j2", "ada", ("bo",), ada=52, zoe=50, bo=51),
        ballot("j3", "zoe", ("zoe", "bo"), ada=10, zoe=100, bo=20),
    ]
    assert decide(panel, rule)["winner"] == winner


def test_a_plurality_is_not_a_majority() -> None:
    panel = [ballot("j1", "ada"), ballot("j2", "ada"), ballot("j3", "bo"), ballot("j4", "tie")]
    assert decide(panel, "majority")["winner"] == "tie"


def test_a_majority_can_choose_a_synthesis() -> None:
    panel = [ballot("j1", "synthesis"), ballot("j2", "synthesis"), ballot("j3", "bo")]
    outcome = decide(panel, "majority")
    assert outcome["winner"] == "synthesis"
    assert outcome["dissent"] == [{"judge": "j3", "winner": "bo"}]


@pytest.mark.parametrize("rule", get_args(Rule))
def test_means_and_dissent_are_reported_whatever_the_rule(rule: Rule) -> None:
    agreed = [ballot("j1", "ada", ("ada",), ada=80, bo=60), ballot("j2", "ada", ("ada",), ada=70)]
    outcome = decide(agreed, rule)
    assert outcome["mean_scores"] == {"ada": 75, "bo": 60}
    assert (outcome["winner"], outcome["dissent"], outcome["judges"]) == ("ada", [], 2)
    outcome = decide([*agreed, ballot("j3", "bo", ("bo",), ada=30, bo=40)], rule)
    assert outcome["mean_scores"] == {"ada": 60, "bo": 50}
    dissent = [{"judge": "j3", "winner": "bo"}]
    if rule == "unanimous":
        dissent = [*({"judge": judge, "winner": "ada"} for judge in ("j1", "j2")), *dissent]
    assert (outcome["dissent"], outcome["judges"]) == (dissent, 3)


def test_without_approvals_nobody_is_tied() -> None:
    assert decide([ballot("j1", "tie")], "approval")["tied"] == []


def test_a_decision_without_ballots_fails() -> None:
    with pytest.raises(JudgeFailed, match="no judge"):
        decide([])


def test_the_error_names_an_unknown_rule() -> None:
    with pytest.raises(ConfigError, match=r"judge\.rule: 'loudest'"):
        decide([ballot("j1", "ada")], "loudest")  # type: ignore[arg-type]


def test_the_docs_list_every_decision_rule() -> None:
    page = (Path(__file__).parents[2] / "docs" / "judging.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", page.partition("| `--rule` |")[2], re.M)
    default = JudgeConfig().rule
    listed = [(name, rule.decides + " (default)" * (name == default)) for name, rule in RULES.items()]
    assert tuple(RULES) == get_args(Rule)
    assert rows == listed
