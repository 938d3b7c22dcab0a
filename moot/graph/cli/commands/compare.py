"""`moot compare`."""

from pathlib import Path
from typing import Annotated

import typer

from moot.graph.cli.database import opened
from moot.graph.cli.options import DbOption, JsonOption, QuietOption
from moot.graph.cli.screen.output import STDOUT, check_folder, format_of, print_json, remark, write_file
from moot.state.errors import InputError


def compare(
    debate_ids: Annotated[
        list[str], typer.Argument(metavar="ID ID …", help="Two debates or more, by name or id.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="FILE.html or FILE.md; - for stdout.")
    ] = STDOUT,
    db: DbOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Set debates side by side: results, agreement, tokens, cost and time, and each one's answer."""
    check_folder(output)
    form = "md" if output == STDOUT else format_of(output)
    if len(debate_ids) < 2 or form == "json":
        raise InputError("give two debates or more, and -o FILE.html or FILE.md; --json prints JSON")
    with opened(db) as debates:
        documents = [debates.get(each).document() for each in debate_ids]
    from moot.graph.compare import compare_debates, render_comparison
    from moot.graph.reports.one_page import as_page

    compared = compare_debates(documents)
    if as_json:
        return print_json(compared)
    text = render_comparison(compared)
    write_file(output, as_page(text, compared["debates"][0]["asked"]) if form == "html" else text)
    if output != STDOUT and not quiet:
        remark(f"wrote {output}")
