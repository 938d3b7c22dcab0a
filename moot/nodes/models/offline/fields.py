"""What the fields of a structured answer should hold, told by their names."""

from __future__ import annotations

import re
from functools import cached_property

from moot.nodes.models.offline import phrases
from moot.nodes.models.offline.prose import Speech, proposal, report
from moot.nodes.models.offline.reading import Reading, Utterance, number
from moot.nodes.models.offline.words import sentences, short, snippet

WHO = re.compile(
    r"(?:^|_)(?:debater|speaker|winner|who|author|opponent|target|with|about|participant|candidate|person|by)"
    r"(?:s|_?(?:id|name|a|b|one|two|1|2)s?)?$"
)
_OTHER = re.compile(r"(?:^|_)(?:opponent|target|with)s?")
_CITES = re.compile(r"citation|cites?$|cited|message|source|_ids?$|^refs?$|reference|entr(?:y|ies)|^ids$")
_QUESTION = re.compile(r"question|falsifier")
_WHY = re.compile(r"reason|rationale|justif|analysis|explan|diagnos|comment|feedback|verdict|note")
_LABEL = re.compile(r"aspect|topic|theme|subject|title|categor|label|keyword|tag|area|^name$|criterion|^key$")
_ADVICE = re.compile(r"recommend|next|advice|suggest|action|step|resolution|condition|improve")
_LACK = re.compile(r"unmet|missing|weak|trade|risk|requirement|concern|flaw|gap")
_SOLUTION = re.compile(r"solution|markdown|proposal|document|plan$")
_SUMMARY = re.compile(r"summary|recap|overview")
_CRITERION = re.compile(r"^[-*][ \t]+[`*]*([a-z][a-z0-9_-]{2,30})[`*]*[ \t]*[:(–—]", re.M)

_LONG = re.compile(r"[a-z]{9,}")

TIE_MARGIN = 0.03
TIE = "tie"


class Facts:
    """What a structured answer draws on: who said what, and how well each of them did."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.draft = Speech(reading)
        self._drawn = 0
        self._said: dict[str, list[Utterance]] = {}
        self._strengths: dict[str, int] = {}

    @cached_property
    def people(self) -> tuple[str, ...]:
        """The debaters; somebody where the prompt names nobody."""
        return self.reading.debaters or ((self.reading.speaker,) if self.reading.speaker else ("debater",))

    @cached_property
    def criteria(self) -> tuple[str, ...]:
        """Ids of a rubric's criteria: from the hints, else from a list in the prompt."""
        hinted = self.reading.hints.get("criteria")
        if isinstance(hinted, (list, tuple)):
            return tuple(map(str, hinted))
        return tuple(dict.fromkeys(_CRITERION.findall(self.reading.instruction)))

    def strength(self, who: str, label: str = "") -> float:
        """Return how well somebody did, 0–1, from the long words they used, not their name."""
        own = self._own(who)
        return 0.8 * own / 2**64 + 0.2 * number("criterion", own, label) / 2**64

    def _own(self, who: str) -> int:
        if who not in self._strengths:
            words = {word for item in self.by(who) for word in _LONG.findall(item.text.lower())}
            drawn = sorted(words) or [who, self.reading.topic]
            self._strengths[who] = number("strength", *drawn)
        return self._strengths[who]

    def winner(self) -> str:
        """Return who did best, or `tie`."""
        ranked = sorted(self.people, key=self.strength, reverse=True)
        if len(ranked) > 1 and self.strength(ranked[0]) - self.strength(ranked[1]) < TIE_MARGIN:
            return TIE
        return ranked[0]

    def by(self, who: str) -> list[Utterance]:
        """Return what somebody said."""
        if who not in self._said:
            self._said[who] = [item for item in self.reading.said if item.by(who)]
        return self._said[who]

    def dice(self, *labels: object) -> int:
        """Return a number that differs from draw to draw."""
        self._drawn += 1
        return self.reading.dice("field", self._drawn, *labels)

    def person(self, name: str, who: str, taken: list[str]) -> str:
        """Return the debater that a field names: the one it is about, or another."""
        if "winner" in name:
            return self.winner()
        avoid = {*taken, who} if _OTHER.search(name) or taken else set(taken)
        if who and who not in avoid:
            return who
        free = [person for person in self.people if person not in avoid] or list(self.people)
        return free[self.dice(name) % len(free)]

    def cites(self, name: str) -> bool:
        """Whether a field holds ids of messages."""
        return bool(_CITES.search(name))

    def citations(self, who: str, count: int) -> list[str]:
        """Return ids of messages that the prompt shows, those of `who` first."""
        own = [item.id for item in self.by(who) if item.id] if who else []
        ids = own or list(self.reading.ids)
        if not ids:
            return []
        first = self.dice("cite")
        return list(dict.fromkeys(ids[(first + step) % len(ids)] for step in range(count)))

    def text(self, name: str, who: str) -> str:
        """Return the words for a field of this name."""
        if _QUESTION.search(name):
            return self.draft.draw(phrases.CLARIFY)
        if _SOLUTION.search(name):
            return proposal(self.draft) if self._wants_solution() else ""
        if _SUMMARY.search(name):
            return report(self.reading)
        if _WHY.search(name):
            return self.reasons(who)
        if _LABEL.search(name):
            return self.reading.focus[self.dice(name) % len(self.reading.focus)]
        if _ADVICE.search(name):
            return self.draft.draw(phrases.ADVICE)
        return self.draft.draw(phrases.WEAKNESS) if _LACK.search(name) else self.statement(name, who)

    def statement(self, name: str, who: str) -> str:
        """Return a sentence that somebody said, else one on the topic."""
        heard = self.by(who) or list(self.reading.said[-8:])
        found = [sentence for item in heard[-4:] for sentence in sentences(item.text, 6)]
        if not found:
            return self.draft.draw(phrases.OPEN)
        return found[self.dice(name, who) % len(found)]

    def reasons(self, who: str) -> str:
        """Weigh one debater, or all of them, by what they said."""
        judged = [who] if who else list(self.people[:4])
        weighed = " ".join(self._weighed(person) for person in judged)
        if who:
            return weighed
        winner = self.winner()
        if winner == TIE:
            return f"{weighed} Neither side leaves the other behind, so this is a tie."
        return f"{weighed} On balance {winner} did more to carry the point on “{short(self.reading.topic)}”."

    def _weighed(self, who: str) -> str:
        heard = self.by(who)
        found = [(item, sentence) for item in heard[-3:] for sentence in sentences(item.text, 4)]
        if not found:
            return f"{who} left “{short(self.reading.topic)}” largely open."
        item, sentence = found[self.dice("weigh", who) % len(found)]
        cite = f" [{item.id}]" if item.id else ""
        verdict = "and supports it" if self.strength(who) > 0.5 else "and leaves it half supported"
        return f"{who} argues “{snippet(sentence, self.dice('snippet'))}”{cite} {verdict}."

    def _wants_solution(self) -> bool:
        asked = self.reading.instruction.lower()
        return self.reading.purpose != "judge" or "solution" in asked or "synthes" in asked
