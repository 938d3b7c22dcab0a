"""Catalogue of debates, which lists their participants and results without loading their states."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from moot.state.entries import tokens_of
from moot.state.errors import DebateExists, DebateNotFound, InputError, advise
from moot.state.verdict import NO_WINNER, PLACEHOLDER
from moot.storage.sqlite import DebateTable, stored_number, stored_text
from moot.text.plain_text import clip, plain_line
from moot.text.terms import title_of

if TYPE_CHECKING:
    from moot.state.conversation import StateValues


@dataclass(frozen=True)
class DebateRow:
    """Catalogue row that describes one debate in the database."""

    id: str
    """UUID of the debate, used as the LangGraph thread id."""
    name: str
    """Debate name that the user set with `--id`, or the debate's UUID if no name was set."""
    topic: str
    """First 200 characters of the debate's topic."""
    protocol: str
    status: str
    turns: int
    """Number of turns that debaters have taken so far."""
    tokens: int
    """Number of prompt and completion tokens used by all model calls of the debate."""
    cost_usd: float
    parent: str
    """Id of the debate from which this debate was forked, or `""` if there is none."""
    created_at: str
    updated_at: str


class RowUsage(TypedDict):
    """Catalogue columns that hold a debate's token usage and cost."""

    tokens: int
    cost_usd: float


def row_usage(usage: Mapping[str, float]) -> RowUsage:
    """Return a debate's usage as values for the catalogue columns `tokens` and `cost_usd`."""
    return {"tokens": tokens_of(usage), "cost_usd": float(usage.get("cost_usd", 0.0))}


_COLUMNS = [field.name for field in fields(DebateRow)]
TOPIC_CHARS = 200
"""Maximum number of characters of a debate's topic that the catalogue stores."""
FINAL_ANSWER_CHARS = 400
"""Maximum length of a decision or final answer in the table of results, in characters."""
MAX_NAME = 200
"""Maximum number of characters in a debate's name."""
MAX_SIMILAR_NAMES = 5
"""Maximum number of debates to name if the beginning of a name fits several: as many as a glance counts."""
LATEST = "latest"
"""Reserved name for the most recently active debate."""


def check_name(name: str) -> None:
    """Raise an `InputError` if a debate's name is not a printable string of valid length."""
    value: object = name
    if name == LATEST:
        raise InputError(
            f"the name {LATEST!r} is reserved for the most recently active debate: choose another "
            f"{advise('name with --id', '`name`')}"
        )
    if not isinstance(value, str) or not name.strip() or len(name) > MAX_NAME or not name.isprintable():
        quoted_name = repr(value)[:MAX_NAME]
        raise InputError(
            f"{quoted_name} is not a valid name for a debate{advise(' (--id)', '')}: use 1 to {MAX_NAME} "
            "printable characters"
        )


def new_debate_id(name: str | None) -> str:
    """Return a new UUID, derived from a valid name or random. An invalid name is an `InputError`."""
    if name is None:
        return str(uuid.uuid4())
    check_name(name)
    return thread_id_of(name)


def handle(debate: str, name: str) -> str:
    """Return a debate's name, or the first 8 characters of its id if it has no name."""
    return name if name != debate else debate[:8]


def thread_id_of(name: str) -> str:
    """Return `name` unchanged if it is a UUID; otherwise return a UUID derived from `name`."""
    try:
        return str(uuid.UUID(name))
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"moot:{name}"))


def _readable(row: Sequence[object]) -> DebateRow:
    """Parse as much as possible of a catalogue row. `moot doctor` repairs a damaged row."""
    debate, name, topic, protocol, status, turns, tokens, cost_usd, parent, created_at, updated_at = row
    return DebateRow(
        id=stored_text(debate),
        name=stored_text(name),
        topic=stored_text(topic),
        protocol=stored_text(protocol),
        status=stored_text(status),
        turns=int(stored_number(turns)),
        tokens=int(stored_number(tokens)),
        cost_usd=stored_number(cost_usd),
        parent=stored_text(parent),
        created_at=stored_text(created_at),
        updated_at=stored_text(updated_at),
    )


