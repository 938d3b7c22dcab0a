"""The live screen: what was said scrolls by; below it who speaks now, what is spent, and the way to go."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Column, Table
from rich.text import Text

from moot.graph.cli.screen.output import err_console
from moot.graph.cli.screen.progress_lines import Progress, RunTally, event_line, spent_words
from moot.graph.cli.screen.terminal_text import entry_words, one_line, safe
from moot.nodes.text.plain import amount

if TYPE_CHECKING:
    from moot.graph.api import Event

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red")
"""Speakers', in the order in which they first speak."""
DOING = {"judge": "the judge weighs it up", "close": "closing"}
"""What goes on at a step that is no turn, where it has words of its own."""
TAIL_LINES = 6
"""Lines of each speech under way that are shown."""
SPEECH_FRAME = 2
"""Lines of a speech that are not its own: the speaker's name and a blank."""
SPEECH_LINES = SPEECH_FRAME + 1
CTRL_C = 4
"""Columns left free at the end of the last line: where the terminal's `^C` wraps, erasing goes wrong."""
BAR, LEAST_BAR, SPINNER = 40, 4, 3
"""Columns of the bar, at most and at least, and of the spinner with the space around it."""
MOST_SPEECHES = 4
"""Speeches under way shown at the same time, fewer where the terminal is low."""


class LiveScreen(Progress):
    """Shows a run on a terminal."""

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
        """Take up one event; the screen refreshes by itself."""
        self._tally = tally
        match event["event"]:
            case "token":
                self._speeches.setdefault(event["id"], (event["speaker"] or "", []))[1].append(event["text"])
            case "entry":
                self._speeches.pop(event["entry"]["id"], None)
                self._live.refresh()  # printing redraws the last frame, where the speech is still under way
                entry = event["entry"]
                about = [entry_words(entry, self._names), entry["id"], amount(entry["tokens"], "token")]
                heading = Text.assemble(self._name(entry["speaker"]), (f"  {' · '.join(about)}", "dim"))
                self._console.print(heading, Padding(Text(safe(entry["content"])), (0, 0, 1, 2)))
            case "step" if event["kind"] == "turn":
                who = ", ".join(self._name(speaker).plain for speaker in event["speakers"])
                self._do(f"{who} · {one_line(event['phase'], 40)}")
            case "step":
                self._do(DOING.get(event["kind"], str(event["kind"])))
            case "retry":
                self._do(event_line(event, self._names, tally))
            case _:
                if line := event_line(event, self._names, tally):
                    self._console.print(Text(line, "dim"))

    def _do(self, what: str) -> None:
        self._doing, self._since = what, self._clock()

    def _name(self, speaker: str) -> Text:
        colour = self._colours.setdefault(speaker, COLOURS[len(self._colours) % len(COLOURS)])
        return Text(one_line(self._names.get(speaker, speaker), 40), f"bold {colour}")

    def _render(self) -> RenderableType:
        under_way = list(self._speeches.values())
        speeches = under_way[: min(MOST_SPEECHES, max(1, (self._console.height - 1) // SPEECH_LINES))]
        room = (self._console.height - 2) // max(1, len(speeches)) - SPEECH_FRAME
        most, width = max(1, min(TAIL_LINES, room)), max(20, self._console.width - 2)
        parts: list[RenderableType] = []
        for speaker, pieces in speeches:
            text = Text(safe("".join(pieces)[-width * most * 2 :]))
            body = Text("\n").join(text.wrap(self._console, width)[-most:])
            parts += [self._name(speaker), Padding(body, (0, 0, 1, 2))]
        return Group(*parts, self._status())

    def _status(self) -> RenderableType:
        goal = self._tally.goal()
        reached, spent = Text(str(goal)), Text(spent_words(self._tally.tokens, self._tally.cost_usd))
        doing = Text(f"{self._clock() - self._since:.0f} s · {self._doing}", "dim", overflow="ellipsis")
        width = self._console.width - CTRL_C
        # What it waits for, and how long, is worth more than a bar, and than what is spent meanwhile.
        room = width - sum(each.cell_len + 1 for each in (reached, spent, doing)) - SPINNER
        cells: list[RenderableType] = [reached]
        if room >= LEAST_BAR:
            cells.append(ProgressBar(total=1.0, completed=goal.share, width=min(room, BAR)))
        if room >= 0:
            cells.append(spent)
        cells += [self._spinner, doing]
        row = Table.grid(*(Column(no_wrap=True) for _ in cells), padding=(0, 1))
        row.width = width
        row.add_row(*cells)
        return row
