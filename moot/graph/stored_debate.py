"""One debate in its database: run, resume, read, judge, ask, fork and delete it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import AIMessageChunk
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from moot.graph.documents import make_document
from moot.graph.preflight import check_config
from moot.graph.waiting import can_go_on, check_answer, check_extension, is_over, stopped_by
from moot.nodes.driving.bookkeeping import utc_now
from moot.nodes.driving.lost_work import with_failures
from moot.nodes.driving.portal import call_from_sync, iterate_from_sync
from moot.nodes.memory.earlier import identities, namespace_of
from moot.nodes.people.interjections import may_speak
from moot.nodes.people.questions import Question, questions_in
from moot.nodes.protocols.limits import limit_reached
from moot.state.catalogue import DebateRow
from moot.state.config import DebateConfig, differing_keys
from moot.state.conversation import ConversationInput
from moot.state.entries import clean_text
from moot.state.errors import DebatePaused, InputError

if TYPE_CHECKING:
    from moot.graph.api import Debates
    from moot.graph.rejudging import Judgement
    from moot.nodes.views.question_view import Answer

Event = dict[str, Any]
"""`{"event": "token"|"step"|"entry"|"summary"|"verdict"|"end"|…, …}`: one thing that happened in a run."""


class Debate:
    """One debate in its database."""

    def __init__(self, debates: Debates, row: DebateRow) -> None:
        self._debates = debates
        self.row = row

    @property
    def id(self) -> str:
        """UUID: the LangGraph thread's id."""
        return self.row.id

    @property
    def name(self) -> str:
        """What `--id` gave, else the id."""
        return self.row.name

    @property
    def _thread(self) -> RunnableConfig:
        return {"configurable": {"thread_id": self.id}}

    def state(self, checkpoint: str | None = None) -> Any:
        """Return LangGraph's snapshot of the state, the latest or that of a checkpoint."""
        config = {
            "configurable": {"thread_id": self.id, **({"checkpoint_id": checkpoint} if checkpoint else {})}
        }
        return call_from_sync(self._debates.graph.aget_state, config)

    def document(self) -> dict[str, Any]:
        """Return the debate as a `moot.debate/1` document."""
        self._refresh()
        snapshot = self.state()
        values = with_failures(snapshot.values, self._debates.records.failed.of(self.id))
        return {**make_document(self.row, values), "questions": _questions(snapshot)}

    def run(self, *, turns: int | None = None, answer: Any = None) -> dict[str, Any]:
        """Run to the end and return the document; see `stream`."""
        for _ in self.stream(turns=turns, answer=answer, tokens=False):
            pass
        return self.document()

    def stream(self, *, turns: int | None = None, answer: Any = None, tokens: bool = True) -> Iterator[Event]:
        """Run from where the debate stands, yielding what happens.

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
        with self._debates.records.writers.writing(self.id):
            self._set_out(turns, answer)
            try:
                yield from iterate_from_sync(lambda: self._events(_resumption(answer), tokens=tokens))
            except (KeyboardInterrupt, GeneratorExit):
                if not self.is_over():  # a run may have come to its end before its reader did
                    self._set_status("paused")
                raise
            self._settle()

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
        said = clean_text(text).strip()
        if not said:
            raise InputError("nothing is said: give the words")
        if not may_speak(speaker):
            raise InputError(f"nobody can speak as {speaker!r}: use a-z, 0-9, - and _")
        return self._debates.records.floor.say(self.id, speaker, said, utc_now())

    def pause(self) -> None:
        """Ask whoever runs the debate to stop at the next step's boundary; a later run is not stopped."""
        self._debates.records.floor.ask_to_pause(self.id, utc_now())

    def is_running(self) -> bool:
        """Return whether anybody, in this process or another, runs the debate at this moment."""
        return self._debates.records.writers.is_held(self.id)

    def questions(self) -> list[Question]:
        """Return what a person is asked before the debate can go on, `[]` where nothing is."""
        return _questions(self.state())

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
        from moot.graph.rejudging import JudgingOptions, judge_debate

        return judge_debate(self, JudgingOptions(**options), dry_run=dry_run)

    def is_over(self) -> bool:
        """Return whether nothing is left to do."""
        return is_over(self.state())

    def can_go_on(self) -> bool:
        """Return whether more turns would lengthen the debate once it is over."""
        return can_go_on(self.state().values)

    def caught_up(self) -> Any:
        """Return the latest state, to go on from; for those who write.

        A step that a run had finished, but died before it could conclude, is concluded first: an update would
        otherwise stand beside what that step leads to.
        """
        snapshot = self.state()
        if snapshot.next or is_over(snapshot):
            return snapshot

        async def conclude() -> None:
            await self._debates.graph.ainvoke(None, self._thread, interrupt_before="*", durability="sync")

        call_from_sync(conclude)
        return self.state()

    def reconfigure(self, config: DebateConfig) -> None:
        """Replace the frozen configuration, for what is still to come.

        Raises:
            ConfigError: it cannot be used.
            DebateBusy: another process writes this debate.
        """
        check_config(config, self._debates.environment)
        with self._debates.records.writers.writing(self.id):
            self._update({"config": config.to_json()}, self.caught_up().next)

    def differing_keys(self, config: DebateConfig) -> list[str]:
        """Return the dotted keys in which a configuration differs from the frozen one."""
        frozen = DebateConfig.model_validate(self.state().values["config"])
        if frozen.fingerprint() == config.fingerprint():
            return []
        return differing_keys(frozen.to_json(), config.to_json())

    def fork(self, *, after: int | None = None, name: str | None = None) -> Debate:
        """Make a new debate of this one's beginning; it samples anew.

        Args:
            after: `seq` of the last entry that the fork keeps; `None` keeps all.
            name: the fork's `--id`.

        Raises:
            InputError: no step ended at that entry.
            DebateExists: the name is taken.
        """
        from moot.graph.forking import fork_debate

        return fork_debate(self._debates, self, after=after, name=name)

    def ask(self, question: str) -> Answer:
        """Answer a question about the debate, which stays as it is, citing its messages.

        Raises:
            InputError: the question is empty.
            ModelError: no model answered.
        """
        from moot.graph.asking import ask_debate

        return ask_debate(self, question)

    def delete(self) -> None:
        """Delete the debate with all its checkpoints, and what its debaters would remember of it elsewhere.

        Raises:
            DebateBusy: another process writes it.
        """
        records = self._debates.records
        with records.writers.writing(self.id):
            call_from_sync(self._forget)
            call_from_sync(self._debates.graph.checkpointer.adelete_thread, self.id)  # type: ignore[union-attr]  # compiled with one
            records.forget(self.id)

    async def _forget(self) -> None:
        config = (await self._debates.graph.aget_state(self._thread)).values.get("config")
        store = self._debates.graph.store
        if config and store is not None:
            for identity in identities(DebateConfig.model_validate(config)).values():
                await store.adelete(namespace_of(identity), self.id)

    def _open(self, given: Mapping[str, Any], config: DebateConfig) -> None:
        """Run `open` alone, so that topic and configuration are stored before anything is paid."""

        async def run_open() -> None:
            await self._debates.graph.ainvoke(
                cast(ConversationInput, given),
                self._thread,
                context=config,
                interrupt_after=["open"],
                durability="sync",
            )

        with self._debates.records.writers.writing(self.id):
            call_from_sync(run_open)

    async def _events(self, given: Any, *, tokens: bool) -> Any:
        stream = self._debates.graph.astream(
            given,
            self._thread,
            stream_mode=["custom", "messages"] if tokens else ["custom"],
            durability="sync",
        )
        async for mode, payload in stream:
            if mode == "custom":
                yield payload
            elif isinstance(payload[0], AIMessageChunk):
                chunk = payload[0]
                yield {"event": "token", "id": chunk.id, "speaker": chunk.name, "text": chunk.text}

    def _set_out(self, turns: int | None, answer: Any) -> None:
        """Extend a debate, or have a failed verdict judged again, before it runs on."""
        snapshot = self.caught_up()
        check_answer(_questions(snapshot), answer)
        if turns:
            check_extension(snapshot)
        self._debates.records.floor.take_pause(self.id)  # whoever goes on wants it to run
        values, following = snapshot.values, snapshot.next
        verdict_failed = (values.get("verdict") or {}).get("status") == "failed"
        update: dict[str, Any] = {}
        if turns or (is_over(snapshot) and verdict_failed):
            update = {"verdict": {}, "solution": "", "status": "running"}
        if turns:
            configured = DebateConfig.model_validate(values["config"]).total_turns()
            start = values["turn_count"] if is_over(snapshot) else max(configured, values["turn_count"])
            update["config"] = {**values["config"], "turns": start + turns}
            if set(following) & {"judge", "close"}:
                following = ()  # it does not end there any more
        if set(following) == {"turn"} and self._failures_reach_a_limit(values):
            update, following = {**update, "status": "running"}, ()  # to `plan`, which ends it
        if update:
            self._update(update, following)
        if following or update:
            self._set_status("running")

    def _failures_reach_a_limit(self, values: Mapping[str, Any]) -> bool:
        """Return whether the next step would be paid beyond a limit that failed runs alone have reached."""
        config = DebateConfig.model_validate(values["config"])
        spent = with_failures(values, self._debates.records.failed.of(self.id))
        return bool(limit_reached(spent, config)) and not limit_reached(values, config)

    def _update(self, values: Mapping[str, Any], following: Sequence[str]) -> None:
        """Write into the state without moving the debate: what was to run next runs next."""
        call_from_sync(
            self._debates.graph.aupdate_state,
            self._thread,
            dict(values),
            _BEFORE.get("".join(following), "open"),
        )

    def _set_status(self, status: str) -> None:
        self._debates.records.catalogue.update(self.id, status=status, updated_at=utc_now())

    def _settle(self) -> None:
        snapshot = self.state()
        stopped = stopped_by([each.value for each in snapshot.interrupts])
        if is_over(snapshot):  # a node whose writes a killed run had stored is not run again to note its end
            self._refresh()
            if self.row.status != snapshot.values["status"]:
                self._set_status(snapshot.values["status"])
        if stopped is not None:
            self._set_status("paused" if isinstance(stopped, DebatePaused) else "waiting")
            raise stopped

    def _refresh(self) -> None:
        self.row = self._debates.records.find(self.id)


_BEFORE = {
    "clarify": "plan",
    "turn": "plan",
    "judge": "plan",
    "close": "plan",
    "record": "turn",
    "trim": "record",
    "summarize": "trim",
    "reflect": "trim",
}
"""The node whose outgoing edge leads to the one that is to run next."""


def _questions(snapshot: Any) -> list[Question]:
    return questions_in([each.value for each in snapshot.interrupts])


def _resumption(answer: Any) -> Any:
    return None if answer is None else Command(resume=answer)
