"""`moot compare`."""

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from moot.graph.cli.database import open_database
from moot.graph.cli.options import DbOption, JsonOption, QuietOption
from moot.graph.cli.screen.output import (
    STDOUT,
    MarkdownText,
    check_folder,
    format_of,
    print_json,
    print_result,
    remark,
    write_file,
)
from moot.state.errors import InputError


def compare(
    debate_ids: Annotated[
        list[str], Argument(metavar="ID …", help="Debates, by name or id; one is enough --with others.")
    ],
    baselines: Annotated[
        list[str] | None,
        Option("--with", metavar="single|vote", help="Ask for one answer, or as many as its tokens pay."),
    ] = None,
    only: Annotated[
        bool, Option("--only", help="Ask the first one's model what only one of them saw.")
    ] = False,
    output: Annotated[
        Path, Option("-o", "--output", metavar="FILE", help="FILE.html or FILE.md; - for stdout.")
    ] = STDOUT,
    db: DbOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Set debates side by side: results, agreement, tokens, cost and time, and each one's answer.

    A baseline of --with is run once, as ID-single or ID-vote, and kept.
    """
    from moot.graph.compare import (
        BASELINES,
        baseline_of,
        compare_debates,
        comparison_title,
        points_of_one,
        render_comparison,
        with_only,
    )
    from moot.graph.reports.markdown import as_page

    if unknown := sorted({*(baselines or ())} - {*BASELINES}):
        raise InputError(f"--with {unknown[0]!r}: give {' or '.join(BASELINES)}")
    check_folder(output)
    form = "md" if output == STDOUT else format_of(output)
    if len(debate_ids) + len(baselines or ()) < 2 or form == "json":
        raise InputError(
            "give two debates or more, or one --with single or vote, and -o FILE.html or FILE.md; "
            "--json prints JSON"
        )
    with open_database(db) as debates:
        compared = [debates.get(each) for each in debate_ids]
        for protocol in sorted(baselines or ()):
            baseline = baseline_of(debates, compared[0], protocol)
            if not baseline.is_over():
                if not quiet:
                    remark(f"asking the same of {protocol}, kept as {baseline.name} …")
                baseline.run()
            compared.append(baseline)
        comparison = compare_debates([each.document() for each in compared])
        if only:
            comparison = with_only(comparison, points_of_one(compared[0].session, comparison["debates"]))
    if as_json:
        return print_json(comparison)
    text = render_comparison(comparison)
    if output == STDOUT and sys.stdout.isatty():
        return print_result(MarkdownText(text))
    page = as_page(text, comparison_title(comparison), "Side by side") if form == "html" else text
    write_file(output, page)
    if output != STDOUT and not quiet:
        remark(f"wrote {output}")
