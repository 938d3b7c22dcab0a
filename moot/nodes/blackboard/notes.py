"""What was noted of one entry, whoever read it: the rules or a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from moot.state.entries import Entry

OVERALL = "overall"
"""The aspect of a topic that is not split."""


@dataclass(frozen=True)
class Accord:
    """An agreement with, or a concession to, somebody."""

    to: str
    """Debater's id; `""` where that cannot be told."""
    text: str


@dataclass(frozen=True)
class Opposition:
    """A statement that the speaker makes against somebody else."""

    to: str
    claim: str
    """What the speaker asserts and the other denies, in one sentence."""
    strength: Literal["mild", "strong"]
    confidence: float
    """How sure it is that both stand on opposite sides of this very claim, 0–1."""
    specific: bool


@dataclass(frozen=True)
class Notes:
    """What one entry did in the debate; all text is one line, inert and clipped."""

    entry: Entry
    aspect: str = OVERALL
    stance: str = ""
    """Overall stance where it was stated."""
    position: str = ""
    """Position on the aspect; `""` where none was taken."""
    firm: bool = False
    """Whether the position was stated as one, so that it replaces an earlier one."""
    argument: str = ""
    evidence: tuple[str, ...] = ()
    concessions: tuple[Accord, ...] = ()
    agreements: tuple[Accord, ...] = ()
    oppositions: tuple[Opposition, ...] = ()
    shift: str = ""
    """The new position, where the speaker says that it has changed its mind."""
    engaged: tuple[str, ...] = ()
    """Ids of the debaters that it answers."""
    answered: tuple[str, ...] = ()
    """Open challenges to the speaker, as the ledger has them, that it answers."""

    @property
    def speaker(self) -> str:
        """Whose entry it is."""
        return self.entry["speaker"]

    @property
    def message_id(self) -> str:
        """Id of the entry."""
        return self.entry["id"]
