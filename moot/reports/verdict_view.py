"""Parts of a report: the verdicts, the participants and the transcript, ready to be rendered."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import cast

from moot.config.rubrics import parse_rubric, shipped_rubrics
from moot.documents import DebateDocument, DocumentDebater, document_config
from moot.judging.draft_test import finding_lines
from moot.judging.verdict_fields import ShownField, changed_text, confidence_of, shown
from moot.protocols.base import Protocol
from moot.protocols.registry import protocol_of
from moot.reports.markdown_html import group_digits
from moot.state import verdict as verdict_types
from moot.state.entries import ENTRY_ID, Entry, message_count
from moot.state.errors import ConfigError

_JUDGES = {"": "an unnamed judge", "judge": "the judge", verdict_types.PANEL: "the panel"}
_FULL = 100.0
"""Highest total score or confidence that a judge can give."""


@dataclass(frozen=True)
class Score:
    """A debater's score for one criterion of the rubric, or the debater's total score."""

    person: "Participant"
    value: float | None
    share: int
    """How much of the score bar is filled, in percent."""
    reasoning: str = ""
    citations: tuple[str, ...] = ()


@dataclass(frozen=True)
class CriterionRow:
    """A criterion of the rubric with each debater's score."""

    name: str
    scores: tuple[Score, ...]


class VerdictView:
    """A verdict with all data needed to render it. A failed verdict never names a winner."""

    def criterion_name(self, key: str) -> str:
        """Return the displayed name of a criterion."""
        scales = {scale["id"]: scale["name"] for scale in self.record.get("criteria", [])}
        return scales.get(key) or key.replace("_", " ").replace("-", " ").capitalize()

    def __init__(
        self,
        verdict: verdict_types.Verdict,
        people: "Participants",
        scales: Mapping[str, Sequence[verdict_types.CriterionScale]],
        protocol: Protocol,
    ) -> None:
        self.record = record = cast(verdict_types.PanelVerdict, verdict)
        """The verdict as stored. A single judge's verdict lacks the keys of a panel."""
        self.judge = _JUDGES.get(record["judge"], record["judge"])
        self.changed = changed_text(record)
        """Sentence about the parts of the judge's response that were changed. Empty without changes."""
        self.findings = finding_lines(record, {person.id: person.name for person in people.values()})
        """Findings of the test of the decision, and what came of them."""
        self.flipped = record["flip"]["flipped"]
        """True if the winner depends on the order of presentation. `None`: only one order was judged."""
        self.failed, self.placeholder = record["status"] == "failed", record.get("placeholder", False)
        self.solution = "" if self.failed else record["solution_markdown"]
        """Solution in Markdown, as the judge wrote it."""
        self.fields: Sequence[ShownField] = ()
        """Fields of the verdict that follow `top`."""
        self.winner: Participant | None = None
        self.confidence: int | None = None
        self.criteria: Sequence[CriterionRow] = ()
        self.totals: Sequence[Score] = ()
        self.outcome: verdict_types.RuleResult | None = None
        """Result of the panel's voting rule. `None` for a single judge's verdict."""
        self.considered: Sequence[verdict_types.ConsideredOption] = ()
        """Options that the debate considered, with their outcome."""
        self.by_criterion: Sequence[verdict_types.CriterionResult] = ()
        """How far the decision meets each criterion."""
        self.checks: Sequence[verdict_types.OpenCheck] = ()
        """Questions to answer before somebody acts on the decision."""
        self.positions: Mapping[str, str] = {}
        """Final position of each debater, by debater id."""
        if self.failed or self.placeholder:  # no judge's opinion
            self.headline = (
                verdict_types.PLACEHOLDER.capitalize() if self.placeholder else "The verdict failed"
            )
            self.top, self.top_label = self.headline, protocol.result
            return
        names = {person.id: person.name for person in people.values()}
        self.headline = protocol.headline(record, names)
        if record["winner"] and record["winner"] not in verdict_types.NO_WINNER:
            self.winner = people[record["winner"]]
        self.confidence = confidence_of(record)
        fields = {
            field.name: field
            for field in shown(record, names, headline=self.headline, winner_label=protocol.result)
        }
        fields.pop("question", None)  # the title of the report
        top = fields.pop("decision", None) or fields.pop("winner", None)
        self.top = top.text if top else self.headline
        self.top_label = top.label if top else protocol.result
        self.criteria = _criteria(record, people, record.get("criteria") or scales.get(record["rubric"], []))
        totals = {people[key].id: total for key, total in record["totals"].items()}
        self.totals = [
            Score(person, totals[person.id], _bar(totals[person.id] / _FULL))
            for person in _in_order(record["totals"], people)
        ]
        self.outcome = record.get("outcome") if record["judge"] == verdict_types.PANEL else None
        self.considered = record.get("considered", [])
        self.by_criterion = record.get("by_criterion", [])
        self.checks = record.get("checks", [])
        fields.pop("checks", None)  # reports show a table of them
        self.positions = record.get("final_position", {})
        self.fields = tuple(fields.values())


