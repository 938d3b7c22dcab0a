"""`moot doctor` and `moot models`: check the installation and list the models of an endpoint."""

from __future__ import annotations

import asyncio
import platform
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

from langchain_core.runnables import RunnableConfig, RunnableLambda
from pydantic import BaseModel
from typer import Argument, Exit, Option

from moot.calls.model_calls import Reply, StreamAs, WireMessage
from moot.cli import databases, options, terminal
from moot.cli.group import command
from moot.config import DebateConfig
from moot.config.boundary import Permissions, capabilities_of
from moot.config.debate_config import frozen_config
from moot.config.model_settings import ModelSettings
from moot.config.stages import read_config
from moot.debates.session import is_over
from moot.models.endpoints import offered_models, server_facts
from moot.models.model_call import complete
from moot.models.registry import OPENAI_URL, Models, access_to
from moot.nodes.summarize import entries_to_fold
from moot.prompts.request import ModelParams, make_call
from moot.prompts.truncation import KEEP, Block, truncate_blocks
from moot.runtime.context import node_context
from moot.runtime.environment import Environment
from moot.state import settings
from moot.state.conversation import ENDED_STATUSES, ConversationState, StateValues
from moot.state.entries import tokens_of
from moot.state.errors import DebateBusy, InputError, MootError, StorageError, UserError
from moot.state.langgraph_internals import TESTED_VERSIONS
from moot.state.reducers import entry_id_of
from moot.state.settings import check_database, database_exists, redact_urls
from moot.storage.leases import SLOT_PREFIX
from moot.storage.records import Records
from moot.storage.sqlite import DATABASE_VERSION, DebateTable, SqliteSql, stored_text
from moot.text.plain_text import count_noun
from moot.text.tokens import counter

if TYPE_CHECKING:
    from moot.api import Debates
    from moot.debates.stored_debate import Debate


