"""`moot pause`."""

from moot.graph.cli.database import opened_debate
from moot.graph.cli.options import DbOption, DebateArgument, JsonOption
from moot.graph.cli.screen.output import print_json, remark


def pause(debate_id: DebateArgument, db: DbOption = None, as_json: JsonOption = False) -> None:
    """Let the process that runs a debate stop at the next step's boundary, in good order.

    What is under way is finished and saved; `moot resume` goes on. A debate that nobody runs stays as it is.
    """
    with opened_debate(db, debate_id) as debate:
        running = debate.is_running()
        if running:
            debate.pause()
    if as_json:
        print_json({"id": debate.id, "running": running})
    else:
        remark("It stops at the next step's boundary." if running else "Nobody runs this debate now.")
