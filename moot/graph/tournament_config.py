"""What is played in a tournament: topics, line-ups, seeds; and every match that follows from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, product
from math import lcm
from typing import Any

from pydantic import Field, ValidationError, field_validator, model_validator

from moot.graph.many import PlannedDebate
from moot.state.config import RESERVED_IDS, DebaterConfig, JudgeConfig, Section, slug
from moot.state.config.config_files import make_config
from moot.state.config.config_mistakes import explain
from moot.state.errors import ConfigError

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
            **tournament.config,
            **{key: value for key, value in given.items() if value is not None},
            "judge": tournament.judge.model_dump(mode="json"),
            "debaters": [debaters[key] for key in people],
            "order": [] if people == order else order,
            "seed": seed,
        }
    )
    facts = json.dumps([topic, first, second, config.fingerprint()], ensure_ascii=False)
    digest = hashlib.sha256(facts.encode()).hexdigest()[:10]
    match = f"{slug(tournament.name) or 'tournament'}-{slug(first)}-vs-{slug(second)}-{seed}-{digest}"
    return Pairing(match, topic, config, first, second, seed, sides)
