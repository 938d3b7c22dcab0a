"""Debates that a server runs, each in its own task, and what the live page reads and does.

Settings of a client are untrusted and checked against the operator's permissions. The operator's settings
are the defaults. A debate continues to run if its client disconnects.
"""

import asyncio
import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import NamedTuple, NotRequired, TypeVar, cast

from anyio import CapacityLimiter, to_thread
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.utils.json import parse_partial_json
from langgraph.types import StateSnapshot
from typing_extensions import TypedDict, override

from moot.api import Debate, DebateConfig, Debates, Event
from moot.asking.answer import DebateAnswer, with_stream
from moot.calls.concurrency import cancel_all, run_in_thread, shield
from moot.config.debate_config import frozen_config
from moot.config.stages import authorize, authorize_operator, requested_config
from moot.debates.config_checks import check_model, shorten_debate
from moot.debates.continuation import can_go_on, questions_at
from moot.debates.events import TokenEvent
from moot.debates.lifecycle import unused_name
from moot.debates.session import is_over
from moot.debates.stored_debate import has_decision
from moot.documents import DebateDocument, document_title, empty_document
from moot.importers import ImportedTranscript
from moot.plugins.web.streamed_prose import StreamedProse
from moot.protocols.registry import turns_planned
from moot.reports.verdict_view import Participants
from moot.runtime.spending import ceiling_reached, spending_refusal
from moot.state.entries import JsonObject, message_count, tokens_of
from moot.state.errors import DebatePaused, InputError, MootError, WaitingForPerson
from moot.state.settings import StreamRedactor

READS_AT_ONCE = 8
"""Maximum number of reads of the database at the same time. A read takes milliseconds, so more of them would
only compete for the processor."""
MAX_CALLS_AT_ONCE = 16
"""Maximum number of questions, judgements, proposals and imports of the server's clients at the same time:
those of four debates that are asked as much as `MAX_ASKED_AT_ONCE` allows. Each holds a thread while a model
answers."""
MAX_ASKED_AT_ONCE = 4
"""Maximum number of questions about one debate at the same time. A limit on tokens or cost can be exceeded by
so many answers."""
T = TypeVar("T")
EventListener = Callable[[Event], object]
"""Function that receives each event of a running debate."""


class StreamedMessage(TypedDict):
    """Message that a model is still writing.

    It includes the speaker and the text received so far.
    """

    speaker: str
    text: str
    replaces: NotRequired[bool]
    """True if the text replaces what a client has received before."""


def append_token(messages: dict[str, StreamedMessage], token: TokenEvent) -> None:
    """Append a streamed token to its message.

    The key of a message is the id that its entry will have.
    """
    message = messages.setdefault(token["id"], {"speaker": token["speaker"], "text": ""})
    if token.get("replaces"):
        message["text"], message["replaces"] = "", True
    message["text"] += token["text"]


class ServerThreads:
    """Worker threads of a server. Reads never wait for a thread on which a model is called."""

    def __init__(self) -> None:
        self._reads, self._calls = CapacityLimiter(READS_AT_ONCE), CapacityLimiter(MAX_CALLS_AT_ONCE)
        self._calling = 0

    async def read(self, function: Callable[..., T], *arguments: object) -> T:
        """Run a function that reads the database."""
        return await _run_in_thread(self._reads, function, *arguments)

    async def call_models(self, function: Callable[..., T], *arguments: object) -> T:
        """Run a function that waits for models. The function finishes even if its caller is cancelled.

        Raises:
            InputError: `MAX_CALLS_AT_ONCE` such functions are running.
        """
        if self._calling >= MAX_CALLS_AT_ONCE:
            raise InputError(
                f"this server is already waiting for models in {MAX_CALLS_AT_ONCE} requests: try again later"
            )
        self._calling += 1
        try:
            return await _run_in_thread(self._calls, function, *arguments)
        finally:
            self._calling -= 1


async def _run_in_thread(limiter: CapacityLimiter, function: Callable[..., T], *arguments: object) -> T:
    """Run a blocking function on a thread of `limiter`. The threads of asyncio are left to others."""

    def run() -> T:
        try:
            return function(*arguments)
        except StopIteration as error:  # the caller would wait for ever
            raise RuntimeError(f"{function!r} raised StopIteration") from error

    return await shield(to_thread.run_sync(run, limiter=limiter))


