"""Creation of new, replayed, forked and imported debates, and deletion of stored debates."""

import threading
import uuid
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from random import Random
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.channels import DeltaChannel

from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig, slug
from moot.config.boundary import Capability, ClientConfig, Permissions, without_raised_limits
from moot.config.debate_config import frozen_config, runnable_config
from moot.config.participants import PlannedInterjection, unique_slug
from moot.config.stages import authorize
from moot.debates.config_checks import check_config, with_tools
from moot.debates.session import DebateSession, Values, filled_channels, is_over
from moot.graph.debate import build_graph
from moot.memory.cross_debate_memory import identities, namespace_of
from moot.models.registry import Models
from moot.runtime.background_loop import call_from_sync
from moot.runtime.telemetry import start_langsmith_root
from moot.state import entries, errors
from moot.state.conversation import ENDED_STATUSES
from moot.state.langgraph_internals import runs_next
from moot.storage.catalogue import LATEST, TOPIC_CHARS, DebateRow, check_name, new_debate_id, row_usage
from moot.storage.records import Records
from moot.storage.sqlite import Sql, SqliteSql, Statement, reading
from moot.text.terms import question_in, terms


def start_replay(session: DebateSession, name: str | None) -> DebateSession:
    """Create a debate that replays the model replies in another debate's journal.

    The replay has the topic, configuration and documents of the original debate, and is extended at the same
    points. A request that is not in the journal fails like an unreachable model, for example after an
    interjection or a change of a prompt.
    """
    values = session.state().values
    fence = frozen_config(values).fence  # requests with another fence would not be in the journal
    environment = replace(
        session.environment, complete=ReplayModel(session).complete, fence_for=lambda *_: fence
    )
    graph = build_graph(session.graph.checkpointer, environment=environment)  # type: ignore[arg-type]  # compiled with a checkpointer
    transcript = values["full_transcript"]
    first_seq = min((receipt["seq"] for receipt in values.get("receipts") or []), default=len(transcript))
    graph_input = {
        "topic": values["topic"],
        "full_transcript": [
            # A time marks an entry as imported, and prompts would show it.
            entry if entry.get("dated") else {key: value for key, value in entry.items() if key != "at"}
            for entry in transcript[:first_seq]
            if entries.traits_of(entry).user_input not in ("topic", "document")
        ],
        "context_documents": values.get("context_documents") or [],
    }
    unextended_values, extensions = _extensions(session, values)
    replay_session = replace(session, graph=graph, environment=environment)
    replay = start_debate(
        replay_session, graph_input, session.permissions(unextended_values).authorize(), name
    )
    return replace(replay, extensions=extensions)


def _extensions(session: DebateSession, values: Values) -> tuple[Values, tuple[int, ...]]:
    """Return the state before turns were first added to the ended debate, and each number of added turns."""
    unextended_values, turns = values, list[int]()
    for checkpoint in call_from_sync(_update_checkpoint_ids, session):
        after = session.state(checkpoint)
        parent = (after.parent_config or {}).get("configurable", {}).get("checkpoint_id", "")
        before = session.state(parent) if parent else after
        configured_turns = [snapshot.values.get("config", {}).get("turns") for snapshot in (before, after)]
        if configured_turns[0] != configured_turns[1] and is_over(before):
            unextended_values = unextended_values if turns else before.values
            turns.append(configured_turns[1] - before.values["turn_count"])
    return unextended_values, tuple(turns)


async def _update_checkpoint_ids(session: DebateSession) -> list[str]:
    """Return the ids of checkpoints created by state updates, oldest first."""
    return sorted([stored.checkpoint["id"] async for stored in session.checkpoints("update")])


