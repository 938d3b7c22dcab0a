"""What is read of a document's configuration, which another version of Moot may have written."""

from typing_extensions import TypedDict

from moot.graph.documents.document import DebateDocument
from moot.graph.documents.reading import as_far_as_it_goes


class ShownDebater(TypedDict):
    """A debater, as configured."""

    id: str
    name: str
    role: str
    stance: str


class ShownSeat(TypedDict, total=False):
    """A judge's seat, or what counts for every seat."""

    rubric: object
    """A rubric, or the name of one that ships with Moot."""


class ShownBench(ShownSeat, total=False):
    """How a debate is judged."""

    panel: list[ShownSeat]


class Termination(TypedDict, total=False):
    """When a council ends."""

    threshold: float


class ShownConfig(TypedDict):
    """The parts of a configuration that reports and imports need."""

    debaters: list[ShownDebater]
    judge: ShownBench
    termination: Termination


def shown_config(document: DebateDocument) -> ShownConfig:
    """Return what is read of a document's configuration, as far as it goes."""
    return as_far_as_it_goes(ShownConfig, document["config"])
