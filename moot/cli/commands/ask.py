"""`moot ask`: answer a question about a debate."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from moot.cli import databases, inputs, options as shared, terminal
from moot.cli.group import command, is_question
from moot.config.model_settings import OFFLINE, is_built_in
from moot.state.entries import traits_of
from moot.state.errors import InputError
from moot.text.plain_text import count_noun
from moot.text.terms import question_in

if TYPE_CHECKING:
    from moot.api import Debate
    from moot.asking.answer import DebateAnswer

QUOTE_CHARS = 160
"""Maximum number of characters to print from each cited message."""


@command(panel="Read results", examples=('mono "What would change Ben\'s mind?"',))
def ask(
    debate_id: shared.LatestArgument = None,
    question: Annotated[
        str | None,
        Argument(metavar="QUESTION", help="Question about the debate, or - to read the question from stdin."),
    ] = None,
    model: Annotated[
        str | None,
        Option(
            "--model",
            "-m",
            metavar="NAME",
            help="Model that answers the question. Default: the judge's model. If the judge uses "
            "a built-in model, the default is the model set with `moot setup` or MOOT_MODEL.",
        ),
    ] = None,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Answer a question about a debate, and cite the debate's messages.

    Moot adds the tokens and cost of the answer to the debate's totals, but does not change its messages.
    """
    from moot.prompts.request import model_params

    if question is None:
        debate_id, question = None, _only_question(debate_id)
    question_text = sys.stdin.read() if question == "-" else question
    with databases.open_stored_debate(db, debate_id) as debate:
        config = debate.config()
        if model is None and is_built_in(model_params(config, config.judge).model):
            model = inputs.configured_model()  # a built-in model has no replies to new questions
        answer = debate.ask(question_text, model=model)
        if as_json:
            return terminal.print_json(
                {"debate": debate.id, "question": question_text.strip(), **answer.to_json()}
            )
        answer_text, *sources = _answer_lines(debate, answer)
        advice = _model_advice(debate, question_text, db) if answer.placeholder else ""
    if terminal.is_terminal():
        terminal.print_result(terminal.MarkdownText(answer_text), terminal.MarkdownText("\n".join(sources)))
    else:
        terminal.print_text("\n".join([answer_text, *sources]))
    receipt = answer.receipt
    if not quiet:
        read_count, omitted_count = receipt["messages_read"], receipt["messages_left_out"]
        tokens = f"{receipt['total_tokens']:,} of {receipt['budget']:,} tokens"
        line = f"read {count_noun(read_count, 'message')}, {tokens}"
        if omitted_count:
            line += f"; {count_noun(omitted_count, 'message')} did not fit"
        if answer.dropped:
            line += f"; removed {count_noun(answer.dropped, 'citation')} of messages that do not exist"
        terminal.print_note(line)
        if advice:
            terminal.print_note(advice)
    if failure := receipt["embeddings_error"]:
        terminal.print_note(
            "the embedding model failed, so messages were found by their words only: "
            f"{terminal.one_line(failure, 300)}"
        )


def _only_question(argument: str | None) -> str:
    """Return the only argument of the command, if it is a question. It is about the latest debate.

    Raises:
        InputError: the argument may be the name of a debate.
    """
    if argument is None or not (argument == "-" or is_question(argument)):
        example = shared.command_line("ask", argument or "ID", "Why?")
        raise InputError(f"there is no question: add one in quotes, as in {example}")
    return argument


def _model_advice(debate: Debate, question: str, db: str | None) -> str:
    """Return advice on how to get a model's answer instead of matching passages."""
    messages = [each for each in debate.state().values["full_transcript"] if traits_of(each).argues]
    topic_question = question_in(debate.state().values["topic"])
    if messages and all(each["model"] == OFFLINE for each in messages):
        return (
            "The offline model wrote only placeholder messages, so this debate holds no answer. Debate the "
            "question again with your own model: "
            + shared.after_setup(shared.command_line("run", topic_question))
        )
    ask_command = shared.command_line("ask", debate.name, question, db=db)
    return f"Get an answer from your own model: {shared.after_setup(ask_command)}"


def _answer_lines(debate: Debate, answer: DebateAnswer) -> list[str]:
    """Return the lines of an answer: its text, its sources, and what was not found."""
    from moot.asking.select import VERDICT_ID
    from moot.protocols.result import decision_line

    values = debate.state().values
    names = terminal.debater_names(values["config"], 60)
    lines = [answer.text or "The transcript does not answer the question."]
    cited_ids = () if answer.placeholder else answer.citations
    if cited_ids:
        lines += ["", "Sources:"]
    for message_id in cited_ids:
        if message_id == VERDICT_ID:
            lines.append(f"- [{message_id}] {terminal.one_line(decision_line(values), QUOTE_CHARS)}")
            continue
        entry = values["full_transcript"][int(message_id[1:])]
        speaker = names.get(entry["speaker"], entry["speaker"])
        lines.append(
            f"- [{message_id}] {terminal.one_line(speaker, 60)}: "
            + terminal.one_line(entry["content"], QUOTE_CHARS)
        )
    if answer.not_found:
        lines += ["", "Not found:", *(f"- {terminal.one_line(item, 300)}" for item in answer.not_found)]
    unknown_terms = [term for term in answer.receipt["unknown_terms"] if term not in answer.not_found]
    if unknown_terms:
        lines += ["", f"Words that no message contains: {terminal.one_line(', '.join(unknown_terms), 300)}"]
    return lines
