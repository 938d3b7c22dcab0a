"""Tournaments: which matches are played, by whom, how often; going on after a stop; the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.graph.api import open_debates
from moot.graph.tournament import make_tournament, pairings, play_tournament
from moot.nodes.calls import ModelCall, Reply
from moot.nodes.protocols.long_form.long_form import RoundRobin
from moot.state.errors import ConfigError
from tests.support.fakes import FakeModel, answer

BASE: dict[str, Any] = {
    "name": "cup",
    "topics": ["Cars?", "Trains?"],
    "lineups": {"Bold": {"persona": "fearless"}, "Careful": {}, "Team": [{"name": "Ada"}, {"name": "Ben"}]},
    "turns": 2,
    "judge": {"blind": False, "swap": False},
}


def favours_bold(call: ModelCall) -> Reply:
    """Let Bold win what it takes part in, and the others tie."""
    if call.schema is None:
        return answer(call)
    winner = "bold" if "bold" in call.hints["debaters"] else "tie"
    scores = [
        {"debater": who, "criterion": "clarity", "score": 9 if who == winner else 4}
        for who in call.hints["debaters"]
    ]
    data = {"reasoning": "so", "winner": winner, "confidence": 90, "scores": scores}
    return Reply(
        data=data, model=call.model, usage={"prompt_tokens": 10, "completion_tokens": 5, "cost_usd": 0.5}
    )


def test_every_two_meet_on_every_topic_with_every_seed_on_both_sides() -> None:
    found = pairings(make_tournament({**BASE, "seeds": [1, 2]}))
    assert len(found) == 3 * 2 * 2 * 2
    assert set(Counter((p.topic, p.first, p.second, p.seed) for p in found).values()) == {1}
    assert {(p.second, p.first, p.topic, p.seed) for p in found} == {
        (p.first, p.second, p.topic, p.seed) for p in found
    }


def test_sides_decide_stances_and_who_speaks_first() -> None:
    first, second = pairings(make_tournament(BASE))[:2]
    assert [d.id for d in first.config.debaters] == ["bold", "careful"]
    assert [d.id for d in second.config.debaters] == ["careful", "bold"]
    assert first.config.debater("bold").stance == second.config.debater("careful").stance == "argues for it"


def test_sides_take_turns_and_so_do_the_members_of_a_team() -> None:
    match = next(p for p in pairings(make_tournament(BASE)) if (p.first, p.second) == ("Bold", "Team"))
    assert [d.id for d in match.config.debaters] == ["bold", "team-1", "team-2"]
    assert match.config.turn_order() == ("bold", "team-1", "bold", "team-2")
    assert match.sides == {"bold": "Bold", "team-1": "Team", "team-2": "Team"}


@given(sizes=st.tuples(st.integers(1, 5), st.integers(1, 5)), half=st.integers(1, 12))
def test_both_sides_have_the_same_share_of_the_floor(sizes: tuple[int, int], half: int) -> None:
    lineups: dict[str, Any] = {name: [{}] * size for name, size in zip(("Red", "Blue"), sizes, strict=True)}
    for match in pairings(make_tournament({**BASE, "lineups": lineups, "turns": 2 * half})):
        floors = [
            match.sides[step["floors"][0]["speaker"]]
            for turn in range(2 * half)
            if isinstance(step := RoundRobin().next_step({"turn_count": turn}, match.config), dict)
        ]
        assert floors == [match.first, match.second] * half


def test_a_played_match_gives_both_sides_the_floor_alike(tmp_path: Path) -> None:
    settings = make_tournament({**BASE, "topics": ["Cars?"], "turns": 4})
    with open_debates(
        str(tmp_path / "d.sqlite"), environment=FakeModel(favours_bold).environment()
    ) as debates:
        play_tournament(debates, settings)
        for match in pairings(settings):
            spoken = [e["speaker"] for e in debates.get(match.id).document()["transcript"]]
            assert Counter(match.sides[who] for who in spoken if who in match.sides) == {
                match.first: 2,
                match.second: 2,
            }


def test_ids_of_matches_are_the_same_every_time_and_change_with_the_configuration() -> None:
    ids = [p.id for p in pairings(make_tournament(BASE))]
    assert ids == [p.id for p in pairings(make_tournament(BASE))]
    assert not set(ids) & {p.id for p in pairings(make_tournament({**BASE, "turns": 4}))}


@given(
    names=st.lists(st.text("abcXYZ 0-", min_size=1, max_size=12), min_size=2, max_size=5, unique=True),
    size=st.integers(1, 3),
)
def test_debaters_of_a_match_never_share_an_id(names: list[str], size: int) -> None:
    data = {**BASE, "lineups": {name: [{}] * size for name in names}}
    try:
        found = pairings(make_tournament(data))
    except ConfigError:
        return
    for match in found:
        assert len(match.sides) == 2 * size == len(match.config.debaters)


def test_members_of_one_name_are_two_and_line_ups_never_share_a_debater() -> None:
    team = [{"name": "Ada"}, {"name": "Ada"}]
    match = pairings(make_tournament({**BASE, "lineups": {"Team": team, "Other": {}}}))[0]
    assert [d.id for d in match.config.debaters] == ["team-1", "other", "team-2"]
    with pytest.raises(ConfigError, match="'team-1': rename one"):
        pairings(make_tournament({**BASE, "lineups": {"Team": team, "Team 1": {}}}))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"topics": []}, "topics"),
        ({"topics": ["x", "x"]}, "only once"),
        ({"lineups": {"One": {}}}, "lineups"),
        ({"lineups": {"A b": {}, "a-b": {}}}, "differ"),
        ({"lineups": {"A": [], "B": {}}}, "no debaters"),
        ({"lineups": {"Tie": [{}, {}], "B": {}}}, "'Tie' is reserved"),
        ({"config": {"protocol": "council"}}, "'council' .* Team 2.* one size, or use 'round-robin'"),
        ({"lineup": {}}, "lineup"),
        ({"lineups": {"A": {"modle": "x"}, "B": {}}}, "modle"),
    ],
    ids=[
        "no topic",
        "a topic twice",
        "one line-up",
        "alike names",
        "an empty team",
        "a reserved name",
        "sizes that the protocol cannot balance",
        "an unknown key",
        "a typo",
    ],
)
def test_what_cannot_be_played_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make_tournament({**BASE, **change})


def test_a_tournament_is_played_rated_and_not_played_twice(tmp_path: Path) -> None:
    model = FakeModel(favours_bold)
    settings = make_tournament({**BASE, "concurrency": 3})
    told: list[tuple[int, int]] = []
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        table = play_tournament(debates, settings, report=lambda _, done, total: told.append((done, total)))
        asked = len(model.calls)
        again = play_tournament(debates, settings)
        stored = len(debates.rows())
    assert told == [(number, 12) for number in range(1, 13)]
    assert stored == 12
    assert len(model.calls) == asked
    assert again.to_json() == table.to_json()
    best, *others = table.ratings
    assert (best["player"], best["wins"], best["games"]) == ("Bold", 8.0, 8)
    assert {row["wins"] for row in others} == {2.0}
    assert table.wins["wins"] == [[0, 4, 4], [0, 0, 2], [0, 2, 0]]
    assert table.first_side["rate"] == 0.5
    assert table.cost_usd == pytest.approx(12 * 0.5)


def test_a_match_whose_judge_fails_is_tried_again_by_the_next_run(tmp_path: Path) -> None:
    broken = True

    def reply(call: ModelCall) -> Reply:
        failing = broken and call.schema is not None and call.hints["topic"] == "Cars?"
        return Reply(error="no answer") if failing else favours_bold(call)

    settings = make_tournament({**BASE, "lineups": {"Bold": {}, "Careful": {}}})
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel(reply).environment()) as debates:
        first = play_tournament(debates, settings)
        broken = False
        second = play_tournament(debates, settings)
    assert [match.topic for match in first.failed] == ["Cars?", "Cars?"]
    assert "no answer" in first.failed[0].error
    assert second.failed == []
    assert second.ratings[0]["games"] == 4


def test_a_stopped_tournament_goes_on_where_it_was(tmp_path: Path) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    settings = make_tournament({**BASE, "concurrency": 1})
    model = FakeModel(favours_bold)
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        with pytest.raises(KeyboardInterrupt):
            play_tournament(debates, settings, report=stop)
        stored = len(debates.rows())
        table = play_tournament(debates, settings)
    assert stored < 12
    assert table.failed == []
    assert len({call.digest for call in model.calls}) == len(model.calls)


def names(*said: str) -> Callable[[ModelCall], Reply]:
    """Return a model that names one winner after the other, in the judges' order and with every score."""
    winners = iter(said * 100)

    def reply(call: ModelCall) -> Reply:
        if call.schema is None:
            return answer(call)
        winner = next(winners)
        scores = [
            {"debater": who, "criterion": "clarity", "score": 9 if who == winner else 4}
            for who in call.hints["debaters"]
        ]
        return Reply(data={"reasoning": "so", "winner": winner, "confidence": 90, "scores": scores})

    return reply


