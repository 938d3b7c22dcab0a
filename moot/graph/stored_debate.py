"""One debate in its database: run, resume, read, judge, ask, fork and delete it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from langgraph.types import StateSnapshot

from moot.graph.continuation import Event, arun_on, can_go_on, questions_at, run_on
from moot.graph.documents import make_document
from moot.graph.judgement import Judgement, JudgingOptions, judge_debate
from moot.graph.lifetime import delete_debate, fork_debate
from moot.graph.preflight import check_config
from moot.graph.session import DebateSession, is_over
from moot.nodes.blackboard.corrections import correct_note, unite_propositions
from moot.nodes.driving.answering import run_to_end
from moot.nodes.driving.environment import NodeContext
from moot.nodes.driving.portal import call_from_sync
from moot.nodes.people.interjections import pinnable
from moot.nodes.people.questions import PersonQuestion
from moot.nodes.protocols.protocol_table import limit_reached
from moot.nodes.views.afterwards import answer_question, answering_claim
from moot.state.catalogue import DebateRow
from moot.state.config import DebateConfig, differing_keys, may_speak
from moot.state.config.boundary import Claim, reaches
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationState
from moot.state.entries import JsonObject, clean_text
from moot.state.errors import InputError
from moot.state.event_loop import in_thread
from moot.state.failed_runs import with_failures
from moot.state.ledger import Note

if TYPE_CHECKING:
    from moot.nodes.views.answer import DebateAnswer


class Debate:
    """One debate in its database."""

    def __init__(self, session: DebateSession) -> None:
        self.session = session
        self.id = session.thread
        """UUID: the LangGraph thread's id."""
        self.name = session.name
        """What `--id` gave, else the id."""

    @property
    def row(self) -> DebateRow:
        """Its row in the catalogue, as it is now."""
        return self.session.records.find(self.id)

    def state(self, checkpoint: str = "") -> StateSnapshot:
        """Return LangGraph's snapshot of the state, the latest or that of a checkpoint."""
        return self.session.state(checkpoint)

    def config(self) -> DebateConfig:
        """Return the frozen configuration."""
        return frozen_config(self.state().values)

    def document(self, snapshot: StateSnapshot | None = None) -> JsonObject:
        """Return the debate as a `moot.debate/1` document, as it stands or stood at a snapshot."""
        snapshot = snapshot or self.state()
        values = with_failures(snapshot.values, self.session.records.failed.of(self.id))
        return {**make_document(self.row, values), "questions": questions_at(snapshot)}

    def run(self, *, turns: int | None = None, answer: object = None) -> JsonObject:
        """Run to the end and return the document; see `stream`."""
        for _ in self.stream(turns=turns, answer=answer, tokens=False):
            pass
        return self.document()

    def stream(
        self, *, turns: int | None = None, answer: object = None, tokens: bool = True
    ) -> Iterator[Event]:
        """Run from where the debate stands, yielding what happens.

        The step after an entry begins once whoever reads comes back for more: who stops there pays for no
        step beyond it, and what is said from the floor meanwhile is heard in the next.

        Args:
            turns: this many more utterances than were configured.
            answer: a person's answer to what the debate waits for.
            tokens: whether speeches are streamed token by token; without, models are asked for whole answers,
                which costs a fraction of the work where many speak at once.

        Raises:
            DebateBusy: another process writes this debate.
            ModelError: a model failed for good; the debate is saved.
            WaitingForPerson: a question needs an answer; the debate is saved.
            DebatePaused: `pause` was called, here or in another process; the debate is saved.
            InputError: `answer` answers nothing that was asked, or the debate is over and takes no turns.
        """
        return run_on(self.session, turns=turns, answer=answer, tokens=tokens)

    def astream(
        self, *, turns: int | None = None, answer: object = None, tokens: bool = True
    ) -> AsyncGenerator[Event, None]:
        """Run like `stream`, with `async for`; a cancellation, or `aclosing`, pauses the debate."""
        return arun_on(self.session, turns=turns, answer=answer, tokens=tokens)

    async def arun(self, *, turns: int | None = None, answer: object = None) -> JsonObject:
        """Run like `run`, without blocking the event loop."""
        async for _ in self.astream(turns=turns, answer=answer, tokens=False):
            pass
        return await in_thread(self.document)

    def say(self, text: str, speaker: str = "moderator") -> int:
        """Say something from the floor; it is taken up at the next step's boundary, whoever runs the debate.

        Args:
            text: what is said.
            speaker: `moderator`, a debater's id, or the slug of a guest.

        Returns:
            The interjection's number.

        Raises:
            InputError: nothing is said, or the speaker's id cannot be one.
        """
        words = clean_text(text).strip()
        if not words:
            raise InputError("nothing is said: give the words")
        if not may_speak(speaker):
            raise InputError(f"nobody can speak as {speaker!r}: use a-z, 0-9, - and _")
        now = self.session.environment.clock()
        return self.session.records.floor.say(self.id, speaker, words, now)

    def pause(self) -> None:
        """Ask whoever runs the debate to stop at the next step's boundary; a later run is not stopped."""
        self.session.records.floor.ask_to_pause(self.id, self.session.environment.clock())

    def is_running(self) -> bool:
        """Return whether anybody, in this process or another, runs the debate at this moment."""
        return self.session.records.leases.is_held(self.id)

    def questions(self) -> list[PersonQuestion]:
        """Return what a person is asked before the debate can go on, `[]` where nothing is."""
        return questions_at(self.state())

    def judge(self, *, dry_run: bool = False, **options: Any) -> Judgement:
        """Judge a debate that is over once more; the verdicts are stored beside the earlier ones.

        Args:
            dry_run: whether nothing is stored; then a debate that is not over can be judged too.
            options: `model`, `rubric`, `panel` (a number or models), `rule`, `swap`, `blind` and
                `configured`, as `JudgingOptions` describes them.

        Raises:
            InputError: the debate is not over.
            ConfigError: the options cannot be used.
            DebateBusy: another process writes this debate.
        """
        return judge_debate(self.session, JudgingOptions(**options), dry_run=dry_run)

    def is_over(self) -> bool:
        """Return whether nothing is left to do."""
        return is_over(self.state())

    def can_go_on(self) -> bool:
        """Return whether more turns would lengthen the debate once it is over."""
        return can_go_on(self.state().values)

    def allow(self, config: DebateConfig) -> None:
        """Let a debate from elsewhere reach what this configuration, an operator's, names outside."""
        self.session.records.grants.add(self.id, reaches(config))

    def reconfigure(self, config: DebateConfig) -> None:
        """Replace the frozen configuration, for what is still to come.

        A debate that a limit ended, which the new one is not at, can go on; any other that is over stays so.

        What it names outside beyond the frozen one is allowed with it; for the rest there is `allow`.

        Raises:
            ConfigError: it cannot be used.
            DebateBusy: another process writes this debate.
        """
        added = reaches(config).keys() - reaches(self.config()).keys()
        granted = {*self.session.records.grants.of(self.id), *added}
        check_config(Claim(config, granted, self.session.environment.harmless), self.session.environment)
        with self.session.writing() as held:
            held.records.grants.add(self.id, added)
            values = held.caught_up().values
            following: Sequence[str] = ()
            update: dict[str, object] = {"config": config.to_json()}
            if values.get("status") == "limit" and not limit_reached(values, config):
                following, update = ("plan",), {**update, "status": "running"}
            held.update(update, following)

    def correct(
        self, note: str, kind: str = "", *, why: str = "", same_as: str = "", opposite: bool = False
    ) -> Sequence[Note]:
        """Change a note of the minutes; no later reading undoes it.

        Args:
            note: id of the note, or of a proposition that is another.
            kind: what the debater of an event really did, as `asserts` or `denies`; `""` takes the note back.
            why: the reason, kept with a note that is taken back.
            same_as: the proposition that this one is, or whose negation it is.
            opposite: whether it is that one's negation.

        Returns:
            What was noted.

        Raises:
            InputError: there is no such note, or it cannot be of that kind.
            DebateBusy: another process writes this debate.
        """
        with self.session.writing() as held:
            values = cast(ConversationState, held.caught_up().values)
            if same_as:
                notes = unite_propositions(values, note, same_as, opposite=opposite)
            else:
                notes = correct_note(values, note, kind, why)
            held.update({"minutes": notes})
        return notes

    def pin(self, message: str, *, pinned: bool = True) -> list[str]:
        """Have a message stand in every view that has room; without `pinned` no longer.

        Args:
            message: its id, as `m000012`.
            pinned: whether it is to stand there.

        Returns:
            The ids of all pinned messages.

        Raises:
            InputError: there is no such message.
            DebateBusy: another process writes this debate.
        """
        with self.session.writing() as held:
            values = held.caught_up().values
            key = pinnable(message, values["full_transcript"])
            others = [each for each in values.get("pinned") or [] if each != key]
            ids = [*others, key] if pinned else others
            held.update({"pinned": ids})
        return ids

    def differing_keys(self, config: DebateConfig) -> list[str]:
        """Return the dotted keys in which a configuration differs from the frozen one."""
        return differing_keys(self.config().to_json(), config.to_json())

    def fork(self, *, after: int | None = None, name: str | None = None) -> Debate:
        """Make a new debate of this one's beginning; it samples anew.

        Args:
            after: `seq` of the last entry that the fork keeps; `None` keeps all.
            name: the fork's `--id`.

        Raises:
            InputError: no step ended at that entry.
            DebateExists: the name is taken.
        """
        return Debate(fork_debate(self.session, after=after, name=name))

    def ask(self, question: str, *, model: str | None = None) -> DebateAnswer:
        """Answer a question about the debate, which stays as it is, citing its messages.

        Args:
            question: in words.
            model: who answers; `None` takes the judge's; a recording's answers nothing new, so none does.

        Raises:
            InputError: the question is empty.
            ModelError: no model answered.
        """
        asked = clean_text(question).strip()
        if not asked:
            raise InputError("the question is empty: say what you want to know")
        state = cast(ConversationState, self.state().values)
        claim, env = answering_claim(self.session.claim(state), model), self.session.environment
        flow = answer_question(state, NodeContext(env, claim, self.id), asked)
        answer: DebateAnswer = call_from_sync(run_to_end, flow, env, claim)[0]
        return answer

    def delete(self) -> None:
        """Delete the debate with all its checkpoints, and what its debaters would remember of it elsewhere.

        Raises:
            DebateBusy: another process writes it.
        """
        delete_debate(self.session)
