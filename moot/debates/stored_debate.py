"""Stored debate, with methods to run, resume, read, judge, query, fork, rate and delete it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from langgraph.types import StateSnapshot

from moot.asking.answer import DebateAnswer, answer_question, permissions_for_answer
from moot.calls.concurrency import async_version, run_in_thread
from moot.claims.claim_extraction import correct_event, merge_claims
from moot.config import DebateConfig, boundary, debate_config, model_settings, participants
from moot.config.stages import authorize, authorize_operator
from moot.debates import continuation, found_claims
from moot.debates.config_checks import check_config
from moot.debates.events import Event
from moot.debates.lifecycle import delete_debate, fork_debate, fork_values
from moot.debates.session import DebateSession, is_over
from moot.debates.stub_replies import Check, no_check
from moot.documents import DebateDocument, make_document
from moot.people import PersonQuestion, check_length, pinnable_id
from moot.protocols.registry import limit_reached
from moot.runtime.background_loop import call_from_sync
from moot.runtime.context import node_context
from moot.runtime.run_node import EffectHandler, run_generator
from moot.state.claim_events import ClaimEvent
from moot.state.conversation import ConversationState, StateValues
from moot.state.entries import JsonMapping, JsonObject, clean_text
from moot.state.errors import InputError, advise
from moot.state.verdict import COUNT
from moot.storage.catalogue import DebateRow, row_usage
from moot.storage.records import Feedback, Forecast, Rating


class Debate:
    """A debate stored in a database, with methods to run, continue, judge, fork, query and delete it."""

    def __init__(self, session: DebateSession) -> None:
        self.session = session
        self.id = session.thread
        """UUID of the debate, which is its LangGraph thread id."""
        self.name = session.name
        """Name given with `--id`, otherwise the UUID."""

    @property
    def row(self) -> DebateRow:
        """Current row of the debate in the catalogue, with its name, status and usage."""
        return self.session.records.find(self.id)

    def state(self, checkpoint: str = "") -> StateSnapshot:
        """Return the debate's LangGraph state snapshot at a checkpoint.

        The default is the latest checkpoint.
        """
        return self.session.state(checkpoint)

    def config(self) -> DebateConfig:
        """Return the debate's stored configuration."""
        return debate_config.frozen_config(self.state().values)

    def document(self, snapshot: StateSnapshot | None = None) -> DebateDocument:
        """Return the debate as a `moot.debate/1` document."""
        snapshot = snapshot or self.state()
        values = self.spent(snapshot.values)
        document: DebateDocument = {
            **make_document(self.row, values),
            "questions": continuation.questions_at(snapshot),
        }
        if imported := self.session.records.imports.time_of(self.id, values.get("verdict")):
            document["imported_at"] = imported
        return document

    def spent(self, values: StateValues) -> JsonObject:
        """Return the debate's state with the usage of failed runs and answered questions."""
        return self.session.records.with_pending_usage(self.id, values)

    def run(self, *, turns: int | None = None, answer: object = None) -> DebateDocument:
        """Run the debate to its end and return its document.

        The arguments and errors are those of `stream`.
        """
        for _ in self.stream(turns=turns, answer=answer, tokens=False):
            pass
        return self.document()

    def stream(
        self, *, turns: int | None = None, answer: object = None, tokens: bool = True
    ) -> Iterator[Event]:
        """Run or resume the debate, and yield its events.

        After each entry, the next step starts only when the caller asks for the next event. If the caller
        stops after an entry, Moot makes no further model calls. The debate reads new interjections in the
        next step.

        Args:
            turns: Number of turns to add to the configured ones.
            answer: A person's reply to the questions that the debate waits for.
            tokens: If True, messages are streamed token by token. Without streaming, many concurrent calls
                need much less CPU time.

        Raises:
            DebateBusy: Another process writes the debate.
            ModelError: A model failed permanently. The debate is saved.
            WaitingForPerson: The debate waits for a person's reply. The debate is saved.
            DebatePaused: `pause` was called, in this process or another. The debate is saved.
            InputError: `answer` fits no open question, or the debate is over and takes no more turns.
        """
        return continuation.run_on(self.session, turns=turns, answer=answer, tokens=tokens)

    def astream(
        self, *, turns: int | None = None, answer: object = None, tokens: bool = True
    ) -> AsyncGenerator[Event, None]:
        """Async version of `stream`. Cancelling it or leaving `aclosing` pauses the debate."""
        return continuation.arun_on(self.session, turns=turns, answer=answer, tokens=tokens)

    async def arun(self, *, turns: int | None = None, answer: object = None) -> DebateDocument:
        """Async version of `run`."""
        async for _ in self.astream(turns=turns, answer=answer, tokens=False):
            pass
        return await run_in_thread(self.document)

    def say(self, text: str, speaker: str = "moderator") -> int:
        """Add an interjection that the debate reads at the start of the next step.

        Another process may be running the debate at the same time.

        Args:
            text: Text of the interjection.
            speaker: `moderator`, the id of a debater, or a slug for a guest.

        Returns:
            The number of the interjection.

        Raises:
            InputError: The text is empty or too long, or the speaker is reserved or not a valid id.
        """
        message = clean_text(text).strip()
        if not message:
            raise InputError("the interjection is empty: write a message")
        check_length(message)
        if participants.SLUG.fullmatch(speaker) and not participants.can_interject(speaker):
            raise InputError(
                f"the speaker name {speaker!r} is reserved: use 'moderator', a debater's id or a guest's name"
            )
        if not participants.can_interject(speaker):
            raise InputError(
                f"speaker {speaker!r} is not a valid id: use at most 40 of the characters a-z, 0-9, - and _"
            )
        now = self.session.environment.clock()
        return self.session.records.inbox.add(self.id, speaker, message, now)

    def pause(self) -> None:
        """Ask the process that runs the debate to stop before the next step. A later run is not affected."""
        self.session.records.inbox.request_pause(self.id, self.session.environment.clock())

    def is_running(self) -> bool:
        """Return True if a process is running the debate."""
        return self.session.records.leases.is_held(self.id)

    def questions(self) -> list[PersonQuestion]:
        """Return the questions that a person must answer before the debate can continue."""
        return continuation.questions_at(self.state())

    def judge(self, *, dry_run: bool = False, **options: Any) -> continuation.Judgement:
        """Judge the debate, and store the new verdicts alongside earlier verdicts.

        A debate that is paused or waits for a person ends with this verdict.

        Args:
            dry_run: If True, nothing is stored.
            options: `model`, `rubric`, `panel` (a number or models), `rule`, `swap`, `blind` and
                `configured`; see `JudgingOptions`.

        Raises:
            InputError: The debate never started or has no messages of debaters, or the number of judges is
                below 1.
            ConfigError: An option is invalid, or the debate needs a permission.
            TypeError: There is no such option.
            DebateBusy: Another process writes the debate.
        """
        return continuation.judge_debate(
            self.session, continuation.JudgingOptions(**options), dry_run=dry_run
        )

    ajudge = async_version(judge)

    def find_claims(self) -> None:
        """Find the claims of a finished debate and store them. Everything else in it stays as it is.

        Replies that are in the journal are not asked for again.

        Raises:
            InputError: The debate is not over, its model finds no claims, or all messages have been read.
            ConfigError: The debate needs a permission.
            ModelError: A call failed. Nothing is stored, and the next attempt repeats only failed calls.
            DebateBusy: Another process writes the debate.
        """
        found_claims.find_claims(self.session)

    def cost_of_claims(self, check: Check = no_check) -> JsonObject | None:
        """Return the `calls` and `usd` that `find_claims` is expected to take, or `None` if it must fail.

        `usd` is missing if a price is unknown. `check` runs before each simulated call, and can raise.
        """
        return found_claims.cost_of_claims(self.session, check)

    def is_over(self) -> bool:
        """Return True if the debate is over and has no step left to run."""
        return is_over(self.state())

    def can_go_on(self) -> bool:
        """Return True if more turns can be added to the debate after it has ended."""
        return continuation.can_go_on(self.spent(self.state().values))

    def allow(self, config: DebateConfig) -> None:
        """Allow the debate all models, tools and other capabilities in the operator's configuration."""
        self.session.records.grants.add(self.id, authorize_operator(config).granted)

    def reconfigure(self, config: DebateConfig) -> None:
        """Replace the debate's configuration for all remaining steps.

        A debate that ended at a limit can continue if the new configuration raises the limit. Any other
        finished debate stays over. The debate is granted the capabilities that the new configuration adds. To
        grant capabilities that the old configuration already uses, call `allow`.

        Raises:
            ConfigError: The configuration is invalid.
            DebateBusy: Another process writes the debate.
        """
        config, added = self.check_change(config, self.config())
        with self.session.writing() as session:
            session.records.grants.add(self.id, added)
            values = session.caught_up().values
            following: Sequence[str] = ()
            update: dict[str, object] = {"config": config.to_json()}
            if values.get("status") == "limit" and not limit_reached(values, config):
                following, update = ("plan",), {**update, "status": "running"}
            session.update(update, following)

    def check_change(
        self, config: DebateConfig, former: DebateConfig, named: DebateConfig | None = None
    ) -> tuple[DebateConfig, set[boundary.Capability]]:
        """Check that the debate, or a fork of it, can run with a changed configuration. Nothing is stored.

        Args:
            config: The new configuration.
            former: The configuration before the change.
            named: Everything that the operator named for the change, even if `former` had it already.

        Returns:
            The configuration to store, and the capabilities that it adds.

        Raises:
            ConfigError: The configuration is invalid, or a model has no key.
        """
        env = self.session.environment
        added = {*authorize_operator(config).granted} - {*authorize_operator(former).granted}
        if named is not None:
            added |= authorize_operator(named).granted
        granted = {*self.session.records.grants.of(self.id), *added}
        permissions = authorize(config, granted=granted, safe=env.safe_capabilities)
        return check_config(permissions, env), added

    def correct(
        self,
        note: str,
        kind: str = "",
        *,
        why: str = "",
        condition: str = "",
        same_as: str = "",
        opposite: bool = False,
    ) -> Sequence[ClaimEvent]:
        """Correct an extracted claim event, or merge two claims. Later extractions keep this correction.

        Args:
            note: Id of the event, or of a claim to merge.
            kind: Correct kind of a stance event, such as `asserts` or `denies`. `""` retracts the event.
            why: Reason, stored with a retraction.
            condition: Condition of the kind `conditional`. `""` keeps the event's own.
            same_as: Id of the claim to merge with.
            opposite: If True, the claim is the negation of `same_as`.

        Returns:
            The new claim events.

        Raises:
            InputError: The event does not exist, or cannot be of that kind.
            DebateBusy: Another process writes the debate.
        """
        with self.session.writing() as session:
            values = cast(ConversationState, session.caught_up().values)
            if same_as:
                events = merge_claims(values, note, same_as, opposite=opposite)
            else:
                events = correct_event(values, note, kind, why, condition)
            session.update({"claim_events": events})
        return events

    def pin(self, message: str, *, pinned: bool = True) -> list[str]:
        """Pin a message, so that every prompt with enough space includes it, or unpin the message.

        Args:
            message: Id of the message, such as `m000012`.
            pinned: If False, unpin the message.

        Returns:
            The ids of all pinned messages.

        Raises:
            InputError: The message does not exist.
            DebateBusy: Another process writes the debate.
        """
        with self.session.writing() as session:
            values = session.caught_up().values
            message_id = pinnable_id(message, values["full_transcript"])
            other_ids = [each for each in values.get("pinned") or [] if each != message_id]
            ids = [*other_ids, message_id] if pinned else other_ids
            session.update({"pinned": ids})
        return ids

    def differing_keys(self, config: DebateConfig) -> list[str]:
        """Return the dotted keys of all settings that differ between `config` and the debate."""
        stored, new = (model_settings.without_definitions(each.to_json()) for each in (self.config(), config))
        return debate_config.differing_keys(stored, new)

    def fork(
        self, *, after: int | None = None, name: str | None = None, without: str | None = None
    ) -> Debate:
        """Create a fork of this debate that contains all messages up to a given entry.

        Interjections that came after that entry are dropped. With `without`, the fork starts before one
        interjection and repeats all later ones at the same number of turns.

        Args:
            after: `seq` of the last entry to keep. `None`: keep all entries.
            name: Name of the fork, its `--id`.
            without: Id of an interjection to leave out. Give it instead of `after`.

        Raises:
            InputError: No step ended at that entry, or `without` is not an interjection.
            DebateExists: The name is taken.
        """
        start = fork_values(self.session, after=after, without=without)
        return Debate(fork_debate(self.session, start, name))

    afork = async_version(fork)

    def ask(self, question: str, *, model: str | None = None) -> DebateAnswer:
        """Answer a question about the debate with citations, leaving the transcript unchanged.

        The tokens and the cost of the answer count towards the debate's.

        Args:
            question: The question.
            model: Model that answers. `None`: the judge's model. A recorded model answers no new
                questions.

        Raises:
            InputError: The question is empty.
            BudgetReached: The shared budget of the debate's group is reached.
            ModelError: No model replied.
        """
        question_text = clean_text(question).strip()
        if not question_text:
            raise InputError("the question is empty: give a question about the debate")
        state = cast(ConversationState, self.state().values)
        permissions, env = (
            permissions_for_answer(self.session.permissions(state), model),
            self.session.environment,
        )
        flow = answer_question(
            node_context(env, state, permissions, self.id).under(permissions), question_text
        )
        handler = EffectHandler(env, permissions, self.session.beside_graph)
        try:
            answer: DebateAnswer = call_from_sync(run_generator, flow, handler.handle)
        finally:
            if handler.spent and not self.session.records.sql.read_only:
                self._count(handler.spent)
        return answer

    aask = async_version(ask)

    def _count(self, spent: Mapping[str, float]) -> None:
        """Add the usage for answering a question to the debate's totals."""
        records = self.session.records
        records.inbox.add_question(self.id, spent, self.session.environment.clock())
        usage = self.spent(self.state().values)["usage"]
        records.catalogue.update(self.id, **row_usage(usage))

    def delete(self) -> None:
        """Delete the debate with its checkpoints and memories. If another process writes: `DebateBusy`."""
        delete_debate(self.session)

    adelete = async_version(delete)