class Catalogue(DebateTable):
    """Database table with one row for each debate."""

    name = "moot_debates"
    columns = """
        id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, topic TEXT NOT NULL, protocol TEXT NOT NULL,
        status TEXT NOT NULL, turns BIGINT NOT NULL, tokens BIGINT NOT NULL,
        cost_usd DOUBLE PRECISION NOT NULL, parent TEXT NOT NULL, created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL"""
    debate = "id"

    def add(self, row: DebateRow) -> None:
        """Add a row for a new debate. An id or name that is taken raises `DebateExists`."""
        if not self._insert(vars(row), "ON CONFLICT DO NOTHING RETURNING id"):
            go_on = advise(f"`moot resume {row.name}`", '`start(…, if_exists="resume")`', "the tool `start`")
            raise DebateExists(f"debate {row.name!r} already exists: continue with {go_on}")

    def update(self, debate: str, **values: str | float) -> None:
        """Change the given columns in the catalogue row of a debate. Unknown debates are ignored."""
        unknown = values.keys() - set(_COLUMNS)
        if unknown:
            raise ValueError(f"no such columns: {sorted(unknown)}")
        assignments = ", ".join(f"{column} = ?" for column in values)
        self._execute(
            f"UPDATE moot_debates SET {assignments} WHERE id = ?",  # noqa: S608  # checked against the columns
            [*values.values(), debate],
        )

    def find(self, name: str) -> DebateRow:
        """Return the debate with the given id or name, or the only one whose id or name begins like this.

        `latest` refers to the most recently active debate.

        Raises:
            DebateNotFound: There is no such debate, or the text cannot be the name of a debate.
            InputError: Several ids or names begin like this.
        """
        if len(name) > MAX_NAME or not name.isprintable():
            raise DebateNotFound(
                f"this is not a valid name for a debate: use at most {MAX_NAME} printable characters"
            )
        if name == LATEST:
            begun = "WHERE status <> 'new' ORDER BY updated_at DESC, id LIMIT 1"
            if latest := self._select(begun, []):
                return latest[0]
        rows = self._select("WHERE id = ?", [thread_id_of(name)]) or self._select("WHERE name = ?", [name])
        if not rows and name:
            beginning = f"{name.replace('!', '!!').replace('%', '!%').replace('_', '!_')}%"
            rows = self._select(
                "WHERE status <> 'new' AND (id LIKE ? ESCAPE '!' OR name LIKE ? ESCAPE '!') "
                "ORDER BY updated_at DESC, id",
                [beginning.lower(), beginning],
            )
        if not rows:
            raise self.not_found(name)
        if len(rows) > 1:
            names = ", ".join(handle(row.id, row.name) for row in rows[:MAX_SIMILAR_NAMES])
            more = " and others" if len(rows) > MAX_SIMILAR_NAMES else ""
            raise InputError(
                f"{name!r} is the beginning of {names}{more}: write more of the one that you mean"
            )
        return rows[0]

    def not_found(self, name: str) -> DebateNotFound:
        """Return an error that reports an unknown debate name and suggests a similar name."""
        begun_names = [row.name for row in self.rows() if row.status != "new"]
        close_matches = get_close_matches(name, [*begun_names, LATEST] if begun_names else [], n=1)
        suggestion = f"is {close_matches[0]!r} meant? " if close_matches else ""
        see_all = advise("run `moot list`", "call `Debates.rows`", "read the resource moot://debates")
        return DebateNotFound(f"there is no debate {name!r}: {suggestion}{see_all} to see all debates")

    def name_of(self, debate: str) -> str:
        """Return the name of the debate with this id, or the id itself if the debate is unknown."""
        rows = self._select("WHERE id = ?", [debate])
        return rows[0].name if rows else debate

    def is_new(self, debate: str) -> bool:
        """Return True if a debate is still being created (status `new`)."""
        return bool(self._select("WHERE id = ? AND status = 'new'", [debate]))

    def unstarted(self) -> list[DebateRow]:
        """Return the rows of all debates that are being created, or whose creation was interrupted."""
        return self._select("WHERE status = 'new'", [])

    def note_begun(self, debate: str) -> None:
        """List a debate whose state is stored. It is resumable from now on."""
        if self.is_new(debate):
            self.update(debate, status="running")

    def rows(self) -> list[DebateRow]:
        """Return the rows of all debates, starting with the most recently active debate."""
        return self._select("ORDER BY updated_at DESC, id", [])

    def copy(self, source: str, target: str) -> None:
        """Add a fork's row, copied from the original debate. Unknown debates are ignored."""
        for row in self._select("WHERE id = ?", [source]):
            self.add(replace(row, id=target, name=target, parent=source))

    def _select(self, clause: str, parameters: list[str]) -> list[DebateRow]:
        rows = self._execute(f"SELECT {', '.join(_COLUMNS)} FROM moot_debates {clause}", parameters)  # noqa: S608  # constants of ours
        return [_readable(row) for row in rows]