class AnswerStream(BaseCallbackHandler):
    """LangChain callback handler that reads the field `answer` of a structured reply while it is streamed."""

    def __init__(self, on_text: Callable[[str], object]) -> None:
        self._on_text, self._json, self._seen, self._text = on_text, "", 0, ""
        self._redactor = StreamRedactor()

    # LangChain streams a call if a handler has these two methods.
    def tap_output_aiter(self, run_id: object, output: object) -> object:
        """Return the stream unchanged."""
        return output

    def tap_output_iter(self, run_id: object, output: object) -> object:
        """Return the stream unchanged."""
        return output

    @override
    def on_llm_new_token(self, token: object, *, chunk: object = None, **_: object) -> None:
        """Pass on the answer's text if the new part of the reply makes it longer."""
        calls = getattr(getattr(chunk, "message", None), "tool_call_chunks", ())
        self._json += "".join([str(token), *(each["args"] or "" for each in calls)])
        try:
            data = parse_partial_json(self._json[max(0, self._json.find("{")) :])
        except ValueError:
            return
        answer = data.get("answer") if isinstance(data, dict) else None
        if isinstance(answer, str) and len(answer) > self._seen:
            self._text += self._redactor.feed(answer[self._seen :])
            self._seen = len(answer)
            self._on_text(self._text)