class ReplayModel:
    """Stub model that returns the recorded replies of a debate and of the debates it was forked from."""

    def __init__(self, session: DebateSession) -> None:
        records, debate = session.records, session.thread
        parents = {row.id: row.parent for row in records.catalogue.rows()}
        lineage: list[str] = []
        while debate and debate not in lineage:
            lineage.append(debate)
            debate = parents.get(debate, "")
        configs = [session.on(each).state().values.get("config") or {} for each in lineage]
        self._seeds = [config.get("seed") for config in configs]
        self._replies: dict[str, deque[Reply]] = defaultdict(deque)
        for each in reversed(lineage):
            for key, reply in sorted(records.journal.replies(each).items()):
                self._replies[key[-1]].append(reply)

    async def complete(
        self, call: ModelCall, models: Models, *, config: RunnableConfig | None = None
    ) -> Reply:
        """Return the reply that was recorded for an identical request."""
        # Equal requests of a fork and its parent differ only in the seed.
        seed_offset = (call.seed or 0) - (self._seeds[0] or 0)  # offset among equal requests of a batch
        seeds = [
            None if seed is None and not seed_offset else (seed or 0) + seed_offset for seed in self._seeds
        ]
        reply_queues = (self._replies.get(replace(call, seed=seed).digest) for seed in seeds)
        replies = next(filter(None, reply_queues), None)
        if not replies:
            return Reply(error=f"{call.model}: the journal has no reply to this {call.purpose} request")
        return replies.popleft() if len(replies) > 1 else replies[0]


NAME_LENGTH = 24
"""Maximum length of a name that Moot derives, in characters. A list shows it whole on 80 columns."""


def unused_name(records: Records, text: str, ending: str = "") -> str | None:
    """Derive an unused debate name from the words of the question in `text` that are no stop words.

    `ending` follows the words. Return `None` if the text has no letters that a name could use. The debate's
    id is then its name.
    """
    question = question_in(text)
    words = [each for each in map(slug, question.split()) if terms(each.replace("-", " "))]
    name, *others = words or [slug(question)]
    space = NAME_LENGTH - len(ending)
    for word in others:
        if len(name) + len(word) + 1 > space:
            break
        name += f"-{word}"
    if not name:
        return None
    used_names = {LATEST, *(row.name for row in records.catalogue.rows())}
    return unique_slug(name[:space].strip("-") + ending, used_names, length=NAME_LENGTH)


def find_debate(session: DebateSession, name: str) -> DebateSession:
    """Find a debate by id, name or unique id prefix, and return its session.

    A debate whose creation was interrupted is not found. If only its status was not listed yet, the status
    is stored, unless the database takes no writes.

    Raises:
        DebateNotFound: There is no such debate.
    """
    row = session.records.find(name)
    debate_session = session.on(row.id)
    if session.records.never_began(row):
        if debate_session.state().values.get("status", "new") == "new":
            raise session.records.catalogue.not_found(name)
        with suppress(errors.DebateBusy, errors.StorageError), debate_session.writing() as leased_session:
            leased_session.note_status(leased_session.state().values["status"])
    return debate_session


def start_debate(
    session: DebateSession,
    graph_input: Values,
    config: DebateConfig,
    name: str | None,
    operator: DebateConfig | None = None,
) -> DebateSession:
    """Create a debate from the graph input and a configuration. The topic defaults to the configured topic.

    Only `open` runs, which validates and stores the debate and calls no model. `operator` is the operator's
    configuration if a client chose `config`. The client's configuration then grants nothing.
    """
    topic = entries.topic_text(config.topic if graph_input["topic"] is None else graph_input["topic"])
    if not topic:
        raise errors.InputError("the topic is empty: give a question to debate")
    config = config if operator else with_tools(config)
    context: DebateConfig | ClientConfig = config
    permissions = Permissions.of_operator(config)
    if operator is not None:
        context = ClientConfig(config, operator)
        permissions = authorize(config, operator, safe=session.environment.safe_capabilities)
    check_config(permissions, session.environment)
    thread, now = new_debate_id(name), session.environment.clock()
    row_fields = (thread, name or thread, topic[:TOPIC_CHARS], config.protocol, "new")
    row = DebateRow(*row_fields, turns=0, tokens=0, cost_usd=0.0, parent="", created_at=now, updated_at=now)
    with _creating(session, row) as new_session:
        if root := start_langsmith_root(thread, topic):
            session.roots[thread] = root
        new_session.advance({**graph_input, "topic": topic}, context=context, interrupt_after=["open"])
        new_session.note_status("running")
    return session.on(thread)


