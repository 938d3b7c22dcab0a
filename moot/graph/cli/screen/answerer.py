"""People at the command line: their answers as prepared, from the terminal, or later."""

import sys
from collections.abc import Mapping, Sequence
from itertools import groupby

from moot.graph.cli.screen.output import remark
from moot.graph.cli.screen.terminal_text import safe
from moot.nodes.people.questions import (
    PersonQuestion,
    answers_any,
    left_after,
    match_answers,
    questions_in,
    unused_answers,
)
from moot.state.config import DebateConfig
from moot.state.errors import InputError


def check_answers(answers: object, config: DebateConfig, questions: Sequence[PersonQuestion] = ()) -> None:
    """Refuse prepared answers that could never be given.

    Of questions that are still to come only their ids are foreseeable: a debater's, and a number.

    Raises:
        InputError: a key is no debater and no question.
    """
    if not isinstance(answers, Mapping):
        return
    names = config.names()
    known = {*names, *names.values(), *(each["question"] for each in questions)}
    parts = {key: key.rpartition(".") for key in map(str, answers) if key not in known}
    unknown = [key for key, (who, _, number) in parts.items() if who not in names or not number.isdecimal()]
    if unknown:
        asked = [each["id"] for each in questions] or [f"{next(iter(names))}.1"]
        raise InputError(
            f"--answers: no debater and no question is called {', '.join(map(repr, unknown))}: use a debater "
            f"({', '.join(names)}) or a question's id ({', '.join(asked)})"
        )


class Answerer:
    """Answers what a debate asks, as long as it can.

    Args:
        prepared: what a file of answers holds; `None` for none.
        at_terminal: whether a person may be asked at the terminal.
    """

    def __init__(self, prepared: object, *, at_terminal: bool) -> None:
        self._prepared = self._given = prepared
        self._asked: dict[str, PersonQuestion] = {}
        self._at_terminal = at_terminal and sys.stdin.isatty() and sys.stderr.isatty()

    def answer(self, payloads: object) -> dict[str, str] | None:
        """Return the answer to the questions of an interrupt, `None` where somebody else must give it."""
        questions = questions_in(payloads)
        self._asked |= {each["id"]: each for each in questions}
        if self._prepared is not None and answers_any(questions, self._prepared):
            answers = match_answers(questions, self._prepared)
            self._prepared = left_after(questions, self._prepared)
            return answers
        return _ask(questions) if self._at_terminal and questions else None

    def answers_left(self) -> list[str]:
        """Return, in words, which prepared answers nobody has asked for."""
        return [] if self._given is None else unused_answers(list(self._asked.values()), self._given)


def _ask(questions: Sequence[PersonQuestion]) -> dict[str, str] | None:
    """Ask at the terminal; `None` where the input ends."""
    answers: dict[str, str] = {}
    remark("")
    for name, group in groupby(questions, key=lambda question: question["name"]):
        remark(f"{name}:")
        for question in group:
            remark(f"  {question['question']}")
            try:
                answers[question["id"]] = _read_answer()
            except EOFError:
                return None
    return answers


def _read_answer() -> str:
    """Read lines until an empty one; the first may be empty, which is an empty answer."""
    remark("  (an empty line ends the answer)")
    lines: list[str] = []
    while True:
        print("  > ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        if not line.strip():
            return "\n".join(lines)
        lines.append(line.rstrip("\n"))


def question_lines(payloads: object) -> list[str]:
    """Return an interrupt's questions as lines to read, grouped by debater; of any other its words."""
    lines = []
    for name, group in groupby(questions_in(payloads), key=lambda question: question["name"]):
        lines.append(f"{name}:")
        lines += [f"  {question['id']}: {question['question']}" for question in group]
    return [safe(line) for line in lines or [str(payloads)]]