class Panel:
    """Decision of a debate, together with the verdict of each judge."""

    def __init__(self, document: DebateDocument, people: "Participants") -> None:
        """Find the verdicts behind the decision, and the earlier and later ones.

        The verdicts are told apart by the number of their judging. In documents without numbers, the last
        verdicts are those behind the decision.
        """
        decision, verdicts = document["verdict"], document["verdicts"]
        self.agreement = agreement = document.get("agreement", {})
        self.alpha = agreement.get("alpha")
        """Krippendorff's α of the judges' scores."""
        if number := decision.get("judging", 0) if decision else 0:
            current = [verdict for verdict in verdicts if verdict.get("judging", 0) == number]
            earlier = [verdict for verdict in verdicts if verdict.get("judging", 0) < number]
            later = [verdict for verdict in verdicts if verdict.get("judging", 0) > number]
        else:
            later = [verdict for verdict in verdicts if verdict.get("judging")] if decision else []
            unnumbered = [verdict for verdict in verdicts if verdict not in later]
            judge_count = agreement.get("judges", 0) + agreement.get("failed", 0)
            start = max(0, len(unnumbered) - judge_count) if judge_count else 0
            current, earlier = unnumbered[start:], unnumbered[:start]
        scales, protocol = _named_scales(document), protocol_of(document)

        def views(records: Sequence[verdict_types.Verdict]) -> tuple[VerdictView, ...]:
            return tuple(VerdictView(verdict, people, scales, protocol) for verdict in records)

        self.verdicts = views(current)
        """Verdicts behind the decision."""
        self.earlier = views(earlier)
        """Verdicts of earlier judgings, oldest first."""
        self.later = views(later)
        """Verdicts of later judgings that all failed."""
        failed = all(verdict["status"] == "failed" for verdict in verdicts)
        last_failed = verdicts[-1:] if failed else []
        self.decision = next(iter(views([decision] if decision else last_failed)), None)
        """The decision, or the failed verdict of a single judge."""
        kappa, unanimous = agreement.get("kappa"), agreement.get("unanimous")
        figures = (
            ("Mean pairwise κ of the judges", "" if kappa is None else f"{kappa:.2f}"),
            ("Unanimous", {True: "yes", False: "no", None: ""}[unanimous]),
            ("Failed judges", str(agreement.get("failed") or "")),
        )
        self.others = tuple((name, value) for name, value in figures if value)
        """Further figures on the judges' agreement, as (name, value) pairs."""


def _named_scales(document: DebateDocument) -> dict[str, list[verdict_types.CriterionScale]]:
    """Return the scoring scales of all rubrics, keyed by rubric name."""
    rubrics = shipped_rubrics()
    judge = document_config(document).judge
    for spec in (judge, *judge.panel):
        with suppress(ConfigError):  # a built-in rubric, or an unknown name
            rubric = parse_rubric(spec.rubric)
            rubrics = {**rubrics, rubric.name: rubric}
    return {name: rubric.scales() for name, rubric in rubrics.items()}


def _criteria(
    record: verdict_types.Verdict, people: "Participants", scales: Sequence[verdict_types.CriterionScale]
) -> tuple[CriterionRow, ...]:
    """Return one table row per criterion, with each debater's score."""
    scores_by_debater = {people[key].id: records for key, records in record["scores"].items()}
    scored = dict.fromkeys(criterion for records in scores_by_debater.values() for criterion in records)
    scale_by_id = {scale["id"]: scale for scale in scales}
    rows = []
    for key in [
        *(key for key in scale_by_id if key in scored),
        *(key for key in scored if key not in scale_by_id),
    ]:
        debater_scores = [
            (person, scores_by_debater[person.id].get(key)) for person in _in_order(record["scores"], people)
        ]
        top = max((score["score"] for _, score in debater_scores if score), default=0.0)
        # If the scale is unknown, its maximum is 10, 100, or the highest score if that is above 100.
        name, low, high = key.replace("_", " ").capitalize(), 0.0, 10.0 if top <= 10 else max(top, _FULL)
        if scale := scale_by_id.get(key):
            name, low, high = scale["name"], scale["scale_min"], scale["scale_max"]
        scores = []
        for person, score in debater_scores:
            if score is None:
                scores.append(Score(person, None, 0))
                continue
            share = (score["score"] - low) / (high - low) if high > low else 0.0
            citations = tuple(score["citations"])
            scores.append(Score(person, score["score"], _bar(share), score["reason"], citations))
        rows.append(CriterionRow(name, tuple(scores)))
    return tuple(rows)


