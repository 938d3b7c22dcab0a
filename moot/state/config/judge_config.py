"""Who judges a debate, and how."""

from typing import Any

from pydantic import Field, field_validator

from moot.state.config.debaters import SLUG
from moot.state.config.model_settings import check_model_name
from moot.state.config.section import Section, repeats
from moot.state.verdict import Rule

RubricSource = str | dict[str, Any]
"""A rubric's name or file, or all of it in place."""


class JudgeSeat(Section):
    """One judge of a panel; what is not given is the panel's."""

    id: str = Field(pattern=SLUG.pattern)
    """Slug."""
    model: str | None = None
    """Model name."""
    rubric: RubricSource | None = None
    """Rubric: a shipped one's name, or its content."""
    temperature: float | None = Field(None, ge=0, le=2)
    """Sampling temperature."""

    _model_name = field_validator("model")(check_model_name)


class JudgeConfig(Section):
    """Who scores, and how."""

    enabled: bool = True
    """Whether there is a verdict at the end."""
    model: str | None = None
    """Model name; `None` means the debate's."""
    temperature: float | None = Field(0.0, ge=0, le=2)
    """Sampling temperature of judging."""
    rubric: RubricSource | None = None
    """Rubric: a shipped one's name (`debate`, `design`, `answers`), a file on the command line, or its
    content; `None` means the protocol's."""
    instruction: str = ""
    """What the judge should weigh beyond the rubric."""
    blind: bool = True
    """Names are replaced by neutral labels, also where they are mentioned."""
    swap: bool | None = None
    """Every judge judges twice, the second time in reversed order; a contradiction is a tie. `None` leaves it
    to the protocol: yes where there is a winner to choose, no where a solution is to be written."""
    panel: tuple[JudgeSeat, ...] = ()
    """Several judges; empty means one."""
    rule: Rule = "mean"
    """How a panel's ballots become one decision."""
    reply: int = Field(2000, ge=200)
    """Reserve for a judge's answer, tokens, at least; never less than what its parts take."""

    _model_name = field_validator("model")(check_model_name)

    @field_validator("panel")
    @classmethod
    def _check_panel(cls, value: tuple[JudgeSeat, ...]) -> tuple[JudgeSeat, ...]:
        ids = [seat.id for seat in value]
        if repeats(ids):
            raise ValueError(f"duplicate judge ids in {ids}: give each judge an id of its own")
        return value

    def seats(self) -> tuple[JudgeSeat, ...]:
        """Return the panel, one judge where none is configured."""
        return self.panel or (JudgeSeat(id="judge"),)
