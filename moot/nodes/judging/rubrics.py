"""Rubrics: what judges score, on which scales, with which weights; those shipped are files like a user's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from moot.state.config import DebateConfig, JudgeSeat
from moot.state.config.config_files import data_in
from moot.state.config.config_mistakes import mistakes_in
from moot.state.config.section import repeats
from moot.state.errors import ConfigError
from moot.state.verdict import CriterionScale

SHIPPED = Path(__file__).parent / "rubric_files"
"""A rubric `NAME.yaml` in this folder is shipped under its name."""


class Criterion(BaseModel):
    """One thing to score."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern=r"^[a-z][a-z0-9_-]*$")
    """Slug, unique within the rubric."""
    name: str = Field(min_length=1)
    """As people read it."""
    description: str = ""
    """What earns a high score."""
    scale_min: float = Field(default=1, allow_inf_nan=False)
    """Lowest score."""
    scale_max: float = Field(default=10, allow_inf_nan=False)
    """Highest score, above `scale_min`."""
    weight: float = Field(default=1, gt=0, allow_inf_nan=False)
    """Share in the total, relative to the other criteria."""

    @model_validator(mode="after")
    def _scale_is_a_range(self) -> Criterion:
        if self.scale_min >= self.scale_max:
            raise ValueError(f"scale_max {self.scale_max:g} must be above scale_min {self.scale_min:g}")
        return self

    @property
    def middle(self) -> float:
        """The score in the middle of the scale."""
        return (self.scale_min + self.scale_max) / 2

    def clamp(self, score: float) -> float:
        """Return `score` within the scale."""
        return min(max(score, self.scale_min), self.scale_max)

    def share(self, score: float) -> float:
        """Return where `score` stands on the scale, 0–1."""
        return (self.clamp(score) - self.scale_min) / (self.scale_max - self.scale_min)


class Rubric(BaseModel):
    """What a judge scores."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1)
    """As the user names it."""
    criteria: tuple[Criterion, ...] = Field(min_length=1)
    """At least one; ids are unique."""

    @model_validator(mode="after")
    def _ids_are_unique(self) -> Rubric:
        if twice := repeats([criterion.id for criterion in self.criteria]):
            raise ValueError(f"criteria share the id {twice[0]!r}")
        return self

    def criterion(self, said: str) -> Criterion | None:
        """Return the criterion that a judge means by an id or a name, in any case, else `None`."""
        wanted = _key(said)
        return next((each for each in self.criteria if wanted in (_key(each.id), _key(each.name))), None)

    def scales(self) -> list[CriterionScale]:
        """Return what a verdict keeps of the criteria: what reads its scores need not find the rubric."""
        return [cast(CriterionScale, each.model_dump(exclude={"description"})) for each in self.criteria]

    def total(self, scores: Mapping[str, float]) -> float | None:
        """Return the weighted total of `scores` (criterion id to score) on 0–100.

        Criteria are brought to one scale first; those without a score do not count. `None` without any score.
        """
        rated = [each for each in self.criteria if each.id in scores]
        weights = sum(each.weight for each in rated)
        shares = sum(each.weight * each.share(scores[each.id]) for each in rated)
        return 100 * shares / weights if rated else None


def shipped_rubrics() -> dict[str, Rubric]:
    """Return the rubrics that ship with Moot, by name."""
    return _rubrics_in(SHIPPED)


def load_rubric(path: Path) -> Rubric:
    """Return the rubric in a YAML or JSON file.

    Raises:
        ConfigError: there is no such file, or it is no rubric; the message names the key.
    """
    try:
        return parse_rubric(data_in(path.read_text(encoding="utf-8"), path, "rubric"), str(path))
    except (OSError, ValueError) as error:
        known = ", ".join(map(repr, shipped_rubrics()))
        raise ConfigError(f"rubric: {str(path)!r} is neither {known} nor a file to read: {error}") from error


def rubric_for(seat: JudgeSeat, config: DebateConfig, default: str = "debate") -> Rubric:
    """Return a judge's rubric: its own, the configuration's, or the protocol's.

    Raises:
        ConfigError: there is no such rubric.
    """
    given = seat.rubric or config.judge.rubric or default
    if isinstance(given, dict):
        return parse_rubric(given, "judge.rubric")
    shipped = shipped_rubrics()
    if given not in shipped:  # a file is read where the operator named it
        raise ConfigError(
            f"judge.rubric: {given!r} is none of {', '.join(map(repr, shipped))}: give one of them, the "
            "rubric itself, or on the command line a file"
        )
    return shipped[given]


def scored_text(config: DebateConfig, default: str = "debate") -> str:
    """Return what debaters are told that they will be judged by, `""` where nobody judges."""
    if not config.judge.enabled:
        return ""
    rubrics = (rubric_for(seat, config, default) for seat in config.judge.seats())
    criteria = {each.id: each for rubric in rubrics for each in rubric.criteria}.values()
    lines = (f"- {each.name}{': ' + each.description if each.description else ''}" for each in criteria)
    return "\n".join(["", "# What will be judged at the end", *lines])


@lru_cache
def _rubrics_in(folder: Path) -> dict[str, Rubric]:
    return {path.stem: load_rubric(path) for path in sorted(folder.glob("*.yaml"))}


def parse_rubric(data: object, source: str = "rubric") -> Rubric:
    """Return the rubric that `data` (as read from YAML or JSON) describes.

    Raises:
        ConfigError: it is no rubric; the message names `source` and each key that is wrong.
    """
    try:
        return Rubric.model_validate(data)
    except ValidationError as error:
        raise ConfigError(f"{source}: {'; '.join(mistakes_in(error, 'rubric'))}") from error


def _key(said: str) -> str:
    return " ".join(said.casefold().replace("_", " ").replace("-", " ").split())


shipped_rubrics()  # read at import: a judge on an event loop must not wait for a disk
