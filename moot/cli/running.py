"""Run a debate with progress on the screen, print the result, and return the exit code."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, cast

from moot.calls.concurrency import GRACE_S, stop
from moot.cli import live, terminal
from moot.cli.group import INTERRUPTED, ignore_interrupts
from moot.cli.options import Delivery, command_line
from moot.config import DebateConfig
from moot.config.model_settings import RECORDED, is_built_in
from moot.people import questions_in
from moot.protocols.registry import turns_planned
from moot.state import settings
from moot.state.entries import JsonMapping, ends_turn, tokens_of
from moot.state.errors import DebatePaused, JudgeFailed, RunError, WaitingForPerson
from moot.state.settings import check_database, redact_urls
from moot.storage.catalogue import handle
from moot.text.plain_text import count_noun

if TYPE_CHECKING:
    from rich.console import RenderableType

    from moot.api import Debate, Event

GATE_REFUSED = 7
"""Exit code if the decision does not meet the requirements of `--gate`."""
STOPPING = f"\nStopping: running calls get {GRACE_S:g} s to finish. Ctrl-C again cancels them.\n".encode()


@dataclass(frozen=True)
class Gate:
    """Decision and confidence that a debate must reach to exit with code 0."""

    option: str
    """Option that the debate must choose."""
    min_confidence: float = 0.0
    """Minimum confidence in the decision, from 0 to 100."""

    def refusal(self, verdict: JsonMapping) -> str:
        """Return why a verdict fails the gate, as the offline model's always do, or `""`."""
        if verdict.get("status") != "ok" or verdict.get("placeholder"):
            return f"gate {self.option!r}: no model reached a decision"
        if verdict["decision"] != self.option:
            return f"gate {self.option!r}: the decision is {verdict['decision']!r}"
        confidence = verdict["confidence"] or 0.0
        if confidence < self.min_confidence:
            return (
                f"gate {self.option!r}: the confidence is {confidence:g}, less than {self.min_confidence:g}"
            )
        return ""


def run_to_end(
    debate: Debate,
    delivery: Delivery,
    *,
    turns: int | None = None,
    answer: object = None,
    gate: Gate | None = None,
) -> int:
    """Run a debate to its end, show the result, and return the exit code.

    Raises:
        UserError: the run could not start, for example because another process runs the debate.
    """
    code, resume = 0, resume_line(debate, delivery.db)
    earlier_turns = debate.row.turns if turns else 0
    try:
        if delivery.remarks:
            topic, config = debate.state().values["topic"], debate.config()
            resumed_lines = resumed_line(debate.row.turns, turns, config)
            for line in (*live.header_lines(topic, config), *resumed_lines, ""):
                terminal.print_note(line)
        _run_answering(debate, delivery, turns, answer)
    except KeyboardInterrupt:
        ignore_interrupts()
        terminal.print_error(f"interrupted; the debate is saved. Continue with: {resume}")
        return INTERRUPTED
    except WaitingForPerson as waiting:
        code = waiting.exit_code
        terminal.print_error(f"{waiting}:")
        for line in live.question_lines(waiting.questions):
            terminal.print_note(f"  {line}")
        has_several_questions = len(questions_in(waiting.questions)) > 1
        arguments = ("--answers", "FILE") if has_several_questions else ("--answer", "TEXT")
        terminal.print_note(
            f"The debate is saved. Answer with: {resume_line(debate, delivery.db, *arguments)}"
        )
    except DebatePaused as paused:
        code = paused.exit_code
        terminal.print_note(f"Paused; the debate is saved. Continue with: {resume}")
    except RunError as error:
        code = error.exit_code
        terminal.print_error(f"{error}\nThe debate is saved. Continue with: {resume}")
    document = debate.document()
    added_turns = debate.row.turns - earlier_turns
    if turns and code == 0 and added_turns > turns:
        turns_text = count_noun(added_turns, "turn")
        terminal.print_note(
            f"The debate took {turns_text} instead of {turns}, because it ends only after a whole phase."
        )
    if delivery.bell or settings.is_on("MOOT_BELL"):
        terminal.ring(f"{handle(debate.id, debate.name)}: {document['status']}")
    output_result(debate, document, delivery, finished=code == 0)
    return code or _verdict_code(document["verdict"] or {}, gate, resume)


def resumed_line(earlier_turns: int, added: int | None, config: DebateConfig) -> list[str]:
    """Return the line about the turns of a resumed debate, or `[]` for a new one."""
    if not earlier_turns:
        return []
    planned_turns = turns_planned(config)
    if added:
        return [f"Continues after {count_noun(earlier_turns, 'turn')}, for {count_noun(added, 'more turn')}"]
    is_known = planned_turns and earlier_turns <= planned_turns
    planned_text = f"{earlier_turns} of {count_noun(planned_turns or 0, 'turn')}"
    return [f"Continues after {planned_text if is_known else count_noun(earlier_turns, 'turn')}"]


def _verdict_code(verdict: JsonMapping, gate: Gate | None, resume: str) -> int:
    """Return the exit code for a verdict. Print the reason for a nonzero code."""
    if verdict.get("status") == "failed":
        reason = terminal.one_line(verdict.get("error", ""), 500)
        terminal.print_error(
            f"the verdict failed: {reason}\nThe debate is saved. Judge it again with: {resume}"
        )
        # The judges who answered cannot decide alone: a program that waits for a decision gets none.
        return GATE_REFUSED if gate and verdict.get("agreement", {}).get("judges") else JudgeFailed.exit_code
    if gate and (refusal := gate.refusal(verdict)):
        terminal.print_error(refusal)
        return GATE_REFUSED
    return 0


