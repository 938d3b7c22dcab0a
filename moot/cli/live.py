"""Live screen of a run: finished messages scroll, and a status line shows speakers, progress and cost."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Column, Table
from rich.text import Text

from moot import people
from moot.cli.terminal import entry_label, err_console, one_line, print_note, safe
from moot.config import OFFLINE, DebateConfig
from moot.config.model_settings import RECORDED
from moot.state.entries import entry_details
from moot.state.errors import InputError
from moot.state.settings import redact
from moot.text.plain_text import count_noun
from moot.text.terms import question_in

if TYPE_CHECKING:
    from moot.api import Event
    from moot.storage.catalogue import DebateRow

MESSAGE_LINE_CHARS = 10_000
"""Maximum length, in characters, of the progress line that shows a message."""


@dataclass(frozen=True)
class Goal:
    """Progress of a debate towards one of its limits. The limit is a number of turns, tokens or US$."""

    name: str
    reached: float
    limit: float | None

    @property
    def share(self) -> float:
        """Share of the limit that the debate has used, from 0 to 1."""
        return min(1.0, self.reached / self.limit) if self.limit else 0.0

    def __str__(self) -> str:
        if not self.limit:
            return f"{self.name} {self.reached:g}"
        return f"{self.name} {min(self.reached, self.limit):g}/{self.limit:g}"


@dataclass
class RunTally:
    """Turns, tokens and cost of a run so far. The progress display shows them."""

    turns: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    config: DebateConfig | None = None
    planned: int | None = None
    """Planned number of turns, or `None` if it is not known in advance."""

    def follow(self, config: DebateConfig) -> None:
        """Measure the progress against the limits and planned turns in a debate's configuration."""
        from moot.protocols.registry import turns_planned

        self.config, self.planned = config, turns_planned(config)

    def refresh(self, row: DebateRow) -> None:
        """Read tokens and cost, but not the number of turns, from the debate's row."""
        self.tokens, self.cost_usd = row.tokens, row.cost_usd

    def goal(self) -> Goal:
        """Return the limit that the debate is closest to reaching, with the progress so far."""
        is_exceeded = (
            self.planned is not None and self.turns > self.planned
        )  # happens if a message was sent after the last turn
        turns = Goal("turn", self.turns, None if is_exceeded else self.planned)
        limits = self.config.limits if self.config else None
        goals = [
            turns,
            Goal("tokens", self.tokens, limits.total_tokens if limits else None),
            Goal("US$", self.cost_usd, limits.cost_usd if limits else None),
        ]
        return max((goal for goal in goals if goal.limit), key=lambda goal: goal.share, default=turns)


def spent_text(tokens: int, cost_usd: float) -> str:
    """Format tokens and cost, such as `12 tokens · US$ 0.0300`."""
    return count_noun(tokens, "token") + (f" · US$ {cost_usd:.4f}" if cost_usd else "")


def event_line(event: Event, names: Mapping[str, str], tally: RunTally) -> str:
    """Return the progress line for an event, or `""` if the event is not shown."""
    match event["event"]:
        case "entry":
            entry = event["entry"]
            speaker = names.get(entry["speaker"], entry["speaker"])
            words = one_line(
                f"{speaker} ({entry_label(entry, names)}): {entry['content']}", MESSAGE_LINE_CHARS
            )
            return f"[{tally.goal()}] {words}"
        case "step" if event["kind"] != "turn":
            # The judge's model also compares the proposals of a council after each round.
            is_final = event.get("phase", "closing") == "closing"
            judging = "judging …" if is_final else "comparing positions …"
            return {"judge": judging, "reflect": "reflecting …"}.get(event["kind"], "")
        case "summary":
            failure = one_line(event.get("failure", ""), 160)
            if "version" not in event:
                return f"summary failed: {failure}"
            label = f"summary {event['version']} ({one_line(event['method'], 60)})"
            return f"{label}; failed: {failure}" if failure else label
        case "retry":
            return one_line(f"{event['model']}: {event['words']}", 200)
        case "end":
            prefix = "limit: " if event["status"] == "limit" else ""
            return one_line(f"{prefix}{event['reason']}", 200)
    return ""


class Progress(AbstractContextManager["Progress"]):
    """Base class of progress displays. It shows nothing and serves as the display for `--quiet`."""

    tokens = False
    """True if messages are displayed token by token as they are streamed."""

    def __exit__(self, *_: object) -> None:
        """Keep the output."""

    def show(self, event: Event, tally: RunTally) -> None:
        """Show one event."""


