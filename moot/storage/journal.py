"""Journal of model replies, which prevents an interrupted run from repeating completed calls.

A reply is only given to the request that it answers. The key holds the debate, the step, the node, the batch,
the index of the call, and the SHA-256 of the request. `base_checkpoint` is the checkpoint that the node ran
on. If that checkpoint has a child other than the present one, the reply was used on another branch of the
thread, and a fork samples anew. Any other reply is left from a crash and is used.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from moot.calls.model_calls import Reply
from moot.config.model_settings import is_built_in
from moot.state.conversation import ErrorRecord, FailedRun, InboxMessage, StateValues, step_number
from moot.state.entries import JsonObject
from moot.state.reducers import add_totals
from moot.storage.sqlite import DebateTable, Sql, reading, stored_number, stored_text

HasOtherChild = Callable[[str, str, str], bool]
"""Type of a function that looks for another child of a checkpoint. The parameters are `(debate, checkpoint,
present)`. It returns True if the checkpoint has a child other than `present`."""


@dataclass(frozen=True)
class JournalKey:
    """Key of a stored model reply, consisting of the call's position and a hash of the request."""

    debate: str
    """Id of the debate's LangGraph thread."""
    step: int
    node: str
    batch: int
    """Index of the call's batch within one run of a graph node, starting at 0."""
    call_index: int
    """Index of the call within its batch, starting at 0."""
    digest: str
    """SHA-256 hash of the request to the model."""


class Journal(DebateTable):
    """Table of model replies, so that an interrupted run can continue without repeating calls."""

    name = "moot_journal"
    columns = """
        debate TEXT NOT NULL, step BIGINT NOT NULL, node TEXT NOT NULL, batch INTEGER NOT NULL,
        call_index INTEGER NOT NULL, digest TEXT NOT NULL, base_checkpoint TEXT NOT NULL, reply TEXT NOT NULL,
        PRIMARY KEY (debate, step, node, batch, call_index, digest, base_checkpoint)"""

    def __init__(self, sql: Sql, has_other_child: HasOtherChild | None = None) -> None:
        """Open the journal, and create its table if it is missing.

        Pass `has_other_child` if another database stores the checkpoints.
        """
        super().__init__(sql)
        self._has_other_child_elsewhere = has_other_child

    def get(self, key: JournalKey, base_checkpoint: str, *, resumed: bool = False) -> Reply | None:
        """Return the stored reply to a request, or `None` if there is none.

        Replies in other branches of the debate do not count. `resumed` means that the step now runs from a
        later checkpoint than the one it started from.
        """
        rows = self._execute(
            "SELECT base_checkpoint, reply FROM moot_journal "
            "WHERE debate = ? AND step = ? AND node = ? AND batch = ? "
            "AND call_index = ? AND digest = ?",
            [*vars(key).values()],
        )
        for row_checkpoint, reply_json in sorted(
            sorted(rows, reverse=True), key=lambda row: row[0] != base_checkpoint
        ):
            if resumed or not self._has_other_child(key.debate, row_checkpoint, base_checkpoint):
                with reading("a stored reply", "restore a backup, or go on with a fork of the debate"):
                    reply = Reply.from_json(json.loads(reply_json))
                if (
                    row_checkpoint != base_checkpoint
                ):  # store the reply for the changed state too, which may change again
                    self.put(key, base_checkpoint, reply)
                return reply
        return None

    def put(self, key: JournalKey, base_checkpoint: str, reply: Reply) -> None:
        """Store a model's reply in the journal.

        A second reply for the same key and `base_checkpoint` is ignored. A reply that cost money survives a
        power failure.
        """
        text = json.dumps(reply.to_json(), separators=(",", ":"))
        paid = not is_built_in(reply.model)
        row = {**vars(key), "base_checkpoint": base_checkpoint, "reply": text}
        self._insert(row, "ON CONFLICT DO NOTHING", durable=paid)

    def replies(self, debate: str, step: int | None = None) -> dict[tuple[int, str, int, int, str], Reply]:
        """Return the stored model replies of a debate, or only those of one step.

        The keys consist of the call's position in the debate and a hash of the request.
        """
        one_step = "" if step is None else " AND step = ?"
        rows = self._execute(
            "SELECT step, node, batch, call_index, digest, reply FROM moot_journal "  # noqa: S608  # constants of ours
            f"WHERE debate = ?{one_step} ORDER BY base_checkpoint",
            [debate] if step is None else [debate, step],
        )
        with reading("a stored reply"):
            return {
                (row[0], row[1], row[2], row[3], row[4]): Reply.from_json(json.loads(row[5])) for row in rows
            }

    def _has_other_child(self, debate: str, checkpoint: str, present: str) -> bool:
        if self._has_other_child_elsewhere is not None:
            return self._has_other_child_elsewhere(debate, checkpoint, present)
        return bool(
            self._execute(
                "SELECT 1 FROM checkpoints WHERE thread_id = ? AND parent_checkpoint_id = ? "
                "AND checkpoint_id <> ? LIMIT 1",
                (debate, checkpoint, present),
            )
        )


