"""Tournaments: every two line-ups meet on every topic, many debates at the same time, and are rated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import combinations, product
from math import lcm
from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError, field_validator, model_validator

from moot.graph.many import PlannedDebate, planned_name, run_many
from moot.graph.preflight import check_config, check_judges
from moot.nodes.judging.agreement import rate_of
from moot.nodes.judging.decision import winning_side
from moot.nodes.judging.ratings import Match, Rating, WinMatrix, bradley_terry, win_matrix
from moot.state.config import RESERVED_IDS, DebaterConfig, JudgeConfig, Section, slug
from moot.state.config.boundary import Claim
from moot.state.config.config_files import make_config, with_settings
from moot.state.config.config_mistakes import explain
from moot.state.entries import tokens_of
from moot.state.errors import ConfigError, DebateNotFound
from moot.state.verdict import TIE, Decision, Rate

if TYPE_CHECKING:
    from moot.graph.api import Debates

ROUND_ROBIN = "round-robin"
STANCES = ("argues for it", "argues against it")


class TournamentConfig(Section):
    """A tournament: every two line-ups meet on every topic with every seed, on both sides."""

    name: str = Field("tournament", min_length=1, max_length=60)
    """Begins the names of its debates."""
    topics: tuple[str, ...] = Field(min_length=1)
    """What is argued."""
    lineups: dict[str, tuple[DebaterConfig, ...]] = Field(min_length=2)
    """Who plays: name to a debater's settings, or to a list of them for a team."""
    seeds: tuple[int, ...] = Field((1,), min_length=1)
    """Each pairing is played once a seed."""
    swap: bool = True
    """Whether each pairing is played a second time with the sides changed."""
    stances: tuple[str, str] = STANCES
    """What the first and the second side argue, where debaters have no stance of their own."""
    turns: int | None = Field(None, ge=1)
    """Utterances of a debate."""
    rounds: int | None = Field(None, ge=1)
    """Rounds of a debate."""
    model: str | None = None
    """Model of everybody who names none."""
    judge: JudgeConfig = Field(default_factory=JudgeConfig)
    """The verdict."""
    concurrency: int = Field(4, ge=1, le=64)
    """Debates at the same time."""
    config: dict[str, Any] = Field(default_factory=dict)
    """Further settings of every debate: `protocol`, `memory`, `models`, …"""

    @model_validator(mode="before")
    @classmethod
    def _name_debaters(cls, data: object) -> object:
        """Let a line-up be one debater's settings, and a nameless debater bear the line-up's name."""
        if not isinstance(data, dict) or not isinstance(lineups := data.get("lineups"), dict):
            return data
        return {**data, "lineups": {str(name): _team(str(name), given) for name, given in lineups.items()}}

    @field_validator("topics", "seeds")
    @classmethod
    def _check_distinct(cls, value: tuple[object, ...]) -> tuple[object, ...]:
        if len(set(value)) < len(value) or not all(str(each).strip() for each in value):
            raise ValueError("give each only once, and none that is empty")
        return value

    @field_validator("lineups")
    @classmethod
    def _check_lineups(
        cls, value: dict[str, tuple[DebaterConfig, ...]]
    ) -> dict[str, tuple[DebaterConfig, ...]]:
        ids = [slug(name) for name in value]
        if "" in ids or len(set(ids)) < len(ids):
            raise ValueError(f"line-ups {list(value)} need names that differ in letters a-z and digits")
        reserved = [name for name in value if slug(name) in RESERVED_IDS]
        if reserved:
            raise ValueError(f"the name {reserved[0]!r} is reserved: give the line-up another one")
        empty = [name for name, team in value.items() if not team]
        if empty:
            raise ValueError(f"line-up {empty[0]!r} has no debaters")
        return value

    @model_validator(mode="after")
    def _check_shares(self) -> TournamentConfig:
        """Refuse teams of different sizes where everybody has the floor alike: the larger would have more."""
        sizes = {name: len(team) for name, team in self.lineups.items()}
        protocol = self.config.get("protocol", ROUND_ROBIN)
        if protocol != ROUND_ROBIN and len(set(sizes.values())) > 1:
            told = ", ".join(f"{name} {size}" for name, size in sizes.items())
            raise ValueError(
                f"lineups: under protocol {protocol!r} teams of different sizes ({told}) do not have "
                f"the same share of the floor: make them of one size, or use {ROUND_ROBIN!r}"
            )
        return self


def _team(name: str, given: object) -> object:
    if given is None or isinstance(given, dict):
        return [{"name": name, **(given or {})}]
    if not isinstance(given, list):
        return given
    return [
        {"name": f"{name} {number}" if len(given) > 1 else name, **each} if isinstance(each, dict) else each
        for number, each in enumerate(given, start=1)
    ]


def make_tournament(data: Mapping[str, object]) -> TournamentConfig:
    """Validate a mapping.

    Raises:
        ConfigError: one line for each thing wrong, with its key.
    """
    try:
        return TournamentConfig.model_validate(dict(data))
    except ValidationError as error:
        raise ConfigError(explain(error, TournamentConfig)) from error


@dataclass(frozen=True)
class Pairing(PlannedDebate):
    """One match: a debate of two line-ups on a topic."""

    first: str
    """Line-up that speaks first."""
    second: str
    seed: int
    sides: Mapping[str, str]
    """Debater to line-up."""


def pairings(tournament: TournamentConfig) -> list[Pairing]:
    """Return every match, in the order in which they are played.

    Raises:
        ConfigError: a debate's configuration cannot be used.
    """
    wanted = []
    meetings = product(tournament.topics, tournament.seeds, combinations(tournament.lineups, 2))
    for topic, seed, (one, other) in meetings:
        wanted.append(_pairing(tournament, topic, seed, one, other))
        if tournament.swap:
            wanted.append(_pairing(tournament, topic, seed, other, one))
    return wanted


