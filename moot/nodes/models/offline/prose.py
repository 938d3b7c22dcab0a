"""The offline model's speeches: phrases chosen by hash, filled with the topic's and the others' words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from moot.nodes.models.offline import phrases
from moot.nodes.models.offline.reading import Reading, Utterance
from moot.nodes.models.offline.words import around, sentences, short, snippet, telling

_FIXED = re.compile(r"\{\w+\}")
_SENTENCE_START = re.compile(r"(?:^|(?<=[.?!] ))[a-z]")
REPORT_POINTS = 10


class Speech:
    """One answer in the making: draws phrases that were not used lately, and fills their slots."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.other: Utterance | None = reading.addressed()
        self._used: set[str] = set()
        self._drawn = 0
        self._slots = self._fill()

    def draw(self, pool: Sequence[str], *, to: Utterance | None = None) -> str:
        """Return a filled phrase of the pool, one whose wording is not among the last things said."""
        self._drawn += 1
        first = self.reading.dice("draw", self._drawn)
        order = [pool[(first + step) % len(pool)] for step in range(len(pool))]
        chosen = next((phrase for phrase in order if not self._heard(_mark(phrase))), order[0])
        self._used.add(_mark(chosen))
        slots = self._slots if to is None else {**self._slots, **self._about(to)}
        text = chosen.format_map({**slots, **self._numbers()})
        return _SENTENCE_START.sub(lambda start: start.group().upper(), text)

    def argument(self) -> str:
        """Return an argument of a scheme that the last speeches did not use, as far as there is one."""
        schemes = list(phrases.ARGUE)
        first = self.reading.dice("scheme", self._drawn)
        pool = [
            phrase for step in range(3) for phrase in phrases.ARGUE[schemes[(first + step) % len(schemes)]]
        ]
        return self.draw(pool)

    def answer(self) -> str:
        """Return an answer to what another said: mostly against, sometimes with, sometimes conceding."""
        if self.other is None:
            return self.draw(phrases.OPEN)
        mood = self.reading.dice("mood") % 12
        if mood < 7:
            return self.draw(phrases.REBUT)
        return self.draw(phrases.BUILD if mood < 10 else phrases.CONCEDE)

    def end(self) -> str:
        """Return how a speech ends: a stand, a question, or, rarely, a shift."""
        mood = self.reading.dice("end") % 24
        if self.other is not None and mood == 0:
            return self.draw(phrases.SHIFT)
        if self.other is not None and mood < 8:
            return self.draw(phrases.QUESTION)
        return self.draw(phrases.CLOSE)

    def _heard(self, mark: str) -> bool:
        return mark in self._used or mark in self.reading.recent

    def _fill(self) -> dict[str, str]:
        reading = self.reading
        first = reading.focus[reading.dice("a") % len(reading.focus)]
        others = [phrase for phrase in around(reading.topic) if phrase != first]
        goals, risks = phrases.GOALS[reading.side], phrases.RISKS[reading.side]
        return {
            "a": first,
            "b": others[reading.dice("b") % len(others)],
            "topic": short(reading.topic),
            "stance": short(reading.stance, 60),
            "goal": goals[reading.dice("goal") % len(goals)],
            "risk": risks[reading.dice("risk") % len(risks)],
            "answer": {1: "yes", -1: "no", 0: "both, with a condition"}[reading.side],
            **self._about(self.other),
        }

    def _about(self, other: Utterance | None) -> dict[str, str]:
        said = sentences(other.text) if other else []
        if other is None or not said:
            return {"who": "the other side", "quote": short(self.reading.topic), "x": self.reading.focus[0]}
        sentence = said[self.reading.dice("sentence", other.id) % len(said)]
        quote = snippet(sentence, self.reading.dice("quote", other.id))
        long_words = telling(quote) or [self.reading.focus[0]]
        return {
            "who": other.who or "my earlier self",
            "quote": quote,
            "x": long_words[self.reading.dice("x", other.id) % len(long_words)],
        }

    def _numbers(self) -> dict[str, str]:
        dice = self.reading.dice("numbers", self._drawn)
        return {"n": str(2 + dice % 8), "m": str(3 + dice // 8 % 5), "p": str(10 + 5 * (dice // 64 % 11))}


def compose(reading: Reading) -> str:
    """Return the text that fits a prompt's purpose and phase."""
    if reading.purpose in ("summary", "perspective") or reading.phase == "summary":
        return report(reading)
    write = _FORMS.get(reading.phase, speech)
    return write(Speech(reading))


def speech(draft: Speech) -> str:
    """Answer, argue, support, end: the ordinary turn."""
    parts = [draft.answer(), draft.argument(), draft.draw(phrases.SUPPORT)]
    if draft.reading.dice("long") % 2:
        parts.insert(2, draft.argument())
    if draft.reading.stance and draft.reading.dice("stand") % 4 == 0:
        parts.append(draft.draw(phrases.STAND))
    return _paragraphs([*parts, draft.end()], draft.reading)


def opening(draft: Speech) -> str:
    """Say where one stands and give the strongest reasons."""
    parts = [draft.draw(phrases.OPEN), draft.argument(), draft.draw(phrases.SUPPORT)]
    if draft.reading.stance:
        parts.append(draft.draw(phrases.STAND))
    return _paragraphs([*parts, draft.draw(phrases.CLOSE)], draft.reading)


def reply(draft: Speech) -> str:
    """A short answer to one speaker."""
    return " ".join((draft.answer(), draft.draw(phrases.SUPPORT), draft.end()))


def alone(draft: Speech) -> str:
    """Answer a question, with a last line to be counted where one is asked for."""
    text = opening(draft)
    return f"{text}\n\n{draft.draw(['Answer: {answer}'])}" if "Answer:" in draft.reading.instruction else text


def closing(draft: Speech) -> str:
    """The strongest point, a concession, what would settle the rest."""
    parts = [draft.argument()]
    if draft.other is not None:
        parts.append(draft.draw(phrases.CONCEDE))
    return _paragraphs([*parts, draft.draw(phrases.ADVICE), draft.draw(phrases.CLOSE)], draft.reading)


def crux(draft: Speech) -> str:
    """A position on one claim, with what would refute it."""
    parts = [draft.draw(phrases.CRUX), draft.argument()]
    return " ".join((*parts, draft.draw(phrases.QUESTION if draft.other else phrases.CLOSE)))


def steelman(draft: Speech) -> str:
    """The other side's case at its best, and where it still fails."""
    return " ".join((draft.draw(phrases.STEELMAN), draft.draw(phrases.SUPPORT), draft.draw(phrases.WEAKNESS)))


def proposal(draft: Speech) -> str:
    """A proposal in Markdown."""
    return _document(draft, "Proposal", draft.draw(phrases.OPEN))


def refinement(draft: Speech) -> str:
    """The proposal again, with what its critics changed."""
    critics = {item.who: item for item in draft.reading.others[-6:] if sentences(item.text, 1)}
    changes = [
        f"- {draft.draw((phrases.REBUT, phrases.CONCEDE)[index % 2], to=item)} {draft.draw(phrases.ADVICE)}"
        for index, item in enumerate(list(critics.values())[:4])
    ]
    listed = "\n".join(changes) or f"- {draft.draw(phrases.ADVICE)}"
    return f"## What changes\n{listed}\n\n{_document(draft, 'Refined proposal', draft.draw(phrases.CLOSE))}"


def critique(draft: Speech) -> str:
    """What is sound in a proposal, what is not, and what to do about it."""
    return (
        f"**What holds.** {draft.draw(phrases.MERIT)}\n\n"
        f"**What does not.**\n- {draft.draw(phrases.WEAKNESS)}\n- {draft.draw(phrases.WEAKNESS)}\n\n"
        f"**Question.** {draft.draw(phrases.QUESTION)}\n\n"
        f"**Suggestion.** {draft.draw(phrases.ADVICE)}"
    )


def clarification(draft: Speech) -> str:
    """Questions to whoever set the topic."""
    return "\n".join(f"{index}. {draft.draw(phrases.CLARIFY)}" for index in (1, 2, 3))


def report(reading: Reading) -> str:
    """What was said, one point a speaker, with the entry's id."""
    said = [item for item in reading.said[-4 * REPORT_POINTS :] if sentences(item.text, 1)]
    if not said:
        found = sentences(reading.instruction, REPORT_POINTS)
        return (
            "\n".join(f"- {sentence}" for sentence in found) or f"On “{short(reading.topic)}”: nothing yet."
        )
    points = []
    for item in said[-REPORT_POINTS:]:
        found = sentences(item.text)
        cite = f" [{item.id}]" if item.id else ""
        sentence = found[reading.dice("point", item.id, item.who) % len(found)].rstrip(".")
        points.append(f"- {item.who or 'Speaker'}: {sentence}.{cite}")
    return f"On “{short(reading.topic)}”:\n" + "\n".join(points)


def _document(draft: Speech, title: str, summary: str) -> str:
    steps = "\n".join(f"{index}. {draft.draw(phrases.STEPS)}" for index in (1, 2, 3))
    return (
        f"## {title}\n{summary}\n\n"
        f"### Why\n{draft.argument()} {draft.draw(phrases.SUPPORT)}\n\n"
        f"### Steps\n{steps}\n\n"
        f"### What it gives up\n{draft.argument()}\n\n"
        f"### How we would know\n{draft.draw(phrases.ADVICE)}"
    )


def _paragraphs(parts: list[str], reading: Reading) -> str:
    if reading.dice("break") % 3 or len(parts) < 3:
        return " ".join(parts)
    return f"{' '.join(parts[:2])}\n\n{' '.join(parts[2:])}"


def _mark(phrase: str) -> str:
    return max(_FIXED.split(phrase), key=len).strip()


_FORMS: dict[str, Callable[[Speech], str]] = {
    "propose": proposal,
    "proposal": proposal,
    "critique": critique,
    "refine": refinement,
    "refinement": refinement,
    "clarify": clarification,
    "answer": alone,
    "opening": opening,
    "closing": closing,
    "take": opening,
    "respond": speech,
    "reply": reply,
    "position": crux,
    "crux": crux,
    "steelman": steelman,
}
