"""Who spoke: names, colours and monograms for the ids of a debate."""

from collections import Counter
from dataclasses import dataclass
from itertools import chain

from moot.graph.documents import DebateDocument
from moot.graph.documents.reading import ShownDebater, shown_config
from moot.state.verdict import NO_WINNER

COLOURS = 8
"""Colours of the palette; the ninth debater shares the first one's and is told apart by its monogram."""

_HOUSE = {"moot": "Moot", "user": "Person", "moderator": "Moderator", "tools": "Tools"}


@dataclass(frozen=True)
class Person:
    """One speaker, as the report shows it."""

    id: str
    name: str
    tone: str
    """CSS class of its colour: `d0` … `d7`, or `house` for those who do not debate."""
    monogram: str
    """One to three letters, different for each debater, so that colour is never the only cue."""
    role: str = ""
    stance: str = ""
    turns: int = 0
    words: int = 0


class People(dict[str, Person]):
    """The debaters by id, in their order; every other key gets a stand-in."""

    def __init__(self, document: DebateDocument) -> None:
        super().__init__()
        turns, words = Counter[str](), Counter[str]()
        for entry in document["transcript"]:
            turns[entry["speaker"]] += 1
            words[entry["speaker"]] += len(entry["content"].split())
        listed = {each["id"] or each["name"]: each for each in shown_config(document)["debaters"]}
        listed.pop("", None)
        spoke = [key for key in turns if key and key not in _HOUSE]
        nobody = ShownDebater(id="", name="", role="", stance="")
        taken: set[str] = set()
        for index, (key, known) in enumerate((listed or dict.fromkeys(spoke, nobody)).items()):
            name = known["name"].strip() or key
            self[key] = Person(
                key,
                name,
                f"d{index % COLOURS}",
                _monogram(name, taken),
                known["role"],
                known["stance"],
                turns[key],
                words[key],
            )
        self._by_name = {person.name: person for person in reversed(self.values())}

    def __missing__(self, key: str) -> Person:
        """Return the debater with this display name, or somebody who carries the key as its name."""
        name = _HOUSE.get(key, key or "Unknown")
        return self._by_name.get(key) or Person(key, name, "house", name[:1].upper())

    def choice(self, key: str) -> str:
        """Return what a judge chose, in words: a debater, or nobody's victory."""
        return NO_WINNER.get(key) or (self[key].name if key in self else key)


def _monogram(name: str, taken: set[str]) -> str:
    """Return initials that nobody has yet; a number is added where the letters are used up."""
    words = [word for word in "".join(c if c.isalnum() else " " for c in name).split() if word]
    letters = "".join(words) or "?"
    initials = "".join(word[0] for word in words[:2]) or "?"
    first = [initials, letters[:2], *(letters[0] + letter for letter in letters[1:])]
    options = chain(first, (f"{letters[0]}{number}" for number in range(1, 10_000)))
    chosen = next(option.upper()[:3] for option in options if option.upper()[:3] not in taken)
    taken.add(chosen)
    return chosen
