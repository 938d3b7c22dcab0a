"""What a run shows on stderr while it goes: the tally, and the choice between screen, lines and nothing."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from moot.graph.cli.screen.entry_words import entry_words
from moot.graph.cli.screen.terminal_text import one_line

if TYPE_CHECKING:
    from moot.graph.api import Debate, Event
    from moot.state.config import DebateConfig


LINE_CHARS = 10_000
"""Most characters of one utterance's line."""


@dataclass
class Tally:
    """Where a debate stands, for the bar and the counts."""

    turns: int = 0
    round: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    config: DebateConfig | None = None
    planned: int | None = None
    """Utterances that there can be at most, `None` where that cannot be said."""

    def follow(self, config: DebateConfig) -> None:
        """Take over a configuration, whose limits the bar runs towards."""
        from moot.nodes.protocols.protocol_table import protocol_named

        self.config, self.planned = config, protocol_named(config.protocol).most_turns(config)

    def refresh(self, debate: Debate) -> None:
        """Read what has been spent from the catalogue."""
        row = debate.row
        self.turns, self.tokens, self.cost_usd = row.turns, row.tokens, row.cost_usd

    def goal(self) -> Goal:
        """Return the limit that is nearest to being reached."""
        return max(self._goals(), key=lambda goal: goal.share, default=Goal("turn", self.turns, 0))

    def _goals(self) -> list[Goal]:
        if self.config is None:
            return []
        limits = self.config.limits
        passed = self.planned is not None and self.turns > self.planned  # somebody spoke up after the end
        goals = [
            Goal("turn", self.turns, None if passed else self.planned),
            Goal("tokens", self.tokens, limits.total_tokens),
            Goal("US$", self.cost_usd, limits.cost_usd),
        ]
        return [goal for goal in goals if goal.limit]

    def spent(self) -> str:
        """Return tokens and cost so far, in words."""
        cost = f" · US$ {self.cost_usd:.4f}" if self.cost_usd else ""
        return f"{self.tokens:,} tokens{cost}"


@dataclass(frozen=True)
class Goal:
    """One limit that a debate runs towards."""

    name: str
    reached: float
    limit: float | None

    @property
    def share(self) -> float:
        """How much of it is reached, 0–1."""
        return min(1.0, self.reached / self.limit) if self.limit else 0.0

    def __str__(self) -> str:
        if not self.limit:
            return f"{self.name} {self.reached:g}"
        return f"{self.name} {min(self.reached, self.limit):g}/{self.limit:g}"


class Progress(Protocol):
    """Shows a run; a context manager around it."""

    tokens: bool
    """Whether it shows speeches while they are spoken."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, event: Event, tally: Tally) -> None:
        """Show one event."""
        ...


class Silent:
    """Shows nothing."""

    tokens = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def show(self, event: Event, tally: Tally) -> None:
        """Show nothing."""


@dataclass
class Lines(Silent):
    """One line for each thing that happened, for logs and pipes."""

    names: Mapping[str, str] = field(default_factory=dict)

    def show(self, event: Event, tally: Tally) -> None:
        """Write the event's line, if it has one."""
        line = event_line(event, self.names, tally)
        if line:
            print(line, file=sys.stderr, flush=True)


def event_line(event: Event, names: Mapping[str, str], tally: Tally) -> str:
    """Return an event in one safe line, `""` for those that are not worth one."""
    match event["event"]:
        case "entry":
            entry = event["entry"]
            who = names.get(entry["speaker"], entry["speaker"])
            said = one_line(f"{who} ({entry_words(entry, names)}): {entry['content']}", LINE_CHARS)
            return f"[{tally.goal()}] {said}"
        case "step" if event["kind"] != "turn":
            return {"judge": "judging …", "reflect": "reflecting …"}.get(event["kind"], "")
        case "summary":
            return f"summary {event['version']} ({one_line(event['method'], 60)})"
        case "end":
            which = "limit: " if event["status"] == "limit" else ""
            return one_line(f"{which}{event['reason']}", 200)
    return ""


def make_progress(names: Mapping[str, str], *, quiet: bool) -> Progress:
    """Return what suits stderr: a live screen on a terminal, else plain lines; nothing where asked."""
    if quiet:
        return Silent()
    if sys.stderr.isatty():
        from moot.graph.cli.screen.live import LiveScreen

        return LiveScreen(names)
    return Lines(names)


def header_lines(topic: str, config: DebateConfig) -> list[str]:
    """Return what is said before a run: topic, protocol, debaters, and which model argues."""
    from moot.state.config import OFFLINE

    names = ", ".join(debater.name for debater in config.debaters)
    models = config.model_names()
    said = "offline model (built in; no network)" if models == [OFFLINE] else ", ".join(models)
    lines = [one_line(topic, 300), f"{config.protocol} · {one_line(names, 200)} · {one_line(said, 200)}"]
    if models == [OFFLINE]:
        lines.append(
            "For a real model: --model NAME with OPENAI_API_KEY set, or OPENAI_BASE_URL for another server."
        )
    return lines


def values_of(debate: Debate) -> Mapping[str, Any]:
    """Return the state's values."""
    values: Mapping[str, Any] = debate.state().values
    return values
