"""`moot doctor`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from typer import Exit, Option

from moot.graph.cli.database import open_database
from moot.graph.cli.options import ConfigOption, DbOption, JsonOption, ModelOption
from moot.graph.cli.screen.output import consents, print_json, print_result
from moot.graph.cli.screen.terminal_text import one_line
from moot.state.errors import InputError
from moot.state.redaction import shown_url
from moot.state.settings import check_database, database_exists

if TYPE_CHECKING:
    from moot.graph.checkup import Finding


def doctor(
    repair: Annotated[bool, Option("--repair", help="Put right what can be, losing nothing.")] = False,
    models: Annotated[
        bool, Option("--models", help="Call each model of --config once, which is paid.")
    ] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask before models are called.")] = False,
    config: ConfigOption = None,
    model: ModelOption = None,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look for what is wrong with the installation, the database and every debate in it.

    Without --repair nothing is changed, without --models no model is asked. Exits with 1 where something is
    wrong.
    """
    from moot.graph.checkup import (
        ROOM,
        callable_models,
        look_at_database,
        look_at_installation,
        look_at_models,
    )
    from moot.graph.cli.screen.output import complain
    from moot.graph.operator_config import usual_config

    url = check_database(db)
    found: list[Finding] = list(look_at_installation())
    if database_exists(url):
        with open_database(db) as debates:
            for each in look_at_database(debates):
                if repair and each.repair:
                    each.repair()
                    each = replace(each, says=f"{each.says}: put right", ok=True, repair=None)
                found.append(each)
    if models:
        settings = usual_config(config, {"model": model}, complain)
        names = callable_models(settings)
        if not names:
            raise InputError("no model to call: give --config or --model")
        about = f"Call {', '.join(names)} once each, for at most {ROOM} tokens of answer?"
        if consents(about, "no model is called", yes=yes):
            found += look_at_models(settings)
    if as_json:
        print_json([{"what": each.what, "says": each.says, "ok": each.ok} for each in found])
    else:
        marks = {True: "ok   ", False: "WRONG"}
        lines = [f"{marks[each.ok]} {one_line(each.what, 40)}: {one_line(each.says, 300)}" for each in found]
        if any(each.repair for each in found):
            lines.append("`moot doctor --repair` puts right what can be")
        missing = "" if database_exists(url) else ", not made yet"
        print_result(f"Database {shown_url(url)}{missing}", *lines)
    if not all(each.ok for each in found):
        raise Exit(1)
