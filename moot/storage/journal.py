"""Journal of model replies, which prevents an interrupted run from repeating completed calls.

A reply is only given to the request that it answers. The key holds the debate, the step, the node, the batch,
the index of the call, and the SHA-256 of the request. `base_checkpoint` is the checkpoint that the node ran
on. If that checkpoint has a child other than the present one, the reply was used on another branch of the
thread, and a fork samples anew. Any other reply is left from a crash and is used.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass

from moot.calls.model_calls import Reply
from moot.config.model_settings import is_built_in
from moot.storage.sqlite import DebateTable, Sql, reading

HasOtherChild = Callable[[str, str, str], bool]
"""Type of a function that looks for another child of a checkpoint. The parameters are `(debate, checkpoint,
present)`. It returns True if the checkpoint has a child other than `present`."""


MAX_REPLY_BYTES = 65_536
"""Number of bytes that the disk must have free for each reply before its call. A reply of 8,000 tokens with
its reasoning takes about 60,000."""


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
        """Open the journal. Pass `has_other_child` if another database stores the checkpoints."""
        super().__init__(sql)
        self._has_other_child_elsewhere = has_other_child

    def get(self, key: JournalKey, base_checkpoint: str, *, resumed: bool = False) -> Reply | None:
        """Return the stored reply to a request, or `None` if there is none.

        Replies in other branches of the debate do not count. `resumed` means that the step now runs from a
        later checkpoint than the one it started from.
        """
        rows = self._execute(
            "SELECT base_checkpoint, reply FROM moot_journal WHERE debate = ? AND step = ? AND node = ? AND "
            "batch = ? AND call_index = ? AND digest = ?",
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

    def require_space(self, replies: int) -> None:
        """Raise a `StorageError` before a paid reply is lost, because the disk has no space."""
        self._sql.require_space(replies * MAX_REPLY_BYTES)

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
        """Return the stored replies of a debate or step, by position in the debate and request hash."""
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
