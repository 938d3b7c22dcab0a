"""Actions on debates that the live page offers, each a request body with what it does."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import override

from moot.api import Debate
from moot.calls.concurrency import run_in_thread
from moot.config.boundary import Capability
from moot.config.debate_config import frozen_config
from moot.debates import continuation, lifecycle, stored_debate
from moot.people import MAX_MESSAGE_CHARS
from moot.plugins.web.debate_host import POLL_INTERVAL_S, DebateHost
from moot.plugins.web.streamed_prose import StreamedProse
from moot.reports.markdown_html import Prose
from moot.reports.verdict_view import anchors_of
from moot.state.entries import JsonObject, seq_of
from moot.state.errors import InputError, MootError
from moot.storage.records import Rating

REFUSED_WITHIN_S = 1.0
"""Number of seconds to wait for an early error when a debate is continued. Later errors are shown on the
page."""


class PageAction(BaseModel):
    """Base class of the actions on debates that the live page offers."""

    model_config = ConfigDict(extra="forbid")

    async def perform(self, host: DebateHost, debate: Debate, *, by_operator: bool) -> JsonObject:
        """Perform this action on a debate, and return the result as JSON for the live web page.

        Args:
            host: the runner of the server's debates.
            debate: the debate.
            by_operator: True if the client is the operator.

        Raises:
            UserError: the action is not possible.
        """
        return await run_in_thread(self.act, debate)

    def act(self, debate: Debate) -> JsonObject:
        """Perform the action, and return the result as JSON data.

        The action runs on a worker thread.
        """
        raise NotImplementedError


def _use_own_model(host: DebateHost, debate: Debate) -> None:
    """Switch a debate with recorded replies to the server's default model.

    A visitor may request this, so the debate is granted this model and nothing else that its configuration
    names.

    Raises:
        ConfigError: the configuration names something else that the operator must allow.
    """
    config = debate.config()
    if model := continuation.model_after_recording(config, host.default_config.model):
        debate.reconfigure(config.model_copy(update={"model": model}))


class ContinueDebate(PageAction):
    """Action that continues a debate, for example with answers to its questions or with more turns."""

    turns: int | None = Field(None, ge=1, le=1000)
    answers: dict[str, str] | None = None

    @override
    async def perform(self, host: DebateHost, debate: Debate, *, by_operator: bool) -> JsonObject:
        if self.turns:
            await run_in_thread(_use_own_model, host, debate)
        run = host.run(debate, turns=self.turns, answer=self.answers)
        done, _ = await asyncio.wait({run}, timeout=REFUSED_WITHIN_S)
        if done and (error := host.errors.pop(debate.id, "")):
            raise InputError(error)
        return {}


class Pause(PageAction):
    """Action that pauses a debate at the end of its current step."""

    @override
    def act(self, debate: Debate) -> JsonObject:
        if running := debate.is_running():
            debate.pause()
        return {"running": running}


class JudgeNow(PageAction):
    """Action that asks the judge for a verdict now, even if the debate is paused or already judged."""

    @override
    async def perform(self, host: DebateHost, debate: Debate, *, by_operator: bool) -> JsonObject:
        def judge() -> JsonObject:
            if debate.state().values.get("verdict"):
                host.check_spending(debate)
            return {"failed": debate.judge().failed}

        return await host.threads.call_models(judge)


class FindClaims(PageAction):
    """Action that finds the claims of a finished debate from which none were extracted."""

    @override
    async def perform(self, host: DebateHost, debate: Debate, *, by_operator: bool) -> JsonObject:
        def find() -> JsonObject:
            host.check_spending(debate)
            debate.find_claims()
            return {}

        return await host.threads.call_models(find)


class SendInterjection(PageAction):
    """Action that sends a person's message to a debate.

    The debate reads it at the start of its next step.
    """

    text: str = Field(max_length=MAX_MESSAGE_CHARS)
    speaker: str = "moderator"

    @override
    def act(self, debate: Debate) -> JsonObject:
        return {"interjection": debate.say(self.text, self.speaker)}


class CorrectEvent(PageAction):
    """Action that corrects or removes a claim event.

    An empty `kind` removes the event.
    """

    note: str
    kind: str = ""
    why: str = ""

    @override
    def act(self, debate: Debate) -> JsonObject:
        return {"notes": list(debate.correct(self.note, self.kind, why=self.why))}


class PinMessage(PageAction):
    """Action that pins a message, so that every prompt includes it, or unpins a pinned message."""

    message: str
    pinned: bool = True

    @override
    def act(self, debate: Debate) -> JsonObject:
        return {"pinned": debate.pin(self.message, pinned=self.pinned)}


class ForkDebate(PageAction):
    """Action that copies a whole debate, or only its beginning, to a new debate.

    The copy ends with the message `after` if it is given. Its name defaults to its id.
    """

    after: str = ""
    name: str = ""

    @override
    async def perform(self, host: DebateHost, debate: Debate, *, by_operator: bool) -> JsonObject:
        seq = seq_of(self.after) if self.after else None
        if self.after and seq is None:
            raise InputError(f"{self.after!r} is not the id of a message: give an id such as m000012")

        def fork() -> str:
            start, granted = lifecycle.fork_values(debate.session, after=seq), set[Capability]()
            former = frozen_config(start)
            if model := continuation.model_after_recording(former, host.default_config.model):
                changed = former.model_copy(update={"model": model})
                config, granted = debate.check_change(changed, former)
                start = {**start, "config": config.to_json()}
            name = self.name.strip() or None
            return lifecycle.fork_debate(debate.session, start, name, granted, by_operator=by_operator).thread

        return {"id": await run_in_thread(fork)}


class AskQuestion(PageAction):
    """Action that answers a question about a debate. The transcript does not change."""

    question: str = Field(max_length=MAX_MESSAGE_CHARS)
    stream: bool = False
    """True if the response is a stream of the answer's HTML, as lines of JSON, with the answer at its end."""

    @override
    async def perform(self, host: DebateHost, debate: Debate, *, by_operator: bool) -> JsonObject:
        return await host.threads.call_models(self._answer, host, debate)

    def _answer(
        self, host: DebateHost, debate: Debate, on_text: Callable[[str], object] | None = None
    ) -> JsonObject:
        answer = host.ask(debate, self.question, on_text)
        prose = Prose(anchors_of(debate.document()["transcript"]))
        return {"html": str(prose.block(answer.to_markdown(), base=3))}

    async def parts(self, host: DebateHost, debate: Debate) -> AsyncIterator[JsonObject]:
        """Yield the answer's new HTML while a model writes it, and then the whole answer or the error."""
        prose, seen_chars = StreamedProse(), 0
        loop, texts = asyncio.get_running_loop(), asyncio.Queue[str]()

        def on_text(text: str) -> None:
            loop.call_soon_threadsafe(texts.put_nowait, text)

        answering = asyncio.ensure_future(host.threads.call_models(self._answer, host, debate, on_text))
        while not answering.done():
            with suppress(TimeoutError):
                text = await asyncio.wait_for(texts.get(), POLL_INTERVAL_S)
                while not texts.empty():
                    text = texts.get_nowait()
                yield {**prose.add(text[seen_chars:])}
                seen_chars = len(text)
        try:
            yield answering.result()
        except MootError as error:
            yield {"error": str(error)}


