"""Taking minutes: operations on the ledger, whoever wants them, are checked before anything is written."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

from typing_extensions import TypedDict

from moot.nodes.blackboard.board_words import board_text
from moot.nodes.blackboard.folding import fold_notes
from moot.nodes.blackboard.standing import Ledger
from moot.state.entries import Entry, cited_id
from moot.state.ledger import MOTION, OVERALL, Event, Note, Reader

_QUOTES = frozenset('`"“”„‟«»‹›「」『』')
_MARKS = _QUOTES | frozenset("'‘’‚‛*_")
_SPEECH = re.compile(
    r"“[^“”]{8,600}”|\"[^\"\n]{8,600}\"|«[^«»]{8,600}»|„[^„“”]{8,600}[“”]|「[^「」]{4,300}」|『[^『』]{4,300}』"
    r"|^[ \t]{0,3}>.*$",
    re.MULTILINE,
)
LONGEST = 400
"""Characters of a quotation that are kept; a longer one is kept up to there."""


class Operations(TypedDict, total=False):
    """What a reader wants noted, list by list; new propositions go by their `ref` until they have an id."""

    propositions: Sequence[Mapping[str, Any]]
    """`{ref, text}` each."""
    events: Sequence[Mapping[str, Any]]
    """`{message_id, proposition, kind, quote, condition, ground, confidence}` each."""
    challenges: Sequence[Mapping[str, Any]]
    """`{message_id, to, quote, proposition, answered_in, answer}` each."""
    questions: Sequence[Mapping[str, Any]]
    """`{message_id, to, quote, answered_in, answer}` each."""
    answers: Sequence[Mapping[str, Any]]
    """`{to, message_id, quote}` each."""
    evidence: Sequence[Mapping[str, Any]]
    """`{message_id, kind, quote, proposition}` each."""
    gaps: Sequence[Mapping[str, Any]]
    """`{message_id, quote, proposition}` each."""
    same: Sequence[Mapping[str, Any]]
    """`{one, other, opposite}` each."""
    retractions: Sequence[Mapping[str, Any]]
    """`{of, why}` each."""


@dataclass
class Minutes:
    """Minutes being taken: notes that are there, and those that come to them."""

    known: Sequence[Note]
    topic: str
    entries: Mapping[str, Entry]
    """What was said, by id, as far as it may be quoted."""
    debaters: Sequence[str]
    by: Reader
    aspect: str = OVERALL
    about: str = ""
    """What is under discussion, where that is more than the aspect."""
    threshold: float = 0.0
    """Confidence below which an event is not noted."""
    new: list[Note] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    _counts: Counter[str] = field(default_factory=Counter)
    _refs: dict[str, str] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)
    """Text of each proposition, folded, by its id."""
    _asked: set[str] = field(default_factory=set)
    """Ids of the challenges and questions."""

    def __post_init__(self) -> None:
        before = fold_notes(self.known, self.topic)
        self._counts = Counter(before.highest)
        self._texts = {MOTION: self.topic.casefold()}
        self._texts |= {each["id"]: each["text"].casefold() for each in before.notes.get("proposition", ())}
        self._asked = before.challenges.keys() | before.questions.keys()

    @property
    def ledger(self) -> Ledger:
        """The ledger with what is new."""
        return fold_notes([*self.known, *self.new], self.topic)

    def take(self, operations: Operations) -> None:
        """Note what stands the check; what fails it is dropped and counted."""
        opened = {each["ref"]: str(each["text"]) for each in operations.get("propositions", ())}
        self._refs = {}  # another reading may give the same references to others
        for each in operations.get("events", ()):
            self._take_event(each, opened)
        for each in operations.get("evidence", ()):
            if said := self._quotation(each, quoted=True):
                self._note("x", {**said, **self._about(each), "note": "evidence", "kind": each["kind"]})
        for each in operations.get("gaps", ()):
            if said := self._quotation(each):
                self._note("g", {**said, **self._about(each), "note": "gap"})
        self._take_requests(operations)
        for each in operations.get("answers", ()):
            self._answer(each, each["to"])
        self._take_corrections(operations)

    def _take_event(self, each: Mapping[str, Any], opened: Mapping[str, str]) -> None:
        said = self._quotation(each)
        if not said:
            return
        if each["confidence"] < self.threshold:
            self.dropped["unsure"] += 1
            return
        key = self._proposition(each["proposition"], opened, self.entries[said["message_id"]]["seq"])
        # Only the rules may note that somebody conceded without knowing what.
        if not key and (self.by != "rule" or each["kind"] != "concedes"):
            self.dropped["no such proposition"] += 1
            return
        stance = each["kind"] in ("asserts", "denies", "conditional")
        condition = board_text(each["condition"]) if stance else ""
        event = {
            "note": "event",
            "kind": "conditional" if each["kind"] == "asserts" and condition else each["kind"],
            "proposition": key,
            "condition": condition,
            "ground": bool(each["ground"]),
            "confidence": round(float(each["confidence"]), 2),
        }
        self._note("e", {**event, **said})

    def _take_requests(self, operations: Operations) -> None:
        """Note challenges and questions, each with its answer where that was found as well."""
        for each in operations.get("challenges", ()):
            if said := self._quotation(each, quoted=True):
                is_other = each["to"] in self.debaters and each["to"] != said["debater"]
                self.dropped["nobody else"] += not is_other
                if not is_other:
                    continue
                key = self._note("c", {**said, **self._about(each), "note": "challenge", "to": each["to"]})
                if each.get("answered_in"):
                    self._answer({"message_id": each["answered_in"], "quote": each["answer"]}, key)
        for each in operations.get("questions", ()):
            if said := self._quotation(each):
                to = each["to"] if each["to"] in self.debaters else ""
                key = self._note("q", {**said, "note": "question", "to": to})
                if each.get("answered_in"):
                    self._answer({"message_id": each["answered_in"], "quote": each["answer"]}, key)

    def _take_corrections(self, operations: Operations) -> None:
        """Note which propositions are one, and which notes were wrong."""
        for each in operations.get("same", ()):
            one, other = (self._refs.get(each[key], each[key]) for key in ("one", "other"))
            if one in self._texts and other in self._texts and one != other:
                opposite = bool(each["opposite"])
                self._add({"note": "same", "one": one, "other": other, "opposite": opposite, "by": self.by})
        for each in operations.get("retractions", ()):
            if any(note.get("id") == each["of"] for note in self.known):
                self._add(
                    {"note": "retraction", "of": each["of"], "why": board_text(each["why"]), "by": self.by}
                )

    def drop(self, ids: Sequence[str], why: str) -> None:
        """Take back new notes, as if they had never been wanted."""
        self.dropped[why] += len(ids)
        self.new = [note for note in self.new if note.get("id") not in ids]
        about = {note.get(key) for note in self.new for key in ("proposition", "one", "other")}
        for note in [note for note in self.new if note["note"] == "proposition"]:
            if note["id"] not in about:
                self.new.remove(note)
                del self._texts[note["id"]]

    def close(self, through: int) -> list[Note]:
        """Return the new notes with one that says how far has been read and what was dropped."""
        self._add({"note": "reading", "through": through, "by": self.by, "dropped": dict(self.dropped)})
        return self.new

    def _quotation(self, each: Mapping[str, Any], *, quoted: bool = False) -> dict[str, Any]:
        """Return who said a quotation where, in the words that really stand there; `{}` where nobody did."""
        entry = self.entries.get(cited_id(each["message_id"]))
        if entry is None or entry["speaker"] not in self.debaters:
            self.dropped["no such message"] += 1
            return {}
        span = find_quotation(each["quote"], entry["content"])
        if span is None:
            self.dropped["not said"] += 1
            return {}
        if not quoted and in_speech_of_another(entry["content"], *span):
            self.dropped["somebody else's words"] += 1
            return {}
        words = kept_quotation(entry["content"], *span)
        return {"debater": entry["speaker"], "message_id": entry["id"], "quote": words, "by": self.by}

    def _about(self, each: Mapping[str, Any]) -> dict[str, str]:
        """Return what a note bears on: a proposition that is there, else nothing."""
        key = self._refs.get(each["proposition"], each["proposition"])
        return {"proposition": key if key in self._texts else ""}

    def _proposition(self, wanted: str, opened: Mapping[str, str], seq: int) -> str:
        """Return the id of a proposition, opened now where it is new; `""` where there is none."""
        key = self._refs.get(wanted, wanted)
        text = board_text(opened.get(wanted, ""))
        if key in self._texts or not text:
            return key if key in self._texts else ""
        key = next((known for known, folded in self._texts.items() if folded == text.casefold()), "")
        if not key:
            key = self._note("p", {"note": "proposition", "text": text, "aspect": self.aspect, "seq": seq})
            self._texts[key] = text.casefold()
        self._refs[wanted] = key
        return key

    def _answer(self, each: Mapping[str, Any], to: str) -> None:
        if to not in self._asked:
            self.dropped["nothing to answer"] += 1
        elif said := self._quotation(each):
            self._add({"note": "answer", "to": to, **said})

    def _note(self, letter: str, note: Mapping[str, Any]) -> str:
        """Add a note under an id of its own, and return that."""
        self._counts[note["note"]] += 1
        key = f"{letter}{self._counts[note['note']]:03d}"
        self._add({**note, "id": key})
        if note["note"] in ("challenge", "question"):
            self._asked.add(key)
        return key

    def _add(self, note: Mapping[str, Any]) -> None:
        self.new.append(cast(Note, note))


def standing_changes(minutes: Minutes) -> Iterator[Event]:
    """Yield the new events that change how something stands: all but restatements."""
    new = {note["id"] for note in minutes.new if note["note"] == "event"}
    for course in minutes.ledger.courses.values():
        held: dict[str, str] = {}
        for turn in course:
            who, kind = turn.event["debater"], turn.event["kind"]
            if turn.event["id"] in new and held.get(who) != kind:
                yield turn.event
            held[who] = kind


def find_quotation(quote: str, text: str) -> tuple[int, int] | None:
    """Return where a quotation stands in a text, white space, quotation marks and case aside."""
    wanted, _ = _bare(quote)
    bare, places = _bare(text)
    start = bare.find(wanted) if wanted else -1
    if start < 0:
        return None
    first, last = places[start], places[start + len(wanted) - 1] + 1
    # A quotation within it keeps both of its marks.
    opens = quote.strip()[0] in _QUOTES and text[:first].endswith(tuple(_QUOTES))
    closes = quote.strip()[-1] in _QUOTES and text.startswith(tuple(_QUOTES), last)
    return first - opens, last + closes


@lru_cache(maxsize=256)  # of one message many quotations are looked for
def _bare(text: str) -> tuple[str, list[int]]:
    """Return a text without white space and quotation marks, with the place of each character kept."""
    kept = [(char, at) for at, char in enumerate(text) if not char.isspace() and char not in _MARKS]
    folded = [(low, at) for char, at in kept for low in char.casefold()]
    return "".join(char for char, _ in folded), [at for _, at in folded]


def in_speech_of_another(text: str, start: int, end: int) -> bool:
    """Return whether a span lies inside a quotation, which belongs to the quoted."""
    return any(first <= start and end <= last for first, last in _speeches(text))


@lru_cache(maxsize=256)
def _speeches(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _SPEECH.finditer(text)]


def kept_quotation(text: str, start: int, end: int) -> str:
    """Return the words of a span, at most `LONGEST` characters, cut at a word."""
    words = text[start:end]
    if len(words) <= LONGEST:
        return words
    return words[: words.rfind(" ", 0, LONGEST) if " " in words[:LONGEST] else LONGEST]
