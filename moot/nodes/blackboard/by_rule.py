"""The ledger's operations by rule: few and precise, linear in what is read; no dispute is settled by rule."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, cast

from moot.nodes.blackboard.board_words import board_text
from moot.nodes.blackboard.minutes import Operations
from moot.nodes.blackboard.standing import Ledger
from moot.nodes.reading.exhibits import EvidenceForm, shows_evidence
from moot.nodes.reading.moves import (
    SHARED,
    asks,
    asks_somebody,
    concedes,
    contradicts,
    denies_plainly,
    shifts,
)
from moot.nodes.reading.names import mentions
from moot.nodes.reading.phrases import HYPOTHETICAL, QUESTION, blank_quotes, stems
from moot.nodes.reading.standpoints import Side, keeps_position, standpoint
from moot.nodes.text.sentences import Sentence, split_sentences
from moot.nodes.text.terms import ALIKE, likeness, term_set
from moot.state.entries import Entry
from moot.state.ledger import MOTION, EventKind, EvidenceKind

# On the labelled excerpts of `benchmarks/minutes.py`, where 85 of 93 concessions and disputes noted are
# right: with 2 terms three more are right and three wrong, with 4 twelve right ones are missed; a turn of 2
# sentences misses one dispute, one of 5 brings a wrong one; looking back 1 to 16 entries finds the same.
CLAUSE_TERMS = 3
"""Content words without which a sentence opens no proposition: “I correct myself” is on nothing known."""
ANSWER_SHARE = 0.2
"""A challenge counts as answered by a message to its author that takes up this share of its terms."""
INSISTED_SHARE = 0.5
"""The same of a question that is asked again, which to speak next does not answer."""
_LOOK_BACK = 8
"""Entries before one in which what it contradicts is looked for."""
_SHORT_TURN = 3
"""Sentences of a turn that a bare denial can be about: of a longer one nobody knows which is meant."""
_EVIDENCE = 6
"""Pieces of evidence of one message."""
_ADDRESSED = 30
"""Characters at a sentence's beginning in which a name is that of whom it is said to."""
_READ = 200
"""Different sentences of a message that are read from its beginning, and as many from its end."""
_SURE = 0.9
_KINDS: Mapping[Side, EventKind] = {"for": "asserts", "against": "denies", "conditional": "conditional"}
_SIDES: Mapping[EventKind, Side] = {"asserts": "for", "denies": "against"}
_FORMS: Mapping[EvidenceForm, EvidenceKind] = {
    "link": "source",
    "citation": "source",
    "quote": "source",
    "percent": "figure",
    "number": "figure",
    "case": "case",
}

Waiting = tuple[str, dict[str, Any]]
"""A challenge or question that is not answered: its id, `""` where it is being noted, and what was said."""

Earlier = tuple[Entry, Sequence[Sentence]]
"""What was said before, and its sentences."""


def _sentences(entry: Entry) -> list[Sentence]:
    """Return a message's own sentences, each once; what is quoted and code is not its speaker's."""
    own = [each for each in split_sentences(entry["content"]) if each.kind not in ("quote", "code")]
    once = list({each.text: each for each in own}.values())
    return once if len(once) <= 2 * _READ else [*once[:_READ], *once[-_READ:]]