@dataclass(frozen=True)
class ListedResult:
    """Result of a debate, for display in lists of debates."""

    model: str = ""
    winner: str = ""
    """Display name of the winner, or text such as `a tie`. Empty if there is no verdict."""
    decision: str = ""
    """Decision of the judges in one sentence, or `""` if there is no decision."""
    question: str = ""
    """Question of the debate in one sentence. It is the topic, or the judges' wording of a long topic."""
    confidence: float | None = None
    """The judges' confidence in the decision, from 0 to 100."""

    @property
    def text(self) -> str:
        """Decision of the judges, or the winner if there is no decision."""
        return self.decision or self.winner


class ResultTable(DebateTable):
    """Table with the result of each debate."""

    name = "moot_results"
    columns = (
        "debate TEXT PRIMARY KEY, model TEXT NOT NULL, winner TEXT NOT NULL, decision TEXT NOT NULL, "
        "question TEXT NOT NULL DEFAULT '', confidence DOUBLE PRECISION"
    )

    def note(self, debate: str, state: StateValues, update: StateValues) -> None:
        """Store the model, winner, decision, question and confidence after a state update."""
        config = update.get("config") or state.get("config") or {}
        verdict = update.get("verdict", state.get("verdict"))
        topic = str(update.get("topic") or state.get("topic") or "")
        self._insert(
            {
                "debate": debate,
                "model": config.get("model", ""),
                "winner": _winner(verdict, config),
                "decision": _text_of(verdict, "decision"),
                "question": clip(title_of(topic, _text_of(verdict, "question")), TOPIC_CHARS),
                "confidence": (verdict or {}).get("confidence") if _text_of(verdict, "decision") else None,
            },
            "ON CONFLICT (debate) DO UPDATE SET model = excluded.model, winner = excluded.winner, decision "
            "= excluded.decision, question = excluded.question, confidence = excluded.confidence",
        )

    def all(self) -> dict[str, ListedResult]:
        """Return the stored results, keyed by debate id. In a read-only database: `{}`."""
        if self._sql.read_only:
            return {}
        rows = self._execute("SELECT debate, model, winner, decision, question, confidence FROM moot_results")
        return {stored_text(debate): _listed(*outcome) for debate, *outcome in rows}


def _listed(*outcome: object) -> ListedResult:
    """Convert as much as possible of a database row, which may be damaged."""
    *texts, confidence = outcome
    model, winner, decision, question = map(stored_text, texts)
    known = confidence if isinstance(confidence, int | float) else None
    return ListedResult(model, winner, decision, question, known)


def _text_of(verdict: Mapping[str, object] | None, field: str) -> str:
    """Return a field of a verdict on one line, or `""` if the verdict failed or is a placeholder."""
    if not verdict or verdict.get("status") != "ok" or verdict.get("placeholder"):
        return ""
    return clip(plain_line(str(verdict.get(field) or "")), FINAL_ANSWER_CHARS)


def _winner(verdict: Mapping[str, object] | None, config: Mapping[str, object]) -> str:
    if not verdict or verdict.get("status") != "ok":
        return ""
    if verdict.get("placeholder"):
        return PLACEHOLDER
    names = {each["id"]: each["name"] for each in config.get("debaters") or []}  # type: ignore[attr-defined]  # a configuration's
    winner = str(verdict.get("winner") or "")
    if winner in names and len(names) == 1:  # a single debater has an answer, but defeats nobody
        return clip(plain_line(str(verdict.get("solution_markdown") or "")), FINAL_ANSWER_CHARS)
    return NO_WINNER.get(winner) or names.get(winner, winner)
