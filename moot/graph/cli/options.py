"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DebateArgument = Annotated[
    str, typer.Argument(metavar="ID", help="Its name, id, or an unambiguous beginning of the id.")
]
DbOption = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="PATH|URL",
        help="SQLite file or postgresql://…; else MOOT_DB, else moot.sqlite in the user's data folder.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]
OutputOption = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write the debate to a .json, .md or .html file."),
]
TurnsOption = Annotated[
    int | None,
    typer.Option("--turns", min=1, metavar="N", help="Utterances in all."),
]
MoreTurnsOption = Annotated[
    int | None,
    typer.Option("--turns", min=1, metavar="N", help="So many utterances more."),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="Configuration: YAML, TOML or JSON."),
]
DebaterOption = Annotated[
    list[str] | None,
    typer.Option("--debater", "-d", metavar="NAME[:ROLE[:STANCE]]", help="Who speaks; repeat for each."),
]
RoundsOption = Annotated[int | None, typer.Option("--rounds", min=1, metavar="N", help="Rounds.")]
ProtocolOption = Annotated[
    str | None, typer.Option("--protocol", metavar="NAME", help="Rules of the debate.")
]
NameOption = Annotated[
    str | None,
    typer.Option("--id", metavar="NAME", help="Name of the new debate; without one, a new UUID."),
]
AnswersOption = Annotated[
    Path | None,
    typer.Option(
        "--answers",
        metavar="FILE",
        help="Answers to what debaters ask, YAML or JSON: by debater, by question, or a list.",
    ),
]
