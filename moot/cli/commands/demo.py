"""`moot demo`: play a recorded sample debate."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

from moot.cli import options as shared
from moot.cli.databases import open_database
from moot.cli.group import command
from moot.cli.terminal import columns, format_of, one_line, print_note, print_result, render, write_file
from moot.state.entries import JsonMapping

DEMO_DELAY_S = 0.1
"""Seconds that `moot demo` waits after each printed word. People read silently at 238 words a minute
(Brysbaert 2019), but only skim scrolling text."""


def _samples(incomplete: str) -> list[str]:
    """Return the sample debate names that complete the text typed in the shell."""
    from moot.models.offline import recordings

    return [name for name in recordings() if name.startswith(incomplete)]


@command(panel="Run debates", examples=("", "rate-limiter --full"))
def demo(
    sample: Annotated[
        str,
        Argument(
            metavar="[NAME]",
            help="Name of the sample debate: monolith, rate-limiter or free-transport.",
            autocompletion=_samples,
        ),
    ] = "monolith",
    full: Annotated[
        bool, Option("--full", help="Print every message and the whole verdict, at reading speed.")
    ] = False,
    fast: Annotated[
        bool,
        Option(
            "--fast", help="Print every message and the whole verdict at once, without the pauses of --full."
        ),
    ] = False,
    db: shared.DbOption = None,
    output: shared.OutputOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Play a recorded sample debate, without an API key or a network.

    The demo prints the beginning of each message while the debate runs, then three turning points and the
    decision. It also writes a report to a file, by default NAME.html. The replies in a sample debate were
    recorded from a large language model. Apart from that, it runs like any other debate.
    Commands such as `moot resume` and `moot report` also work on a sample debate. After you run `moot setup`,
    your own model answers the questions that you ask with `moot ask`, and writes the new messages if you fork
    a sample debate. The facts in the sample debates have not been verified.
    """
    if not quiet:
        print_note("Plays a recorded debate: no key, no network, no cost.")  # before the slow imports
    from moot.cli.live import header_lines
    from moot.cli.running import print_short_answer, run_to_end
    from moot.cli.show_parts import turning_points
    from moot.config import DebateConfig, participants
    from moot.models.offline import RecordedModel, recording_config
    from moot.runtime.environment import Environment

    settings = recording_config(sample)
    topic = settings.pop("topic")
    is_paced = full and not (fast or quiet or as_json)
    model = RecordedModel(recording=sample, pace_s=DEMO_DELAY_S if is_paced else 0.0)
    environment = Environment(factory=lambda name, settings: model)
    with open_database(db, make=True, environment=environment) as debates:
        name = participants.unique_slug(sample, {row.name for row in debates.rows()})
        debate = debates.start(topic, DebateConfig(**settings), name=name)
        path = output or Path(f"{name}.html")
        if full or fast or as_json:
            code = run_to_end(debate, shared.Delivery(None, path, db, as_json, quiet))
            document = debate.document()
        else:
            code, names, width = 0, debate.config().names(), columns()
            for line in () if quiet else (*header_lines(topic, debate.config()), ""):
                print_note(line)
            for event in debate.stream():
                if event["event"] == "entry" and not quiet:
                    speaker = names.get(event["entry"]["speaker"], event["entry"]["speaker"])
                    print_note(one_line(f"{speaker}: {event['entry']['content']}", width))
            document = debate.document()
            write_file(path, render(document, format_of(path)))
            if not quiet:
                print_note(f"\nThe report is in {path}.\n")
            print_result(*turning_points(document), "")
            print_short_answer(document, () if quiet else _next_lines(sample, name, document, db))
    raise Exit(code)


QUESTIONS = {
    "free-transport": "Who pays for the lost fares?",
    "monolith": "What would make checkout a service?",
    "rate-limiter": "What happens if Redis fails?",
}
"""Question that `moot demo` suggests for each sample debate, keyed by the debate's name. Even without a
model, `moot ask` finds passages that answer it."""


def _next_lines(sample: str, name: str, document: JsonMapping, db: str | None) -> list[str]:
    """Return four commands that the user can try after the demo."""
    interjection_ids = [each["id"] for each in document["transcript"] if each["kind"] == "interjection"]
    next_arguments = (
        ("fork", name, "--without", interjection_ids[0], "--run") if interjection_ids else ("judge", name)
    )
    commands = {
        "read the report": shared.command_line("report", name, "--open", db=db),
        "ask about it": shared.command_line("ask", name, QUESTIONS[sample], db=db),
        "without the news" if interjection_ids else "judge it again": shared.after_setup(
            shared.command_line(*next_arguments, db=db)
        ),
        "your question": shared.after_setup(shared.command_line("Should we …?")),
    }
    return [f"  {label:18} {line}" for label, line in commands.items()]