class GiveFeedback(PageAction):
    """Action that records how well a debate's decision turned out."""

    rating: Rating
    note: str = Field("", max_length=MAX_MESSAGE_CHARS)

    @override
    def act(self, debate: Debate) -> JsonObject:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return {"decision": stored_debate.give_feedback(debate, self.rating, self.note.strip(), now).decision}


class RenameDebate(PageAction):
    """Action that changes the name of a debate."""

    name: str

    @override
    def act(self, debate: Debate) -> JsonObject:
        debate.session.records.rename(debate.id, self.name)
        return {"name": self.name}


class DeleteDebate(PageAction):
    """Action that deletes a debate with all its checkpoints."""

    @override
    def act(self, debate: Debate) -> JsonObject:
        debate.delete()
        return {}


ACTIONS: dict[str, type[PageAction]] = {
    "run": ContinueDebate,
    "pause": Pause,
    "judge": JudgeNow,
    "claims": FindClaims,
    "say": SendInterjection,
    "correct": CorrectEvent,
    "pin": PinMessage,
    "fork": ForkDebate,
    "ask": AskQuestion,
    "feedback": GiveFeedback,
    "rename": RenameDebate,
    "delete": DeleteDebate,
}
"""Actions of the live page, keyed by the last segment of their URL paths."""
