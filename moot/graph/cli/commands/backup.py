"""`moot backup`."""

from pathlib import Path
from typing import Annotated

from typer import Argument

from moot.graph.cli.database import present_records
from moot.graph.cli.options import DbOption, JsonOption
from moot.graph.cli.screen.output import print_json, remark
from moot.state.errors import InputError


def backup(
    path: Annotated[Path, Argument(metavar="FILE", help="A new file; use it with --db, or copy it back.")],
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy the database, also while debates run: all of it, as it was at one moment. SQLite alone."""
    from moot.state.sqlite import SqliteSql

    with present_records(db) as records:
        if not isinstance(records.sql, SqliteSql):
            raise InputError("moot backup copies SQLite files: use pg_dump for Postgres")
        records.sql.back_up(path)
    if as_json:
        print_json({"written": str(path)})
    else:
        remark(f"written to {path}")