class DebateHost:
    """Host that runs the debates of a database.

    Each debate runs in an asyncio task of its own.

    Args:
        debates: the open database. The caller closes it.
        default_config: the operator's configuration, the default of new debates.
        tokens: publish each streamed token as an event.
    """

    def __init__(self, debates: Debates, default_config: DebateConfig, *, tokens: bool = False) -> None:
        self.debates, self.default_config = debates, default_config
        self.errors: dict[str, str] = {}
        """Error of the last failed run in this process, by debate id."""
        self.streaming: dict[str, dict[str, StreamedMessage]] = {}
        """Messages that are being streamed, by debate id and the id of their future entry."""
        self.threads = ServerThreads()
        """Threads for reads and for model calls of the server's clients."""
        self._tokens = tokens
        self._runs: dict[str, asyncio.Task[None]] = {}
        self._listeners: dict[str, list[EventListener]] = {}
        self._asked: Counter[str] = Counter()
        self._counting = threading.Lock()
        """Held while `_asked`, the number of questions that are being answered, is read and changed."""

    async def make(
        self,
        question: str,
        settings: Mapping[str, object],
        documents: Sequence[Mapping[str, str]] = (),
        *,
        by_operator: bool = False,
    ) -> Debate:
        """Create a debate from a client's question, settings and documents.

        Args:
            question: topic of the debate. The debate is named after it.
            settings: settings that override the operator's unless they are empty. `turns` is a maximum for
                every protocol.
            documents: background documents, each with `name` and `content`.
            by_operator: True if the client is the operator, whose settings need no permission.

        Raises:
            ConfigError: no model is set, or the settings are invalid, need more turns, or exceed the
                operator's permissions.
            InputError: the question is empty.
        """

        def make() -> Debate:
            config = self.apply_client_settings(settings, by_operator=by_operator)
            self.check_model(config)
            name = unused_name(self.debates.records, question)
            operator = None if by_operator else self.default_config
            return self.debates.start(question, config, name=name, documents=documents, operator=operator)

        return await run_in_thread(make)

    def store_transcript(
        self, imported: ImportedTranscript, topic: str, *, by_operator: bool = False
    ) -> Debate:
        """Store a client's transcript or exported debate as a finished debate.

        Raises:
            ConfigError: the settings of an exported debate are invalid.
            DebateExists: an exported debate is in the database already.
            InputError: the transcript has no topic, or only a moderator speaks.
        """
        if imported.document is not None:
            return self.debates.import_document(imported.document)
        config = self.apply_client_settings({}, by_operator=by_operator)
        topic = topic or imported.topic
        name = unused_name(self.debates.records, topic)
        return self.debates.import_transcript(imported, topic=topic, name=name, config=config)

    def apply_client_settings(
        self, settings: Mapping[str, object], *, by_operator: bool = False
    ) -> DebateConfig:
        """Apply a client's settings to the operator's configuration, and check that they are permitted.

        See `make`.

        Raises:
            ConfigError: the settings are invalid, need more turns, or exceed the operator's permissions.
        """
        changes = {key: value for key, value in settings.items() if value}
        config = requested_config(self.default_config, changes)
        if isinstance(turns := changes.get("turns"), int):
            config = shorten_debate(config, turns)
        if by_operator:
            granted = authorize_operator(self.default_config).granted
            return authorize(config, self.default_config, granted).config
        safe = self.debates.environment.safe_capabilities
        return authorize(config, self.default_config, safe=safe).authorize()

    def check_model(self, config: DebateConfig) -> None:
        """Check that somebody chose a model for a new debate.

        Raises:
            ConfigError: the offline model would take part by default.
        """
        if "model" not in self.debates.environment.safe_capabilities:  # else the program supplies the models
            check_model(config)

    def run(self, debate: Debate, *, turns: int | None = None, answer: object = None) -> asyncio.Task[None]:
        """Run a debate in an asyncio task, and return the task.

        If the debate is already running, return its existing task.
        """
        if known := self.running(debate.id):
            return known

        async def run() -> None:
            try:
                async for event in debate.astream(turns=turns, answer=answer, tokens=self._tokens):
                    self.publish(debate.id, event)
            except (WaitingForPerson, DebatePaused):
                pass
            except MootError as error:
                self.errors[debate.id] = str(error)
            except Exception as error:
                self.errors[debate.id] = f"{type(error).__name__}: {error}"
                raise
            finally:
                self.streaming.pop(debate.id, None)

        self.errors.pop(debate.id, None)
        self._runs[debate.id] = asyncio.create_task(run())
        return self._runs[debate.id]

    def ask(
        self, debate: Debate, question: str, on_text: Callable[[str], object] | None = None
    ) -> DebateAnswer:
        """Answer a client's question about a debate. See `Debate.ask`.

        Raises:
            InputError: the debate has reached a limit of the operator, or `MAX_ASKED_AT_ONCE` questions
                about it are being answered.
        """
        with self._counting:
            if self._asked[debate.id] >= MAX_ASKED_AT_ONCE:
                raise InputError(
                    f"Moot is already answering {MAX_ASKED_AT_ONCE} questions about this debate: ask again "
                    "later"
                )
            self._asked[debate.id] += 1
        try:
            self.check_spending(debate)
            if on_text:
                env = debate.session.environment
                env = replace(env, complete=with_stream(env.complete, AnswerStream(on_text)))
                debate = Debate(replace(debate.session, environment=env))
            return debate.ask(question)
        finally:
            with self._counting:
                self._asked[debate.id] -= 1
                self._asked += Counter()  # removes the debates without a question

    def check_spending(self, debate: Debate) -> None:
        """Raise an error if a debate has reached the operator's token or cost limit.

        Raises:
            InputError: the operator's limit is reached.
        """
        values = debate.state().values
        if values.get("config"):
            config = debate.session.permissions(values).config
            reached = ceiling_reached(debate.spent(values), config, self.default_config)
            if reason := spending_refusal(reached):
                raise InputError(reason)

    def running(self, debate: str) -> asyncio.Task[None] | None:
        """Return the task that runs a debate, or `None` if the debate is not running in this process."""
        run = self._runs.get(debate)
        return run if run and not run.done() else None

    @contextmanager
    def subscribe(self, debate: str, listener: EventListener) -> Iterator[None]:
        """Pass each event of a debate to a listener during a `with` block."""
        listeners = self._listeners.setdefault(debate, [])
        listeners.append(listener)
        try:
            yield
        finally:
            listeners.remove(listener)

    def publish(self, debate: str, event: Event) -> None:
        """Pass an event of a debate to all of its listeners."""
        streaming = self.streaming.setdefault(debate, {})
        if event["event"] == "token":
            append_token(streaming, event)
        elif event["event"] == "entry":
            streaming.pop(event["entry"]["id"], None)
        elif event["event"] == "step":
            streaming.clear()
        for listener in list(self._listeners.get(debate, ())):
            listener(event)

    def forget_message(self, debate: str, entry: str) -> None:
        """Forget a streamed message that is complete or has failed."""
        self.streaming.get(debate, {}).pop(entry, None)
        if not self.streaming.get(debate):
            self.streaming.pop(debate, None)

    async def close(self) -> None:
        """Pause all debates that run in this process. Every stopped debate is saved and can be continued."""
        await cancel_all(self._runs.values())


POLL_INTERVAL_S = 0.3
"""Number of seconds between checks for changes to a debate. A read takes a millisecond."""
SHARED_FOR_S = POLL_INTERVAL_S / 2
"""Number of seconds in which all followers of a debate share one check for changes. The last of them then
learns of a change at most half an interval later."""
BATCH_WINDOW_S = 0.03
"""Number of seconds for collecting streamed tokens before sending them together. Screens do not refresh
more often."""
CACHED_DOCUMENTS = 8
"""Maximum number of debate documents in the cache. A page requests the parts of a document separately."""

