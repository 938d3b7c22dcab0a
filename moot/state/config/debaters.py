"""Who speaks in a debate: personas, debaters, people, and what an id of a speaker may be."""

from __future__ import annotations

import re
from collections.abc import Container
from itertools import chain, count

from pydantic import Field, field_validator, model_validator
from slugify import slugify

from moot.state.config.memory_config import OwnPerspective
from moot.state.config.model_settings import check_model_name
from moot.state.config.section import Section, repeats
from moot.state.verdict import SYNTHESIS, TIE

SLUG, SLUG_LENGTH = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}"), 40
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
FLOOR_SPEAKERS = frozenset({"user", "moderator"})
"""People who speak from the floor and are neither debaters nor guests."""
RESERVED_IDS = FLOOR_SPEAKERS | {"moot", "judge", "tools", TIE, SYNTHESIS}
HUMAN = "human"
"""A debater's `model` where a person takes the turns."""
NAME_CHARS = 80
"""Longest display name."""
ANCHOR_CHARS = 40_000
"""Characters of all anchors of one debater: they are frozen into the state with the configuration."""


def may_speak(speaker: str) -> bool:
    """Return whether an id can stand for a speaker from the floor: the moderator, a debater or a guest."""
    return bool(SLUG.fullmatch(speaker)) and speaker not in RESERVED_IDS - FLOOR_SPEAKERS


def slug(name: str) -> str:
    """Return a slug for a display name: ASCII lower case, words joined by `-`; `""` where nothing is left.

    Chinese characters are left out: `python-slugify` would read a Japanese name as if it were Chinese.
    """
    legible = _HAN.sub(" ", name)
    return slugify(legible, max_length=SLUG_LENGTH, entities=False, decimal=False, hexadecimal=False)


def free_id(wanted: str, taken: Container[str]) -> str:
    """Return a slug that is not taken yet: the one that is wanted, else with a number, from 2."""
    numbered = (f"{wanted[: SLUG_LENGTH - len(str(n)) - 1].rstrip('-')}-{n}" for n in count(2))
    return next(each for each in chain([wanted], numbered) if each not in taken)


class Anchor(Section):
    """A text of a persona's own, from which passages are brought back and cited."""

    name: str = Field("text", min_length=1, max_length=60)
    """What it is cited as."""
    text: str = Field(min_length=1)
    """The text itself."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, data: object) -> object:
        return {"text": data} if isinstance(data, str) else data


class Persona(Section):
    """The contract of a persona, beside its name, role and stance; every field is optional."""

    personality: str = ""
    """Temper and habits of mind."""
    stakes: str = ""
    """What it stands to win or lose."""
    epistemology: str = ""
    """What it takes for knowledge: trials, precedent, first principles."""
    time_horizon: str = ""
    """How far ahead it looks, such as `ten years`."""
    flip_conditions: tuple[str, ...] = ()
    """What would change its mind."""
    evidence_policy: str = ""
    """What evidence it offers and accepts."""
    voice: str = ""
    """How it speaks."""
    anchors: tuple[Anchor, ...] = ()
    """Texts of its own: `{name, text}` each, or the text alone."""

    @model_validator(mode="after")
    def _check_anchors(self) -> Persona:
        size = sum(len(anchor.text) for anchor in self.anchors)
        if size > ANCHOR_CHARS:
            raise ValueError(f"anchors hold {size} characters: give at most {ANCHOR_CHARS}")
        return self


class DebaterConfig(Persona):
    """One who speaks."""

    id: str = ""
    """Slug, the wire's `name`; made from `name` where it is not given."""
    name: str = Field(min_length=1, max_length=NAME_CHARS)
    """Display name."""
    role: str = ""
    """What this debater looks at, such as `security engineer`."""
    stance: str = ""
    """What this debater argues for."""
    persona: str = ""
    """Free text of the persona contract, before its named fields."""
    identity: str = Field("", max_length=80)
    """Who this is across debates: with `memory.cross_debate` it recalls what it argued before under this
    name."""
    model: str | None = None
    """Model name; `None` means the debate's; `human` means a person, who is asked for each turn."""
    temperature: float | None = Field(None, ge=0, le=2)
    """Sampling temperature; `None` means the debate's."""
    fallbacks: tuple[str, ...] | None = None
    """Models tried in order when this debater's fails; `None` means the debate's."""
    system_prompt: str = ""
    """Stands for what a shipped role would say to this debater; a file's text on the command line."""
    summary_prompt: str = ""
    """Stands for the built-in prompt of this debater's perspective summary."""
    clarification_prompt: str = ""
    """Stands for the built-in prompt of what this debater asks before the first round."""
    perspective: OwnPerspective | None = None
    """This debater's own settings of `memory.perspectives`."""
    tools: tuple[str, ...] = ()
    """Tools that it may call: `search`, `read_file`, `list_files`, `search_debate`, `calculator`."""
    tool_call_limit: int = Field(10, ge=1, le=100)
    """Tool calls in one turn."""

    @property
    def is_human(self) -> bool:
        """Whether a person takes this debater's turns."""
        return self.model == HUMAN

    @model_validator(mode="before")
    @classmethod
    def _fill_id(cls, data: object) -> object:
        if isinstance(data, dict) and not data.get("id") and isinstance(data.get("name"), str):
            return {**data, "id": slug(data["name"])}
        return data

    @field_validator("id")
    @classmethod
    def _check_id(cls, value: str) -> str:
        if not value:
            raise ValueError("this name has no letters a-z or digits to make an id of: give an id")
        if not SLUG.fullmatch(value):
            raise ValueError(f"{value!r} is not a slug: use a-z, 0-9, - and _, at most 40 characters")
        if value in RESERVED_IDS:
            raise ValueError(f"{value!r} is reserved: give another id")
        return value

    _model_name = field_validator("model")(check_model_name)

    @model_validator(mode="after")
    def _check_tools(self) -> DebaterConfig:
        if self.is_human and self.tools:
            raise ValueError(f"{self.name!r} is a person: leave `tools` out")
        if twice := repeats(self.tools):
            raise ValueError(f"tools named twice: {', '.join(twice)}")
        return self


class ClarificationsConfig(Section):
    """Questions of the debaters to a person before the first round."""

    enabled: bool = False
    """Without, nobody is asked anything."""
    max_per_debater: int = Field(3, ge=1, le=20)
    """Questions that one debater may ask in one round."""
    rounds: int = Field(1, ge=1, le=10)
    """Times that debaters may ask, the later ones knowing the answers; ends once nobody has a question."""


class PlannedInterjection(Section):
    """Something said from the floor at a set moment, so that every run of the debate hears it there."""

    after: int = Field(ge=0)
    """Turns taken before it is said; 0 for before the first."""
    text: str = Field(min_length=1)
    """The words."""
    speaker: str = "moderator"
    """`moderator`, a debater's id, or the slug of a guest."""
