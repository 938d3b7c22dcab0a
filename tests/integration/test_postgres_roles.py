"""Database roles in a real Postgres server that may not create tables, or may only read."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from moot import DebateConfig, open_debates
from moot.state.errors import DebateNotFound, StorageError
from tests.support.fakes import FakeModel
from tests.support.moot_command import Moot
from tests.support.postgres_server import new_database, postgres_server, rows

pytestmark = pytest.mark.slow

MEMORY_CONFIG = DebateConfig.model_validate(
    {
        "turns": 2,
        "openings": "sequential",
        "debaters": [{"name": "Ada", "identity": "ada"}, {"name": "Bo"}],
        "memory": {"cross_debate": True},
    }
)
ROLE = """
    CREATE ROLE {guest} LOGIN;
    REVOKE ALL ON SCHEMA public FROM PUBLIC;
    GRANT USAGE ON SCHEMA public TO {guest};
    GRANT {permissions} ON ALL TABLES IN SCHEMA public TO {guest}"""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as address:
        yield address


@pytest.fixture
def owner_url(server: str) -> str:
    """Return the owner's address of a database with one debate."""
    url = new_database(server)
    with open_debates(url, environment=FakeModel().environment()) as debates:
        debates.start("Which queue?", MEMORY_CONFIG, name="first").run()
    return url


def _as_guest(url: str, permissions: str) -> str:
    guest = f"guest_{uuid.uuid4().hex[:12]}"  # roles belong to the server, not to one database
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(ROLE.format(guest=guest, permissions=permissions).encode())
    return url.replace("postgres:@", f"{guest}@", 1)


def test_a_role_without_create_permission_runs_debates_in_existing_tables(owner_url: str) -> None:
    url = _as_guest(owner_url, "SELECT, INSERT, UPDATE, DELETE")
    with open_debates(url, environment=FakeModel().environment()) as debates:
        debate = debates.start("Which queue?", MEMORY_CONFIG, name="second")
        assert debate.run()["status"] == "done"
        assert debate.state().values["cross_debate_memory"]["ada"][0]["topic"] == "Which queue?"


def test_a_read_only_role_lists_shows_reports_and_searches(owner_url: str, tmp_path: Path) -> None:
    with open_debates(owner_url) as debates:
        row = debates.get("first").row
        debates.records.catalogue.add(type(row)(**{**vars(row), "id": "x", "name": "left", "status": "new"}))
    before = rows(owner_url, "SELECT * FROM moot_debates ORDER BY id")
    url = _as_guest(owner_url, "SELECT")
    for words in (["list"], ["show", "first"], ["show", "latest"], ["report", "first"], ["search", "say"]):
        done = Moot(tmp_path)(*words, "--db", url)
        assert done.code == 0, (words, done.err)
        assert "first" in done.out + done.err, words
    with open_debates(url, environment=FakeModel().environment()) as debates:
        with pytest.raises(DebateNotFound, match="there is no debate 'left'"):
            debates.get("left")
        with pytest.raises(StorageError, match=r"permission denied.*: ask the owner"):
            debates.get("first").run(turns=1)
    assert rows(owner_url, "SELECT * FROM moot_debates ORDER BY id") == before


def test_a_role_without_create_permission_cannot_open_an_empty_database(server: str) -> None:
    url = _as_guest(new_database(server), "SELECT")
    with pytest.raises(StorageError, match=r"permission denied.*: ask the owner"):
        open_debates(url)