Version = tuple[object, ...]
"""Version of a stored debate, as a tuple that differs after every change."""


class DebateSnapshot(NamedTuple):
    """State of a debate at one moment, with the `DebateDocument` created from it."""

    version: Version
    snapshot: StateSnapshot
    document: DebateDocument


class DebateReader:
    """Reader that loads stored debates and caches their documents. An unchanged state is read once."""

    def __init__(self, host: DebateHost) -> None:
        self._host = host
        self._cache: OrderedDict[str, DebateSnapshot] = OrderedDict()
        self._overviews: OrderedDict[str, tuple[float, Version, JsonObject]] = OrderedDict()
        """When the latest version of a debate was read, this version, and its overview, by debate id."""
        self._following = asyncio.Lock()
        """Held while a follower reads, so that followers need one thread and read each version once."""
        self._thread = CapacityLimiter(1)

    async def changed_overview(
        self, debate: Debate, seen: Version | None
    ) -> tuple[Version, JsonObject] | None:
        """Return a new overview of a debate, or `None` if the debate has not changed."""
        # A check that began after this one was asked for is as good as its own.
        needed_from = time.monotonic() - (0 if seen is None else SHARED_FOR_S)
        async with self._following:
            read_at, version, overview = self._overviews.get(debate.id, (-math.inf, (), {}))
            if read_at < needed_from:
                read_at = time.monotonic()
                latest = await _run_in_thread(self._thread, self.version, debate)
                if latest != version:
                    overview = await _run_in_thread(self._thread, self.overview, debate)
                version = latest
                self._overviews[debate.id] = read_at, version, overview
                self._overviews.move_to_end(debate.id)
                while len(self._overviews) > CACHED_DOCUMENTS:
                    self._overviews.popitem(last=False)
            return None if version == seen else (version, overview)

    def version(self, debate: Debate) -> Version:
        """Return a value that changes whenever the debate or its feedback changes."""
        latest = debate.session.records.sql.execute(
            "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ?", (debate.id,)
        )
        feedback_times = tuple(each.at for each in debate.session.records.follow_ups.feedback(debate.id))
        return (
            debate.row,
            debate.is_running(),
            str(latest),
            self._host.errors.get(debate.id, ""),
            feedback_times,
        )

    def read(self, debate: Debate) -> DebateSnapshot:
        """Return the latest state and document of a debate."""
        version, cached = self.version(debate), self._cache.get(debate.id)
        if not cached or cached.version != version:
            snapshot = debate.state()
            cached = DebateSnapshot(version, snapshot, debate.document(snapshot))
        self._cache[debate.id] = cached
        self._cache.move_to_end(debate.id)
        while len(self._cache) > CACHED_DOCUMENTS:
            self._cache.popitem(last=False)
        return cached

    def overview(self, debate: Debate) -> JsonObject:
        """Return an overview of a debate for the live page."""
        version, snapshot, document = self.read(debate)
        parsed = cast(DebateDocument, {**empty_document(), "config": document["config"]})
        values, errors = snapshot.values, document["errors"]
        last_error = str(errors[-1]["error"]) if document["status"] == "failed" and errors else ""
        return {
            **asdict(debate.row),
            "checkpoint": version[2],
            "topic": document["topic"] or debate.row.topic,
            "question": document_title(document),
            "ended_because": document["ended_because"],
            "error": self._host.errors.get(debate.id) or last_error,
            "running": debate.is_running(),
            "over": is_over(snapshot),
            "can_continue": bool(values.get("config")) and can_go_on(debate.spent(values)),
            "nodes": list(snapshot.next),
            "step": values.get("step") or {},
            "entries": len(document["transcript"]),
            "messages": message_count(document["transcript"]),
            **_plan_of(values),
            "people": [asdict(person) for person in Participants(parsed).values()],
            "model": document["config"].get("model", ""),
            "questions": questions_at(snapshot),
            "pinned": values.get("pinned") or [],
            "shown": _shown_parts(document, has_ended=is_over(snapshot)),
            "judging": _cost_of_judging(document),
            "step_age_s": _age_s(snapshot),
            "can_rate": has_decision(document),
            "feedback": [asdict(each) for each in debate.session.records.follow_ups.feedback(debate.id)],
        }


