"""Log of all writes to debates with their leases, kept by triggers in Postgres."""

from __future__ import annotations

from itertools import groupby

import psycopg

from tests.support.postgres_server import rows

_LOG_SQL = """
CREATE TABLE fencing (no BIGSERIAL, debate TEXT, epoch BIGINT, writer TEXT);
CREATE FUNCTION fence() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE thread TEXT := to_jsonb(NEW) ->> TG_ARGV[0];
BEGIN
  INSERT INTO fencing (debate, epoch, writer) SELECT thread, epoch, current_setting('application_name')
    FROM moot_leases WHERE debate = thread AND namespace = '';
  RETURN NEW;
END $$;
CREATE TRIGGER fence AFTER INSERT ON checkpoints FOR EACH ROW EXECUTE FUNCTION fence('thread_id');
CREATE TRIGGER fence AFTER INSERT ON checkpoint_writes FOR EACH ROW EXECUTE FUNCTION fence('thread_id');
CREATE TRIGGER fence AFTER INSERT ON moot_journal FOR EACH ROW EXECUTE FUNCTION fence('debate');
"""


def install_writer_log(url: str) -> None:
    """Install the log in a database with Moot's tables. The name of a writer is its `PGAPPNAME`."""
    with psycopg.connect(url) as connection:
        connection.execute(_LOG_SQL)


def writers_by_debate(url: str) -> dict[str, list[tuple[int, set[str]]]]:
    """Return the lease epochs of each debate in the order of their writes, with the writers of each.

    If a debate has one writer at a time, each epoch has one writer and appears once, in ascending order.
    """
    log = rows(url, "SELECT debate, epoch, writer FROM fencing ORDER BY debate, no")
    epochs: dict[str, list[tuple[int, set[str]]]] = {}
    for (debate, epoch), written in groupby(log, key=lambda row: row[:2]):
        epochs.setdefault(debate, []).append((epoch, {row[2] for row in written}))
    return epochs


def epochs_do_not_overlap(url: str) -> bool:
    """Return True if no debate ever had two writers at once."""
    return all(
        [epoch for epoch, _ in each] == sorted({epoch for epoch, _ in each})
        and all(len(names) == 1 for _, names in each)
        for each in writers_by_debate(url).values()
    )
