"""`moot audit`."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Annotated

from typer import Option

from moot.graph.cli.database import open_stored_debate
from moot.graph.cli.options import DbOption, DebateArgument, JsonOption
from moot.graph.cli.screen.output import print_answer
from moot.state.errors import InputError


def audit(
    debate_id: DebateArgument,
    without: Annotated[
        str | None,
        Option("--replay-without", metavar="KIND", help="Ask turns again without this kind of memory."),
    ] = None,
    turns: Annotated[
        str | None, Option("--turns", metavar="A-B", help="Which turns are asked again, from 1.")
    ] = None,
    model: Annotated[
        str | None, Option("--model", help="Who answers them; by default the speakers' own models.")
    ] = None,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what each kind of memory cost and how often it was shown, or what speeches would be without one."""
    from moot.graph.audit import audit as memory_costs
    from moot.graph.audit import replay_without
    from moot.graph.cli.screen import showing

    if (without is None) != (turns is None):
        raise InputError("--replay-without and --turns go together: say which turns are to be asked again")
    with open_stored_debate(db, debate_id) as debate:
        if without is None or turns is None:
            rows = memory_costs(debate.document())  # type: ignore[arg-type]  # a document
            data: object = {"id": debate.id, "memory": [asdict(row) for row in rows]}
            parts = showing.memory_costs(rows)
        else:
            found = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", turns)
            if not found:
                raise InputError(f"--turns {turns!r}: give numbers of turns, such as 3-5")
            first, last = int(found[1]), int(found[2] or found[1])
            again = replay_without(debate.session, without, first, last, model=model)
            data = {"id": debate.id, "without": without, "turns": [each.to_json() for each in again]}
            parts = showing.replays(again, without)
    print_answer(data, *parts, as_json=as_json)