class FailedRuns(DebateTable):
    """Table of failed runs of graph nodes.

    Each row has the error and the usage of one run.
    """

    name = "moot_failed_runs"
    columns = """
        debate TEXT NOT NULL, run TEXT PRIMARY KEY, step BIGINT NOT NULL, node TEXT NOT NULL,
        error TEXT NOT NULL, at TEXT NOT NULL, usage TEXT NOT NULL"""

    def __init__(self, sql: Sql) -> None:
        super().__init__(sql)
        index = "moot_failed_runs_debate"
        sql.create(index, f"CREATE INDEX IF NOT EXISTS {index} ON moot_failed_runs (debate)")

    def add(self, debate: str, failed: FailedRun) -> None:
        """Store a failed run of a debate, with its error and usage."""
        self._insert({"debate": debate, **failed.record, "usage": json.dumps(failed.usage)})

    def of(self, debate: str) -> list[FailedRun]:
        """Return all failed runs of a debate, oldest first."""
        rows = self._execute(
            "SELECT step, node, error, at, run, usage FROM moot_failed_runs WHERE debate = ? "
            "ORDER BY at, run",
            (debate,),
        )
        return [
            FailedRun(
                ErrorRecord(
                    step=int(stored_number(step)),
                    node=stored_text(node),
                    error=stored_text(error),
                    at=stored_text(stopped_at),
                    run=stored_text(run),
                ),
                _stored_usage(usage),
            )
            for step, node, error, stopped_at, run, usage in rows
        ]


def _stored_usage(text: str) -> dict[str, float]:
    """Return the usage stored in a row, without damaged values."""
    try:
        stored = json.loads(text)
    except (RecursionError, TypeError, ValueError):
        return {}
    numbers = stored.items() if isinstance(stored, dict) else ()
    return {key: value for key, value in numbers if isinstance(value, int | float)}


def failures_update(state: StateValues, failed: Sequence[FailedRun]) -> JsonObject:
    """Return a state update with the failed runs that the state lacks.

    The update has their errors and usage. The update is `{}` if there are no such runs.

    Runs of later steps than the state's are left out, because they belong to another branch.
    """
    recorded_runs = {error.get("run") for error in state.get("errors") or ()} if failed else set()
    step = step_number(state)
    new_runs = [
        each for each in failed if each.record["run"] not in recorded_runs and each.record["step"] <= step
    ]
    if not new_runs:
        return {}
    return {
        "usage": add_totals({}, [each.usage for each in new_runs]),
        "errors": [each.record for each in new_runs],
    }


def with_failures(state: StateValues, failed: Sequence[FailedRun]) -> JsonObject:
    """Return a copy of a debate's state that includes failed runs.

    Their usage and errors are added.
    """
    update = failures_update(state, failed)
    if not update:
        return dict(state)
    return {
        **state,
        "usage": add_totals(dict(state.get("usage") or {}), [update["usage"]]),
        "errors": [*(state.get("errors") or ()), *update["errors"]],
    }


def with_questions(state: StateValues, question_usage: Mapping[str, float]) -> JsonObject:
    """Return a copy of a debate's state whose usage includes answered questions."""
    return (
        {**state, "usage": add_totals(dict(state.get("usage") or {}), [question_usage])}
        if question_usage
        else dict(state)
    )


_INTERJECTION, _PAUSE, _QUESTION = "interjection", "pause", "question"