class ProgressLines(Progress):
    """Progress display that prints one line per event."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def show(self, event: Event, tally: RunTally) -> None:
        """Print the line for an event, or nothing if the event is not shown."""
        if line := event_line(event, self._names, tally):
            print(line, file=sys.stderr, flush=True)


class JsonLines(Progress):
    """Progress display that prints each event as a line of JSON."""

    def show(self, event: Event, tally: RunTally) -> None:
        """Print an event as a JSON line with the run's tokens and cost so far."""
        timestamp = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"at": timestamp, **event, "tokens": tally.tokens, "cost_usd": tally.cost_usd}
        print(redact(json.dumps(line, default=str)), file=sys.stderr, flush=True)


def header_lines(topic: str, config: DebateConfig) -> list[str]:
    """Return the question, and a line with the protocol, debaters and models of a debate."""
    names = ", ".join(debater.name for debater in config.debaters)
    models = config.model_names()
    models_text = "offline model (built in; no network)" if models == [OFFLINE] else ", ".join(models)
    if config.lacks_model():
        models_text = "no model is set: run `moot setup`"
    if all(name.startswith(RECORDED) for name in models):
        models_text = "recorded with a capable model; facts unchecked"
    details = f"{config.protocol} · {one_line(names, 200)} · {one_line(models_text, 200)}"
    return [one_line(question_in(topic), 300), details]


SPEAKER_COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red")
"""Colours assigned to the speakers in the order in which they first speak."""
DOING = {"judge": "judging", "close": "closing"}
"""Texts that the status line shows, keyed by kind of step. They are for steps in which no debater takes a
turn. For a kind that is not listed here, the name of the kind is shown."""
TAIL_LINES = 6
"""Maximum number of lines to show from a message that is still being streamed."""
MESSAGE_FRAME = 2
"""Number of lines around the text of a streamed message: the speaker's name and an empty line."""
MESSAGE_LINES = MESSAGE_FRAME + 1
CTRL_C = 4
"""Number of columns left free at the end of the status line. After Ctrl-C, a terminal prints `^C` there. If
the status line wrapped, it could not be erased."""
BAR = 40
"""Maximum width of the progress bar, in columns."""
MIN_BAR = 4
"""Minimum width of the progress bar, in columns. If less space is left, the bar is not shown."""
SPINNER = 3
"""Width of the spinner, in columns."""
MAX_MESSAGES_SHOWN = 4
"""Maximum number of streamed messages that are shown at the same time. A terminal with few lines shows fewer
messages."""