def give_feedback(debate: Debate, rating: Rating, note: str, rated_at: str) -> Feedback:
    """Store and return a person's feedback on a debate's decision.

    Args:
        debate: the debate.
        rating: how the decision turned out.
        note: remark of the person, or `""`.
        rated_at: time of the feedback, in UTC and ISO 8601 format.

    Raises:
        InputError: the debate has no decision that a model or a vote reached.
    """
    document = debate.document()
    verdict = document["verdict"]
    if not has_decision(document):
        judge = advise("`moot judge`", "`Debate.judge`")
        raise InputError(f"debate {debate.name!r} has no decision: finish it, or judge it with {judge}")
    feedback = Feedback(debate.id, rating, note, verdict["decision"], tuple(_forecasts(document)), rated_at)
    debate.session.records.follow_ups.rate(feedback)
    return feedback


def has_decision(document: JsonMapping) -> bool:
    """Return True if a model or a vote made a decision. A placeholder's does not count."""
    verdict = document["verdict"]
    is_usable = verdict and verdict["status"] == "ok" and not verdict.get("placeholder")
    return bool(is_usable and verdict.get("decision"))


def _forecasts(document: JsonMapping) -> Iterable[Forecast]:
    """Yield the decision and confidence of each judge, or without judges those of the vote."""
    verdict = document["verdict"]
    verdicts = [each for each in document["verdicts"] if each.get("judging") == verdict.get("judging")]
    for each in verdicts if verdict["judge"] != COUNT and verdicts else [verdict]:
        if each["status"] == "ok" and not each.get("placeholder") and each["confidence"] is not None:
            yield Forecast(
                judge=each["judge"],
                model=each["model"],
                decision=each["decision"],
                confidence=each["confidence"],
                agrees="options" not in verdict or each["decision"] == verdict["decision"],
            )