@dataclass(frozen=True)
class UnreadInbox:
    """Unread rows of a debate's inbox."""

    messages: Sequence[InboxMessage] = ()
    question_usage: Mapping[str, float] = field(default_factory=dict)
    """Model usage for answering people's questions about the debate. The answers are generated outside the
    debate's LangGraph graph."""
    last_number: int = 0
    """Number of the newest unread row in the inbox, or 0 if all rows are read."""


class InboxTable(DebateTable):
    """Table with the inbox of each debate, which the debate reads between its steps.

    The inbox holds interjections, pause requests and the model usage for answering questions. Rows stay after
    they are read: the state of the debate holds the number of the last row that was read.
    """

    name = "moot_inbox"
    columns = """
        debate TEXT NOT NULL, number BIGINT NOT NULL, kind TEXT NOT NULL, speaker TEXT NOT NULL,
        content TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (debate, number)"""

    def add(self, debate: str, speaker: str, content: str, sent_at: str) -> int:
        """Add an interjection to a debate's inbox, and return the interjection's row number."""
        return self._add(debate, _INTERJECTION, speaker, content, sent_at)

    def request_pause(self, debate: str, sent_at: str) -> None:
        """Ask a running debate to pause at the end of its current step."""
        self._add(debate, _PAUSE, "", "", sent_at)

    def add_question(self, debate: str, usage: Mapping[str, float], sent_at: str) -> None:
        """Record the model usage for answering a question about a debate.

        The debate's next step adds this usage to the debate's total.
        """
        self._add(debate, _QUESTION, "", json.dumps(usage), sent_at)

    def since(self, debate: str, number: int) -> UnreadInbox:
        """Return the rows of a debate's inbox that follow row `number`.

        The rows are interjections and the model usage of answered questions.
        """
        # One statement reads both kinds, so that no row with a smaller number can come in between.
        rows = self._execute(
            "SELECT number, speaker, content, at, kind FROM moot_inbox "
            "WHERE debate = ? AND kind IN (?, ?) AND number > ? "
            "ORDER BY number",
            (debate, _INTERJECTION, _QUESTION, number),
        )
        rows = [row for row in rows if isinstance(row[0], int)]
        messages = [
            InboxMessage(message_number, *map(stored_text, texts))
            for message_number, *texts, kind in rows
            if kind == _INTERJECTION
        ]
        usages = [_stored_usage(row[2]) for row in rows if row[4] == _QUESTION]
        return UnreadInbox(messages, add_totals({}, usages) if usages else {}, rows[-1][0] if rows else 0)

    def consume_pause(self, debate: str) -> bool:
        """Delete the pause request of a debate, and return True if there was one."""
        parameters = (debate, _PAUSE)
        if not self._execute("SELECT 1 FROM moot_inbox WHERE debate = ? AND kind = ? LIMIT 1", parameters):
            return False  # avoid a write, because this runs before nearly every step
        # Clear the row instead of deleting it, so that no number is used twice.
        statement = "UPDATE moot_inbox SET kind = '' WHERE debate = ? AND kind = ? RETURNING number"
        return bool(self._execute(statement, parameters))

    def copy(self, source: str, target: str) -> None:
        """Copy the inbox of a debate to a fork, keeping the row numbers."""
        self._execute(
            "INSERT INTO moot_inbox (debate, number, kind, speaker, content, at) "
            "SELECT ?, number, kind, speaker, content, at FROM moot_inbox "
            "WHERE debate = ? ON CONFLICT DO NOTHING",
            (target, source),
        )

    def _add(self, debate: str, kind: str, speaker: str, content: str, sent_at: str) -> int:
        # If two processes choose the same number, the second insert fails and chooses another number.
        # `+ 0` turns a damaged number, which is text, into a number: text would be the maximum forever.
        while True:
            rows = self._execute(
                "INSERT INTO moot_inbox (debate, number, kind, speaker, content, at) "
                "SELECT ?, COALESCE(MAX(number + 0), 0) + 1, ?, ?, ?, ? FROM moot_inbox "
                "WHERE debate = ? ON CONFLICT DO NOTHING RETURNING number",
                (debate, kind, speaker, content, sent_at, debate),
            )
            if rows:
                return int(rows[0][0])
