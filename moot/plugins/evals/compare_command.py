"""`moot compare`: the results, costs and answers of several debates beside each other."""

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from moot.cli import databases, options as shared, terminal
from moot.cli.group import command
from moot.state.errors import InputError


@command(panel="Read results", examples=("mono mono-vote -o compared.html",))
def compare(
    debate_ids: Annotated[
        list[str],
        Argument(metavar="ID …", help="Names or ids of the debates to compare."),
    ],
    only: Annotated[
        bool,
        Option(
            "--only",
            help="Ask the first debate's model to list the points that appear in only one of the debates.",
        ),
    ] = False,
    output: Annotated[
        Path,
        Option("-o", "--output", metavar="FILE", help="The .html or .md file to write, or - for stdout."),
    ] = terminal.STDOUT,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Compare the results, costs and answers of debates.

    To measure on many questions whether debates are worth their cost, use `moot eval run`.
    """
    from moot.plugins.evals import statistics
    from moot.reports.markdown import as_page

    terminal.check_folder(output)
    form = "md" if output == terminal.STDOUT else terminal.format_of(output)
    if len(debate_ids) < 2:
        raise InputError("there is nothing to compare: give at least two debates")
    if form == "json":
        raise InputError(
            "-o needs a .html or .md file: change the file's suffix, or use --json to print JSON"
        )
    with databases.open_database(db) as debates:
        compared_debates = [debates.get(each) for each in debate_ids]
        comparison = statistics.compare_debates([each.document() for each in compared_debates])
        if only:
            comparison["only"] = statistics.points_of_one(compared_debates[0].session, comparison["debates"])
    if as_json:
        return terminal.print_json(comparison)
    text = statistics.render_comparison(comparison)
    if output == terminal.STDOUT and sys.stdout.isatty():
        return terminal.print_result(terminal.MarkdownText(text))
    page = as_page(text, statistics.comparison_title(comparison), "Comparison") if form == "html" else text
    terminal.write_file(output, page)
    if output != terminal.STDOUT and not quiet:
        terminal.print_note(f"wrote {output}")