class LiveScreen(Progress):
    """Progress display that shows a run on a terminal, refreshed several times per second."""

    tokens = True

    def __init__(self, names: Mapping[str, str], clock: Callable[[], float] = time.monotonic) -> None:
        self._names, self._clock = names, clock
        self._console = err_console()
        self._tally = RunTally()
        self._spinner = Spinner("dots", style="dim")
        self._do("starting")
        self._speeches: dict[str, tuple[str, list[str]]] = {}
        self._colours: dict[str, str] = {}
        self._live = Live(
            console=self._console, get_renderable=self._render, transient=True, refresh_per_second=8
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, event: Event, tally: RunTally) -> None:
        """Update the screen for an event. Some changes appear only at the next refresh."""
        self._tally = tally
        match event["event"]:
            case "token":
                pieces = self._speeches.setdefault(event["id"], (event["speaker"], []))[1]
                if event.get("replaces"):
                    pieces.clear()
                pieces.append(event["text"])
            case "entry":
                self._speeches.pop(event["entry"]["id"], None)
                self._live.refresh()  # removes the message from the live area before it is printed
                entry = event["entry"]
                extra = entry_details(entry, hidden=("model",))
                details = one_line(" · ".join([entry_label(entry, self._names), entry["id"], *extra]), 300)
                heading = Text.assemble(self._name(entry["speaker"]), (f"  {details}", "dim"))
                self._console.print(heading, Padding(Text(safe(entry["content"])), (0, 0, 1, 2)))
            case "step" if event["kind"] == "turn":
                speakers = ", ".join(self._name(speaker).plain for speaker in event["speakers"])
                self._do(f"{speakers} · {one_line(event['phase'], 40)}")
            case "step":
                self._do(DOING.get(event["kind"], str(event["kind"])))
            case "retry":
                self._do(event_line(event, self._names, tally))
            case _:
                if line := event_line(event, self._names, tally):
                    self._console.print(Text(line, "dim"))

    def _do(self, activity: str) -> None:
        self._doing, self._since = activity, self._clock()

    def _name(self, speaker: str) -> Text:
        colour = self._colours.setdefault(speaker, SPEAKER_COLOURS[len(self._colours) % len(SPEAKER_COLOURS)])
        return Text(one_line(self._names.get(speaker, speaker), 40), f"bold {colour}")

    def _render(self) -> RenderableType:
        all_speeches = list(self._speeches.values())
        speeches = all_speeches[
            : min(MAX_MESSAGES_SHOWN, max(1, (self._console.height - 1) // MESSAGE_LINES))
        ]
        space = (self._console.height - 2) // max(1, len(speeches)) - MESSAGE_FRAME
        max_lines, width = max(1, min(TAIL_LINES, space)), max(20, self._console.width - 2)
        parts: list[RenderableType] = []
        for speaker, pieces in speeches:
            text = Text(safe("".join(pieces)[-width * max_lines * 2 :]))
            body = Text("\n").join(text.wrap(self._console, width)[-max_lines:])
            parts += [self._name(speaker), Padding(body, (0, 0, 1, 2))]
        return Group(*parts, self._status())

    def _status(self) -> RenderableType:
        goal = self._tally.goal()
        reached, spent = Text(str(goal)), Text(spent_text(self._tally.tokens, self._tally.cost_usd))
        doing = Text(f"{self._clock() - self._since:.0f} s · {self._doing}", "dim", overflow="ellipsis")
        width = self._console.width - CTRL_C
        # On a narrow terminal the status text is more useful than the bar and the cost.
        space = width - sum(each.cell_len + 1 for each in (reached, spent, doing)) - SPINNER
        cells: list[RenderableType] = [reached]
        if space >= MIN_BAR:
            cells.append(ProgressBar(total=1.0, completed=goal.share, width=min(space, BAR)))
        if space >= 0:
            cells.append(spent)
        cells += [self._spinner, doing]
        row = Table.grid(*(Column(no_wrap=True) for _ in cells), padding=(0, 1))
        row.width = width
        row.add_row(*cells)
        return row


def check_answers(
    answers: object, config: DebateConfig, questions: Sequence[people.PersonQuestion] = ()
) -> None:
    """Check that prepared answers name only debaters and questions.

    The debate may ask some of the questions later. The id of a future question is the debater's id and a
    number, such as `ada.1`.

    Raises:
        InputError: a key is neither a debater nor a question.
    """
    if not isinstance(answers, Mapping):
        return
    names = config.names()
    known_keys = {*names, *names.values(), *(each["question"] for each in questions)}
    parts = {key: key.rpartition(".") for key in map(str, answers) if key not in known_keys}
    unknown = [
        key for key, (debater, _, number) in parts.items() if debater not in names or not number.isdecimal()
    ]
    if unknown:
        question_ids = [each["id"] for each in questions] or [f"{next(iter(names))}.1"]
        raise InputError(
            f"--answers: {', '.join(map(repr, unknown))} is neither a debater nor a question: use the name "
            f"of a debater ({', '.join(names)}) or the id of a question ({', '.join(question_ids)})"
        )


class Answerer:
    """Source of answers to the debaters' questions: a file, or the user at the terminal.

    Args:
        prepared: content of the answers file, or `None` if no file was given.
        at_terminal: ask at the terminal if the file has no answer.
    """

    def __init__(self, prepared: object, *, at_terminal: bool) -> None:
        self._prepared = self._given = prepared
        self._asked: dict[str, people.PersonQuestion] = {}
        self._at_terminal = at_terminal and sys.stdin.isatty() and sys.stderr.isatty()

    def answer(self, payloads: object) -> dict[str, str] | None:
        """Return the answers to the questions of an interrupt, or `None` if nobody answers.

        If the answers file answers any of the questions, only its answers are returned. Otherwise the user is
        asked at the terminal.
        """
        questions = people.questions_in(payloads)
        self._asked |= {each["id"]: each for each in questions}
        if self._prepared is not None and people.matches_any(questions, self._prepared):
            answers = people.match_replies(questions, self._prepared)
            self._prepared = people.remaining_replies(questions, self._prepared)
            return answers
        return _ask(questions) if self._at_terminal and questions else None

    def answers_left(self) -> list[str]:
        """Return descriptions of the unused answers in the answers file."""
        return [] if self._given is None else people.unused_replies(list(self._asked.values()), self._given)


def _ask(questions: Sequence[people.PersonQuestion]) -> dict[str, str] | None:
    """Ask questions at the terminal. Answers are keyed by id. End of input: `None`."""
    answers: dict[str, str] = {}
    print_note("")
    for name, group in groupby(questions, key=lambda question: question["name"]):
        print_note(f"{name}:")
        for question in group:
            print_note(f"  {question['question']}")
            try:
                answers[question["id"]] = _read_answer()
            except EOFError:
                return None
    return answers


def _read_answer() -> str:
    """Read an answer up to an empty line from stdin. If the first is empty, so is the answer."""
    print_note("  (an empty line ends the answer)")
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
    """Return an interrupt's questions as lines, grouped by debater, without any as one line."""
    lines = []
    for name, group in groupby(people.questions_in(payloads), key=lambda question: question["name"]):
        lines.append(f"{name}:")
        lines += [f"  {question['id']}: {question['question']}" for question in group]
    return [safe(line) for line in lines or [str(payloads)]]