PANEL = [{"id": f"judge-{number}"} for number in range(3)]


@pytest.mark.parametrize(
    ("said", "judge", "winner"),
    [
        (("team-1", "team-2"), {"swap": True}, "Team"),
        (("team-1", "bold"), {"swap": True}, "tie"),
        (("team-1", "tie"), {"swap": True}, "tie"),
        (("bold",), {"swap": True}, "Bold"),
        (("synthesis",), {"swap": True}, "tie"),
        (("team-1", "team-2", "bold"), {"panel": PANEL, "rule": "majority"}, "Team"),
        (("team-1", "team-2", "bold"), {"panel": PANEL, "rule": "unanimous"}, "tie"),
        (("team-1", "team-2", "team-1"), {"panel": PANEL, "rule": "unanimous"}, "Team"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_a_win_is_the_line_ups_whichever_member_is_named(
    tmp_path: Path, said: tuple[str, ...], judge: dict[str, Any], winner: str
) -> None:
    settings = make_tournament(
        {
            **BASE,
            "topics": ["Cars?"],
            "lineups": {"Bold": {}, "Team": [{}, {}]},
            "turns": 4,
            "swap": False,
            "concurrency": 1,
            "judge": {"blind": False, "swap": False, **judge},
        }
    )
    environment = FakeModel(names(*said)).environment()
    with open_debates(str(tmp_path / "d.sqlite"), environment=environment) as debates:
        match = play_tournament(debates, settings).matches[0]
    assert (match.winner, match.score) == (winner, {"Bold": 1.0, "Team": 0.0, "tie": 0.5}[winner])
