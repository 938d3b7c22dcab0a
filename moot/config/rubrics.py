"""Rubrics, which are lists of criteria with scales and weights, read from YAML files."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from moot.config.config_files import data_in
from moot.config.section import duplicates, errors_in
from moot.state.errors import ConfigError, file_error_reason, read_file
from moot.state.settings import load_plugin, plugin_entry_points
from moot.state.verdict import CriterionScale

SHIPPED = Path(__file__).parent / "rubric_files"
"""Folder with the built-in rubrics. The file `NAME.yaml` defines the rubric `NAME`."""
ENTRY_POINT_GROUP = "moot.rubrics"
"""Name of the entry point group in which installed packages provide rubrics. Each entry point has the
rubric's name and refers to a `Rubric`."""
_REGISTERED: "dict[str, Rubric]" = {}
"""Registered rubrics and those of plug-ins, keyed by name."""


class Criterion(BaseModel):
    """Criterion by which debaters are scored, with a scale and a weight."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern=r"^[a-z][a-z0-9_-]*$")
    """Id of the criterion, unique within the rubric. Use lower-case letters, digits, `_` and `-`."""
    name: str = Field(min_length=1)
    """Display name of the criterion."""
    description: str = ""
    """Text that tells the judge what deserves a high or a low score."""
    scale_min: float = Field(default=1, allow_inf_nan=False)
    """Lowest possible score on the scale. It must be below `scale_max`."""
    scale_max: float = Field(default=10, allow_inf_nan=False)
    """Highest possible score on the scale. It must be above `scale_min`."""
    weight: float = Field(default=1, gt=0, allow_inf_nan=False)
    """Weight of the criterion in the total score, relative to the weights of the other criteria."""

    @model_validator(mode="after")
    def _scale_is_a_range(self) -> "Criterion":
        if self.scale_min >= self.scale_max:
            raise ValueError(
                f"scale_max ({self.scale_max:g}) must be greater than scale_min ({self.scale_min:g})"
            )
        return self

    def clamp(self, score: float) -> float:
        """Return the score, limited to the range of the criterion's scale."""
        return min(max(score, self.scale_min), self.scale_max)

    def share(self, score: float) -> float:
        """Return a score's position on the scale, from 0 for `scale_min` to 1 for `scale_max`."""
        return (self.clamp(score) - self.scale_min) / (self.scale_max - self.scale_min)


class Rubric(BaseModel):
    """Criteria by which a judge scores the debaters."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1)
    """Name by which a configuration selects the rubric."""
    criteria: tuple[Criterion, ...] = Field(min_length=1)
    """Criteria by which the rubric scores debaters. At least one is needed."""

    @model_validator(mode="after")
    def _ids_are_unique(self) -> "Rubric":
        if twice := duplicates([criterion.id for criterion in self.criteria]):
            raise ValueError(f"criteria share the id {twice[0]!r}")
        return self

    def criterion(self, id_or_name: str) -> Criterion | None:
        """Find a criterion by exact id, then by another spelling of an id, then by name, or return `None`."""
        key = criterion_key(id_or_name)
        by_id = (each for each in self.criteria if each.id == id_or_name)
        by_other_spelling = (each for each in self.criteria if criterion_key(each.id) == key)
        by_name = (each for each in self.criteria if criterion_key(each.name) == key)
        return next(chain(by_id, by_other_spelling, by_name), None)

    def scales(self) -> list[CriterionScale]:
        """Return each criterion's scale. Verdicts store them so that readers need no rubric."""
        return [cast(CriterionScale, each.model_dump(exclude={"description"})) for each in self.criteria]

    def total(self, scores: Mapping[str, float]) -> float | None:
        """Return the weighted total of scores by criterion id, from 0 to 100, or `None` without scores."""
        rated = [each for each in self.criteria if each.id in scores]
        weights = sum(each.weight for each in rated)
        shares = sum(each.weight * each.share(scores[each.id]) for each in rated)
        return 100 * shares / weights if rated else None


def shipped_rubrics() -> dict[str, Rubric]:
    """Return all built-in rubrics, keyed by name."""
    return _rubrics_in(SHIPPED)


def register(rubric: Rubric) -> None:
    """Register a rubric in this process under its name.

    An installed package uses an entry point of the group `moot.rubrics` instead.

    Raises:
        ConfigError: the object is not a rubric, or another rubric has its name.
    """
    if not isinstance(rubric, Rubric):
        raise ConfigError(f"rubric {rubric!r} is not an instance of `moot.rubrics.Rubric`")
    if (shipped_rubrics() | _REGISTERED).get(rubric.name, rubric) != rubric:
        raise ConfigError(f"rubric name {rubric.name!r} is already registered: choose another `name`")
    _REGISTERED[rubric.name] = rubric


def find_rubric(name: str) -> Rubric | None:
    """Find a built-in, registered or plug-in rubric by name, or return `None`.

    Raises:
        ConfigError: the plug-in of this name cannot be imported, or is not a rubric.
    """
    rubrics = shipped_rubrics() | _REGISTERED
    if name not in rubrics and (point := plugin_entry_points(ENTRY_POINT_GROUP).get(name)):
        rubric = load_plugin(point, "judge.rubric")
        if not isinstance(rubric, Rubric) or rubric.name != name:
            raise ConfigError(
                f"judge.rubric: the entry point {point.value!r} is not a `Rubric` with the name {name!r}"
            )
        register(rubric)
        return rubric
    return rubrics.get(name)


def rubric_names() -> list[str]:
    """Return the names of all built-in, registered and plug-in rubrics in alphabetical order."""
    return sorted({*shipped_rubrics(), *_REGISTERED, *plugin_entry_points(ENTRY_POINT_GROUP)})


def load_rubric(path: Path) -> Rubric:
    """Return the rubric of a YAML or JSON file. A file without a valid rubric is a `ConfigError`."""
    try:
        return parse_rubric(data_in(read_file(path, regular=True).decode(), path, "rubric"), str(path))
    except (OSError, ValueError) as error:
        names = ", ".join(map(repr, rubric_names()))
        raise ConfigError(
            f"rubric: {str(path)!r} is neither a rubric's name ({names}) nor a readable file: "
            f"{file_error_reason(error)}"
        ) from error


@lru_cache
def _rubrics_in(folder: Path) -> dict[str, Rubric]:
    return {path.stem: load_rubric(path) for path in sorted(folder.glob("*.yaml"))}


def parse_rubric(data: object, source: str = "rubric") -> Rubric:
    """Parse a rubric from the data of a YAML or JSON file.

    Raises:
        ConfigError: the data is not a valid rubric. The message names `source` and each wrong key.
    """
    try:
        return Rubric.model_validate(data)
    except ValidationError as error:
        raise ConfigError(f"{source}: {'; '.join(errors_in(error, 'rubric'))}") from error


def criterion_key(text: str) -> str:
    """Normalise a criterion's name or id for comparison, without case, `_` and `-`."""
    return " ".join(text.casefold().replace("_", " ").replace("-", " ").split())


shipped_rubrics()  # read at import, so that judging on an event loop does not wait for the disk
