"""Python API: start, run, resume, fork, read and delete debates in a database.

    with open_debates("moot.sqlite") as debates:
        debate = debates.start("Should we adopt a monorepo?")
        for event in debate.stream():
            ...
        print(debate.document()["verdict"]["winner"])

The API also works inside a running event loop, such as a notebook's. In an async program, open the database
with `async with aopen_debates(…)`, and run debates with `Debate.astream` or `Debate.arun`. Methods that call
models or write much have an async version: `Debates.astart`, `Debate.aask`, `ajudge`, `afork` and `adelete`.
All other methods read and write the database in milliseconds.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.tools import BaseTool

from moot.calls.concurrency import async_version, require_asyncio, run_in_thread
from moot.config import DebateConfig
from moot.config.boundary import Permissions, capabilities_of
from moot.debates.config_checks import check_config
from moot.debates.continuation import verdict_failed
from moot.debates.events import Event
from moot.debates.lifecycle import find_debate, start_debate, start_replay, store_import
from moot.debates.session import DebateSession
from moot.debates.stored_debate import Debate
from moot.graph.debate import build_graph
from moot.models.registry import ChatSource
from moot.runtime.background_loop import call_from_sync, enter_in_thread
from moot.runtime.environment import Environment, make_environment
from moot.state.errors import DebateBusy, DebateExists, DebateNotFound
from moot.storage.catalogue import DebateRow
from moot.storage.checkpoints import LazyStore, open_saver
from moot.storage.records import records_of

if TYPE_CHECKING:
    from moot.debates.imported_debate import ImportedTranscript

__all__ = ["Debate", "DebateConfig", "Debates", "Event", "aopen_debates", "checkpointer", "open_debates"]


def open_debates(
    database: str | None = None,
    *,
    environment: Environment | None = None,
    models: Mapping[str, ChatSource] | None = None,
    tools: Mapping[str, BaseTool] | None = None,
) -> Debates:
    """Open a database of debates, creating it if it does not exist.

    Args:
        database: A path or `postgresql://…`. `":memory:"`: a temporary file that closing deletes. `None`:
            `MOOT_DB`, otherwise a file in the user's data directory.
        environment: Models and clock. Default: real models and the system clock.
        models: LangChain chat models, or functions that create them, by the model name in a
            `DebateConfig`.
        tools: LangChain tools, by the name in the debaters' setting `tools`.

    Raises:
        InputError: The database cannot be opened.
    """
    debate_environment = make_environment(environment, models, tools)
    return Debates(database, debate_environment, has_own_environment=debate_environment is not environment)


checkpointer = open_saver
"""Open Moot's checkpointer for a database in an `async with` block, for a graph of `build_graph`."""


def aopen_debates(
    database: str | None = None,
    *,
    environment: Environment | None = None,
    models: Mapping[str, ChatSource] | None = None,
    tools: Mapping[str, BaseTool] | None = None,
) -> contextlib.AbstractAsyncContextManager[Debates]:
    """Open a database of debates in an `async with` block. Async form of `open_debates`.

    Raises:
        InputError: The database cannot be opened, or the event loop is not asyncio's.
    """

    @contextlib.contextmanager
    def opening() -> Iterator[Debates]:
        with open_debates(database, environment=environment, models=models, tools=tools) as debates:
            yield debates

    @contextlib.asynccontextmanager
    async def checked() -> AsyncIterator[Debates]:
        require_asyncio("`aopen_debates`")
        async with enter_in_thread(opening()) as debates:
            yield debates

    return checked()