def resume_line(debate: Debate, db: str | None, *more: str) -> str:
    """Return the `moot resume` command that continues a debate."""
    return command_line("resume", handle(debate.id, debate.name), *more, db=db)


def _run_answering(debate: Debate, delivery: Delivery, turns: int | None, answer: object) -> None:
    """Run a debate, and answer the debaters' questions from a file or at the terminal."""
    answerer = live.Answerer(delivery.answers, at_terminal=not delivery.as_json)
    from_the_start = not debate.row.turns
    while True:
        try:
            _run(debate, delivery, turns, answer)
            break
        except WaitingForPerson as waiting:
            turns, answer = None, answerer.answer(waiting.questions)
            if answer is None:
                raise
    if from_the_start and (unused_answers := answerer.answers_left()):
        terminal.print_error(f"warning: --answers: no debater asked for {'; '.join(unused_answers)}")


def _run(debate: Debate, delivery: Delivery, turns: int | None, answer: object) -> None:
    config, tally = debate.config(), live.RunTally(debate.row.turns)
    tally.follow(config)
    tally.refresh(debate.row)
    progress = make_progress(config.names(), delivery)
    stream = debate.stream(turns=turns, answer=answer, tokens=progress.tokens)
    grace = not all(map(is_built_in, config.model_names()))
    with (
        handle_sigterm_as_interrupt(grace=grace),
        closing(cast("Generator[Event]", stream)) as events,
        progress,
    ):
        for number, event in enumerate(events):
            if number == 0 and turns and not (delivery.quiet and not delivery.log_json):
                tally.follow(
                    debate.config()
                )  # the run extended the debate; loading a long debate takes a second
            if event["event"] == "step":
                tally.refresh(debate.row)
            elif event["event"] == "entry" and ends_turn(event["entry"], config.names()):
                tally.turns += 1
            progress.show(event, tally)


def make_progress(names: Mapping[str, str], delivery: Delivery) -> live.Progress:
    """Return the progress display that suits the options and the terminal."""
    if delivery.log_json:
        return live.JsonLines()
    if delivery.quiet:
        return live.Progress()
    if not sys.stderr.isatty():
        return live.ProgressLines(names)
    return live.LiveScreen(names)


@contextmanager
def handle_sigterm_as_interrupt(*, grace: bool = True) -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C during a `with` block, so that the debate is saved.

    After the first signal the running model calls get 30 seconds to finish, and the second signal cancels
    them. Without `grace` the first signal cancels the calls.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        first = not stop.times
        stop.times += 1 if grace else 2
        if stop.times == 1:
            os.write(2, STOPPING)  # the signal may have interrupted a print
        if first or stop.times > 2:
            raise KeyboardInterrupt

    former_handlers = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGINT)}
    stop.times = 0
    try:
        yield
    finally:
        for number, handler in former_handlers.items():
            signal.signal(number, handler)


def output_result(debate: Debate, document: JsonMapping, delivery: Delivery, *, finished: bool) -> None:
    """Write and print the result of a debate.

    Write the output file if there is one. Then print the JSON document, or the verdict if the debate is
    finished. A terminal shows the short answer, so that the answer stays in view. Other outputs get the whole
    verdict.
    """
    if delivery.output is not None:
        terminal.write_file(delivery.output, terminal.render(document, terminal.format_of(delivery.output)))
    if delivery.as_json:
        return terminal.print_json(document)
    if not finished:
        return
    notes = []
    if delivery.remarks:
        usage, debate_handle = document["usage"], handle(debate.id, debate.name)
        spent = live.spent_text(tokens_of(usage), usage["cost_usd"])
        written = f" · written to {delivery.output}" if delivery.output is not None else ""
        terminal.print_note(f"\n{count_noun(usage['calls'], 'call')} · {spent}{written}")
        terminal.print_note(f"Stored as {debate.name} in {redact_urls(check_database(delivery.db))}\n")
        commands = {
            "verdict": command_line("show", debate_handle, "--verdict", db=delivery.db),
            "report": command_line("report", debate_handle, "--open", db=delivery.db),
            "ask": command_line("ask", debate_handle, "Why?", db=delivery.db),
        }
        if debate.can_go_on() and not debate.config().model.startswith(RECORDED):
            commands["extend it"] = resume_line(debate, delivery.db, "--turns", "6")
        notes = [f"  {label:9}  {line}" for label, line in commands.items()]
    if terminal.is_terminal():
        return print_short_answer(document, ["", *notes])
    from moot.cli.show_parts import verdict_parts  # imports the reports, needed only at the end

    terminal.print_result(*verdict_parts(document))
    for note in notes:
        terminal.print_note(note)


def print_short_answer(
    document: JsonMapping, notes: Sequence[str], above: Sequence[RenderableType] = ()
) -> None:
    """Print the short answer of a debate between `above` and notes. A screen of 24 lines shows all."""
    from moot.cli.show_parts import ANSWER_LINES, answer_parts, line_count

    lines = sum(terminal.wrap_for_terminal(note, sys.stderr).count("\n") + 1 for note in notes)
    space = shutil.get_terminal_size().lines - lines - 1  # the shell's prompt takes a line
    answer = answer_parts(document, min(ANSWER_LINES, space - line_count(above)))
    terminal.print_result(*above, *answer)
    for note in notes:
        terminal.print_note(note)
