"""Debates from Python: start, run, resume, fork, read and delete them in one database.

    with open_debates("moot.sqlite") as debates:
        debate = debates.start("Should we adopt a monorepo?")
        for event in debate.stream():
            ...
        print(debate.document()["verdict"]["winner"])

All of it works inside a running event loop too, such as a notebook's. In a program that must not block its
loop, `async with aopen_debates(…)` opens the same debates, which `Debate.astream` and `Debate.arun` run. The
rest reads and writes the database alone, in milliseconds, but for `judge` and `ask`, which call models:
`asyncio.to_thread` runs those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from moot.graph.continuation import Event
from moot.graph.debate import build_graph
from moot.graph.lifetime import find_debate, start_debate, store_import
from moot.graph.preflight import check_config
from moot.graph.session import DebateSession
from moot.graph.stored_debate import Debate
from moot.nodes.driving.environment import Environment, environment_of
from moot.nodes.driving.portal import call_from_sync, entered_in_thread
from moot.nodes.models.registry import ChatSource
from moot.state.catalogue import DebateRow
from moot.state.checkpoints import open_saver
from moot.state.config import DebateConfig
from moot.state.config.boundary import Claim, reaches
from moot.state.records import records_of
from moot.state.stores import LateStore

if TYPE_CHECKING:
    from moot.graph.importing import ImportedTranscript


def open_debates(
    database: str | None = None,
    *,
    environment: Environment | None = None,
    models: Mapping[str, ChatSource] | None = None,
) -> Debates:
    """Open a database of debates, making it where it does not exist.

    Args:
        database: a path, `postgresql://…`, or `None` for `MOOT_DB`, else the user's data directory.
        environment: models and clock; the default is the real world.
        models: LangChain chat models, or functions that make them, by the names that a `DebateConfig` has
            for them.

    Raises:
        InputError: the database cannot be opened.
    """
    used = environment_of(environment, models)
    return Debates(database, used, own=used is not environment)


def aopen_debates(
    database: str | None = None,
    *,
    environment: Environment | None = None,
    models: Mapping[str, ChatSource] | None = None,
) -> AbstractAsyncContextManager[Debates]:
    """Open a database of debates for an `async with` block, like `open_debates`.

    Raises:
        InputError: the database cannot be opened.
    """

    @contextmanager
    def opening() -> Iterator[Debates]:
        with open_debates(database, environment=environment, models=models) as debates:
            yield debates

    return entered_in_thread(opening())


class Debates(AbstractContextManager["Debates"]):
    """The debates of one database; a context manager."""

    def __init__(self, database: str | None, environment: Environment, *, own: bool = False) -> None:
        self._stack = AsyncExitStack()
        if own:  # nobody else uses its clients
            self._stack.push_async_callback(environment.aclose)
        saver = call_from_sync(self._stack.enter_async_context, open_saver(database))
        store = LateStore(database, self._stack)
        self.environment, self.records = environment, records_of(saver)
        self.graph = build_graph(saver, store=store, environment=environment)
        self._session = DebateSession(self.graph, self.records, environment)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database, and the clients that reached models for it."""
        call_from_sync(self._stack.aclose)

    def rows(self) -> list[DebateRow]:
        """Return the catalogue, the most recently active debate first."""
        return self.records.rows()

    def get(self, name: str) -> Debate:
        """Return the debate of this id, name or unambiguous beginning of an id.

        Raises:
            DebateNotFound: there is none.
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
    ) -> Debate:
        """Make a new debate, validated and stored, ready to `stream` or `run`.

        Args:
            topic: what is argued; `None` takes the configuration's.
            config: everything else; the default has two debaters.
            name: its `--id`; `None` makes a new UUID.
            transcript: entries to continue, `{speaker, content}` at least.
            documents: context, `{name, content}` each.

        Raises:
            ConfigError: the configuration cannot be used; nothing is written.
            InputError: there is no topic; nothing is written.
            DebateExists: the name is taken.
        """
        given = {
            "topic": topic,
            "full_transcript": list(transcript),
            "context_documents": [dict(document) for document in documents],
        }
        return Debate(start_debate(self._session, given, config or DebateConfig(), name))

    def replay(self, source: str, *, name: str | None = None) -> Debate:
        """Make a debate that argues another one again from its journal, without a model.

        Args:
            source: id or name of the debate to replay.
            name: the new debate's `--id`.

        Raises:
            DebateNotFound: there is no such debate.
            DebateExists: the name is taken.
        """
        from moot.graph.replays import start_replay

        return Debate(start_replay(find_debate(self._session, source), name))

    def import_document(self, document: Mapping[str, Any], *, name: str | None = None) -> Debate:
        """Store a `moot.debate/1` document as the debate that it was exported from.

        Args:
            document: what `Debate.document` returned, in this or another database.
            name: its `--id` here; `None` keeps its own id and name.

        Raises:
            InputError: it is no whole document.
            DebateExists: its id or name is taken.
        """
        from moot.graph.importing.adopting import document_values

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
        """Make a finished debate of a transcript: to judge, summarise, report, ask or go on with.

        Args:
            transcript: the text of a transcript in any known format, or what `parse_transcript` made of it.
            topic: what was argued, where the transcript does not say it or says it badly.
            name: the debate's `--id`; `None` makes a new UUID.
            config: settings for what is still to come; its debaters do not count.
            debaters: who of the speakers argues, ids or names; by default everybody but a moderator.

        Raises:
            InputError: it cannot be read, or it has no topic.
            DebateExists: the name is taken.
        """
        from moot.graph.importing import parse_transcript
        from moot.graph.importing.adopting import transcript_config, transcript_values

        read = parse_transcript(transcript) if isinstance(transcript, str) else transcript
        settings = transcript_config(read, config, debaters)
        check_config(Claim.of_operator(settings), self.environment)
        values = transcript_values(read, topic or read.topic, settings, self.environment)
        values["status"] = "done"
        return Debate(store_import(self._session, values, name, granted=reaches(settings)))


__all__ = [
    "Debate",
    "DebateConfig",
    "Debates",
    "Environment",
    "Event",
    "aopen_debates",
    "build_graph",
    "open_debates",
]