@contextmanager
def _creating(session: DebateSession, row: DebateRow) -> Iterator[DebateSession]:
    """Add a debate to the catalogue with status `new`, and hold its lease for a `with` block.

    The block lists the debate by giving it another status. If the block fails before, the debate is deleted.
    A process that is killed leaves a row with status `new`, which the next process deletes.

    Raises:
        DebateExists: The id or the name is taken.
    """
    _delete_leftovers(session)
    with ExitStack() as stack:
        try:
            new_session = stack.enter_context(session.on(row.id).writing())
        except errors.DebateBusy:
            raise errors.DebateExists(
                f"debate {row.name!r} already exists and is in use: choose another name"
            ) from None
        new_session.records.catalogue.add(replace(row, status="new"))
        try:
            yield new_session
        except BaseException:
            if new_session.records.catalogue.is_new(row.id):
                _discard(new_session)
            raise


_CLEANING = threading.Lock()  # no thread looks for a debate whose leftover another one is deleting


def _delete_leftovers(session: DebateSession) -> None:
    """Delete the debates whose creation was interrupted, and leases of debates that do not exist."""
    records = session.records
    with _CLEANING:
        for row in records.catalogue.unstarted():
            with suppress(errors.MootError), session.on(row.id).writing() as leftover:
                if leftover.state().values.get("status", "new") == "new":
                    _discard(leftover)
        records.leases.delete_orphans()


def _discard(session: DebateSession) -> None:
    """Delete a debate whose creation failed. Its id stays in the group with which it shares a budget."""
    budgets = session.records.budgets
    group = budgets.group_of(session.thread)
    delete_debate(session)
    if group:
        budgets.add(group, [session.thread])


def fork_values(session: DebateSession, *, after: int | None, without: str | None = None) -> Values:
    """Return the state with which a fork of the debate starts.

    Nothing is stored. The fork starts after a given entry or before a given interjection. With `after`, the
    fork does not repeat the interjections that the original received later. With `without`, it repeats all of
    them except the given one.
    """
    latest = values = session.state().values
    runnable_config(latest)  # raises if the debate never began
    if without is not None:
        after = _last_turn_before(latest, without)
    if after is not None and after != len(latest["full_transcript"]) - 1:
        values = session.state(call_from_sync(checkpoint_after, session, after, latest)).values
    planned = values["config"].get("interjections") or []
    used_counts = [each.get("planned_interjections_used", 0) for each in (values, latest)]
    repeated_interjections = _later_interjections(latest, after, without) if without is not None else []
    config = {
        **values["config"],
        "interjections": [*planned[: used_counts[0]], *repeated_interjections, *planned[used_counts[1] :]],
    }
    frozen = frozen_config(values)
    if frozen.seed is not None:
        forks = [each for each in session.records.catalogue.rows() if each.parent == session.thread]
        fork_count = sum(each.status != "new" for each in forks)  # an unfinished fork does not count
        # Each fork gets its own seed, of 31 bits, which every provider accepts.
        seed = Random(f"{frozen.seed}/{fork_count}").getrandbits(31)  # noqa: S311  # not a secret: it must be reproducible
        config = {**config, "seed": seed}
    return {**values, "config": config, "status": "running"}


def fork_debate(
    session: DebateSession,
    values: Values,
    name: str | None,
    granted: Iterable[Capability] = (),
    *,
    by_operator: bool = True,
) -> DebateSession:
    """Store a new debate with the `values` of `fork_values` as a fork of the session's debate.

    `granted` adds capabilities to those of the original debate. Unless it is made `by_operator`, the fork
    does not get the limits that the operator raised for the original debate.
    """
    thread, now = new_debate_id(name), session.environment.clock()
    row = replace(
        session.records.find(session.thread),
        id=thread,
        name=name or thread,
        status="paused",
        turns=values["turn_count"],
        **row_usage(values.get("usage") or {}),
        parent=session.thread,
        created_at=now,
        updated_at=now,
    )
    with _creating(session, row) as new_session:
        inherited = new_session.records.grants.of(session.thread)
        new_session.records.grants.add(thread, inherited if by_operator else without_raised_limits(inherited))
        new_session.records.grants.add(thread, granted)
        new_session.records.imports.copy(session.thread, thread)
        # The fork's own inbox is empty.
        new_session.update_after("trim", {**filled_channels(values), "last_inbox_number": 0})
        new_session.note_status(row.status)
        new_session.records.results.note(thread, values, {"verdict": {}})  # the question, for lists
    return session.on(thread)


