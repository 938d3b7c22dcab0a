"""What is played in a tournament: topics, line-ups, seeds; and every match that follows from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from pydantic import Field, ValidationError, field_validator, model_validator

from state.config import RESERVED_IDS, DebateConfig, DebaterConfig, JudgeConfig, Section, slug
from state.config_files import make_config
from state.errors import ConfigError

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
    def _name_debaters(cls, data: Any) -> Any:
        """Let a line-up be one debater's settings, and a nameless debater bear the line-up's name."""
        lineups = data.get("lineups") if isinstance(data, dict) else None
        if not isinstance(lineups, dict):
            return data
        return {**data, "lineups": {str(name): _team(str(name), given) for name, given in lineups.items()}}

    @field_validator("topics", "seeds")
    @classmethod
    def _check_distinct(cls, value: tuple[Any, ...]) -> tuple[Any, ...]:
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


def _team(name: str, given: Any) -> Any:
    if given is None or isinstance(given, dict):
        return [{"name": name, **(given or {})}]
    if not isinstance(given, list):
        return given
    return [
        {"name": f"{name} {number}" if len(given) > 1 else name, **each} if isinstance(each, dict) else each
        for number, each in enumerate(given, start=1)
    ]


def make_tournament(data: Mapping[str, Any]) -> TournamentConfig:
    """Validate a mapping.

    Raises:
        ConfigError: one line for each thing wrong, with its key.
    """
    try:
        return TournamentConfig.model_validate(dict(data))
    except ValidationError as error:
        lines = []
        for detail in error.errors(include_url=False):
            key = ".".join(str(part) for part in detail["loc"])
            lines.append(f"{key}: {detail['msg'].removeprefix('Value error, ')}".removeprefix(": "))
        raise ConfigError("\n".join(lines)) from error


@dataclass(frozen=True)
class Pairing:
    """One match: a debate of two line-ups on a topic."""

    id: str
    """Name of its debate; the same for the same match of the same configuration."""
    topic: str
    first: str
    """Line-up that speaks first."""
    second: str
    seed: int
    config: DebateConfig
    sides: Mapping[str, str]
    """Debater to line-up."""


def pairings(tournament: TournamentConfig) -> list[Pairing]:
    """Return every match, in the order in which they are played.

    Raises:
        ConfigError: a debate's configuration cannot be used.
    """
    return list(_pairings(tournament))


def _pairings(tournament: TournamentConfig) -> Iterator[Pairing]:
    for topic, seed, (one, other) in product(
        tournament.topics, tournament.seeds, combinations(tournament.lineups, 2)
    ):
        yield _pairing(tournament, topic, seed, one, other)
        if tournament.swap:
            yield _pairing(tournament, topic, seed, other, one)


def _pairing(tournament: TournamentConfig, topic: str, seed: int, first: str, second: str) -> Pairing:
    sides: dict[str, str] = {}
    debaters = []
    for stance, lineup in zip(tournament.stances, (first, second), strict=True):
        for debater in tournament.lineups[lineup]:
            key = _debater_id(lineup, debater, tournament)
            sides[key] = lineup
            own = {"id": key, "stance": debater.stance or stance}
            debaters.append({**debater.model_dump(mode="json"), **own})
    config = _debate_config(tournament, _alternating(debaters, sides), seed)
    facts = json.dumps([topic, first, second, config.fingerprint()], ensure_ascii=False)
    digest = hashlib.sha256(facts.encode()).hexdigest()[:10]
    match = f"{slug(tournament.name) or 'tournament'}-{slug(first)}-vs-{slug(second)}-{seed}-{digest}"
    return Pairing(match, topic, first, second, seed, config, sides)


def _debater_id(lineup: str, debater: DebaterConfig, tournament: TournamentConfig) -> str:
    """Return an id that no other line-up's debater has."""
    if len(tournament.lineups[lineup]) == 1:
        return slug(lineup)
    number = tournament.lineups[lineup].index(debater) + 1
    return f"{slug(lineup)[:36]}-{number}"


def _alternating(debaters: list[dict[str, Any]], sides: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the debaters so that the sides take turns, the longer team's rest at the end."""
    seen: dict[str, int] = {}
    places = []
    for debater in debaters:
        side = sides[debater["id"]]
        places.append(seen.setdefault(side, 0))
        seen[side] += 1
    order = sorted(range(len(debaters)), key=lambda at: (places[at], at))
    return [debaters[at] for at in order]


def _debate_config(tournament: TournamentConfig, debaters: list[dict[str, Any]], seed: int) -> DebateConfig:
    given = {key: getattr(tournament, key) for key in ("turns", "rounds", "model")}
    judge = tournament.judge.model_dump(mode="json")
    settings = {key: value for key, value in given.items() if value is not None}
    return make_config({**tournament.config, **settings, "judge": judge, "debaters": debaters, "seed": seed})
