"""What is wrong with an installation, a database and the debates in it; and whether models can be used.

A look at models makes one small call to each, which is paid.
"""

from __future__ import annotations

import asyncio
import platform
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal, cast

from langchain_core.runnables import RunnableConfig, RunnableLambda
from pydantic import BaseModel

from moot.graph.session import is_over
from moot.nodes.calls import Reply, SpeakAs, WireMessage
from moot.nodes.driving.environment import Environment
from moot.nodes.models.complete import complete
from moot.nodes.models.offers import rows_for
from moot.nodes.models.registry import Models
from moot.nodes.prompts.fitting import fit_messages
from moot.nodes.prompts.request import Voice, make_call
from moot.nodes.summarize import entries_to_fold
from moot.nodes.text.tokens import counter
from moot.state.config import DebateConfig
from moot.state.config.boundary import Claim, reaches
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationState, StateValues
from moot.state.entries import tokens_of
from moot.state.errors import MootError, UserError
from moot.state.langgraph_internals import TRIED
from moot.state.sql import DATABASE_VERSION, DebateTable
from moot.state.sqlite import SqliteSql
from moot.state.traffic import SLOT

if TYPE_CHECKING:
    from moot.graph.api import Debates
    from moot.graph.stored_debate import Debate
    from moot.state.records import Records

ROOM = 256
"""Tokens for the answer, beside what a model is given to think: more than any needs for one word as JSON."""
_SIZES = ("context_length", "max_model_len", "context_window", "max_context_length", "max_input_tokens")
"""What servers call the context's size in their list of models: OpenRouter, vLLM, Groq, Mistral, others."""

Repair = Callable[[], object]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    says: str
    ok: bool = True
    repair: Repair | None = None
    """What puts it right and loses nothing, where that is known."""


def look_at_installation() -> Iterator[Finding]:
    """Yield what debates run on."""
    yield Finding("Moot", f"{version('moot')}, Python {platform.python_version()}")
    yield Finding("SQLite", sqlite3.sqlite_version)
    for package, tried in TRIED.items():
        installed = version(package)
        remark = "" if installed == tried else f"; tried with {tried}"
        yield Finding(package, installed + remark)


def look_at_database(debates: Debates) -> Iterator[Finding]:
    """Yield what a database and each of its debates is like; every state is read."""
    sql = debates.records.sql
    if isinstance(sql, SqliteSql):
        faults = [str(fault) for (fault,) in sql.execute("PRAGMA integrity_check(5)")]
        yield Finding("file", "; ".join(faults), faults == ["ok"])
        ((pages, size, free),) = sql.execute(
            "SELECT page_count, page_size, freelist_count FROM pragma_page_count, pragma_page_size, "
            "pragma_freelist_count"
        )
        unused = f", {free / pages:.0%} of it unused" if pages and free else ""
        yield Finding("size", f"{pages * size / 2**20:.1f} MiB{unused}")
    yield Finding("tables", f"version {sql.version()}, known up to {DATABASE_VERSION}")
    rows = debates.rows()
    held = [row.name for row in rows if debates.records.leases.is_held(row.id)]
    yield Finding("running", ", ".join(held) or "none")
    for row in rows:
        try:
            for says, repair in _faults(debates.get(row.id)):
                yield Finding(row.name, says, False, repair)
        except MootError as error:
            yield Finding(row.name, str(error), ok=False)
    yield from _left_over(debates.records)
    yield Finding("debates", str(len(rows)))


def _faults(debate: Debate) -> Iterator[tuple[str, Repair | None]]:
    """Yield which promises a stored debate breaks, each with what puts it right."""
    running, snapshot, row = debate.is_running(), debate.state(), debate.row
    values, records = snapshot.values, debate.session.records
    if not values.get("config"):
        yield "it has no configuration", None
        return
    for says in _wrong_entries(values):
        yield says, None
    try:
        records.journal.replies(debate.id)
    except ValueError as error:
        yield f"its journal cannot be read: {error}", None
    if running:
        return

    told: dict[str, str | float] = {"turns": values["turn_count"]}
    if is_over(snapshot):
        told["status"] = values["status"]
        if missed := entries_to_fold(cast(ConversationState, values)):
            yield f"{len(missed)} entries are neither in the window nor in the summary", None
    if wrong := {key: value for key, value in told.items() if getattr(row, key) != value}:
        listed = ", ".join(f"{key} {getattr(row, key)} for {value}" for key, value in wrong.items())
        yield f"it is listed with {listed}", partial(records.catalogue.update, debate.id, **wrong)


