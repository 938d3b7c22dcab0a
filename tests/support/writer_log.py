"""Log of every writer of a debate and its lease, kept by Postgres itself."""

from __future__ import annotations

from itertools import groupby

import psycopg

from tests.support.postgres_server import rows

_LOG = """
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


def keep_log(url: str) -> None:
    """Have a database with Moot's tables log its writers; each is called what `PGAPPNAME` says."""
    with psycopg.connect(url) as connection:
        connection.execute(_LOG)


def writers(url: str) -> dict[str, list[tuple[int, set[str]]]]:
    """Return, of each debate, the epochs in the order in which they wrote, each with its writers.

    One writer at a time means: each epoch has one, and none writes again once a later one has.
    """
    log = rows(url, "SELECT debate, epoch, writer FROM fencing ORDER BY debate, no")
    found: dict[str, list[tuple[int, set[str]]]] = {}
    for (debate, epoch), written in groupby(log, key=lambda row: row[:2]):
        found.setdefault(debate, []).append((epoch, {row[2] for row in written}))
    return found


def epochs_do_not_overlap(url: str) -> bool:
    """Return whether no debate ever had two writers."""
    return all(
        [epoch for epoch, _ in each] == sorted({epoch for epoch, _ in each})
        and all(len(who) == 1 for _, who in each)
        for each in writers(url).values()
    )