def _bar(share: float) -> int:
    return round(100 * min(max(0.0, share), 1.0))


def _in_order(keys: Iterable[str], people: "Participants") -> "list[Participant]":
    participants = {people[key].id: people[key] for key in keys}
    others = [person for key, person in participants.items() if key not in people]
    return [person for person in people.values() if person.id in participants] + others


COLOUR_COUNT = 8
"""Number of colors that distinguish debaters in a report. Further debaters reuse a color; monograms tell
them apart."""

_SYSTEM_SPEAKERS = {"moot": "Moot", "user": "Person", "moderator": "Moderator", "tools": "Tools"}


@dataclass(frozen=True)
class Participant:
    """A speaker in the report on a debate."""

    id: str
    name: str
    tone: str
    """CSS class for the speaker's color, such as `d0` for the first debater. The class of speakers who are
    not debaters is `house`."""
    monogram: str
    """Short label that identifies the speaker without color. It has up to three letters, or a letter and a
    number. Unique among debaters."""
    role: str = ""
    stance: str = ""
    turns: int = 0
    words: int = 0


class Participants(dict[str, Participant]):
    """Mapping from debater id to debater, in the order of the configuration.

    Looking up an unknown id returns a participant, but does not add it to the mapping.
    """

    def __init__(self, document: DebateDocument) -> None:
        super().__init__()
        turns, words = Counter[str](), Counter[str]()
        for entry in document["transcript"]:
            turns[entry["speaker"]] += 1
            words[entry["speaker"]] += len(entry["content"].split())
        config_debaters = {each.id or each.name: each for each in document_config(document).debaters}
        config_debaters.pop("", None)
        speaker_ids = [key for key in turns if key and key not in _SYSTEM_SPEAKERS]
        unknown_debater = DocumentDebater()
        monograms, numbers = set[str](), Counter[str]()
        for index, (key, debater) in enumerate(
            (config_debaters or dict.fromkeys(speaker_ids, unknown_debater)).items()
        ):
            name = debater.name.strip() or key
            self[key] = Participant(
                key,
                name,
                f"d{index % COLOUR_COUNT}",
                _monogram(name, monograms, numbers),
                debater.role,
                debater.stance,
                turns[key],
                words[key],
            )
        self._by_name = {person.name: person for person in reversed(self.values())}

    def __missing__(self, key: str) -> Participant:
        """Return the debater with this name, or a participant who is no debater."""
        name = _SYSTEM_SPEAKERS.get(key, key or "Unknown")
        return self._by_name.get(key) or Participant(key, name, "house", name[:1].upper())

    def choice(self, key: str) -> str:
        """Return a judge's choice for display: the winner's name, a tie or no winner."""
        return verdict_types.NO_WINNER.get(key) or (self[key].name if key in self else key)


def _monogram(name: str, monograms: set[str], numbers: Counter[str]) -> str:
    """Add unique initials to `monograms`, if need be a letter and its next number."""
    words = [word for word in "".join(c if c.isalnum() else " " for c in name).split() if word]
    letters = "".join(words) or "?"
    initials = "".join(word[0] for word in words[:2]) or "?"
    options = [initials, letters[:2], *(letters[0] + letter for letter in letters[1:])]
    monogram = next((short for each in options if (short := each.upper()[:3]) not in monograms), "")
    letter = letters[0].upper()
    while not monogram:
        numbers[letter] += 1
        candidate = f"{letter}{numbers[letter]}"
        monogram = "" if candidate in monograms else candidate
    monograms.add(monogram)
    return monogram


BLOCK = 100
"""Maximum number of messages in one block of the transcript. A browser lays out such a block without
delay."""
MAX_ROUND_BLOCKS = 40
"""Maximum number of rounds that each get a block of their own in the transcript. If there are more, short
rounds share blocks."""
OPEN_UP_TO = 24
"""Maximum number of messages in a transcript that is fully expanded at first."""
LAZY_ABOVE = 300
"""Maximum number of messages in a transcript that is rendered at once. The blocks of a longer transcript are
rendered when a reader opens them."""
LAZY_CHARACTERS = 1_000_000
"""Maximum number of characters in a transcript that is rendered at once. The blocks of a longer transcript
are rendered when a reader opens them."""