def _pairing(tournament: TournamentConfig, topic: str, seed: int, first: str, second: str) -> Pairing:
    sides: dict[str, str] = {}
    debaters: dict[str, dict[str, object]] = {}
    for stance, lineup in zip(tournament.stances, (first, second), strict=True):
        team = tournament.lineups[lineup]
        for number, debater in enumerate(team, start=1):
            key = slug(lineup) if len(team) == 1 else f"{slug(lineup)[:36]}-{number}"
            if key in sides:
                raise ConfigError(f"line-ups {sides[key]!r} and {lineup!r} both have a {key!r}: rename one")
            sides[key] = lineup
            own = {"id": key, "stance": debater.stance or stance}
            debaters[key] = {**debater.model_dump(mode="json"), **own}
    # The sides speak by turns, and on each side its members do.
    one, other = ([key for key, side in sides.items() if side == lineup] for lineup in (first, second))
    turns = range(lcm(len(one), len(other)))
    order = [team[turn % len(team)] for turn in turns for team in (one, other)]
    people = list(dict.fromkeys(order))
    given = {key: getattr(tournament, key) for key in ("turns", "rounds", "model")}
    config = make_config(
        {
            **with_settings(tournament.config, given),
            "judge": tournament.judge.model_dump(mode="json"),
            "debaters": [debaters[key] for key in people],
            "order": [] if people == order else order,
            "seed": seed,
        }
    )
    match = f"{slug(tournament.name) or 'tournament'}-{slug(first)}-vs-{slug(second)}-{seed}"
    name = planned_name(match, config, topic, first, second)
    return Pairing(name, topic, config, first, second, seed, sides)


@dataclass(frozen=True)
class MatchResult:
    """What came of one match."""

    id: str
    topic: str
    first: str
    second: str
    seed: int
    winner: str
    """A line-up, `tie`, or `""` where there is no verdict."""
    score: float | None
    """What the first side got: 1, 0.5 or 0; `None` without a verdict."""
    turns: int
    tokens: int
    cost_usd: float
    error: str = ""
    """Why there is no verdict; the next run tries again."""


@dataclass(frozen=True)
class Standings:
    """Where a tournament stands."""

    name: str
    matches: list[MatchResult]
    ratings: list[Rating]
    wins: WinMatrix
    first_side: Rate
    """How often the side that speaks first wins, of the matches with a winner."""
    tokens: int
    cost_usd: float

    @property
    def failed(self) -> list[MatchResult]:
        """Matches without a verdict."""
        return [match for match in self.matches if match.score is None]

    def to_json(self) -> dict[str, object]:
        """Return it as JSON types."""
        return {
            "name": self.name,
            "ratings": self.ratings,
            "win_matrix": self.wins,
            "first_side": self.first_side,
            "cost": {"tokens": self.tokens, "cost_usd": round(self.cost_usd, 6)},
            "matches": [asdict(match) for match in self.matches],
        }


def play_tournament(
    debates: Debates,
    tournament: TournamentConfig,
    *,
    concurrency: int | None = None,
    report: Callable[[MatchResult, int, int], None] | None = None,
) -> Standings:
    """Play every match that has no verdict yet, so many at the same time, and return the table.

    Each match is a debate of the database under a name of its own, so a second run goes on where the first
    one stopped. An interruption pauses the debates under way. `report` is called on the caller's thread as
    matches end, with the match, how many are done, and of how many.

    Raises:
        ConfigError: a match's configuration cannot be used; nothing has been played.
    """
    wanted = pairings(tournament)
    for pairing in wanted:
        config = pairing.config
        check_config(Claim.of_operator(config), debates.environment)
        check_judges(config, map(config.model_of, config.debaters), debates.environment)
    done: dict[str, MatchResult] = {}
    for pairing, error in run_many(debates, wanted, concurrency or tournament.concurrency):
        done[pairing.id] = _result(debates, pairing, error)
        if report is not None:
            report(done[pairing.id], len(done), len(wanted))

    matches = [done[pairing.id] for pairing in wanted]
    judged = [Match(m.first, m.second, m.score) for m in matches if m.score is not None]
    decided = [match.score for match in judged if match.score != 0.5]
    return Standings(
        name=tournament.name,
        matches=matches,
        ratings=bradley_terry(judged, players=tournament.lineups),
        wins=win_matrix(judged, tournament.lineups),
        first_side=rate_of(sum(score == 1.0 for score in decided), len(decided)),
        tokens=sum(match.tokens for match in matches),
        cost_usd=sum(match.cost_usd for match in matches),
    )


def _result(debates: Debates, pairing: Pairing, error: str) -> MatchResult:
    winner, score, turns, tokens, cost = "", None, 0, 0, 0.0
    try:
        debate = debates.get(pairing.id)
    except DebateNotFound:
        pass
    else:
        document, turns = debate.document(), debate.row.turns
        tokens, cost = tokens_of(document["usage"]), document["usage"]["cost_usd"]
        verdict: Decision | None = document["verdict"]
        if verdict and verdict["status"] == "ok":
            winner = winning_side(verdict, document["verdicts"], pairing.sides)
            score = 0.5 if winner == TIE else float(winner == pairing.first)
        elif verdict:
            error = error or verdict["error"]
    if score is None:
        error = error or "stopped before its verdict"
    about = (pairing.id, pairing.topic, pairing.first, pairing.second, pairing.seed)
    return MatchResult(*about, winner, score, turns, tokens, cost, error)