def _wrong_entries(values: StateValues) -> Iterator[str]:
    """Yield what is wrong with the entries and the window of a state."""
    entries = values["full_transcript"]
    ids, numbers = [entry["id"] for entry in entries], [entry["seq"] for entry in entries]
    if numbers != list(range(len(entries))):
        last = next((n - 1 for n, number in enumerate(numbers) if n != number), len(numbers) - 1)
        yield f"entries are missing, doubled or out of order after {last}: `moot fork --after` goes on before"
    if len(set(ids)) != len(ids):
        yield "two entries have the same id"
    names = frozen_config(values).names()
    window = {str(message.id) for message in values["messages"] if message.name in names}
    if strangers := sorted(window - set(ids)):
        yield f"the window shows what was not said: {', '.join(strangers[:3])}"


def _left_over(records: Records) -> Iterator[Finding]:
    """Yield what is kept of debates that are not there, or never began."""
    for row in records.catalogue.rows():
        if records.never_began(row):
            yield Finding(row.name, "it never began", False, partial(records.forget, row.id))
    for table in records.tables() if not records.sql.read_only else ():
        rows = records.sql.execute(
            f"SELECT DISTINCT debate FROM {table.name} WHERE debate NOT IN (SELECT id FROM moot_debates) "  # noqa: S608  # constants of ours
            "AND debate NOT IN (SELECT thread_id FROM checkpoints)"
        )
        if lost := [debate for (debate,) in rows if not debate.startswith(SLOT)]:
            repair = partial(_delete_each, table, lost)
            yield Finding(table.name, f"rows of {len(lost)} debates that are not there", False, repair)


def _delete_each(table: DebateTable, debates: Sequence[str]) -> None:
    for debate in debates:
        table.delete(debate)


class _Word(BaseModel):
    word: Literal["ready"]


def callable_models(config: DebateConfig) -> list[str]:
    """Return the models of a configuration whose calls leave this process."""
    return [reach.value for reach in reaches(config) if reach.kind == "model"]


def look_at_models(config: DebateConfig) -> list[Finding]:
    """Call each model of an operator's configuration once: does it answer, stream, keep to a schema?"""
    environment = Environment()
    models = replace(environment.models_of(Claim.of_operator(config)), retry_for=0.0)

    async def look() -> list[Finding]:
        try:
            return [await _look_at_model(name, models) for name in callable_models(config)]
        finally:
            await models.aclose()

    return asyncio.run(look())


async def _look_at_model(name: str, models: Models) -> Finding:
    configured = models.settings_of(name)
    try:
        reply, pieces = await _ask_for_word(name, models)
    except UserError as error:
        return Finding(name, str(error), ok=False)
    if reply.error:
        return Finding(name, reply.error, ok=False)
    offered = await _context_size(name, models)
    wrong = []
    if configured.stream and pieces < 2:
        wrong.append("does not stream: its words will come at once")
    method = models.method_of(name)
    if method != configured.structured_output:
        wrong.append(
            f"takes no {configured.structured_output}: set models.{name}.structured_output to {method}"
        )
    if offered and (configured.context_size or 0) > offered:
        wrong.append(f"takes {offered:,} tokens, not models.{name}.context_size")
    size = offered or configured.context_size
    cost = reply.usage.get("cost_usd")
    facts = [
        f"answers in {reply.latency_s:.1f} s",
        f"structured by {method}",
        f"context {size:,} tokens" if size else "context size unknown",
        f"{tokens_of(reply.usage)} tokens" + ("" if cost is None else f", US$ {cost:.6f}"),
    ]
    return Finding(name, "; ".join([*wrong, *facts]), ok=not wrong)


async def _ask_for_word(name: str, models: Models) -> tuple[Reply, int]:
    """Make the smallest call that is structured and streams; return its reply, and in how many pieces."""
    asked: WireMessage = {
        "role": "user",
        "content": 'Answer with the word "ready", as JSON: {"word": "ready"}',
    }
    view, voice = fit_messages([asked], ROOM, counter()), Voice(name, None, (), None, ROOM)
    speaker = SpeakAs("m000000", "doctor")
    call = make_call(voice, "evaluate", view, schema=_Word, speak_as=speaker, hints={})
    replies: list[Reply] = []

    async def ask(_: object, config: RunnableConfig) -> None:
        replies.append(await complete(call, models, config=config))

    events = RunnableLambda(ask).astream_events(None, version="v2")
    pieces = [each async for each in events if each["event"] == "on_chat_model_stream"]
    return replies[0], sum(bool(each["data"]["chunk"].text) for each in pieces)


async def _context_size(name: str, models: Models) -> int:
    """Return the size of a model's context that its endpoint tells, tokens; 0 where it does not."""
    rows = await rows_for(name, models)
    told = [each.get(key) for each in rows if each["id"] == name for key in _SIZES]
    return next((size for size in told if isinstance(size, int) and size > 0), 0)