@dataclass(frozen=True)
class Message:
    """A transcript entry with all data needed to render it."""

    entry: Entry
    anchor: str
    label: str
    person: Participant
    new_phase: bool
    """True if the report shows the phase's name above this message. It does so above the first message of
    each phase or block."""
    targets: tuple[tuple[str, str], ...]
    """Messages to which this message replies, each as a name and an HTML anchor. For a debater as the target,
    the anchor is empty."""
    view: str
    """Prompt size and token budget of the message as text, such as `900 of 4,000`. Empty if unknown."""


class Fold:
    """Block of consecutive messages that readers can expand and collapse."""

    def __init__(self, title: str, messages: Sequence[Message]) -> None:
        self.title, self.messages = title, messages
        self.count = message_count(message.entry for message in messages)
        """Number of messages in the block, without the topic, documents, tool results and notices."""
        first, last = messages[0].label, messages[-1].label
        self.span = first if len(messages) == 1 else f"{first} – {last}"
        """Ids of the first and the last message in the block, as one string."""
        self.people = list({message.person.id: message.person for message in messages}.values())
        """Speakers in this block, in order of appearance."""


class Transcript:
    """The whole transcript, split into blocks that readers can expand and collapse."""

    def __init__(self, document: DebateDocument, people: Participants, anchors: Mapping[str, str]) -> None:
        entries = document["transcript"]
        self.count = message_count(entries)
        """Number of messages, without the topic, documents, tool results and notices."""
        characters = sum(len(entry["content"]) for entry in entries)
        self.lazy = len(entries) > LAZY_ABOVE or characters > LAZY_CHARACTERS
        """True if the transcript's blocks are stored in `<template>` elements."""
        self.open = len(entries) <= OPEN_UP_TO
        self.blocks: list[Fold] = []
        views = {}
        for receipt in document["receipts"]:
            tokens, budget = group_digits(receipt["total_tokens"]), group_digits(receipt["budget"])
            views[receipt["entry_id"]] = f"{tokens} of {budget}"
        chunks, used_anchors = _chunks(entries), set[str]()
        for title, chunk in zip(_titles(chunks), chunks, strict=True):
            messages: list[Message] = []
            for entry in chunk:
                anchor = anchors[entry["id"]]
                message = Message(
                    entry=entry,
                    anchor="" if anchor in used_anchors else anchor,
                    label=entry["id"] or anchor,
                    person=people[entry["speaker"]],
                    new_phase=entry["phase"] not in ("", messages[-1].entry["phase"] if messages else ""),
                    targets=tuple(
                        (target, anchors[target]) if target in anchors else (people[target].name, "")
                        for target in entry["targets"]
                    ),
                    view=views.get(entry["id"], ""),
                )
                messages.append(message)
                used_anchors.add(anchor)
            self.blocks.append(Fold(title, messages))


def anchors_of(entries: Sequence[Entry]) -> dict[str, str]:
    """Return the HTML element id of each entry id: itself, or if invalid `e` and its position."""
    anchors: dict[str, str] = {}
    for position, entry in enumerate(entries):
        key = entry["id"]
        anchors.setdefault(key, key if ENTRY_ID.fullmatch(key) else f"e{position}")
    return anchors


def _chunks(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Split entries into blocks by round, or at `BLOCK` messages. Short rounds share a block."""
    rounds = [list(run) for _, run in groupby(entries, key=lambda entry: entry["round"])]
    pieces = [run[start : start + BLOCK] for run in rounds for start in range(0, len(run), BLOCK)]
    if len(rounds) <= MAX_ROUND_BLOCKS:
        return pieces
    packed: list[list[Entry]] = []
    for piece in pieces:
        if packed and len(packed[-1]) + len(piece) <= BLOCK:
            packed[-1].extend(piece)
        else:
            packed.append(list(piece))
    return packed


def _titles(chunks: Sequence[Sequence[Entry]]) -> list[str]:
    """Return a title for each block, such as `Round 2` or `Messages 1–20`."""
    titles: list[str] = []
    offset = 0
    in_rounds = any(entry["round"] for chunk in chunks for entry in chunk)
    for chunk in chunks:
        first, last = chunk[0]["round"], chunk[-1]["round"]
        if not in_rounds:
            name = f"Messages {offset + 1}–{offset + message_count(chunk)}"
        elif first == last:
            name = f"Round {first}" if first else "Opening"
        else:
            name = f"Rounds {first}–{last}" if first else f"Opening and rounds 1–{last}"
        is_continued = bool(titles) and titles[-1].removesuffix(", continued") == name
        titles.append(f"{name}, continued" if is_continued else name)
        offset += message_count(chunk)
    return titles
