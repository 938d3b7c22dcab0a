"""`moot search`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from moot.graph.cli.database import opened
from moot.graph.cli.options import DbOption, JsonOption
from moot.graph.cli.screen.output import print_json, print_result, remark

AROUND = 60
"""Characters on each side of the first word that was found."""


def search(
    words: Annotated[list[str], Argument(metavar="WORDS", help="An entry must hold each of them.")],
    limit: Annotated[int, Option("--limit", "-n", min=1, metavar="N", help="Entries shown.")] = 20,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find what was said in all debates of a database, the most recently active debate first."""
    wanted = [word.casefold() for given in words for word in given.split()]
    found = []
    with opened(db) as debates:
        for row in debates.rows():
            debate = debates.get(row.id)
            values = debate.state().values
            names = debate.config().names() if values.get("config") else {}
            for entry in values.get("full_transcript", []):
                text = " ".join(entry["content"].split())
                if all(word in text.casefold() for word in wanted):
                    at = text.casefold().find(wanted[0])
                    start, end = max(0, at - AROUND), at + len(wanted[0]) + AROUND
                    cut = f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
                    who = names.get(entry["speaker"], entry["speaker"])
                    found.append({"debate": debate.name, "id": entry["id"], "speaker": who, "text": cut})
    if as_json:
        return print_json(found[:limit])
    _show(found[:limit])
    if len(found) > limit:
        remark(f"{len(found) - limit} more: --limit {len(found)} shows all")
    elif not found:
        remark("nobody said that")


def _show(found: list[dict[str, str]]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from moot.graph.cli.screen.terminal_text import one_line

    for each in found:
        place = " · ".join(one_line(each[key], 60) for key in ("debate", "id", "speaker"))
        print_result(Text(place, "bold"), Padding(Text(one_line(each["text"], 400)), (0, 0, 0, 2)))