class Debates(contextlib.AbstractContextManager["Debates"]):
    """Context manager that gives access to the debates in a database."""

    def __init__(
        self, database: str | None, environment: Environment, *, has_own_environment: bool = False
    ) -> None:
        self._stack = contextlib.AsyncExitStack()
        if has_own_environment:  # its clients are not shared
            self._stack.push_async_callback(environment.aclose)
        if (database or "").endswith(":memory:"):  # SQLite would give each connection a database of its own
            folder = self._stack.enter_context(TemporaryDirectory(prefix="moot-", ignore_cleanup_errors=True))
            database = str(Path(folder) / "moot.sqlite")
        saver = call_from_sync(self._stack.enter_async_context, open_saver(database))
        store = LazyStore(database, self._stack)
        self.environment, self.records = environment, records_of(saver)
        self.graph = build_graph(saver, store=store, environment=environment)
        self._session = DebateSession(self.graph, self.records, environment)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database and the model connections of its debates.

        In a child process after `fork()` it does nothing, because the parent closes them.
        """
        if not self.records.sql.is_inherited:
            call_from_sync(self._stack.aclose)

    def rows(self) -> list[DebateRow]:
        """Return one row of metadata for each debate, most recently active first."""
        return self.records.rows()

    def get(self, name: str) -> Debate:
        """Return the debate with the given id, name or unique id prefix.

        Raises:
            DebateNotFound: No debate matches.
        """
        return Debate(find_debate(self._session, name))

    def start(
        self,
        topic: str | None = None,
        config: DebateConfig | None = None,
        *,
        name: str | None = None,
        transcript: Sequence[Mapping[str, Any]] = (),
        documents: Sequence[Mapping[str, str]] = (),
        operator: DebateConfig | None = None,
        if_exists: Literal["raise", "resume"] = "raise",
    ) -> Debate:
        """Validate and store a new debate without running it.

        Args:
            topic: Topic of the debate. `None`: the configuration's topic.
            config: All other settings. Default: two debaters.
            name: Name of the debate, its `--id`. `None`: a new UUID.
            transcript: Earlier entries to continue from, each with at least `speaker` and `content`.
            documents: Background documents, each with `name` and `content`.
            operator: The operator's configuration if a client of a server chose `config`. `config` then
                cannot raise the operator's limits, and grants the debate nothing. `None`: the operator
                chose `config`.
            if_exists: `resume` returns the stored debate if the name is taken, with its own configuration.

        Raises:
            ConfigError: The configuration is invalid. Nothing is written.
            InputError: The topic is missing. Nothing is written.
            DebateExists: The name is taken.
            DebateBusy: Another process is creating the debate that is to be resumed.
        """
        values = {
            "topic": topic,
            "full_transcript": list(transcript),
            "context_documents": [dict(document) for document in documents],
        }
        try:
            return Debate(start_debate(self._session, values, config or DebateConfig(), name, operator))
        except DebateExists as error:
            if if_exists == "raise" or name is None:
                raise
            with contextlib.suppress(DebateNotFound):
                if (debate := self.get(name)).row.status != "new":
                    return debate
            raise DebateBusy(str(error)) from None  # another process is creating it

    astart = async_version(start)

    def replay(self, source: str, *, name: str | None = None) -> Debate:
        """Create a debate that replays another debate's stored replies without calling a model.

        Args:
            source: Id or name of the debate to replay.
            name: Name of the new debate, its `--id`.

        Raises:
            DebateNotFound: No debate matches.
            DebateExists: The name is taken.
        """
        return Debate(start_replay(find_debate(self._session, source), name))

    def import_document(self, document: Mapping[str, Any], *, name: str | None = None) -> Debate:
        """Restore a debate that was exported as a `moot.debate/1` document.

        Args:
            document: Result of `Debate.document`, from this or another database.
            name: Name of the debate, its `--id`. `None`: keep the original id and name.

        Raises:
            InputError: The document is incomplete.
            DebateExists: The id or the name is taken.
        """
        from moot.debates.imported_debate import document_values

        values = document_values(document, self.environment)
        return Debate(store_import(self._session, values, name, document))

    def import_transcript(
        self,
        transcript: str | ImportedTranscript,
        *,
        topic: str | None = None,
        name: str | None = None,
        config: DebateConfig | None = None,
        debaters: Sequence[str] = (),
    ) -> Debate:
        """Create a finished debate from a transcript. You can judge, summarize, query or continue the debate.

        Args:
            transcript: Text of a transcript in any supported format, or the result of `parse_transcript`.
            topic: Topic of the debate. `None`: the topic in the transcript.
            name: Name of the debate, its `--id`. `None`: a new UUID.
            config: Settings for continuing the debate; its debaters are ignored.
            debaters: Names or ids of the speakers who debate. Default: all but a moderator.

        Raises:
            InputError: The transcript is invalid, or has no topic.
            DebateExists: The name is taken.
        """
        from moot.debates.imported_debate import transcript_config, transcript_values
        from moot.importers import parse_transcript

        imported_transcript = parse_transcript(transcript) if isinstance(transcript, str) else transcript
        settings = transcript_config(imported_transcript, config, debaters)
        settings = check_config(Permissions.of_operator(settings), self.environment)
        values = transcript_values(
            imported_transcript, topic or imported_transcript.topic, settings, self.environment
        )
        values["status"] = "done"
        return Debate(store_import(self._session, values, name, granted=capabilities_of(settings)))


async def run_until_done(debate: Debate) -> None:
    """Run a debate to its end. A debate that is over and judged does not change."""
    if not await run_in_thread(is_judged, debate):
        async for _ in debate.astream(tokens=False):
            pass


def is_judged(debate: Debate) -> bool:
    """Return True if a debate is over and judging it did not fail. A deleted debate is not over."""
    return bool(values := debate.state().values) and debate.is_over() and not verdict_failed(values)
