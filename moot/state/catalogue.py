"""The catalogue of debates, with who argued and who won: what `moot list` reads, and it loads no state."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from moot.state.entries import tokens_of
from moot.state.errors import DebateExists, DebateNotFound, InputError
from moot.state.sql import DebateTable
from moot.state.verdict import NO_WINNER, PLACEHOLDER

if TYPE_CHECKING:
    from moot.state.conversation import StateValues


@dataclass(frozen=True)
class DebateRow:
    """One debate in the catalogue."""

    id: str
    """UUID, the LangGraph thread's id."""
    name: str
    """What `--id` gave, else the UUID."""
    topic: str
    """First 200 characters."""
    protocol: str
    status: str
    turns: int
    """Utterances by debaters."""
    tokens: int
    """Prompt and completion tokens of all calls."""
    cost_usd: float
    parent: str
    """The debate that this one was forked from, `""` for none."""
    created_at: str
    updated_at: str


class Amounts(TypedDict):
    """What a row tells of spending."""

    tokens: int
    cost_usd: float


def row_amounts(usage: Mapping[str, float]) -> Amounts:
    """Return a row's `tokens` and `cost_usd` from what a debate's calls used."""
    return {"tokens": tokens_of(usage), "cost_usd": float(usage.get("cost_usd", 0.0))}


_COLUMNS = [field.name for field in fields(DebateRow)]
TOPIC_CHARS = 200
ANSWER_CHARS = 200
MAX_NAME = 200
"""Characters of a debate's name."""


def check_name(name: str) -> None:
    """Refuse a name that could not be typed again.

    Raises:
        InputError: it is no text, empty, too long or has characters that do not print.
    """
    given: object = name
    if not isinstance(given, str) or not name.strip() or len(name) > MAX_NAME or not name.isprintable():
        shown = repr(given)[:MAX_NAME]
        raise InputError(f"no debate can be called {shown} (--id): give 1 to {MAX_NAME} printable characters")


def new_debate_id(name: str | None) -> str:
    """Return the UUID of a debate that is to be made: what its name stands for, a new one without a name.

    Raises:
        InputError: it cannot be called that.
    """
    if name is None:
        return str(uuid.uuid4())
    check_name(name)
    return thread_id_of(name)


def handle(debate: str, name: str) -> str:
    """Return what a person types for a debate: its name, else the beginning of its id."""
    return name if name != debate else debate[:8]


def thread_id_of(name: str) -> str:
    """Return `name` where it is a UUID already, else the UUID that it stands for."""
    try:
        return str(uuid.UUID(name))
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"moot:{name}"))