class RuleReader:
    """Reads entries in their order."""

    def __init__(self, names: Mapping[str, str], topic: str, ledger: Ledger) -> None:
        self.names = names
        self.topic = topic
        self.ops: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self._sides: dict[str, tuple[Side, bool]] = {}
        for who in names:
            stance = ledger.stance(who)
            if stance and stance["kind"] in _SIDES:
                self._sides[who] = (_SIDES[stance["kind"]], True)
        self._refs: dict[str, str] = {}
        self._granted = {
            (each["debater"], ledger.propositions[each["proposition"]]["text"])
            for each in ledger.concessions()
            if each["proposition"]
        }
        """Who conceded what: to say it again is no event."""
        self._waiting: list[Waiting] = [(each["id"], dict(each)) for each in ledger.open_questions()]
        self._challenges: list[Waiting] = [(each["id"], dict(each)) for each in ledger.open_challenges()]

    def read(self, entries: Sequence[Entry], before: Sequence[Entry] = ()) -> Operations:
        """Return what is to be noted of entries, which were said after those `before`."""
        said = [(each, _sentences(each)) for each in (*before[-_LOOK_BACK:], *entries)]
        for place in range(len(said) - len(entries), len(said)):
            entry, sentences = said[place]
            self._answer(entry, sentences)
            self._take_side(entry, sentences)
            self._dispute(entry, sentences, said[max(0, place - _LOOK_BACK) : place])
            self._ask(entry, sentences)
            self._give_way(entry, sentences)
            self._show(entry, sentences)
        return cast(Operations, dict(self.ops))

    def _answer(self, entry: Entry, sentences: Sequence[Sentence]) -> None:
        """Note that who was asked speaks next, and that who was challenged takes the challenge up."""
        if not sentences:
            return
        speaker, said, met = entry["speaker"], term_set(entry["content"]), list[Waiting]()
        about = {*entry["targets"], *mentions(entry["content"], self.names, speaker)}

        def takes_up(item: Mapping[str, Any], share: float) -> bool:
            wanted = term_set(item["quote"])
            return len(wanted & said) >= share * len(wanted)

        for key, question in self._waiting:
            is_asked = question["to"] in (speaker, "") and question["debater"] != speaker
            if is_asked and (not question.get("insisted") or takes_up(question, INSISTED_SHARE)):
                met.append((key, question))
        for key, challenge in self._challenges:
            addressed = len(self.names) == 2 or challenge["debater"] in about
            if challenge["to"] == speaker and addressed and takes_up(challenge, ANSWER_SHARE):
                met.append((key, challenge))

        words = sentences[0].text
        for key, item in met:
            if key:
                self.ops["answers"].append({"to": key, "message_id": entry["id"], "quote": words})
            else:
                item |= {"answered_in": entry["id"], "answer": words}
        done = {id(item) for _, item in met}
        self._waiting = [each for each in self._waiting if id(each[1]) not in done]
        self._challenges = [each for each in self._challenges if id(each[1]) not in done]

    def _take_side(self, entry: Entry, sentences: Sequence[Sentence]) -> None:
        """Note the last side taken in so many words, else the last that the topic said again tells."""
        known = self._sides.get(entry["speaker"])
        taken: tuple[Side, bool] | None = None
        words = ""
        for sentence in sentences:
            found = standpoint(sentence.text, self.topic)
            side = (found.side, found.explicit) if found else None
            if side is None and known and keeps_position(sentence.text):
                side = (known[0], True)
            if side and (taken is None or side[1] >= taken[1]):
                taken, words = side, found.words if found else sentence.text
        # Who has said where it stands does not change over without saying so.
        if taken and (not known or taken[1] >= known[1]):
            self._sides[entry["speaker"]] = taken
            self._event(entry, words, MOTION, _KINDS[taken[0]])

    def _dispute(self, entry: Entry, sentences: Sequence[Sentence], before: Sequence[Earlier]) -> None:
        """Note what an entry denies outright: the last word said, or a sentence said again with a “not”."""
        last, claims = before[-1] if before else (None, [])
        if last and self._is_rival(last, entry) and sentences and denies_plainly(sentences[0].text):
            about = claims[-1].text if 1 <= len(claims) <= _SHORT_TURN else ""
            if len(term_set(about)) >= CLAUSE_TERMS:
                self._oppose(last, about, entry, sentences[0].text)
        others = [
            (other, each.text) for other, said in before if self._is_rival(other, entry) for each in said
        ]
        by_stem: dict[str, list[int]] = defaultdict(list)
        for place, (_, claim) in enumerate(others):
            for stem in stems(blank_quotes(claim)):
                by_stem[stem].append(place)
        for sentence in sentences:
            shared = Counter(
                place for stem in stems(blank_quotes(sentence.text)) for place in by_stem.get(stem, ())
            )
            for place in sorted(each for each, count in shared.items() if count >= SHARED):
                other, claim = others[place]
                way = contradicts(sentence.text, claim)
                if way > 0:
                    self._oppose(entry, sentence.text, other, claim)
                elif way < 0:
                    self._oppose(other, claim, entry, sentence.text)

    def _is_rival(self, other: Entry, entry: Entry) -> bool:
        return other["speaker"] in self.names and other["speaker"] != entry["speaker"]

    def _oppose(self, asserting: Entry, claim: str, denying: Entry, denial: str) -> None:
        key = self._open(claim)
        self._event(asserting, claim, key, "asserts")
        self._event(denying, denial, key, "denies")
        earlier, (later, quote) = asserting, (denying, denial)
        if denying["seq"] < asserting["seq"]:
            earlier, (later, quote) = denying, (asserting, claim)
        self._challenges.append(("", self._wait("challenges", later, earlier["speaker"], quote, key)))

    def _ask(self, entry: Entry, sentences: Sequence[Sentence]) -> None:
        """Note what is asked of somebody or, at an entry's end, of the floor."""
        others = [who for who in self.names if who != entry["speaker"]]
        for sentence in sentences:
            to_floor = sentence is sentences[-1] and asks(sentence.text)
            if not to_floor and not asks_somebody(sentence.text):
                continue
            named = mentions(sentence.text, self.names, entry["speaker"])
            meant = [target for target in entry["targets"] if target in others]
            to = [*named, *meant, *others[: len(others) == 1], *[""] * to_floor]
            for whom in to[:1]:
                item = self._wait("questions", entry, whom, sentence.text)
                self._waiting.append(("", item))
                # A question that is asked again was not answered before.
                for other in self.ops["questions"][:-1]:
                    alike = likeness(other["quote"], sentence.text) >= ALIKE
                    if alike and other["debater"] == entry["speaker"]:
                        other |= {"answered_in": "", "answer": ""}
                        item["insisted"] = True

    def _give_way(self, entry: Entry, sentences: Sequence[Sentence]) -> None:
        """Note what an entry concedes or no longer holds."""
        for sentence in sentences:
            if shifts(sentence.text):
                self._event(entry, sentence.text, MOTION, "withdraws")
                continue
            grant = (entry["speaker"], board_text(sentence.text))
            tells = len(term_set(sentence.text)) >= CLAUSE_TERMS
            if concedes(sentence.text) and tells and grant not in self._granted:
                self._granted.add(grant)
                self._event(entry, sentence.text, self._open(sentence.text), "concedes")

    def _show(self, entry: Entry, sentences: Sequence[Sentence]) -> None:
        """Note an entry's evidence: nothing that it asks, would believe, grants, or says to another."""
        moves = {each["quote"] for each in self.ops["events"] if each["message_id"] == entry["id"]}
        shown = 0
        for text in (each.text for each in sentences):
            hypothetical = "would" in text and HYPOTHETICAL.pattern.search(text)
            if text in moves or QUESTION.search(text) or hypothetical:
                continue
            if mentions(text[:_ADDRESSED], self.names, entry["speaker"]):
                continue
            form = shows_evidence(text)
            if form and shown < _EVIDENCE:
                item = {"message_id": entry["id"], "kind": _FORMS[form], "quote": text, "proposition": ""}
                self.ops["evidence"].append(item)
                shown += 1

    def _wait(self, note: str, entry: Entry, to: str, quote: str, proposition: str = "") -> dict[str, Any]:
        """Note what waits for an answer."""
        item = {"message_id": entry["id"], "to": to, "quote": quote, "answered_in": "", "answer": ""}
        self.ops[note].append({**item, "proposition": proposition, "debater": entry["speaker"]})
        return self.ops[note][-1]

    def _open(self, text: str) -> str:
        """Return the reference of a proposition in these words."""
        if text not in self._refs:
            self._refs[text] = f"n{len(self._refs) + 1}"
            self.ops["propositions"].append({"ref": self._refs[text], "text": text})
        return self._refs[text]

    def _event(self, entry: Entry, quote: str, proposition: str, kind: EventKind) -> None:
        item = {"message_id": entry["id"], "proposition": proposition, "kind": kind, "quote": quote}
        self.ops["events"].append({**item, "condition": "", "ground": False, "confidence": _SURE})
