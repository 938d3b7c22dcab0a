"""Forecasts: a stand-in for a debate walks the protocol's own steps and counts the calls that they make.

Nobody speaks in it: its entries are as long as the prompts ask for. Where the debate itself decides what
comes next, it is walked three times: as short as it can be, as planned, and as long as it can be.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, cast, get_type_hints

from langgraph.channels import DeltaChannel

from moot.nodes.blackboard.rooms import awaits_second, to_assess
from moot.nodes.calls import Purpose, Reply
from moot.nodes.judging.opinions import opinion_tokens, reasons_each
from moot.nodes.judging.orders import presentation_orders
from moot.nodes.judging.rubrics import rubric_for
from moot.nodes.memory.perspective import (
    due_debaters,
    past_threshold,
    perspective_entries,
    perspective_of,
    perspective_settings,
)
from moot.nodes.memory.summarizers.notes import PROSE_SHARE
from moot.nodes.memory.window import WindowLimits
from moot.nodes.people.questions import QUESTIONS_TOKENS
from moot.nodes.protocols.forecast import Batch, Forecast, Tokens
from moot.nodes.protocols.protocol import SPEECH_WORDS, TOKENS_PER_WORD, Consult, Course, End, Outlay
from moot.nodes.protocols.protocol_table import protocol_named
from moot.nodes.views.head import head_tokens
from moot.state.config import DebateConfig
from moot.state.config.memory_config import NO_SUMMARY
from moot.state.conversation import ConversationState, StateValues, Step
from moot.state.entries import Entry, JsonObject, make_entry
from moot.state.ledger import Evidence
from moot.state.reducers import latest

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

_REDUCERS = {
    channel: hint.__metadata__[0].reducer
    for channel, hint in get_type_hints(ConversationState, include_extras=True).items()
    if hasattr(hint, "__metadata__") and isinstance(hint.__metadata__[0], DeltaChannel)
}
"""How channels fold what is written to them; the others keep the last of it."""


def forecast(config: DebateConfig) -> Forecast | None:
    """Return what a run will take; `None` where its protocol comes to no end that can be seen beforehand."""
    planned = least = most = StandIn(config, "planned")
    if not planned.is_decided:
        least, most = StandIn(config, "least"), StandIn(config, "most")
    if not all(each.walk() for each in {planned, least, most}):
        return None
    batches = []
    for key in {**most.prompts, **planned.prompts}:
        seen = planned.prompts.get(key) or most.prompts[key]
        prompt = Tokens(fmean(seen), config.memory.budget.total)
        times = [len(each.prompts.get(key, ())) for each in (planned, least, most)]
        reply = most.replies.get(key) or planned.replies[key]
        batches.append(Batch(*key, prompt, reply, *times))
    turns = planned.state["turn_count"]
    certain = turns if turns == most.state["turn_count"] else None
    return Forecast(batches, config.limits.concurrency, certain)


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
        self._is_read = self.protocol.reads_by_model(config)
        self._limits = WindowLimits.of(config.memory, head_tokens(topic, config, _tokens_in))
        self._window: list[float] = []
        """Tokens of each message in it."""
        self._compactions: dict[int, dict[tuple[Purpose, str, int], int]] = {}
        """How many times there were of each batch, by the turns before each."""
        self._own_past = 0.0
        """Tokens that a debater is shown of its perspective, as the round begins."""
        self._unread = 0.0
        """Tokens of what no minutes have been taken of yet."""
        self._passed_over = 0
        """Tokens of the turns that were not walked one by one."""
        self._summary = 0
        """Tokens of the rolling summary, 0 before the first."""

    @property
    def is_decided(self) -> bool:
        """Whether the configuration alone decides which calls are made."""
        asked_once = not self.config.clarifications.enabled or self.config.clarifications.rounds == 1
        return asked_once and not self._is_read and self.protocol.is_decided(self.config)

    def walk(self) -> bool:
        """Take every step; return whether the debate came to an end."""
        wanted = self.config.clarifications
        if wanted.enabled:
            asking, reply = self._models(self.config.names()), QUESTION * wanted.max_per_debater
            for _ in range(1 if self.course == "least" else wanted.rounds):
                self._spend(Outlay("clarify", "clarify", asking, reply=reply, reserve=QUESTIONS_TOKENS))
        for _ in range(MOST_STEPS):
            following = self.protocol.next_step(self.state, self.config)
            while isinstance(following, Consult):
                self._spend(following.outlay)
                unasked = [Reply(error="not asked")] * following.outlay.calls
                following = following.decide(following.supposed.get(self.course) or unasked)
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
        turns, ends = self.state["turn_count"], list(self._compactions)
        if not every or len(ends) < 2 or ends[-1] != turns:
            return
        taken = math.lcm(every, turns - ends[-2])
        since = turns - taken
        if since not in ends or since < every:  # the first round opens
            return
        before, times = self._compactions[since], max(0, until - turns) // taken
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

    def _models(self, speakers: Iterable[str]) -> int:
        """Return for how many of these a model is called, not a person asked."""
        return sum(not self.config.debater(speaker).is_human for speaker in speakers)

    def _update(self, update: StateValues) -> None:
        """Put an update into the state as the channels' reducers do."""
        state = cast(dict[str, Any], self.state)
        for channel, value in update.items():
            fold = _REDUCERS.get(channel, latest)
            state[channel] = fold(state.get(channel) or type(value)(), [value])

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

    def _speak(self, step: Step) -> None:
        """Give the floors of a step, read what is said, and look at crux rooms."""
        phase, floors = step["phase"], step["floors"]
        words = self.protocol.words.get(phase, SPEECH_WORDS) * TOKENS_PER_WORD
        shown = self.protocol.shown_tokens(phase, self.config)
        if shown is None:
            shown = sum(self._window) + self._summary
        asked = self._models(floor["speaker"] for floor in floors)
        self._spend(Outlay("turn", phase, asked, shown + self._own_past, words, frame=self.protocol.frame))
        reserve = self.config.memory.budget.reply
        each = reserve if self.course == "most" else min(words, reserve)
        self._enter(step, each)

        self._unread += len(floors) * each
        waits = any(awaits_second(room) for room in self.state.get("crux_rooms", {}).values())
        if (self.protocol.minutes_every_step and not waits) or phase == self.protocol.minutes_after:
            self._take_minutes()
        self._compact(each, len(floors))

        looked_at = to_assess(self.state)
        if self._is_read and looked_at:
            reply = self.config.blackboard.reply
            self._spend(Outlay("reflect", "crux cards", len(looked_at), shown, CARD, reply))
        rooms = {
            room["id"]: {**room, "assessed": room["cycle"], "closed": room["cycle"] >= room["cycles"]}
            for room in looked_at
        }
        self._update({"crux_rooms": rooms})

    def _enter(self, step: Step, tokens: float) -> None:
        """Put an utterance of so many tokens for each floor of a step into the transcript."""
        transcript = self.state["full_transcript"]
        for floor in step["floors"]:
            entry = make_entry(
                len(transcript),
                floor["speaker"],
                self.protocol.entry_kinds.get(step["phase"], "speech"),
                " " * int(tokens * CHARS_PER_TOKEN),
                phase=step["phase"],
                round=step["round"],
                room=floor["room"],
                targets=floor["targets"],
                tokens=int(tokens),
            )
            transcript.append(entry)
            self.state["turn_count"] += 1
        # Whoever speaks brings something new; one note of the newest is enough to say so.
        new = Evidence(
            note="evidence",
            id="x001",
            kind="case",
            debater=transcript[-1]["speaker"],
            message_id=transcript[-1]["id"],
            quote="",
            proposition="",
            by="rule",
        )
        earlier = [note for note in self.state.get("minutes", []) if note["note"] != "evidence"]
        self.state["minutes"] = [*earlier, new]

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

    def _compact(self, each: float, entries: int) -> None:
        """Let what is over the high-water mark leave the window, and fold it into the summary."""
        memory = self.config.memory
        self._window += [each] * entries
        gone = len(self._window) - self._limits.messages_kept(self._window)
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
        self._compactions[self.state["turn_count"]] = {
            key: len(prompts) for key, prompts in self.prompts.items()
        }

    def _summarise_perspectives(self) -> None:
        """Make the perspective summaries that are due, and note what debaters are shown of their past."""
        config, transcript = self.config, self.state["full_transcript"]
        room = max(config.memory.budget.total - KEPT_FREE, 64)
        condensing = merging = 0
        made: dict[str, JsonObject] = {}
        for debater in due_debaters(self.state, config):
            settings = perspective_settings(config, config.debater(debater))
            past = perspective_entries(transcript, debater)
            new = perspective_of(self.state, debater).entries if settings.mode == "rolling" else past
            if settings.method not in WITHOUT_CALLS:
                parts = math.ceil(_chars(new) / CHARS_PER_TOKEN / room)
                condensing += parts if parts > 1 else 0
                merging += 1
            text = " " * min(_chars(past), settings.max_chars)
            made[debater] = {"text": text, "covers_through_seq": transcript[-1]["seq"]}
        self._update({"perspective_summaries": made})
        pasts = [perspective_of(self.state, debater) for debater in config.names()]
        self._own_past = fmean((len(own.summary) + _chars(own.entries)) / CHARS_PER_TOKEN for own in pasts)
        self._summarise("perspective", condensing)
        self._summarise("perspective", merging)

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
        said, evidence, shown = state["full_transcript"][1:], None, 0.0
        settings = config.memory.perspectives
        if settings.enabled and past_threshold(self.protocol.final_round(state), settings):
            if settings.method not in WITHOUT_CALLS:
                self._summarise("judge's summary", 1)
            self._update({"judge_summary": {"text": "any"}})
            shown, evidence = settings.max_chars / CHARS_PER_TOKEN, self.protocol.evidence(state)
        shown += sum(entry["tokens"] for entry in (said if evidence is None else evidence))
        shown += self._passed_over if evidence is None else 0

        speakers = list(dict.fromkeys(entry["speaker"] for entry in said))
        swap = brief.swap if config.judge.swap is None else config.judge.swap
        seats, sides = config.judge.seats(), len(config.debaters)
        calls = len(seats) * len(presentation_orders(speakers, swap=swap))
        criteria = len(rubric_for(seats[0], config, brief.rubric).criteria)
        reserve = max(config.judge.reply, opinion_tokens(sides, criteria, solution=brief.solution))
        reply = sides * (SCORE * criteria + 2 * REASON * reasons_each(sides)) + REST_OF_VERDICT
        self._spend(Outlay("judge", "verdict", calls, shown, reply, reserve, JUDGE_FRAME))


def _tokens_in(text: str) -> int:
    return int(len(text) / CHARS_PER_TOKEN)


def _chars(entries: Sequence[Entry]) -> int:
    return sum(len(entry["content"]) for entry in entries)
