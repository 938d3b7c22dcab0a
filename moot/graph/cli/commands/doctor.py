"""`moot doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer import Exit

from moot.graph.cli.options import DbOption, JsonOption

if TYPE_CHECKING:
    from moot.graph.checkup import Finding


def doctor(db: DbOption = None, as_json: JsonOption = False) -> None:
    """Look for what is wrong with the installation, the database and every debate in it.

    Nothing is changed, no model is asked. Exits with 1 where something is wrong.
    """
    from dataclasses import asdict

    from moot.graph.checkup import look_at_database, look_at_installation
    from moot.graph.cli.database import check_database, exists, opened
    from moot.graph.cli.screen.output import print_json, print_result
    from moot.graph.cli.screen.terminal_text import one_line
    from moot.state.redaction import shown_url

    url = check_database(db)
    found: list[Finding] = list(look_at_installation())
    if exists(url):
        with opened(db) as debates:
            found += look_at_database(debates)
    if as_json:
        print_json([asdict(each) for each in found])
    else:
        marks = {True: "ok   ", False: "WRONG"}
        lines = [f"{marks[each.ok]} {one_line(each.what, 40)}: {one_line(each.says, 300)}" for each in found]
        print_result(f"Database {shown_url(url)}" + ("" if exists(url) else ", not made yet"), *lines)
    if not all(each.ok for each in found):
        raise Exit(1)