def _last_turn_before(values: Values, interjection: str) -> int:
    """Return the number of the last entry of the turn before an interjection.

    Raises:
        InputError: the id is not that of an interjection, or no turn ended before it.
    """
    matches = entries.entries_of([interjection], values["full_transcript"])
    if not matches or matches[0]["kind"] != "interjection":
        interjection_ids = [
            each["id"] for each in values["full_transcript"] if each["kind"] == "interjection"
        ]
        hint = (
            f"its interjections are {', '.join(interjection_ids)}"
            if interjection_ids
            else "it has no interjections"
        )
        raise errors.InputError(f"{interjection!r} is not an interjection of this debate: {hint}")
    names = frozen_config(values).names()
    turn_ends = [
        each["seq"]
        for each in values["full_transcript"][: matches[0]["seq"]]
        if entries.ends_turn(each, names)
    ]
    if not turn_ends:
        raise errors.InputError(
            f"no turn precedes interjection {interjection!r}, so you cannot fork the debate before it: "
            "start a new debate without this interjection"
        )
    return int(turn_ends[-1])


def _later_interjections(values: Values, after: int | None, without: str) -> list[entries.JsonObject]:
    """Return a debate's interjections after an entry, planned for its fork.

    An amendment is left out if the fork does not contain the message that it amends.
    """
    transcript, names = values["full_transcript"], frozen_config(values).names()
    first = len(transcript) if after is None else after + 1
    kept_ids = {each["id"] for each in transcript[:first]}
    return [
        PlannedInterjection(
            after=entries.turns_taken(transcript[: each["seq"]], names),
            text=each["content"],
            speaker=each["speaker"],
        ).model_dump(mode="json")
        for each in transcript[first:]
        if each["kind"] == "interjection" and each["id"] != without and kept_ids.issuperset(each["targets"])
    ]


def dropped_interjections(original: Values, fork: Values) -> list[entries.Entry]:
    """Return the interjections of the original debate that its fork does not contain."""
    kept_ids = {each["id"] for each in fork["full_transcript"]}
    planned_texts = {each.text for each in frozen_config(fork).interjections}
    return [
        each
        for each in original["full_transcript"]
        if each["kind"] == "interjection"
        and each["id"] not in kept_ids
        and each["content"] not in planned_texts
    ]


async def checkpoint_after(session: DebateSession, after: int, values: Values) -> str:
    """Return the id of the checkpoint that follows the turn that ends with message number `after`."""
    turn_ends = [receipt["seq"] for receipt in values["receipts"]]
    if after not in turn_ends:
        raise errors.InputError(
            f"message {entries.entry_id(after)} does not end a debater's turn: "
            f"{errors.advise('run `moot show ID --receipts`', 'read `receipts` of the document')} to list "
            "those"
        )
    turns = values["turn_count"] - sum(end > after for end in turn_ends)  # imported turns have no receipt
    async for stored in session.checkpoints():
        channels = stored.checkpoint["channel_values"]
        if channels.get("turn_count") == turns and runs_next(stored.checkpoint, "plan"):
            return str(stored.checkpoint["id"])
    raise errors.InputError(
        f"message {entries.entry_id(after)} is followed by other turns of the same step: choose the last "
        "message of the step"
    )


