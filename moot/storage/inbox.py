"""Inbox of a debate: people's messages and pause requests, and the usage of answers to their questions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from moot.state.conversation import InboxMessage, StateValues
from moot.state.entries import JsonObject
from moot.state.reducers import add_totals
from moot.storage.failed_runs import stored_usage
from moot.storage.sqlite import DebateTable, stored_text

_INTERJECTION, _PAUSE, _QUESTION = "interjection", "pause", "question"


def with_questions(state: StateValues, question_usage: Mapping[str, float]) -> JsonObject:
    """Return a copy of a debate's state whose usage includes answered questions."""
    return (
        {**state, "usage": add_totals(dict(state.get("usage") or {}), [question_usage])}
        if question_usage
        else dict(state)
    )


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
        """Record the usage of an answered question. The debate's next step adds it to the total."""
        self._add(debate, _QUESTION, "", json.dumps(usage), sent_at)

    def since(self, debate: str, number: int) -> UnreadInbox:
        """Return the interjections and usage that follow row `number` of a debate's inbox."""
        # One statement reads both kinds, so that no row with a smaller number can come in between.
        rows = self._execute(
            "SELECT number, speaker, content, at, kind FROM moot_inbox WHERE debate = ? AND kind IN (?, ?) "
            "AND number > ? ORDER BY number",
            (debate, _INTERJECTION, _QUESTION, number),
        )
        rows = [row for row in rows if isinstance(row[0], int)]
        messages = [
            InboxMessage(message_number, *map(stored_text, texts))
            for message_number, *texts, kind in rows
            if kind == _INTERJECTION
        ]
        usages = [stored_usage(row[2]) for row in rows if row[4] == _QUESTION]
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
            "INSERT INTO moot_inbox (debate, number, kind, speaker, content, at) SELECT ?, number, kind, "
            "speaker, content, at FROM moot_inbox WHERE debate = ? ON CONFLICT DO NOTHING",
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