@command(panel="Set up and inspect", examples=("", "gpt"))
def models(
    words: Annotated[
        str | None,
        Argument(metavar="WORDS", help="Show only names that contain this text.", show_default=False),
    ] = None,
    model: Annotated[
        str | None,
        Option(
            "--model",
            "-m",
            metavar="NAME",
            help="Name of a model in the --config file. The command then lists the models that this model's "
            "endpoint offers.",
        ),
    ] = None,
    config: options.ConfigOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """List the models that your endpoint offers.

    The environment variable OPENAI_BASE_URL contains the address of your endpoint. If OPENAI_BASE_URL is not
    set, Moot uses the endpoint that you stored with `moot setup`. If you stored no endpoint, Moot uses the
    OpenAI API.
    """
    registry = Models(read_config(config, {}, terminal.print_error).models)
    access, url = access_to(model or "", registry.settings_of(model or "")), registry.base_url(model or "")
    model_names = asyncio.run(offered_models(access))
    matches = [name for name in model_names if (words or "").casefold() in name.casefold()]
    if as_json:
        return terminal.print_json({"base_url": url, "models": matches})
    terminal.print_text(
        "\n".join(matches)
        if matches
        else f"{url} offers no model whose name contains {words!r}"
        if words
        else f"{url} offers no models"
    )


@command(panel="Set up and inspect", examples=("", "--models --config moot.yaml"))
def doctor(
    repair: Annotated[
        bool, Option("--repair", help="Repair problems that can be repaired without losing data.")
    ] = False,
    models: Annotated[
        bool,
        Option(
            "--models",
            help=("Test each model in the configuration with one call. Providers charge for these calls."),
        ),
    ] = False,
    yes: Annotated[
        bool, Option("--yes", "-y", help="Call the models without asking for confirmation.")
    ] = False,
    config: options.ConfigOption = None,
    model: options.ModelOption = None,
    db: options.DbOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Check the installation, the API key, the database and all debates.

    Without --repair, the command changes nothing. Without --models, the command calls no model, and only asks
    your endpoint for its list of models. The exit code is 1 if the command finds a problem.
    """
    url = check_database(db)
    findings: list[Finding] = [*inspect_installation(), *inspect_access()]
    if database_exists(url):
        with databases.open_database(db) as debates:
            for each in inspect_database(debates):
                if repair and each.repair:
                    each.repair()
                    each = replace(each, message=f"{each.message}: repaired", ok=True, repair=None)
                findings.append(each)
    if models:
        debate_config = read_config(config, {"model": model}, terminal.print_error)
        names = callable_models(debate_config)
        if not names:
            raise InputError("there is no model to call: add --config or --model")
        question = f"Call {', '.join(names)} once each, with at most {ROOM} tokens of reply?"
        if terminal.confirm(question, "no model is called", yes=yes):
            findings += inspect_models(debate_config)
    if as_json:
        terminal.print_json([{"what": each.what, "says": each.message, "ok": each.ok} for each in findings])
    else:
        marks = {True: "ok   ", False: "WRONG"}
        lines = [
            f"{marks[each.ok]} {terminal.one_line(each.what, 40)}: {terminal.one_line(each.message, 300)}"
            for each in findings
        ]
        if any(each.repair for each in findings):
            lines.append("`moot doctor --repair` repairs some of these problems")
        note = "" if database_exists(url) else ", not created yet"
        terminal.print_result(f"Database {redact_urls(url)}{note}", *lines)
    if not all(each.ok for each in findings):
        raise Exit(1)


ROOM = 256
"""Maximum number of tokens in a model's reply to a test call. Reasoning tokens do not count. The expected
reply, one word as JSON, is shorter."""

REPORTED_WAIT_S = 60.0
"""Shortest waiting time of an endpoint, in seconds, that `moot doctor` reports."""

Repair = Callable[[], object]


@dataclass(frozen=True)
class Finding:
    """Result of one check by `moot doctor`."""

    what: str
    message: str
    ok: bool = True
    replied: bool = True
    """False if a model was called but gave no usable reply, otherwise True."""
    repair: Repair | None = None
    """Function that repairs the problem without losing data, or `None` if no such repair exists."""


def inspect_installation() -> Iterator[Finding]:
    """Yield the installed versions of Moot, Python, SQLite and important packages."""
    yield Finding("Moot", f"{version('moot')}, Python {platform.python_version()}")
    yield Finding("SQLite", sqlite3.sqlite_version)
    for package, tested_version in TESTED_VERSIONS.items():
        installed_version = version(package)
        note = "" if installed_version == tested_version else f"; tested with {tested_version}"
        yield Finding(package, installed_version + note)


def inspect_access() -> Iterator[Finding]:
    """Yield findings about the endpoint, the key and the default model. Call no model.

    If the user configured an endpoint or a key, the endpoint is asked for its list of models, which is free.
    """
    endpoint = settings.variable("OPENAI_BASE_URL")
    url = f"{redact_urls(endpoint)}, from {settings.origin_of('OPENAI_BASE_URL')}" if endpoint else OPENAI_URL
    yield Finding("endpoint", url)
    if settings.variable("OPENAI_API_KEY"):
        yield Finding("key", f"OPENAI_API_KEY, from {settings.origin_of('OPENAI_API_KEY')}")
    else:
        missing = "none; the server at the endpoint must need none" if endpoint else "none: run `moot setup`"
        yield Finding("key", missing)
    if endpoint or settings.variable("OPENAI_API_KEY"):
        try:
            model_count = len(asyncio.run(offered_models(access_to("", ModelSettings()))))
            yield Finding("reached", f"the endpoint offers {count_noun(model_count, 'model')}")
        except UserError as error:
            yield Finding("reached", str(error), ok=False)
    model = settings.variable("MOOT_MODEL")
    origin = f"{model}, from {settings.origin_of('MOOT_MODEL')}"
    yield Finding("default model", origin if model else "none: run `moot setup`, or set MOOT_MODEL")


def inspect_database(debates: Debates) -> Iterator[Finding]:
    """Check a database and its debates, and yield the findings."""
    sql = debates.records.sql
    if isinstance(sql, SqliteSql):
        faults = [str(fault) for (fault,) in sql.execute("PRAGMA integrity_check(5)")]
        yield Finding("file", "; ".join(faults), faults == ["ok"])
        ((pages, size, free),) = sql.execute(
            "SELECT page_count, page_size, freelist_count FROM pragma_page_count, pragma_page_size, "
            "pragma_freelist_count"
        )
        unused_share = f", {free / pages:.0%} of it unused" if pages and free else ""
        yield Finding("size", f"{pages * size / 2**20:.1f} MiB{unused_share}")
    yield Finding("tables", f"version {sql.version()}, known up to {DATABASE_VERSION}")
    rows = debates.rows()
    running_names = [row.name for row in rows if debates.records.leases.is_held(row.id)]
    yield Finding("running", ", ".join(running_names) or "none")
    limiter = debates.records.rate_limiter
    for endpoint, seconds_left in limiter.endpoint_waits(REPORTED_WAIT_S).items():
        message = (
            f"no calls for {seconds_left:,.0f} s more: its provider asked for this wait, or a clock was wrong"
        )
        yield Finding(endpoint, message, False, repair=partial(limiter.reset, endpoint))
    for row in rows:
        try:
            for problem, repair in _faults(debates.get(row.id)):
                yield Finding(row.name, problem, False, repair=repair)
        except MootError as error:
            yield Finding(row.name, str(error), ok=False)
    yield from _leftover_records(debates.records)
    yield Finding("debates", str(len(rows)))


def _faults(debate: Debate) -> Iterator[tuple[str, Repair | None]]:
    """Yield each problem in a stored debate with its repair, or `None`."""
    running, snapshot, row = debate.is_running(), debate.state(), debate.row
    values, records = snapshot.values, debate.session.records
    if not values.get("config"):
        yield "the configuration is missing", None
        return
    for problem in _wrong_entries(values):
        yield problem, None
    try:
        records.journal.replies(debate.id)
    except StorageError as error:
        yield f"the journal cannot be read: {error}", None
    if running:
        return

    expected_values: dict[str, str | float] = {"turns": values["turn_count"]}
    if is_over(snapshot):
        expected_values["status"] = values["status"]
        context = node_context(debate.session.environment, cast(ConversationState, values))
        if lost_entries := entries_to_fold(context):
            yield f"{len(lost_entries)} messages are in neither the window nor the summary", None
    if wrong_values := {key: value for key, value in expected_values.items() if getattr(row, key) != value}:
        differences = ", ".join(
            f"{key} {getattr(row, key)} instead of {value}" for key, value in wrong_values.items()
        )
        yield f"the list shows {differences}", partial(records.catalogue.update, debate.id, **wrong_values)


def _wrong_entries(values: StateValues) -> Iterator[str]:
    """Describe each error in a debate's transcript or recent messages."""
    entries = values["full_transcript"]
    ids, numbers = [entry["id"] for entry in entries], [entry["seq"] for entry in entries]
    if numbers != list(range(len(entries))):
        last = next((n - 1 for n, number in enumerate(numbers) if n != number), len(numbers) - 1)
        yield (
            f"entries after number {last} are missing, repeated or out of order: "
            f"`moot fork --after {last}` keeps the entries before them"
        )
    if len(set(ids)) != len(ids):
        yield "two entries have the same id"
    names = frozen_config(values).names()
    window = {entry_id_of(message) for message in values["messages"] if message.name in names}
    if strangers := sorted(window - set(ids)):
        yield f"the window has messages that are not in the transcript: {', '.join(strangers[:3])}"


def _leftover_records(records: Records) -> Iterator[Finding]:
    """Find database records of debates that never started or no longer exist."""
    for row in records.catalogue.rows():
        if records.never_began(row):
            message = "a command that ended early left an empty debate, which no list shows"
            yield Finding(row.name, message, ok=True, repair=partial(records.forget, row.id))
    for table in records.tables() if not records.sql.read_only else ():
        rows = records.sql.execute(
            f"SELECT DISTINCT debate FROM {table.name} WHERE debate NOT IN (SELECT id FROM moot_debates) "  # noqa: S608  # constants of ours
            "AND debate NOT IN (SELECT thread_id FROM checkpoints)"
        )
        if lost_debates := [debate for (debate,) in rows if not stored_text(debate).startswith(SLOT_PREFIX)]:
            repair = partial(_delete_each, table, lost_debates)
            yield Finding(
                table.name,
                f"it contains rows of {len(lost_debates)} debates that do not exist",
                False,
                repair=repair,
            )


def _delete_each(table: DebateTable, debates: Sequence[str]) -> None:
    for debate in debates:
        table.delete(debate)


class _Word(BaseModel):
    word: Literal["ready"]


def callable_models(config: DebateConfig) -> list[str]:
    """Return the names of the configured models that are called over the network."""
    return [reach.value for reach in capabilities_of(config) if reach.kind == "model"]


def inspect_models(config: DebateConfig) -> list[Finding]:
    """Call each configured model once, and return the findings."""
    environment = Environment()
    models = replace(environment.models_of(Permissions.of_operator(config)), retry_for=0.0)

    async def inspect_all() -> list[Finding]:
        try:
            return [await _inspect_model(name, models) for name in callable_models(config)]
        finally:
            await models.aclose()

    return asyncio.run(inspect_all())


async def _inspect_model(name: str, models: Models) -> Finding:
    model_settings = models.settings_of(name)
    try:
        reply, pieces = await _ask_for_reply(name, models)
    except UserError as error:
        return Finding(name, str(error), ok=False, replied=False)
    if reply.error:
        return Finding(name, reply.error, ok=False, replied=False)
    reported_size = (await server_facts(models, [name])).get(name, {}).get("limit", 0)
    problems = []
    if model_settings.stream and pieces < 2:
        problems.append("does not stream: replies appear all at once")
    if reply.misfit_template:
        problems.append("the server's chat template does not fit the model: replies end with template tokens")
    method = models.method_of(name)
    if method != model_settings.structured_output:
        problems.append(
            f"does not support {model_settings.structured_output}: set models.{name}.structured_output to "
            f"{method}"
        )
    if reported_size and (model_settings.context_size or 0) > reported_size:
        problems.append(f"takes {reported_size:,} tokens, which is less than models.{name}.context_size")
    problems += models.facts_of(name).get("told", [])
    size = reported_size or model_settings.context_size
    cost = reply.usage.get("cost_usd")
    facts = [
        f"replies in {reply.latency_s:.1f} s",
        f"structured output by {method}",
        f"context {size:,} tokens" if size else "context size unknown",
        f"{tokens_of(reply.usage)} tokens",
        "price unknown" if cost is None else f"US$ {cost:.6f}",
    ]
    return Finding(name, "; ".join([*problems, *facts]), ok=not problems)


async def _ask_for_reply(name: str, models: Models) -> tuple[Reply, int]:
    """Stream a short test reply, and return it with its number of chunks with text."""
    message: WireMessage = {
        "role": "user",
        "content": 'Answer with the word "ready", as JSON: {"word": "ready"}',
    }
    prompt = truncate_blocks([Block("system", message, KEEP)], ROOM, counter())
    params = ModelParams(name, None, (), None, ROOM)
    speaker = StreamAs("m000000", "doctor")
    call = make_call(params, "evaluate", prompt, schema=_Word, stream_as=speaker)
    replies: list[Reply] = []

    async def ask(_: object, config: RunnableConfig) -> None:
        replies.append(await complete(call, models, config=config))

    events = RunnableLambda(ask).astream_events(None, version="v2")
    pieces = [each async for each in events if each["event"] == "on_chat_model_stream"]
    return replies[0], sum(bool(each["data"]["chunk"].text) for each in pieces)


@command(panel="Manage debates", examples=("mono monorepo",))
def rename(
    debate_id: options.DebateArgument,
    name: Annotated[str, Argument(metavar="NAME", help="New name for the debate.")],
    db: options.DbOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Rename a debate."""
    with databases.open_stored_debate(db, debate_id) as debate:
        debate.session.records.rename(debate.id, name)
    data = {"id": debate.id, "name": name, "was": debate.name}
    terminal.acknowledge(data, f"renamed {debate.name} to {name}", as_json=as_json)


@command(panel="Manage debates", examples=("mono no-freeze --yes",))
def delete(
    debate_ids: Annotated[
        list[str],
        Argument(
            metavar="ID …",
            help="Names or ids of the debates to delete. The first characters of an id are enough.",
            autocompletion=options.debates_like,
        ),
    ],
    yes: Annotated[
        bool, Option("--yes", "-y", help="Delete the debates without asking for confirmation.")
    ] = False,
    db: options.DbOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Delete debates and all their checkpoints."""
    deleted = []
    with databases.open_database(db) as debates:
        chosen_debates = {
            each.id: each for each in map(debates.get, debate_ids)
        }.values()  # fails before anything is deleted
        for debate in chosen_debates:
            turns, topic = count_noun(debate.row.turns, "turn"), terminal.one_line(debate.row.topic, 60)
            description = f"{debate.name}, {turns}: {topic}"
            is_confirmed = terminal.confirm(f"Delete {description}?", "nothing is deleted", yes=yes)
            if is_confirmed:
                debate.delete()
                deleted.append({"deleted": debate.id, "name": debate.name})
            if not as_json:
                terminal.print_note(f"deleted {debate.name}" if is_confirmed else f"kept {debate.name}")
    if as_json:
        terminal.print_json(deleted[0] if len(debate_ids) == 1 and deleted else deleted)


@command(panel="Manage debates", examples=("debates-backup.sqlite",))
def backup(
    path: Annotated[
        Path,
        Argument(
            metavar="FILE", help="File to copy the database to. To use the copy, give this file as --db."
        ),
    ],
    db: options.DbOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Copy an SQLite database to a file, even while debates are running."""
    with databases.present_records(db) as records:
        if not isinstance(records.sql, SqliteSql):
            raise InputError("`moot backup` copies only SQLite files: use `pg_dump` for a Postgres database")
        records.sql.back_up(path)
    terminal.acknowledge({"written": str(path)}, f"wrote {path}", as_json=as_json)


@command(panel="Manage debates", examples=("", "--keep-history"))
def gc(
    debate_ids: Annotated[
        list[str] | None,
        Argument(
            metavar="[ID …]",
            help="Debates from which to delete intermediate checkpoints. Default: all finished debates.",
            autocompletion=options.debates_like,
        ),
    ] = None,
    keep_history: Annotated[
        bool,
        Option(
            "--keep-history",
            help="Only reclaim unused disk space of the database, without deleting checkpoints.",
        ),
    ] = False,
    db: options.DbOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Delete intermediate checkpoints of finished debates.

    Other debates can run while `moot gc` deletes checkpoints. Afterwards, you can still resume, fork and
    replay the finished debates and show their prompts. However, LangGraph's history of a debate no longer
    contains the deleted checkpoints.
    """
    from moot.debates.lifecycle import prune, shrink

    total_dropped = total_stored = 0
    with databases.open_database(db) as debates:
        names = debate_ids or [row.id for row in debates.rows() if row.status in ENDED_STATUSES]
        for name in () if keep_history else names:
            with suppress(DebateBusy, InputError):
                dropped_count, stored_count = prune(debates.get(name).session)
                total_dropped, total_stored = total_dropped + dropped_count, total_stored + stored_count
        is_shrunk = shrink(debates.records.sql, pruned=total_dropped > 0)
    data = {"debates": len(names), "checkpoints": total_stored, "dropped": total_dropped, "shrunk": is_shrunk}
    compaction_note = " and compacted the database" if is_shrunk else ""
    terminal.acknowledge(
        data, f"deleted {total_dropped:,} of {total_stored:,} checkpoints{compaction_note}", as_json=as_json
    )
