"""Sections of the configuration, and those among them that protocols bring.

Protocols stand above the configuration, which therefore imports none of them: when one is made, it asks their
table what each of them brings.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol, Self, cast

from pydantic import BaseModel, ConfigDict

from moot.state.plugins import protocol_table


class Section(BaseModel):
    """Base of every configuration section: unknown keys are errors, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def repeats(names: Sequence[str]) -> list[str]:
    """Return what is named more than once, sorted."""
    return sorted(name for name, times in Counter(names).items() if times > 1)


class ProtocolSettings(Section):
    """Base of a section that a protocol brings; every setting of it needs a default."""

    key: ClassVar[str]
    """Where it stands in the configuration, beside the keys that all protocols share."""

    @classmethod
    def of(cls, config: BaseModel) -> Self:
        """Return these settings as a configuration has them, the defaults where it has none."""
        given = (config.model_extra or {}).get(cls.key)
        return given if isinstance(given, cls) else cls()

    def model_names(self) -> tuple[str, ...]:
        """Return the models that these settings name."""
        return ()


TWO_SIDES: tuple[dict[str, str], ...] = (
    {"id": "advocate", "name": "Advocate", "stance": "in favour"},
    {"id": "skeptic", "name": "Skeptic", "stance": "against"},
)


class Terms:
    """What a protocol brings to the configuration."""

    name: str
    settings: type[ProtocolSettings] | None = None
    """Its own section."""
    debaters: Sequence[Mapping[str, str]] = TWO_SIDES
    """Who speaks where nobody is named."""
    by_order: bool = False
    """Whether it goes by the configuration's `order`."""


class TermsTable(Protocol):
    """The table of protocols, as far as the configuration asks it."""

    PROTOCOLS: Mapping[str, Terms]

    def find_protocol(self, name: str) -> Terms | None:
        """Return the protocol of this name, of the table or plugged in, `None` where there is none."""
        ...

    def load_plugged(self) -> None:
        """Put every protocol that installed packages bring into the table."""
        ...


def terms_table() -> TermsTable:
    """Return the table of protocols."""
    return cast(TermsTable, protocol_table())


def terms_of(name: object) -> Terms:
    """Return what the protocol of this name brings, what is usual where there is none."""
    return (terms_table().find_protocol(name) if isinstance(name, str) else None) or Terms()


def protocol_sections() -> dict[str, type[ProtocolSettings]]:
    """Return the sections of all protocols in the table, by key."""
    brought = [terms.settings for terms in terms_table().PROTOCOLS.values()]
    return {settings.key: settings for settings in brought if settings is not None}
