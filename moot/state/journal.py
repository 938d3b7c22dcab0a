"""The journal: every model reply, committed before it is used, so that no finished call is paid twice.

A reply is only ever given to the request that it answers: the key holds the debate, the step, the node, the
batch and floor within it, and the SHA-256 of the request. `anchor` is the checkpoint that the node ran on: a
row whose anchor has a child besides the present checkpoint was used there, on another branch of the same
thread, so a fork samples anew; any other row is what a crash left, and is served.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass

from moot.state.config.model_settings import is_built_in
from moot.state.entries import JsonObject
from moot.state.sql import DebateTable, Sql

WentOn = Callable[[str, str, str], bool]
"""`(debate, checkpoint, present)`: whether `checkpoint` has a child besides `present`."""


@dataclass(frozen=True)
class JournalKey:
    """Where a call stands in its debate."""

    debate: str
    """Thread id."""
    step: int
    node: str
    batch: int
    """Index of the batch within the node's run."""
    floor: int
    """Index of the call within its batch."""
    digest: str
    """SHA-256 of the request."""


class Journal(DebateTable):
    """Replies by key, in the debate's own database."""

    name = "moot_journal"
    columns = """
        debate TEXT NOT NULL, step BIGINT NOT NULL, node TEXT NOT NULL, batch INTEGER NOT NULL,
        floor INTEGER NOT NULL, digest TEXT NOT NULL, anchor TEXT NOT NULL, reply TEXT NOT NULL,
        PRIMARY KEY (debate, step, node, batch, floor, digest, anchor)"""

    def __init__(self, sql: Sql, elsewhere: WentOn | None = None) -> None:
        """Make it; `elsewhere` knows LangGraph's checkpoints where they are not in the same database."""
        super().__init__(sql)
        self._elsewhere = elsewhere

    def get(self, key: JournalKey, anchor: str, *, again: bool = False) -> JsonObject | None:
        """Return the reply to this very request, `None` where there is none on this branch.

        With `again` the step is carried out from a later checkpoint than the one that it was begun on.
        """
        rows = self._execute(
            "SELECT anchor, reply FROM moot_journal WHERE debate = ? AND step = ? AND node = ? AND batch = ? "
            "AND floor = ? AND digest = ?",
            [*vars(key).values()],
        )
        for row_anchor, reply in sorted(sorted(rows, reverse=True), key=lambda row: row[0] != anchor):
            if again or not self._went_on(key.debate, row_anchor, anchor):
                found: JsonObject = json.loads(reply)
                if row_anchor != anchor:  # of a state that was changed since: it may be changed again
                    self.put(key, anchor, found)
                return found
        return None

    def put(self, key: JournalKey, anchor: str, reply: JsonObject) -> None:
        """Commit a reply, as `Reply.to_json` writes it; one that was paid durably.

        A second one for the same key and anchor is ignored.
        """
        text = json.dumps(reply, separators=(",", ":"))
        paid = not is_built_in(str(reply.get("model", "")))
        row = {**vars(key), "anchor": anchor, "reply": text}
        self._insert(row, "ON CONFLICT DO NOTHING", durable=paid)

    def replies(
        self, debate: str, step: int | None = None
    ) -> dict[tuple[int, str, int, int, str], JsonObject]:
        """Return every reply of a debate, or of one step, by (step, node, batch, floor, digest)."""
        one_step = "" if step is None else " AND step = ?"
        rows = self._execute(
            "SELECT step, node, batch, floor, digest, reply FROM moot_journal "  # noqa: S608  # constants of ours
            f"WHERE debate = ?{one_step} ORDER BY anchor",
            [debate] if step is None else [debate, step],
        )
        return {(row[0], row[1], row[2], row[3], row[4]): json.loads(row[5]) for row in rows}

    def _went_on(self, debate: str, checkpoint: str, present: str) -> bool:
        if self._elsewhere is not None:
            return self._elsewhere(debate, checkpoint, present)
        return bool(
            self._execute(
                "SELECT 1 FROM checkpoints WHERE thread_id = ? AND parent_checkpoint_id = ? "
                "AND checkpoint_id <> ? LIMIT 1",
                (debate, checkpoint, present),
            )
        )
