"""`moot ask`: answer a question about a debate."""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from moot.cli import options as shared
from moot.cli import terminal
from moot.cli.group import command
from moot.config.model_settings import OFFLINE, is_built_in
from moot.judging.panel import RULES
from moot.state.entries import tokens_of, traits_of
from moot.state.errors import InputError, RunError
from moot.state.verdict import Rule
from moot.text.plain_text import count_noun
from moot.text.terms import question_in

if TYPE_CHECKING:
    from moot.api import Debate
    from moot.debates.continuation import Judgement, JudgingOptions
    from moot.memory.question_prompt import DebateAnswer

QUOTE_CHARS = 160
"""Maximum number of characters to print from each cited message."""


@command(panel="Read results", examples=('mono "What would change Ben\'s mind?"',))
def ask(
    debate_id: shared.DebateArgument,
    question: Annotated[
        str,
        Argument(metavar="QUESTION", help="Question about the debate, or - to read the question from stdin."),
    ],
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

    question_text = sys.stdin.read() if question == "-" else question
    with shared.open_stored_debate(db, debate_id) as debate:
        config = debate.config()
        if model is None and is_built_in(model_params(config, config.judge).model):
            model = shared.configured_model()  # a built-in model has no replies to new questions
        answer = debate.ask(question_text, model=model)
        if as_json:
            return terminal.print_json(
                {"debate": debate.id, "question": question_text.strip(), **answer.to_json()}
            )
        answer_text, *sources = _answer_lines(debate, answer)
        advice = _model_advice(debate, question_text, db) if answer.placeholder else ""
    if sys.stdout.isatty():
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


def _model_advice(debate: Debate, question: str, db: str | None) -> str:
    """Return advice on how to get an answer from a model.

    The user needs this advice if the answer consists of matching passages.
    """
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
    """Return the lines to print for an answer.

    The lines contain the text of the answer, its sources, and what was not found.
    """
    from moot.memory.question_prompt import VERDICT_ID
    from moot.runtime.qa import decision_line

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


DECIDES = "; ".join(f"{name} ({rule.decides})" for name, rule in RULES.items())


@command(panel="Read results", examples=("mono --model gpt-4o --panel 3 --rule majority",))
def judge(
    subject: Annotated[
        str | None,
        Argument(
            metavar="ID|FILE",
            help="Name or id of the debate to judge, or a file that contains a transcript or an exported "
            "debate.",
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        Option(
            "--model",
            "-m",
            metavar="NAME",
            help=("Model that judges the debate. Repeat the option for a panel with one judge per model."),
        ),
    ] = None,
    rubric: Annotated[
        str | None,
        Option(
            "--rubric",
            metavar="NAME|FILE",
            help="Rubric with the judge's criteria: {rubrics}, or the path of a rubric file.",
        ),
    ] = None,
    panel: Annotated[
        int | None,
        Option(
            "--panel",
            min=1,
            metavar="N",
            help="Number of judges on the panel. All judges use the same model.",
        ),
    ] = None,
    rule: Annotated[
        Rule | None, Option("--rule", help=f"Rule by which a panel of judges decides: {DECIDES}.")
    ] = None,
    swap: Annotated[
        bool | None,
        Option(
            "--swap/--no-swap",
            help="Let each judge decide twice, the second time with the debaters in reverse order.",
        ),
    ] = None,
    blind: Annotated[
        bool | None, Option("--blind/--no-blind", help="Hide the names of the debaters from the judge.")
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Do not store the verdict.")] = False,
    topic: Annotated[
        str | None,
        Option(
            "--topic",
            "-t",
            metavar="TEXT",
            help="Question that was debated. Needed only if FILE does not contain the question.",
        ),
    ] = None,
    config: shared.ConfigOption = None,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Judge a debate again, or end a paused debate with a verdict.

    `moot judge` prints the verdict and shows how far the judges agree. By default, the judges do not see the
    debaters' names, and each judge decides twice, the second time with the debaters in reverse order. In the
    council, dialogue and vote protocols, each judge decides once by default. Moot stores the new verdicts in
    addition to the earlier ones. For a stored or exported debate, Moot uses only the keys `judge` and
    `models` of the --config file. The exit code is 3 if judging fails.
    """
    from moot.cli.options import file_of
    from moot.configuration import read_rubric
    from moot.debates.continuation import JudgingOptions, judge_debate, model_after_recording

    panel_models = model if model and len(model) > 1 else None
    if panel_models and panel is not None:
        raise InputError(
            "--panel cannot be used with several --model options, because several models already form a panel"
        )
    options = JudgingOptions(
        model=model[0] if model and not panel_models else None,
        rubric=read_rubric(rubric, Path()) if rubric else None,
        panel=panel_models or panel,
        rule=rule,
        swap=swap,
        blind=blind,
    )
    if subject is None:
        raise InputError("there is nothing to judge: give the ID of a debate, or a FILE")
    path = file_of(subject)
    if path is not None:
        judgement = _judge_file(path, options, topic, config)
    elif topic is not None:
        raise InputError("--topic works only with a FILE, because a stored debate already has a topic")
    else:
        options = _with_config(options, config)
        with shared.open_database(db) as debates:
            debate = debates.get(subject)
            if not model and config is None:
                own_model = model_after_recording(debate.config(), shared.configured_model())
                options = replace(options, model=own_model)  # a recording judges only once
            judgement = judge_debate(debate.session, options, dry_run=dry_run)
    _deliver(judgement, as_json=as_json, quiet=quiet)


def _with_config(options: JudgingOptions, config: Path | None) -> JudgingOptions:
    """Add the `judge` and `models` settings of a configuration file to the judging options."""
    from moot.cli.terminal import print_error
    from moot.config.config_files import make_config
    from moot.configuration import file_data

    if config is None:
        return options
    data = file_data(config, print_error)
    make_config(data)  # reports mistakes in the rest of the file too
    if not data.get("judge") and not data.get("models"):
        raise InputError(
            f"configuration {str(config)!r} sets neither `judge` nor `models`: set at least one "
            "of them. `moot judge` ignores all other keys, because the debate has its own configuration"
        )
    return replace(options, configured=data)


def _judge_file(path: Path, options: JudgingOptions, topic: str | None, config: Path | None) -> Judgement:
    from moot.cli.options import read_transcript, run_config
    from moot.config.boundary import Capability, capabilities_of
    from moot.debates.continuation import judge_values
    from moot.debates.imported_debate import document_values, transcript_config, transcript_values
    from moot.runtime.environment import Environment

    imported, environment = read_transcript(path), Environment()
    if imported.document is not None:
        options = _with_config(options, config)
        values = document_values(imported.document, environment)
        granted: Collection[Capability] = ()
    else:
        base = run_config(config, {})
        settings = transcript_config(imported, base)
        granted = capabilities_of(settings)
        debate_topic = topic or base.topic or imported.topic
        values = transcript_values(imported, debate_topic, settings, environment)
    return judge_values(values, options, environment, granted=granted)


def _deliver(judgement: Judgement, *, as_json: bool, quiet: bool) -> None:
    from moot.cli.show_parts import agreement_parts, verdict_parts

    document = {
        "config": judgement.config,
        "verdict": judgement.verdict,
        "solution": judgement.verdict["solution_markdown"],
    }
    parts = [*verdict_parts(document), *agreement_parts(judgement)]
    terminal.print_answer(judgement.to_json(), *parts, as_json=as_json)
    if not quiet and not as_json:
        calls = count_noun(int(judgement.usage.get("calls", 0)), "call")
        storage_note = "stored with the debate" if judgement.stored else "not stored"
        terminal.print_note(f"\n{calls} · {tokens_of(judgement.usage):,.0f} tokens · {storage_note}")
    if judgement.failed:
        terminal.print_error(f"the verdict failed: {terminal.one_line(judgement.verdict['error'], 500)}")
        raise Exit(RunError.exit_code)
