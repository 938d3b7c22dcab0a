"""What a visitor of the live page may do to a debate: each action a record of what it takes."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import override

from moot.graph.api import Debate
from moot.graph.debate_host import DebateHost
from moot.state.entries import JsonObject, seq_of
from moot.state.errors import InputError
from moot.state.event_loop import in_thread

REFUSED_WITHIN_S = 1.0
"""A run that is refused, for its answer or its configuration, is so within it; what fails later is shown."""


class PageAction(BaseModel):
    """An action on a debate."""

    model_config = ConfigDict(extra="forbid")

    async def carry_out(self, host: DebateHost, debate: Debate) -> JsonObject:
        """Do it and return what the page is to know.

        Raises:
            UserError: it cannot be done; the message says why.
        """
        return await in_thread(self.act, debate)

    def act(self, debate: Debate) -> JsonObject:
        """Do it, on a worker thread."""
        raise NotImplementedError


class GoOn(PageAction):
    """Run on from where it stands, a finished debate with more turns; `answers` are to what is asked."""

    turns: int | None = Field(None, ge=1, le=1000)
    answers: dict[str, str] | None = None

    @override
    async def carry_out(self, host: DebateHost, debate: Debate) -> JsonObject:
        run = host.run(debate, turns=self.turns, answer=self.answers)
        done, _ = await asyncio.wait({run}, timeout=REFUSED_WITHIN_S)
        if done and (error := host.errors.pop(debate.id, "")):
            raise InputError(error)
        return {}


class Pause(PageAction):
    """Stop at the next step's boundary, whoever runs it."""

    @override
    def act(self, debate: Debate) -> JsonObject:
        if running := debate.is_running():
            debate.pause()
        return {"running": running}


class SayFromFloor(PageAction):
    """Say something that everybody hears at the next step."""

    text: str
    speaker: str = "moderator"

    @override
    def act(self, debate: Debate) -> JsonObject:
        return {"interjection": debate.say(self.text, self.speaker)}


class CorrectNote(PageAction):
    """Say what a note of the minutes should have been; without a kind it is taken back."""

    note: str
    kind: str = ""
    why: str = ""

    @override
    def act(self, debate: Debate) -> JsonObject:
        return {"notes": list(debate.correct(self.note, self.kind, why=self.why))}


class PinMessage(PageAction):
    """Have a message stand in every view, or no longer."""

    message: str
    pinned: bool = True

    @override
    def act(self, debate: Debate) -> JsonObject:
        return {"pinned": debate.pin(self.message, pinned=self.pinned)}


class ForkDebate(PageAction):
    """Begin another debate with this one's beginning, up to a message; `""` for all of it."""

    after: str = ""

    @override
    def act(self, debate: Debate) -> JsonObject:
        seq = seq_of(self.after) if self.after else None
        if self.after and seq is None:
            raise InputError(f"{self.after!r} is no message's id")
        return {"id": debate.fork(after=seq).id}


ACTIONS: dict[str, type[PageAction]] = {
    "run": GoOn,
    "pause": Pause,
    "say": SayFromFloor,
    "correct": CorrectNote,
    "pin": PinMessage,
    "fork": ForkDebate,
}
"""Actions by the last part of their address."""
