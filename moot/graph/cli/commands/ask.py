"""`moot ask`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from moot.graph.cli.database import open_stored_debate
from moot.graph.cli.options import DbOption, DebateArgument, JsonOption, QuietOption
from moot.graph.cli.screen.output import MarkdownText, print_json, print_result, print_text, remark
from moot.graph.cli.screen.terminal_text import debater_names, one_line
from moot.nodes.text.plain import amount

if TYPE_CHECKING:
    from moot.graph.api import Debate
    from moot.nodes.views.answer import DebateAnswer

QUOTE_CHARS = 160


def ask(
    debate_id: DebateArgument,
    question: Annotated[str, Argument(metavar="QUESTION", help="What you want to know; `-` reads stdin.")],
    model: Annotated[
        str | None, Option("--model", "-m", metavar="NAME", help="Who answers; else the judge's model.")
    ] = None,
    db: DbOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Answer a question about a debate, citing the messages behind the answer; the debate stays as it is."""
    asked = sys.stdin.read() if question == "-" else question
    with open_stored_debate(db, debate_id) as debate:
        answer = debate.ask(asked, model=model)
        if as_json:
            return print_json({"debate": debate.id, "question": asked.strip(), **answer.to_json()})
        said, *sources = _lines(debate, answer)
    if sys.stdout.isatty():
        print_result(MarkdownText(said), MarkdownText("\n".join(sources)))
    else:
        print_text("\n".join([said, *sources]))
    receipt = answer.receipt
    if not quiet:
        shown, left_out = len(receipt["message_ids"]), receipt["messages_left_out"]
        line = f"from {amount(shown, 'message')}, {receipt['total_tokens']:,} of {receipt['budget']:,} tokens"
        if left_out:
            line += f"; no room for {amount(left_out, 'message')}"
        if answer.dropped:
            line += f", dropped {amount(answer.dropped, 'citation')} of messages that do not exist"
        remark(line)
    if failure := receipt["embeddings_error"]:
        remark(f"the embedding model failed, so words alone were compared: {one_line(failure, 300)}")


def _lines(debate: Debate, answer: DebateAnswer) -> list[str]:
    """Return the answer and, below it, where it comes from and what was not found."""
    values = debate.state().values
    names = debater_names(values["config"], 60)
    lines = [answer.text or "The record does not say."]
    cited = () if answer.placeholder else answer.citations
    if cited:
        lines += ["", "From:"]
    for message_id in cited:
        entry = values["full_transcript"][int(message_id[1:])]
        who = names.get(entry["speaker"], entry["speaker"])
        lines.append(f"- [{message_id}] {one_line(who, 60)}: {one_line(entry['content'], QUOTE_CHARS)}")
    if answer.not_found:
        lines += ["", "Not found:", *(f"- {one_line(item, 300)}" for item in answer.not_found)]
    unknown = [term for term in answer.receipt["unknown_terms"] if term not in answer.not_found]
    if unknown:
        lines += ["", f"Nobody said: {one_line(', '.join(unknown), 300)}"]
    return lines
