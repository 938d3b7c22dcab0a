"""Debates from Python: start, run, resume, fork, read and delete them in one database.

    with open_debates("moot.sqlite") as debates:
        debate = debates.start("Should we adopt a monorepo?")
        for event in debate.stream():
            ...
        print(debate.document()["verdict"]["winner"])

Everything here is synchronous and works inside a running event loop too, such as a notebook's; whoever wants
`async` uses `build_graph` with `ainvoke` and `astream`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from moot.graph.debate import DebateGraph, build_graph
from moot.graph.preflight import check_config
from moot.graph.stored_debate import Debate, Event
from moot.nodes.driving.bookkeeping import utc_now
from moot.nodes.driving.environment import Environment
from moot.nodes.driving.portal import call_from_sync
from moot.state.catalogue import TOPIC_CHARS, DebateRow, new_debate_id
from moot.state.checkpoints import open_saver
from moot.state.config import DebateConfig
from moot.state.entries import topic_text
from moot.state.errors import DebateBusy, DebateExists, DebateNotFound, InputError
from moot.state.records import Records, records_of
from moot.state.stores import open_store

if TYPE_CHECKING:
    from moot.graph.importing import ImportedTranscript


def open_debates(database: str | None = None, *, environment: Environment | None = None) -> Debates:
    """Open a database of debates, making it where it does not exist.

    Args:
        database: a path, `postgresql://…`, or `None` for `MOOT_DB`, else the user's data directory.
        environment: models and clock; the default is the real world.

    Raises:
        InputError: the database cannot be opened.
    """
    return Debates(database, environment or Environment())


class Debates:
    """The debates of one database; a context manager."""

    def __init__(self, database: str | None, environment: Environment) -> None:
        self._stack = AsyncExitStack()
        self.environment = environment
        saver = call_from_sync(self._stack.enter_async_context, open_saver(database))
        self.records: Records = records_of(saver)
        store = call_from_sync(self._stack.enter_async_context, open_store(database))
        self.graph: DebateGraph = build_graph(saver, store=store, environment=environment)

    def __enter__(self) -> Debates:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        call_from_sync(self._stack.aclose)

    def rows(self) -> list[DebateRow]:
        """Return the catalogue, the most recently active debate first."""
        return self.records.rows()

    def get(self, name: str) -> Debate:
        """Return the debate of this id, name or unambiguous beginning of an id.

        Raises:
            DebateNotFound: there is none.
        """
        self._drop_unbegun(name)
        return Debate(self, self.records.find(name))

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
        config = config or DebateConfig()
        said = topic_text(topic if topic is not None else config.topic)
        if not said:
            raise InputError("the topic is empty: say what is to be argued")
        check_config(config, self.environment)
        given = {
            "topic": said,
            "full_transcript": list(transcript),
            "context_documents": [dict(document) for document in documents],
        }
        row = self._new_row(said, config, name)
        with self.making(row) as debate:
            debate._open(given, config)
        return debate

    @contextmanager
    def making(self, row: DebateRow) -> Iterator[Debate]:
        """Add a debate to the catalogue and hold it while it is made; where that fails, it is gone again.

        A process that is killed meanwhile leaves a row of status `new`, which the next one drops.

        Raises:
            DebateExists: its id or name is taken.
        """
        self._drop_unbegun(row.name)
        try:
            self.records.writers.acquire(row.id)
        except DebateBusy:
            raise DebateExists(f"debate {row.name!r} exists already, and is in use") from None
        try:
            self.records.catalogue.add(replace(row, status="new"))
            debate = Debate(self, row)
            try:
                yield debate
            except BaseException:
                debate.delete()
                raise
        finally:
            self.records.writers.release(row.id)

    def _drop_unbegun(self, name: str) -> None:
        """Delete a debate that a process began to make and did not live to make."""
        with suppress(DebateNotFound, InputError, DebateBusy):
            row = self.records.catalogue.find(name)
            if self.records.never_began(row):
                Debate(self, row).delete()

    def replay(self, source: str, *, name: str | None = None) -> Debate:
        """Make a debate that argues another one again from its journal, without a model.

        Args:
            source: id or name of the debate to replay.
            name: the new debate's `--id`.

        Raises:
            DebateNotFound: there is no such debate.
            DebateExists: the name is taken.
        """
        from moot.graph.replaying import start_replay

        return start_replay(self, self.get(source), name)

    def import_document(self, document: Mapping[str, Any], *, name: str | None = None) -> Debate:
        """Store a `moot.debate/1` document as the debate that it was exported from.

        Args:
            document: what `Debate.document` returned, in this or another database.
            name: its `--id` here; `None` keeps its own id and name.

        Raises:
            InputError: it is no whole document.
            DebateExists: its id or name is taken.
        """
        from moot.graph.importing.adopting import document_values, imported_row
        from moot.graph.importing.import_storage import store_import

        values = document_values(document, self.environment)
        row = imported_row(values, name, self.environment.clock(), document)
        return store_import(self, values, row, fresh=False)

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
        from moot.graph.importing.adopting import imported_row, transcript_config, transcript_values
        from moot.graph.importing.import_storage import store_import

        read = parse_transcript(transcript) if isinstance(transcript, str) else transcript
        settings = transcript_config(read, config, debaters)
        check_config(settings, self.environment)
        values = transcript_values(read, topic or read.topic, settings, self.environment)
        values["status"] = "done"
        row = imported_row(values, name, self.environment.clock(), None)
        return store_import(self, values, row, fresh=True)

    def _new_row(self, topic: str, config: DebateConfig, name: str | None) -> DebateRow:
        now = utc_now()
        thread = new_debate_id(name)
        return DebateRow(
            id=thread,
            name=name or thread,
            topic=topic[:TOPIC_CHARS],
            protocol=config.protocol,
            status="new",
            turns=0,
            tokens=0,
            cost_usd=0.0,
            parent="",
            created_at=now,
            updated_at=now,
        )


__all__ = ["Debate", "Debates", "Event", "open_debates"]
