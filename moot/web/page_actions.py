"""Actions that the live page performs on a debate, and the data of evaluations that it shows."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from typing_extensions import override

from moot.api import Debate
from moot.calls.event_loop import run_in_thread
from moot.debates.continuation import model_after_recording
from moot.debates.feedback import give_feedback
from moot.debates.lifecycle import fork_debate, fork_values
from moot.evals.report import evaluation_report, item_rows
from moot.evals.report_text import chart, further_html
from moot.evals.store import Evaluations
from moot.people.interjections import MAX_MESSAGE_CHARS
from moot.reports.markdown_html import Prose
from moot.state.config.boundary import Capability
from moot.state.config.debate_config import frozen_config
from moot.state.entries import JsonObject, seq_of
from moot.state.errors import InputError
from moot.storage.records import Rating
from moot.web.debate_host import DebateHost

REFUSED_WITHIN_S = 1.0
"""Number of seconds after the start of a run within which errors are reported to the caller. Later
errors are shown on the page."""


class PageAction(BaseModel):
    """Base class of the actions on debates that the live page offers."""

    model_config = ConfigDict(extra="forbid")

    async def perform(self, host: DebateHost, debate: Debate, *, by_operator: bool) -> JsonObject:
        """Perform this action on a debate, and return the action's result as JSON for the live web page.

        Args:
            host: the runner of the server's debates.
            debate: the debate.
            by_operator: True if the client is the operator.

        Raises:
            UserError: the action is not possible.
        """
        return await run_in_thread(self.act, debate)

    def act(self, debate: Debate) -> JsonObject:
        """Perform the action on a debate. This method runs on a worker thread."""
        raise NotImplementedError


def _use_own_model(host: DebateHost, debate: Debate) -> None:
    """Let the server's default model continue a debate whose earlier replies came from a recording.

    A visitor may ask for it. So the debate is granted this model, and nothing else that it names.

    Raises:
        ConfigError: the configuration names something else that the operator must allow.
    """
    config = debate.config()
    if model := model_after_recording(config, host.default_config.model):
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
    """Action that pauses the debate at the end of the current step."""

    @override
    def act(self, debate: Debate) -> JsonObject:
        if running := debate.is_running():
            debate.pause()
        return {"running": running}


class JudgeNow(PageAction):
    """Action that makes the judge decide a debate now, even if the debate is paused or already judged."""

    @override
    async def perform(self, host: DebateHost, debate: Debate, *, by_operator: bool) -> JsonObject:
        if (await run_in_thread(debate.state)).values.get("verdict"):
            await run_in_thread(host.check_spending, debate)
        return await super().perform(host, debate, by_operator=by_operator)

    @override
    def act(self, debate: Debate) -> JsonObject:
        return {"failed": debate.judge().failed}


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
    """Action that corrects the kind of a claim event or removes the event.

    No kind: the event is removed.
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

    The copy ends with the message `after` if it is given.
    """

    after: str = ""

    @override
    async def perform(self, host: DebateHost, debate: Debate, *, by_operator: bool) -> JsonObject:
        seq = seq_of(self.after) if self.after else None
        if self.after and seq is None:
            raise InputError(f"{self.after!r} is not the id of a message")

        def fork() -> str:
            start, granted = fork_values(debate.session, after=seq), set[Capability]()
            former = frozen_config(start)
            if model := model_after_recording(former, host.default_config.model):
                changed = former.model_copy(update={"model": model})
                config, granted = debate.check_change(changed, former)
                start = {**start, "config": config.to_json()}
            return fork_debate(debate.session, start, None, granted, by_operator=by_operator).thread

        return {"id": await run_in_thread(fork)}


class AskQuestion(PageAction):
    """Action that answers a question about the debate. The transcript does not change."""

    question: str = Field(max_length=MAX_MESSAGE_CHARS)

    @override
    async def perform(self, host: DebateHost, debate: Debate, *, by_operator: bool) -> JsonObject:
        answer = await run_in_thread(host.ask, debate, self.question)
        return {"html": str(Prose({}).block(answer.to_markdown(), base=3))}


class GiveFeedback(PageAction):
    """Action that records how well a debate's decision turned out."""

    rating: Rating
    note: str = Field("", max_length=MAX_MESSAGE_CHARS)

    @override
    def act(self, debate: Debate) -> JsonObject:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return {"decision": give_feedback(debate, self.rating, self.note.strip(), now).decision}


class RenameDebate(PageAction):
    """Action that changes the name of the debate."""

    name: str

    @override
    def act(self, debate: Debate) -> JsonObject:
        debate.session.records.rename(debate.id, self.name)
        return {"name": self.name}


class DeleteDebate(PageAction):
    """Action that deletes the debate with all its checkpoints."""

    @override
    def act(self, debate: Debate) -> JsonObject:
        debate.delete()
        return {}


ACTIONS: dict[str, type[PageAction]] = {
    "run": ContinueDebate,
    "pause": Pause,
    "judge": JudgeNow,
    "say": SendInterjection,
    "correct": CorrectEvent,
    "pin": PinMessage,
    "fork": ForkDebate,
    "ask": AskQuestion,
    "feedback": GiveFeedback,
    "rename": RenameDebate,
    "delete": DeleteDebate,
}
"""Actions of the live page, keyed by the last segment of each action's URL path."""


def list_evaluations(request: Request, host: DebateHost) -> JsonObject:
    """Return one row for each evaluation in the database, newest first."""
    return {"evaluations": Evaluations(host.debates.records.sql).overview()[::-1]}


def show_evaluation(request: Request, host: DebateHost) -> JsonObject:
    """Return the report of an evaluation for the live page.

    Raises:
        DebateNotFound: There is no evaluation with this name.
        InputError: The baseline in the query is no arm.
    """
    store = Evaluations(host.debates.records.sql)
    evaluation = store.find(request.path_params["evaluation"])
    outcomes = store.outcomes(evaluation.name)
    report = evaluation_report(evaluation, outcomes, request.query_params.get("baseline", ""))
    return {
        "report": report,
        "chart": str(chart(report)),
        "tables": str(further_html(report)),
        "items": item_rows(evaluation, outcomes),
    }
