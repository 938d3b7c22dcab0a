"""Runs a debate to its end on the screen, and turns every way in which it can stop into an exit code."""

from __future__ import annotations

import signal
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

from moot.graph.cli.database import command_line
from moot.graph.cli.entry import complain
from moot.graph.cli.group import INTERRUPTED, stop_listening
from moot.graph.cli.screen.answerer import Answerer, question_lines
from moot.graph.cli.screen.output import print_json, print_result, remark, render, write_file
from moot.graph.cli.screen.progress import Tally, header_lines, make_progress, values_of
from moot.graph.cli.screen.terminal_text import one_line
from moot.nodes.people.questions import questions_in
from moot.state.entries import tokens_of
from moot.state.errors import DebatePaused, RunError, WaitingForPerson

if TYPE_CHECKING:
    from moot.graph.api import Debate, Event

ASIDES = frozenset({"interjection", "question", "answer", "tool_call", "tool_result"})
"""Kinds of entries that take no turn."""
FAILED = 3


@dataclass(frozen=True)
class Delivery:
    """How the result of a run is delivered."""

    db: str | None = None
    """`--db`, for the commands to copy."""
    as_json: bool = False
    quiet: bool = False
    output: Path | None = None
    form: str = ""
    """Format of `output`."""
    answers: Any = None
    """What `--answers` holds."""


def run_to_end(debate: Debate, delivery: Delivery, *, turns: int | None = None, answer: Any = None) -> int:
    """Run a debate, deliver its result, and return the exit code.

    Raises:
        UserError: it could not be run at all, such as when another process holds it.
    """
    code = 0
    try:
        _introduce(debate, delivery)
        _run_answering(debate, delivery, turns=turns, answer=answer)
    except KeyboardInterrupt:
        stop_listening()
        complain(f"interrupted; the debate is saved. Go on with: {resume_line(debate, delivery)}")
        return INTERRUPTED
    except WaitingForPerson as waiting:
        _say_what_is_asked(debate, delivery, waiting)
        code = waiting.exit_code
    except DebatePaused as paused:
        remark(f"Paused; the debate is saved. Go on with: {resume_line(debate, delivery)}")
        code = paused.exit_code
    except RunError as error:
        complain(f"{error}\nThe debate is saved. Go on with: {resume_line(debate, delivery)}")
        code = error.exit_code
    document = debate.document()
    _deliver(debate, document, delivery, finished=code == 0)
    return code or _verdict_code(debate, document, delivery)


def resume_line(debate: Debate, delivery: Delivery, *more: str) -> str:
    """Return the command that goes on with a debate."""
    return command_line("resume", handle(debate), *more, db=delivery.db)


def handle(debate: Debate) -> str:
    """Return what a debate is called in a command to copy: its name, else the beginning of its id."""
    return debate.name if debate.name != debate.id else debate.id[:8]


def _introduce(debate: Debate, delivery: Delivery) -> None:
    from moot.state.config.frozen import frozen_config

    if not delivery.quiet:
        values = values_of(debate)
        for line in header_lines(values["topic"], frozen_config(values)):
            remark(line)
        remark("")


def _run_answering(debate: Debate, delivery: Delivery, **going_on: Any) -> None:
    """Run, answering what is asked from the file or at the terminal.

    Raises:
        WaitingForPerson: neither has the answer.
    """
    answerer = Answerer(delivery.answers, at_terminal=not delivery.as_json)
    while True:
        try:
            return _run(debate, delivery, **going_on)
        except WaitingForPerson as waiting:
            answer = answerer.answer(waiting.questions)
            if answer is None:
                raise
            going_on = {"answer": answer}


def _run(debate: Debate, delivery: Delivery, **going_on: Any) -> None:
    from moot.state.config.frozen import frozen_config

    config = frozen_config(values_of(debate))
    tally = Tally()
    tally.follow(config)
    tally.refresh(debate)
    progress = make_progress(config.names(), quiet=delivery.quiet)
    stream = cast("Generator[Event]", debate.stream(tokens=progress.tokens, **going_on))
    with terminated_like_interrupted(), closing(stream) as events, progress:
        first = True
        for event in events:
            if event["event"] == "step":
                tally.refresh(debate)
                tally.round = event["round"]
                if first:
                    tally.follow(frozen_config(values_of(debate)))  # extended since
                    first = False
            elif event["event"] == "entry" and event["entry"]["kind"] not in ASIDES:
                tally.turns += 1
            progress.show(event, tally)


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """Let SIGTERM end a run as Ctrl-C does: saved, with a word on how to go on."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def _say_what_is_asked(debate: Debate, delivery: Delivery, waiting: WaitingForPerson) -> None:
    complain(f"{waiting}:")
    for line in question_lines(waiting.questions):
        remark(f"  {line}")
    several = len(questions_in(waiting.questions)) > 1
    way = ("--answers", "FILE") if several else ("--answer", "TEXT")
    remark(f"The debate is saved. Answer with: {resume_line(debate, delivery, *way)}")


def _deliver(debate: Debate, document: dict[str, Any], delivery: Delivery, *, finished: bool) -> None:
    if delivery.output is not None:
        write_file(delivery.output, render(document, delivery.form))
    if delivery.as_json:
        print_json(document)
    elif finished:
        from moot.graph.cli.screen.verdict_screen import verdict_parts

        print_result(*verdict_parts(document))
        if not delivery.quiet:
            _say_what_next(debate, document["usage"], delivery)


def _say_what_next(debate: Debate, usage: dict[str, Any], delivery: Delivery) -> None:
    from moot.graph.cli.database import check_database

    tokens = tokens_of(usage)
    cost = f" · US$ {usage['cost_usd']:.4f}" if usage["cost_usd"] else ""
    remark(f"\n{usage['calls']} calls · {tokens:,} tokens{cost}")
    remark(f"Stored as {debate.name} in {check_database(delivery.db)}")
    remark(f"  read it    {command_line('show', handle(debate), '--transcript', db=delivery.db)}")
    if debate.can_go_on():
        remark(f"  extend it  {resume_line(debate, delivery, '--turns', '6')}")
    if delivery.output is not None:
        remark(f"  written to {delivery.output}")


def _verdict_code(debate: Debate, document: dict[str, Any], delivery: Delivery) -> int:
    verdict = document["verdict"] or {}
    if verdict.get("status") != "failed":
        return 0
    complain(
        f"the verdict failed: {one_line(verdict.get('error', ''), 500)}\n"
        f"The debate is saved. Have it judged again with: {resume_line(debate, delivery)}"
    )
    return FAILED