def _plan_of(values: Mapping[str, object]) -> JsonObject:
    """Return the planned numbers of turns and rounds, and whether a judge decides at the end.

    A number is `None` if it is not known in advance, or if the protocol's length is not given in rounds.
    """
    if not values.get("config"):
        return {"planned_turns": None, "planned_rounds": None, "has_judge": False}
    config = frozen_config(values)
    turns, two, three = (
        turns_planned(each)
        for each in (
            config,
            *(config.model_copy(update={"turns": None, "rounds": rounds}) for rounds in (2, 3)),
        )
    )
    rounds = 2 + -(-(turns - two) // (three - two)) if turns and two and three and three > two else None
    return {"planned_turns": turns, "planned_rounds": rounds, "has_judge": config.judge.enabled}


def _shown_parts(document: DebateDocument, *, has_ended: bool) -> dict[str, bool]:
    """Return whether the parts of the page that may be empty have content, by the name of the tab."""
    return {
        "positions": not has_ended or message_count(document["transcript"]) > 0,
        "prompts": bool(document["receipts"] or document["calls"]),
    }


def _cost_of_judging(document: DebateDocument) -> JsonObject:
    """Return the calls, tokens and cost of one earlier judging of a debate.

    If the debate was judged several times, the result is the mean. Without a judge's call, `calls` is 0.
    """
    calls = [each["usage"] for each in document["calls"] if each["node"] == "judge"]
    count = max([1, *(each.get("judging", 1) for each in document["verdicts"])])
    return {
        "calls": -(-len(calls) // count),
        "tokens": sum(tokens_of(each) for each in calls) // count,
        "cost_usd": sum(each.get("cost_usd") or 0.0 for each in calls) / count,
    }


def _age_s(snapshot: StateSnapshot) -> float:
    """Return how many seconds ago a snapshot's checkpoint was made."""
    started = datetime.fromisoformat(snapshot.created_at) if snapshot.created_at else datetime.now(UTC)
    return max(0.0, (datetime.now(UTC) - started).total_seconds())


async def follow(
    host: DebateHost, reader: DebateReader, debate: Debate, ending: Callable[[], bool] = lambda: False
) -> AsyncIterator[JsonObject]:
    """Yield updates while a debate changes.

    An update holds a new overview, or streamed tokens and events.

    `tokens` holds the new tokens of streamed messages as text and as HTML, by the id that the message's entry
    will have.

    Args:
        host: debates that run in this process.
        reader: reader of the stored state.
        debate: debate to follow.
        ending: function that returns True when the server shuts down.
    """
    queue: asyncio.Queue[Event] = asyncio.Queue()
    prose: dict[str, StreamedProse] = {}
    with host.subscribe(debate.id, queue.put_nowait):
        earlier = {key: message.copy() for key, message in host.streaming.get(debate.id, {}).items()}
        seen: Version | None = None
        next_read = 0.0
        while not ending():
            started = time.monotonic()
            if started >= next_read and (changed := await reader.changed_overview(debate, seen)):
                seen, overview = changed
                yield {"debate": overview}
                now = time.monotonic()
                # Wait as long as the last read took, so that reads use at most half of the time.
                next_read = now + (now - started)
            if earlier:
                yield {"tokens": _rendered(earlier, prose), "events": []}
                earlier = {}
            if events := await _next_events(queue):
                yield _message_of(events, prose)


async def _next_events(queue: asyncio.Queue[Event]) -> list[Event]:
    """Wait for the next events of a debate, and return them as one batch.

    Return `[]` if no event comes within `POLL_INTERVAL_S`.
    """
    with suppress(TimeoutError):
        events = [await asyncio.wait_for(queue.get(), POLL_INTERVAL_S)]
        await asyncio.sleep(BATCH_WINDOW_S)
        return [*events, *(queue.get_nowait() for _ in range(queue.qsize()))]
    return []


def _message_of(events: Sequence[Event], prose: dict[str, StreamedProse]) -> JsonObject:
    tokens: dict[str, StreamedMessage] = {}
    for event in events:
        if event["event"] == "token":
            append_token(tokens, event)
        elif event["event"] == "entry":
            prose.pop(event["entry"]["id"], None)
    rest = [event for event in events if event["event"] not in ("token", "entry")]
    return {"tokens": _rendered(tokens, prose), "events": rest}


def _rendered(
    tokens: Mapping[str, StreamedMessage], prose: dict[str, StreamedProse]
) -> dict[str, JsonObject]:
    """Return streamed messages with the HTML that their new text changes."""
    for key, message in tokens.items():
        if message.get("replaces") or key not in prose:
            prose[key] = StreamedProse()
    return {key: {**message, **prose[key].add(message["text"])} for key, message in tokens.items()}
