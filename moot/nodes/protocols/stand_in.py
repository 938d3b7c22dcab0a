"""Forecasts: a stand-in for a debate walks the protocol's own steps and counts the calls that they make.

Nobody speaks in it: its entries are as long as the prompts ask for. Where the debate itself decides what
comes next, it is walked three times: as short as it can be, as planned, and as long as it can be.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from moot.nodes.blackboard.rooms import awaits_second, to_assess
from moot.nodes.calls import Purpose, Reply
from moot.nodes.judging.opinions import opinion_tokens, reasons_each
from moot.nodes.judging.orders import presentation_orders
from moot.nodes.judging.rubrics import rubric_for
from moot.nodes.memory.perspective import past_threshold, perspective_entries, perspective_settings
from moot.nodes.memory.summarizers.notes import PROSE_SHARE
from moot.nodes.memory.window import WindowLimits
from moot.nodes.people.questions import QUESTIONS_TOKENS
from moot.nodes.protocols.forecast import Batch, Forecast, Tokens
from moot.nodes.protocols.protocol import SPEECH_WORDS, TOKENS_PER_WORD, Consult, Course, End, Outlay
from moot.nodes.protocols.protocol_table import protocol_named
from moot.nodes.views.head import head_tokens
from moot.state.config import DebateConfig
from moot.state.config.memory_config import NO_SUMMARY
from moot.state.conversation import ConversationState, Floor, StateValues, Step
from moot.state.entries import Entry, EntryKind, make_entry
from moot.state.ledger import Note

MOST_STEPS = 100_000
"""Steps after which a debate is taken for one whose length nobody can say."""
CHARS_PER_TOKEN = 4.5
"""English, o200k."""
WITHOUT_CALLS = frozenset({"rule-based", NO_SUMMARY})
"""Methods of summaries that call no model; a plugged-in one is taken for one that does."""
ANY_TOPIC = "Any topic of many different words, to one of which whatever people claim may be related"
"""Stands for the topic where none is given."""

# What prompts and answers take beside the words asked for, in tokens, rounded from the prompts that ship.
SUMMARY_FRAME, JUDGE_FRAME = 250, 500
FINDINGS, INSIGHTS, CARD, QUESTION, SCORE, REASON, REST_OF_VERDICT = 250, 300, 300, 80, 60, 50, 600
KEPT_FREE = 500
"""Tokens of a summary's prompt that its input leaves free."""


def forecast(config: DebateConfig) -> Forecast | None:
    """Return what a run will take; `None` where its protocol comes to no end that can be seen beforehand."""
    planned, least, most = (StandIn(config, course) for course in ("planned", "least", "most"))
    if planned.is_decided:
        least = most = planned
    if not all([each.walk() for each in {id(each): each for each in (planned, least, most)}.values()]):
        return None
    batches = []
    for key in {**most.prompts, **planned.prompts}:
        seen = planned.prompts.get(key) or most.prompts[key]
        prompt = Tokens(sum(seen) / len(seen), config.memory.budget.total)
        times = [len(each.prompts.get(key, ())) for each in (planned, least, most)]
        reply = most.replies.get(key) or planned.replies[key]
        batches.append(Batch(*key, prompt, reply, *times))
    turns = planned.turns if planned.turns == most.turns else None
    return Forecast(tuple(batches), config.limits.concurrency, turns)