def _past_time(text: object, now: str) -> str:
    """Return a time in UTC as ISO 8601 text, or `now` if the time is invalid or in the future."""
    try:
        time = datetime.fromisoformat(str(text))
        time = (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
        is_past = time <= datetime.fromisoformat(now)
    except (ValueError, OverflowError):
        return now
    return time.isoformat(timespec="milliseconds") if is_past else now


def imported_row(values: Values, name: str | None, now: str, document: Mapping[str, Any] | None) -> DebateRow:
    """Return the catalogue row for an imported debate.

    A document keeps its id and name, unless `name` gives a new name. It keeps its times if they are valid.

    Raises:
        InputError: The name is not valid.
    """
    source = document or {}
    try:
        thread = str(uuid.UUID(source["id"])) if name is None else new_debate_id(name)
    except (KeyError, ValueError):
        thread = str(uuid.uuid4())
    display_name = name or source.get("name") or thread
    check_name(display_name)
    return DebateRow(
        id=thread,
        name=display_name,
        topic=values["topic"][:TOPIC_CHARS],
        protocol=values["config"]["protocol"],
        status=values["status"] if values["status"] in ENDED_STATUSES else "paused",
        turns=values["turn_count"],
        **row_usage(values.get("usage") or {}),
        parent=source.get("parent", ""),
        created_at=_past_time(source.get("created_at"), now),
        updated_at=_past_time(source.get("updated_at"), now),
    )


def store_import(
    session: DebateSession,
    values: Values,
    name: str | None,
    document: Mapping[str, Any] | None = None,
    granted: Iterable[Capability] = (),
) -> DebateSession:
    """Store an imported debate in the database, so that it can be continued.

    Messages that exceed the window are summarized. Without a `document`, claims are extracted as well.
    `granted` are the capabilities of the operator's own configuration. The debate is listed before its first
    model call. If the calls are interrupted, the next command that writes the debate makes the others.
    """
    row = imported_row(values, name, session.environment.clock(), document)
    # A finished debate runs the nodes after `turn`, and closes again. A document has been through them.
    before = "turn" if document is None else "close" if row.status in ENDED_STATUSES else "trim"
    status = row.status if row.status in ENDED_STATUSES else "running"
    verdict = values.get("verdict")
    try:
        with _creating(session, row) as new_session:
            records = new_session.records
            records.grants.add(row.id, granted)
            new_session.update_after(before, {**filled_channels(values), "status": status})
            records.results.note(row.id, new_session.state().values, {})
            if verdict:
                records.imports.add(row.id, verdict, session.environment.clock())
            records.catalogue.update(row.id, status=row.status if document else "paused")
            new_session.finish_import()
            usage = row_usage(new_session.state().values.get("usage") or {})
            records.catalogue.update(row.id, status=row.status, **usage, updated_at=row.updated_at)
    except errors.DebateExists:
        another = errors.advise("name with --id", "`name`")
        raise errors.DebateExists(f"debate {row.name!r} already exists: choose another {another}") from None
    return session.on(row.id)


def delete_debate(session: DebateSession) -> None:
    """Delete a debate, its checkpoints and its entries in the cross-debate memory.

    If the deletion is interrupted, the whole debate can still be read, and be deleted again.
    """
    with session.writing() as leased_session:
        records, lease = leased_session.records, leased_session.lease
        call_from_sync(_delete_memories, leased_session)
        records.forget(leased_session.thread, records.leases.permit(lease) if lease else None)


async def _delete_memories(session: DebateSession) -> None:
    graph = session.graph
    if graph.store is None:
        return
    with (
        suppress(errors.StorageError, errors.ConfigError),
        reading("the state"),
    ):  # a damaged debate can be deleted, too
        values = (await graph.aget_state(session.run_config)).values
        for name in identities(frozen_config(values)).values() if values.get("config") else ():
            await graph.store.adelete(namespace_of(name), session.thread)


MIN_GAIN = 0.2
"""Share of unused space above which an SQLite file is shrunk, from 0 to 1. The file is rewritten to shrink
it. Rewriting temporarily needs twice the space."""


@dataclass(frozen=True)
class _Stored:
    id: str
    parent: str
    needed: bool


def prune(session: DebateSession) -> tuple[int, int]:
    """Delete a finished debate's unneeded checkpoints. Return their number and the former total.

    Raises:
        DebateBusy: Another run writes the debate.
    """
    with session.writing() as leased_session:
        snapshot = leased_session.state()
        if leased_session.lease is None or not is_over(snapshot):
            return 0, 0
        receipts = [*(snapshot.values.get("receipts") or ()), *(snapshot.values.get("calls") or ())]
        base_checkpoints = leased_session.records.sql.execute(
            "SELECT DISTINCT base_checkpoint FROM moot_journal WHERE debate = ?", (leased_session.thread,)
        )
        referenced_ids = {each["checkpoint"] for each in receipts} | {
            base_checkpoint for (base_checkpoint,) in base_checkpoints
        }
        channels = leased_session.graph.channels.items()
        deltas = [name for name, channel in channels if isinstance(channel, DeltaChannel)]
        checkpoints = call_from_sync(_checkpoints_of, leased_session, referenced_ids, deltas)
        sql = leased_session.records.sql
        if statements := _statements(leased_session.thread, checkpoints, deltas, sql.checkpoint_tables[-1]):
            sql.transact(statements, leased_session.records.leases.permit(leased_session.lease))
        return sum(not each.needed for each in checkpoints), len(checkpoints)


async def _checkpoints_of(
    session: DebateSession, referenced_ids: set[str], deltas: Sequence[str]
) -> list[_Stored]:
    """Return the debate's checkpoints, oldest first, and mark those to keep."""
    checkpoints, parents = [], set()
    async for each in session.checkpoints():
        checkpoint_id = each.checkpoint["id"]
        parent = str(each.parent_config["configurable"]["checkpoint_id"]) if each.parent_config else ""
        snapshots = each.checkpoint["channel_values"].keys() & set(deltas)
        is_end = not parent or checkpoint_id not in parents
        needed = bool(
            checkpoint_id in referenced_ids or snapshots or is_end or runs_next(each.checkpoint, "plan")
        )
        checkpoints.append(_Stored(checkpoint_id, parent, needed))
        parents.add(parent)
    return checkpoints[::-1]


def _statements(
    debate: str, checkpoints: Sequence[_Stored], deltas: Sequence[str], writes: str
) -> list[Statement]:
    """Return SQL that deletes checkpoints, and moves their writes to the last remaining one before."""
    placeholders = ", ".join("?" * len(deltas))
    where = "WHERE thread_id = ? AND checkpoint_ns = '' AND"
    heirs: dict[str, str] = {}
    statements: list[Statement] = []
    for number, each in enumerate(checkpoints):
        if each.needed:
            continue
        heir = heirs[each.id] = heirs.get(each.parent, each.parent)
        key = (debate, each.id)
        statements += [
            (
                f"UPDATE {writes} SET checkpoint_id = ?, task_path = '~~', "  # noqa: S608  # constants of ours
                f"task_id = 'ffffffff-' || CAST(? AS TEXT) || task_path || task_id {where} "
                f"checkpoint_id = ? AND channel IN ({placeholders})",
                (heir, f"{number:08d}", *key, *deltas),
            ),
            (f"DELETE FROM {writes} {where} checkpoint_id = ?", key),  # noqa: S608
            (f"DELETE FROM checkpoints {where} checkpoint_id = ?", key),  # noqa: S608
            (
                f"UPDATE checkpoints SET parent_checkpoint_id = ? {where} parent_checkpoint_id = ?",  # noqa: S608
                (heir, *key),
            ),
        ]
    return statements


def shrink(sql: Sql, *, pruned: bool) -> bool:
    """Release the database's unused space to the file system. Return True if it was released."""
    if isinstance(sql, SqliteSql):
        ((pages, free),) = sql.execute(
            "SELECT page_count, freelist_count FROM pragma_page_count, pragma_freelist_count"
        )
        if not pruned and free < MIN_GAIN * pages:
            return False
        sql.execute("VACUUM")
        sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    else:
        sql.execute("VACUUM checkpoints, checkpoint_writes, checkpoint_blobs, moot_journal")
    return True
