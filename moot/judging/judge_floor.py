"""Floor of a judge's prompt: quotations that it always shows, even if most messages do not fit.

For each debater, the floor has the main sentence of the opening, each stated change of position, and the last
position. A table then lists every criticism with the sentence that answers it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from moot.claims.ledger_from_events import ledger_of
from moot.prompts.debate_context import DebateContext
from moot.state.conversation import StateValues
from moot.state.entries import Entry, critique_labels, traits_of
from moot.text.plain_text import clip, count_noun
from moot.text.terms import split_sentences

HEADING = (
    "# What was said, in quotations\n"
    "A program chose these sentences, because not all messages fit below. They are the main sentence of "
    "each debater's opening, each stated change of position, the last position, and each criticism with its "
    "answer."
)
LEVELS = ((240, 100), (160, 24), (110, 12), (80, 6), (60, 2), (60, 0))
"""Limits to try until the floor fits: characters of a quotation, and changes a debater. All sides have the
same limits. 240 characters hold 9 of 10 sentences of the sample debates."""
_NUMBERED = re.compile(r"\s*\**\(?(\d{1,2})[.)]\s+")


class Quotation(NamedTuple):
    """A sentence of a message."""

    what: str
    """What the sentence is, such as `Opening`."""
    message_id: str
    text: str


class Criticism(NamedTuple):
    """One point of a critique, with the sentence that answers it."""

    label: str
    """Label of the point, such as `1A.2`."""
    entry: Entry
    point: str
    answer: Quotation | None
    """Sentence of the criticised debater that names the label. `None`: no message does."""


def main_sentence(text: str) -> str:
    """Return the first sentence of a message that is neither a heading nor code."""
    sentences = split_sentences(text)
    prose = (each.text for each in sentences if each.kind not in ("heading", "code"))
    return next(prose, sentences[0].text if sentences else "")


def debater_quotations(
    debate: DebateContext, argued: Sequence[Entry], debater: str
) -> tuple[Quotation | None, list[Quotation], Quotation | None]:
    """Return a debater's opening, changes of position and last position."""
    speeches = [entry for entry in argued if entry["speaker"] == debater and entry["kind"] != "critique"]
    if not speeches:
        return None, [], None
    ledger = ledger_of(debate.state)
    events = [event for event in ledger.events if event["debater"] == debater]
    main = {event["message_id"]: event["quote"] for event in events if event["claim"] in ledger.proposals}

    def position(entry: Entry) -> str:
        return main.get(entry["id"]) or main_sentence(entry["content"])

    changes = [
        Quotation("Change", change.event["message_id"], change.event["quote"])
        for change in ledger.changes
        if change.event["debater"] == debater
    ]
    changes += [
        Quotation(f"Revised proposal of round {entry['round']}", entry["id"], position(entry))
        for entry in speeches[1:-1]
        if traits_of(entry).proposes
    ]
    changes.sort(key=lambda quotation: quotation.message_id)
    opening = Quotation("Opening", speeches[0]["id"], position(speeches[0]))
    last = Quotation("Last position", speeches[-1]["id"], position(speeches[-1])) if speeches[1:] else None
    return opening, changes, last


def criticisms(transcript: Sequence[Entry]) -> Iterator[Criticism]:
    """Yield each numbered point of each critique, or the main sentence of a critique without numbers."""
    labels = critique_labels(transcript)
    for entry in transcript:
        if entry["kind"] != "critique":
            continue
        answers = [
            (later["id"], sentence.text)
            for later in transcript[entry["seq"] + 1 :]
            if later["speaker"] in entry["targets"] and traits_of(later).proposes
            for sentence in split_sentences(later["content"])
        ]
        sentences = split_sentences(entry["content"])
        numbered = [
            (mark[1], each.text[mark.end() :])
            for each in sentences
            if each.kind == "bullet" and (mark := _NUMBERED.match(each.text))
        ]
        for number, point in numbered or [("", main_sentence(entry["content"]))]:
            label = labels[entry["id"]] + (f".{number}" if number else "")
            answer = next(
                (Quotation("", key, text) for key, text in answers if names_label(text, label)), None
            )
            yield Criticism(label, entry, point, answer)


def names_label(text: str, label: str) -> bool:
    """Return True if a text names the label of a criticism or of one of its points."""
    return re.search(rf"(?<!\w){re.escape(label)}(?!\.?\d)", text) is not None


def adoption_text(state: StateValues) -> str:
    """Return which points of criticism the latest proposals claim to adopt without doing it, or `""`.

    The text names the points by their labels, and the proposals by their ids.
    """
    checks = state.get("convergence") or []
    adopted = checks[-1].get("adopted", []) if checks else []
    if not adopted:
        return ""
    missing = [f"{each['point']} [{each['message_id']}]" for each in adopted if not each["sentence"]]
    count = f"the proposals say that they adopt {count_noun(len(adopted), 'point')}"
    gap = f"No sentence of the new proposal does this for {', '.join(missing)}."
    return f"In round {checks[-1]['round']}, {count}. {gap if missing else 'A sentence does each of them.'}"


def floor_lines(
    debate: DebateContext,
    argued: Sequence[Entry],
    labels: Mapping[str, str],
    *,
    chars: int,
    max_changes: int,
) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the lines of the floor, each as its label and its quotation, and the ids that they cite."""
    lines: list[tuple[str, str]] = []
    cited: list[str] = []

    def add(label: str, quotation: Quotation) -> None:
        text = " ".join(quotation.text.replace("**", "").split())
        lines.append((f"{label} [{quotation.message_id}]: ", f"“{clip(text, chars)}”"))
        cited.append(quotation.message_id)

    for debater, name in labels.items():
        opening, changes, last = debater_quotations(debate, argued, debater)
        if opening is None:
            continue
        lines.append((f"\n{name}", ""))
        newest = changes[len(changes) - max_changes :] if max_changes < len(changes) else changes
        for quotation in (opening, *newest, *filter(None, [last])):
            add(f"- {quotation.what}", quotation)
        if left_out := len(changes) - len(newest):
            lines.append((f"- {left_out} earlier changes are left out.", ""))
    rows = list(criticisms(debate.state["full_transcript"]))
    newest_rows = rows[-max_changes * len(labels) :] if max_changes else []
    if newest_rows:
        lines.append(("\nCriticisms, each with the sentence that answers it", ""))
    for row in newest_rows:
        critic, *targets = (labels.get(key, key) for key in (row.entry["speaker"], *row.entry["targets"]))
        heading = f"- {row.label}, {critic}" + (f" on {', '.join(targets)}" if targets else "")
        add(heading, Quotation("", row.entry["id"], row.point))
        if row.answer:
            add("  Answer", row.answer)
        else:
            lines.append(("  No later proposal names this point.", ""))
    if left_out := len(rows) - len(newest_rows):
        lines.append((f"- {left_out} earlier criticisms are left out.", ""))
    return lines, list(dict.fromkeys(cited))