class StandIn:
    """A debate on one course, as its configuration lets it be seen beforehand."""

    def __init__(self, config: DebateConfig, course: Course) -> None:
        self.config, self.course, self.protocol = config, course, protocol_named(config.protocol)
        self.prompts: dict[tuple[Purpose, str, int], list[float]] = {}
        """Tokens of a prompt, each time, by purpose, phase and calls at the same time."""
        self.replies: dict[tuple[Purpose, str, int], Tokens] = {}
        topic = config.topic or ANY_TOPIC
        opened = {"topic": topic, "config": config.to_json(), "turn_count": 0, "round": 0}
        self.state = cast(
            ConversationState, {**opened, "full_transcript": [make_entry(0, "user", "topic", topic)]}
        )
        self._limits = WindowLimits.of(config.memory, head_tokens(topic, config, _tokens_in))
        self._window: list[float] = []
        """Tokens of each message in it."""
        self._compactions: list[tuple[int, dict[tuple[Purpose, str, int], int]]] = []
        """Of each, the turns before it and how many times there were of each batch."""
        self._past: Counter[str] = Counter()
        """Characters of each debater's perspective, once it has one."""
        self._summarised: dict[str, int] = {}
        """How many of them its last summary covers."""
        self._own_past = 0.0
        """Tokens that a debater is shown of its perspective, as the round begins."""
        self._unread = 0.0
        """Tokens of what no minutes have been taken of yet."""
        self._passed_over = 0
        """Tokens of the turns that were not walked one by one."""
        self._summary = 0
        """Tokens of the rolling summary, 0 before the first."""
        self._is_person = {debater.id: debater.is_human for debater in config.debaters}

    @property
    def turns(self) -> int:
        """Utterances so far, people's included."""
        return self.state["turn_count"]

    @property
    def is_decided(self) -> bool:
        """Whether the configuration alone decides which calls are made."""
        asked_once = not self.config.clarifications.enabled or self.config.clarifications.rounds == 1
        return asked_once and not self._is_read and self.protocol.is_decided(self.config)

    @property
    def _is_read(self) -> bool:
        return self.protocol.reads_by_model(self.config)

    def walk(self) -> bool:
        """Take every step; return whether the debate came to an end."""
        self._clarify()
        for _ in range(MOST_STEPS):
            following = self.protocol.next_step(self.state, self.config)
            while isinstance(following, Consult):
                self._spend(following.outlay)
                replies = (
                    following.supposed.get(self.course) or [Reply(error="not asked")] * following.outlay.calls
                )
                following = following.decide(replies)
            if isinstance(following, End):
                if not self.protocol.minutes_after:
                    self._take_minutes()
                self._judge()
                return True
            self._take(following)
            self._skip()
        return False

    def _skip(self) -> None:
        """Pass over turns that take what those before took, once the window fills and empties evenly."""
        until, every = self.protocol.repeats(self.config)
        ends = [turn for turn, _ in self._compactions]
        if not every or len(ends) < 2 or ends[-1] != self.turns:
            return
        taken = math.lcm(every, ends[-1] - ends[-2])
        since = self.turns - taken
        if since not in ends or since < every:  # the first round opens
            return
        before, times = dict(self._compactions)[since], max(0, until - self.turns) // taken
        for key, prompts in self.prompts.items():
            prompts += prompts[before.get(key, 0) :] * times
        said = self.state["full_transcript"][-taken:]
        self._passed_over += times * sum(entry["tokens"] for entry in said)
        self.state["turn_count"] += times * taken

    def _spend(self, outlay: Outlay) -> None:
        if outlay.calls:  # none are made for people
            budget, key = self.config.memory.budget, (outlay.purpose, outlay.phase, outlay.calls)
            tokens = outlay.frame + _tokens_in(self.state["topic"]) + outlay.shown
            self.prompts.setdefault(key, []).append(min(tokens, budget.total))
            reserve = budget.reply if outlay.reserve is None else outlay.reserve
            self.replies[key] = Tokens(min(outlay.reply, reserve), reserve)

    def _clarify(self) -> None:
        wanted = self.config.clarifications
        asking = self._models(self.config.names()) if wanted.enabled else 0
        for _ in range(1 if self.course == "least" else wanted.rounds):
            reply = QUESTION * wanted.max_per_debater
            self._spend(Outlay("clarify", "clarify", asking, reply=reply, reserve=QUESTIONS_TOKENS))

    def _models(self, speakers: Iterable[str]) -> int:
        """Return for how many of these a model is called, not a person asked."""
        return sum(not self._is_person[speaker] for speaker in speakers)

    def _take(self, step: Step) -> None:
        """Carry a step out, after the summaries that are due as a round begins."""
        if self.protocol.perspectives and step["round"] > self.state["round"] > 0:
            self._summarise_perspectives()
        memo, rooms = step.pop("memo", {}), step.pop("rooms", {})
        self._update({"step": step, "round": step["round"], "protocol_state": memo, "crux_rooms": rooms})
        if step["kind"] == "turn":
            self._speak(step)
        update, outlays = self.protocol.suppose(self.state, self.config, self.course)
        self._update(update)
        for outlay in outlays:
            self._spend(outlay)

    def _update(self, update: StateValues) -> None:
        """Put an update into the state as the channels' reducers would."""
        state = cast(dict[str, Any], self.state)
        for channel, value in update.items():
            known = state.get(channel)
            if channel != "step" and isinstance(value, dict):
                state[channel] = {**(known or {}), **value} if value else known or {}
            else:
                state[channel] = [*(known or ()), *value] if isinstance(value, list) else value

    def _speak(self, step: Step) -> None:
        """Give the floors of a step, read what is said, and look at crux rooms."""
        phase, floors, reading = step["phase"], step["floors"], self.config.blackboard
        words = self.protocol.words.get(phase, SPEECH_WORDS) * TOKENS_PER_WORD
        shown = self.protocol.shown(phase, self.config)
        if shown is None:
            shown = sum(self._window) + self._summary
        outlay = Outlay(
            "turn", phase, self._models(floor["speaker"] for floor in floors), shown + self._own_past, words
        )
        self._spend(replace(outlay, frame=self.protocol.frame))
        reserve = self.config.memory.budget.reply
        each = reserve if self.course == "most" else min(words, reserve)
        for floor in floors:
            self._enter(step, floor, each)
        said = len(floors) * each
        self._unread += said
        waits = any(awaits_second(room) for room in self.state.get("crux_rooms", {}).values())
        if (self.protocol.minutes_every_step and not waits) or phase == self.protocol.minutes_after:
            self._take_minutes()
        self._compact(each, len(floors))
        looked_at = to_assess(self.state)
        if self._is_read and looked_at:
            self._spend(Outlay("reflect", "crux cards", len(looked_at), shown, CARD, reading.reply))
        rooms = {
            room["id"]: {**room, "assessed": room["cycle"], "closed": room["cycle"] >= room["cycles"]}
            for room in looked_at
        }
        self._update({"crux_rooms": rooms})

    def _take_minutes(self) -> None:
        """Read what has not been read, look again at what counts, and reflect on it."""
        reading, said = self.config.blackboard, self._unread
        self._unread = 0.0
        if not self._is_read or not said:
            return
        notes = FINDINGS * len(self.config.debaters)
        self._spend(Outlay("extract", "record", 1, said, notes, reading.reply))
        if self.course == "most":
            if reading.second_look:
                self._spend(Outlay("extract", "second look", 1, said, notes, reading.reply))
            self._spend(Outlay("reflect", "reflection", 1, said, INSIGHTS, reading.reply))

    def _enter(self, step: Step, floor: Floor, tokens: float) -> None:
        """Put an utterance of so many tokens into the transcript."""
        transcript, chars = self.state["full_transcript"], int(tokens * CHARS_PER_TOKEN)
        entry = make_entry(
            len(transcript),
            floor["speaker"],
            cast(EntryKind, self.protocol.entry_kind(step["phase"])),
            "",
            phase=step["phase"],
            round=step["round"],
            room=floor["room"],
            targets=floor["targets"],
            tokens=int(tokens),
        )
        entry["content"] = " " * chars
        transcript.append(entry)
        self.state["turn_count"] += 1
        # Whoever speaks brings something new; one such note is enough to say so.
        earlier = [note for note in self.state.get("minutes", []) if note["note"] != "evidence"]
        self.state["minutes"] = [*earlier, _evidence_in(entry)]
        if self.protocol.perspectives:
            for debater in self._is_person:
                self._past[debater] += chars * len(perspective_entries([entry], debater))

    def _compact(self, each: float, entries: int) -> None:
        """Let what is over the high-water mark leave the window, and fold it into the summary."""
        memory, limits = self.config.memory, self._limits
        self._window += [each] * entries
        gone = len(self._window) - limits.kept(self._window)
        if not gone:
            return
        left = sum(self._window[:gone])
        if not self.protocol.minutes_after:
            self._take_minutes()
        self._window = self._window[gone:]
        if self.protocol.shows_summary and memory.summarizer not in WITHOUT_CALLS:
            new = min(left, memory.budget.total - KEPT_FREE)
            length = memory.budget.summary * PROSE_SHARE
            outlay = Outlay("summary", "rolling notes", 1, new, length, memory.budget.summary, SUMMARY_FRAME)
            self._spend(outlay)
            if self._summary:
                self._spend(replace(outlay, phase="rolling summary", shown=2 * length))
        self._summary = memory.budget.summary
        self._compactions.append((self.turns, {key: len(prompts) for key, prompts in self.prompts.items()}))

    def _summarise_perspectives(self) -> None:
        """Make the perspective summaries that are due, and note what debaters are shown of their past."""
        condensing = merging = 0
        shown: list[float] = []
        for debater in self._is_person:
            settings = perspective_settings(self.config, self.config.debater(debater))
            chars = self._past[debater]
            known = self._summarised.get(debater, 0) if settings.mode == "rolling" else 0
            is_due = settings.enabled and settings.is_passed(chars, chars / CHARS_PER_TOKEN)
            shown.append((min(chars, settings.max_chars) if is_due else chars) / CHARS_PER_TOKEN)
            if is_due and settings.method not in WITHOUT_CALLS:
                self._summarised[debater] = chars
                parts = self._parts((chars - known) / CHARS_PER_TOKEN)
                condensing += parts if parts > 1 else 0
                merging += 1
        self._own_past = sum(shown) / len(shown)
        self._summarise("perspective", condensing)
        self._summarise("perspective", merging)

    def _parts(self, tokens: float) -> int:
        """Return into how many calls the input of one summary is split."""
        room = max(self.config.memory.budget.total - KEPT_FREE, 64)
        return max(1, math.ceil(tokens / room))

    def _summarise(self, phase: str, calls: int) -> None:
        settings, budget = self.config.memory.perspectives, self.config.memory.budget
        length = settings.max_tokens or settings.max_chars / CHARS_PER_TOKEN
        threshold = settings.threshold_tokens or settings.threshold_chars / CHARS_PER_TOKEN
        self._spend(Outlay("summary", phase, calls, 1.5 * threshold, length, budget.summary, SUMMARY_FRAME))

    def _judge(self) -> None:
        """Ask for the verdict, where it does not follow by rule."""
        config, brief, state = self.config, self.protocol.brief, self.state
        if not (config.judge.enabled and brief.judged) or self.protocol.ruling(state, config):
            return
        settings, final = config.memory.perspectives, self.protocol.final_round(state)
        shown = 0.0
        if settings.enabled and past_threshold(final, settings):
            if settings.method not in WITHOUT_CALLS:
                self._summarise("judge's summary", 1)
            state["judge_summary"] = cast(Any, {"text": "any"})
            shown = settings.max_chars / CHARS_PER_TOKEN
        said, evidence = state["full_transcript"][1:], self.protocol.evidence(state)
        if not state.get("judge_summary"):
            evidence = None
        shown += sum(entry["tokens"] for entry in (said if evidence is None else evidence))
        shown += self._passed_over if evidence is None else 0
        speakers = list({entry["speaker"]: None for entry in said})
        swap = brief.swap if config.judge.swap is None else config.judge.swap
        orders = len(presentation_orders(speakers, swap=swap))
        criteria = len(rubric_for(config.judge.seats()[0], config, brief.rubric).criteria)
        sides = len(config.debaters)
        calls = len(config.judge.seats()) * orders
        reserve = max(config.judge.reply, opinion_tokens(sides, criteria, solution=brief.solution))
        reply = sides * (SCORE * criteria + 2 * REASON * reasons_each(sides)) + REST_OF_VERDICT
        self._spend(Outlay("judge", "verdict", calls, shown, reply, reserve, JUDGE_FRAME))


def _tokens_in(text: str) -> int:
    return int(len(text) / CHARS_PER_TOKEN)


def _evidence_in(entry: Entry) -> Note:
    """Return a note that an entry brought something."""
    return {
        "note": "evidence",
        "id": "x001",
        "kind": "case",
        "debater": entry["speaker"],
        "message_id": entry["id"],
        "quote": "",
        "proposition": "",
        "by": "rule",
    }
