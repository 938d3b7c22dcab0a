"""A Postgres server that refuses writes: clear advice, and the same transcript after recovery."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from moot import DebateConfig, open_debates
from moot.cli.commands.doctor import inspect_database
from moot.state.errors import StorageError
from tests.support.fakes import FakeModel
from tests.support.postgres_server import new_database, postgres_server
from tests.support.transcripts import message_texts

pytestmark = pytest.mark.slow

CONFIG = DebateConfig(turns=2, openings="sequential")
REFUSE_WRITES_SQL = """
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{code}'; END $$;
    CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON {table} EXECUTE FUNCTION refuse()"""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as address:
        yield address


@pytest.mark.parametrize(
    ("code", "message"),
    [("53100", "the disk is full: free some space"), ("25006", "takes no writes")],
    ids=str,
)
@pytest.mark.parametrize(
    "table", ["checkpoints", "checkpoint_writes", "moot_leases", "moot_journal", "moot_debates"]
)
def test_refused_writes_raise_advice_and_the_debate_resumes_later(
    server: str, table: str, code: str, message: str
) -> None:
    url, reference_model, model = new_database(server), FakeModel(), FakeModel()
    with open_debates(new_database(server), environment=reference_model.environment()) as debates:
        expected = message_texts(debates.start("Which queue?", CONFIG).run())
    with open_debates(url, environment=model.environment()) as debates:
        debate = debates.start("Which queue?", CONFIG)
        with psycopg.connect(url, autocommit=True) as other:
            other.execute(REFUSE_WRITES_SQL.format(code=code, table=table))
            with pytest.raises(StorageError, match=message):
                debate.run()
            other.execute("DROP FUNCTION refuse CASCADE")
        assert message_texts(debate.run()) == expected
        assert all(each.ok for each in inspect_database(debates))
    assert len(model.calls) <= len(reference_model.calls) + 1
