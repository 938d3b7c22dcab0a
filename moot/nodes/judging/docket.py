"""Which messages a judge sees: all of them where they fit, else an equal share a side and a little of others.

What is shown is chosen on costs before blinding, so that of five thousand messages only the few that are
shown need be blinded; what blinding adds is cut off afterwards.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from moot.state.entries import Entry, kind_of

if TYPE_CHECKING:
    from moot.nodes.memory.retrieval import EvidenceIndex

LEAST_CUT = 40
"""A message is only shown in part where at least this many tokens of it fit."""
OTHERS_SHARE = 0.1
"""Share of the room that a moderator and people from the floor may take."""
MESSAGE_SHARE = 0.5
"""Most of a side's share that one message may take; a longer one is cut in its middle."""
MOST_PARTS = 4
"""One message of others may take all of their room where it is alone, else a part of it, one in so many."""
FRAME = 14
"""Tokens that a message costs beside its content: role, label and id are 12, a longer label two more."""


@dataclass(frozen=True)
class Allotment:
    """One chosen message and the room that it may take."""

    entry: Entry
    room: int
    """Tokens, its frame included; it is cut in its middle to this."""


@dataclass(frozen=True)
class Selection:
    """What a judge is shown, before it is blinded."""

    shown: tuple[Allotment, ...]
    """In the order in which it was said."""
    share: int | None
    """Tokens that each side may take; `None` where everything is shown."""


def is_argued(entry: Entry, sides: Sequence[str]) -> bool:
    """Return whether one of the sides argues with an entry, so that it counts towards that side's share."""
    return entry["speaker"] in sides and kind_of(entry).argues


def outgrows(entries: Iterable[Entry], sides: Sequence[str], room: int) -> bool:
    """Return whether all that the sides argued takes more tokens than `room`."""
    return any(
        tokens > room for tokens in accumulate(_cost(each) for each in entries if is_argued(each, sides))
    )


class Docket:
    """The material of a debate from which judges' views choose; made once for all of them."""

    def __init__(
        self,
        entries: Sequence[Entry],
        sides: Sequence[str],
        names: Mapping[str, str],
        evidence: Sequence[Entry] | None = None,
        *,
        fill: bool = False,
    ) -> None:
        """Sort the entries; `fill` shows of what is argued beside the evidence the newest that fits, too."""
        self.sides = sorted(set(sides))
        self._names = names
        argued = [entry for entry in entries if is_argued(entry, sides)]
        self.argued = sum(map(_cost, argued))
        """Tokens of all that the sides argued."""
        self._ids = frozenset(entry["id"] for entry in argued)
        self._said = argued if evidence is None else [each for each in evidence if is_argued(each, sides)]
        seen = {entry["seq"] for entry in self._said}
        self.earlier = [entry for entry in reversed(argued) if fill and entry["seq"] not in seen]
        """What is shown beside the evidence where there is room, the newest first."""
        # Neither the topic, which a judge's frame holds, nor what Moot notes.
        self._others = [
            entry
            for entry in entries
            if not is_argued(entry, sides) and kind_of(entry).shown and kind_of(entry).by != "moot"
        ]

    def select(self, query: str, room: int) -> Selection:
        """Choose what fits `room` tokens.

        Where not everything does, each side gets an equal share: its first and last word, then what best
        answers `query`. A side that said less than its share is shown whole, and what it leaves stays unused.
        """
        said, others = sum(map(_cost, self._said)), sum(map(_cost, self._others))
        if said + others <= room:
            shown, left = [*self._said, *self._others], room - said - others
            for entry in self.earlier:
                if _cost(entry) <= left:
                    shown.append(entry)
                    left -= _cost(entry)
            return Selection(_in_order(Allotment(entry, room) for entry in shown), None)
        if room < LEAST_CUT or not self.sides:
            return Selection((), 0)
        part = min(others, int(room * OTHERS_SHARE))
        if said + part <= room:
            chosen = [Allotment(entry, room) for entry in self._said]
            return self._with_others(chosen, room - said, None)
        share = (room - part) // len(self.sides)
        return self._with_others(self._shares(query, share), part, share)

    def is_whole(self, shown: Iterable[str]) -> bool:
        """Return whether all that was argued is among the messages of these ids."""
        return self._ids <= frozenset(shown)

    def beside(self, shown: Iterable[str]) -> list[Entry]:
        """Return what may be shown and is none of the messages of these ids."""
        known = frozenset(shown)
        material = [*self._said, *self._others, *self.earlier]
        return [entry for entry in material if entry["id"] not in known]

    def _shares(self, query: str, share: int) -> list[Allotment]:
        from moot.nodes.memory.retrieval import select_evidence

        most = max(int(share * MESSAGE_SHARE), min(share, LEAST_CUT))
        index = copy(self._index)  # in which no message is longer than what is shown of it
        index.tokens = array("q", (min(tokens, most) for tokens in index.tokens))
        ends: dict[str, list[int]] = {}
        for entry in self._said:
            ends.setdefault(entry["speaker"], []).append(entry["seq"])
        chosen = select_evidence(
            index,
            query,
            budget=share * len(self.sides),
            costs={entry["seq"]: min(_cost(entry), most) for entry in self._said},
            must_keep=[seq for seqs in ends.values() for seq in (seqs[0], seqs[-1])],
            speakers=self.sides,
        )
        wanted = frozenset(chosen.seqs)
        return [Allotment(entry, most) for entry in self._said if entry["seq"] in wanted]

    @cached_property
    def _index(self) -> EvidenceIndex:
        from moot.nodes.memory.retrieval import EvidenceIndex

        return EvidenceIndex(self._said, names=self._names)

    def _with_others(self, chosen: list[Allotment], room: int, share: int | None) -> Selection:
        """Add what others said: first documents, then what a chosen message answers, then the newest."""
        answered = {shown.entry["seq"] - 1 for shown in chosen}
        ranked = sorted(
            self._others,
            key=lambda entry: (
                kind_of(entry).gift != "document",
                entry["seq"] not in answered,
                -entry["seq"],
            ),
        )
        most = max(LEAST_CUT, room // max(1, min(len(ranked), MOST_PARTS)))
        for entry in ranked:
            cost = min(_cost(entry), most)
            if cost <= room:
                chosen.append(Allotment(entry, cost))
                room -= cost
            if room < LEAST_CUT:
                break
        return Selection(_in_order(chosen), share)


def _cost(entry: Entry) -> int:
    return entry["tokens"] + FRAME


def _in_order(shown: Iterable[Allotment]) -> tuple[Allotment, ...]:
    return tuple(sorted(shown, key=lambda one: one.entry["seq"]))


def within_share(costs: Mapping[str, int], share: int) -> dict[str, int]:
    """Return what each message of one side may cost so that all of them keep to the share.

    The longest gives way; a message of which less than `LEAST_CUT` tokens would be left is dropped.
    """
    rooms = dict(costs)
    while rooms and (over := sum(rooms.values()) - share) > 0:
        longest = max(rooms, key=lambda key: (rooms[key], key))
        left = rooms[longest] - over
        if left >= LEAST_CUT:
            rooms[longest] = left
        else:
            del rooms[longest]
    return rooms
