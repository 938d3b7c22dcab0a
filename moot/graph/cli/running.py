"""Runs a debate to its end on the screen, and turns every way in which it can stop into an exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

from moot.graph.cli.database import command_line
from moot.graph.cli.group import INTERRUPTED, stop_listening
from moot.graph.cli.options import Delivery
from moot.graph.cli.screen.answerer import Answerer, question_lines
from moot.graph.cli.screen.output import (
    complain,
    format_of,
    print_json,
    print_result,
    remark,
    render,
    ring,
    write_file,
)
from moot.graph.cli.screen.progress_lines import (
    JsonLines,
    Progress,
    ProgressLines,
    RunTally,
    header_lines,
    spent_words,
)
from moot.graph.cli.screen.terminal_text import one_line
from moot.nodes.people.questions import questions_in
from moot.nodes.text.plain import amount
from moot.state import settings
from moot.state.catalogue import handle
from moot.state.config.model_settings import RECORDED, is_built_in
from moot.state.entries import takes_turn, tokens_of
from moot.state.errors import DebatePaused, JudgeFailed, RunError, WaitingForPerson
from moot.state.event_loop import GRACE_S, stop
from moot.state.redaction import shown_url
from moot.state.settings import check_database

if TYPE_CHECKING:
    from moot.graph.api import Debate, Event

STOPPING = f"\nStopping: calls under way may come in for {GRACE_S:g} s; once more cuts them off.\n".encode()


def run_to_end(debate: Debate, delivery: Delivery, *, turns: int | None = None, answer: object = None) -> int:
    """Run a debate, deliver its result, and return the exit code.

    Raises:
        UserError: it could not be run at all, such as when another process holds it.
    """
    code, resume = 0, resume_line(debate, delivery.db)
    try:
        if delivery.remarks:
            for line in (*header_lines(debate.state().values["topic"], debate.config()), ""):
                remark(line)
        _run_answering(debate, delivery, turns, answer)
    except KeyboardInterrupt:
        stop_listening()
        complain(f"interrupted; the debate is saved. Go on with: {resume}")
        return INTERRUPTED
    except WaitingForPerson as waiting:
        code = waiting.exit_code
        complain(f"{waiting}:")
        for line in question_lines(waiting.questions):
            remark(f"  {line}")
        several = len(questions_in(waiting.questions)) > 1
        way = ("--answers", "FILE") if several else ("--answer", "TEXT")
        remark(f"The debate is saved. Answer with: {resume_line(debate, delivery.db, *way)}")
    except DebatePaused as paused:
        code = paused.exit_code
        remark(f"Paused; the debate is saved. Go on with: {resume}")
    except RunError as error:
        code = error.exit_code
        complain(f"{error}\nThe debate is saved. Go on with: {resume}")
    document = debate.document()
    if delivery.bell or settings.is_on("MOOT_BELL"):
        ring(f"{handle(debate.id, debate.name)}: {document['status']}")
    deliver(debate, document, delivery, finished=code == 0)
    verdict = document["verdict"] or {}
    if not code and verdict.get("status") == "failed":
        code = JudgeFailed.exit_code
        reason = one_line(verdict.get("error", ""), 500)
        complain(f"the verdict failed: {reason}\nThe debate is saved. Have it judged again with: {resume}")
    return code


def resume_line(debate: Debate, db: str | None, *more: str) -> str:
    """Return the command that goes on with a debate."""
    return command_line("resume", handle(debate.id, debate.name), *more, db=db)


def _run_answering(debate: Debate, delivery: Delivery, turns: int | None, answer: object) -> None:
    """Run, answering what is asked from the file or at the terminal, until neither has the answer."""
    answerer = Answerer(delivery.answers, at_terminal=not delivery.as_json)
    from_the_start = not debate.row.turns
    while True:
        try:
            _run(debate, delivery, turns, answer)
            break
        except WaitingForPerson as waiting:
            turns, answer = None, answerer.answer(waiting.questions)
            if answer is None:
                raise
    if from_the_start and (unused := answerer.answers_left()):
        complain(f"warning: --answers: nobody asked for {'; '.join(unused)}")


def _run(debate: Debate, delivery: Delivery, turns: int | None, answer: object) -> None:
    config, tally = debate.config(), RunTally(debate.row.turns)
    tally.follow(config)
    tally.refresh(debate.row)
    progress = make_progress(config.names(), delivery)
    stream = debate.stream(turns=turns, answer=answer, tokens=progress.tokens)
    grace = not all(map(is_built_in, config.model_names()))
    with (
        terminated_like_interrupted(grace=grace),
        closing(cast("Generator[Event]", stream)) as events,
        progress,
    ):
        for number, event in enumerate(events):
            if number == 0 and turns and not (delivery.quiet and not delivery.log_json):
                tally.follow(debate.config())  # extended since; of a long debate it takes a second to load
            if event["event"] == "step":
                tally.refresh(debate.row)
            elif event["event"] == "entry" and takes_turn(event["entry"], config.names()):
                tally.turns += 1
            progress.show(event, tally)


def make_progress(names: Mapping[str, str], delivery: Delivery) -> Progress:
    """Return what suits stderr: a live screen on a terminal, lines elsewhere, or nothing."""
    if delivery.log_json:
        return JsonLines()
    if delivery.quiet:
        return Progress()
    if not sys.stderr.isatty():
        return ProgressLines(names)
    from moot.graph.cli.screen.live import LiveScreen

    return LiveScreen(names)


@contextmanager
def terminated_like_interrupted(*, grace: bool = True) -> Iterator[None]:
    """Let SIGTERM end a run as Ctrl-C does: saved, with a word on how to go on.

    The first of either lets calls under way come in, the second cuts them off; without `grace` the first.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        first = not stop.times
        stop.times += 1 if grace else 2
        if stop.times == 1:
            os.write(2, STOPPING)  # a print may be what was interrupted
        if first or stop.times > 2:
            raise KeyboardInterrupt

    former = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGINT)}
    stop.times = 0
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def deliver(debate: Debate, document: dict[str, Any], delivery: Delivery, *, finished: bool) -> None:
    """Write the file and print the document that were asked for; of a run that finished, the verdict."""
    if delivery.output is not None:
        write_file(delivery.output, render(document, format_of(delivery.output)))
    if delivery.as_json:
        return print_json(document)
    if not finished:
        return
    from moot.graph.cli.screen.verdict_screen import verdict_parts

    print_result(*verdict_parts(document))
    if delivery.remarks:
        usage, called = document["usage"], handle(debate.id, debate.name)
        remark(f"\n{amount(usage['calls'], 'call')} · {spent_words(tokens_of(usage), usage['cost_usd'])}")
        remark(f"Stored as {debate.name} in {shown_url(check_database(delivery.db))}")
        remark(f"  read it    {command_line('show', called, '--transcript', db=delivery.db)}")
        if debate.can_go_on() and not debate.config().model.startswith(RECORDED):
            remark(f"  extend it  {resume_line(debate, delivery.db, '--turns', '6')}")
        if delivery.output is not None:
            remark(f"  written to {delivery.output}")