class Catalogue(DebateTable):
    """Rows by debate, in the debate's own database."""

    name = "moot_debates"
    columns = """
        id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, topic TEXT NOT NULL, protocol TEXT NOT NULL,
        status TEXT NOT NULL, turns BIGINT NOT NULL, tokens BIGINT NOT NULL,
        cost_usd DOUBLE PRECISION NOT NULL, parent TEXT NOT NULL, created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL"""
    debate = "id"

    def add(self, row: DebateRow) -> None:
        """Add a debate.

        Raises:
            DebateExists: its id or name is taken.
        """
        if not self._insert(vars(row), "ON CONFLICT DO NOTHING RETURNING id"):
            raise DebateExists(f"debate {row.name!r} exists already: go on with `moot resume {row.name}`")

    def update(self, debate: str, **values: str | float) -> None:
        """Set columns of a debate; nothing happens where it is not in the catalogue."""
        unknown = values.keys() - set(_COLUMNS)
        if unknown:
            raise ValueError(f"no such columns: {sorted(unknown)}")
        assignments = ", ".join(f"{column} = ?" for column in values)
        self._execute(
            f"UPDATE moot_debates SET {assignments} WHERE id = ?",  # noqa: S608  # checked against the columns
            [*values.values(), debate],
        )

    def find(self, name: str) -> DebateRow:
        """Return the debate of this id, name, or unambiguous beginning of an id of 4 characters or more.

        Raises:
            DebateNotFound: there is none.
            InputError: several ids begin like this.
        """
        rows = self._select("WHERE id = ?", [thread_id_of(name)]) or self._select("WHERE name = ?", [name])
        if not rows and len(name) >= 4 and name.replace("-", "").isalnum():
            rows = self._select("WHERE id LIKE ?", [f"{name.lower()}%"])
        if not rows:
            near = get_close_matches(name, [row.name for row in self.rows()], n=1)
            meant = f"is {near[0]!r} meant? " if near else ""
            raise DebateNotFound(f"no debate {name!r}: {meant}`moot list` shows which there are")
        if len(rows) > 1:
            raise InputError(f"{name!r} begins the ids of {len(rows)} debates: give more of it")
        return rows[0]

    def name_of(self, debate: str) -> str:
        """Return the name of the debate of this very id, the id itself where it is not in the catalogue."""
        rows = self._select("WHERE id = ?", [debate])
        return rows[0].name if rows else debate

    def is_new(self, debate: str) -> bool:
        """Return whether a debate is still being made."""
        return bool(self._select("WHERE id = ? AND status = 'new'", [debate]))

    def rows(self) -> list[DebateRow]:
        """Return all debates, the most recently active first."""
        return self._select("ORDER BY updated_at DESC, id", [])

    def copy(self, source: str, target: str) -> None:
        """Add a row for a copy of a debate, forked from it; nothing happens where there is no such debate."""
        for row in self._select("WHERE id = ?", [source]):
            self.add(replace(row, id=target, name=target, parent=source))

    def _select(self, clause: str, parameters: list[str]) -> list[DebateRow]:
        rows = self._execute(f"SELECT {', '.join(_COLUMNS)} FROM moot_debates {clause}", parameters)  # noqa: S608  # constants of ours
        return [DebateRow(*row) for row in rows]


@dataclass(frozen=True)
class ListedOutcome:
    """What is listed of a debate beside its row in the catalogue."""

    model: str = ""
    winner: str = ""
    """Display name, or what stands for it; `""` while nobody has won."""


class Outcomes(DebateTable):
    """Outcomes by debate; a debate of an earlier build has none until it goes on."""

    name = "moot_outcomes"
    columns = "debate TEXT PRIMARY KEY, model TEXT NOT NULL, winner TEXT NOT NULL"

    def note(self, debate: str, state: StateValues, update: StateValues) -> None:
        """Write down who argues and who has won, once a debate's state is updated like this."""
        config = update.get("config") or state.get("config") or {}
        winner = _winner(update.get("verdict", state.get("verdict")), config)
        self._insert(
            {"debate": debate, "model": config.get("model", ""), "winner": winner},
            "ON CONFLICT (debate) DO UPDATE SET model = excluded.model, winner = excluded.winner",
        )

    def all(self) -> dict[str, ListedOutcome]:
        """Return the outcomes of all debates; none of a database that cannot be written."""
        if self._sql.read_only:
            return {}
        rows = self._execute("SELECT debate, model, winner FROM moot_outcomes")
        return {debate: ListedOutcome(model, winner) for debate, model, winner in rows}


def _winner(verdict: Mapping[str, object] | None, config: Mapping[str, object]) -> str:
    if not verdict or verdict.get("status") != "ok":
        return ""
    if verdict.get("placeholder"):
        return PLACEHOLDER
    names = {each["id"]: each["name"] for each in config.get("debaters") or []}  # type: ignore[attr-defined]  # a configuration's
    winner = str(verdict.get("winner") or "")
    if winner in names and len(names) == 1:  # who votes alone has an answer, and beats nobody
        return " ".join(str(verdict.get("solution_markdown") or "").split())[:ANSWER_CHARS]
    return NO_WINNER.get(winner) or names.get(winner, winner)
