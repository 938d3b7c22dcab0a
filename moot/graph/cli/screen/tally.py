"""Where a run stands: what it has come to, which limit it runs towards, and an event in one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moot.graph.cli.screen.entry_words import entry_words
from moot.graph.cli.screen.terminal_text import one_line
from moot.state.amounts import amount

if TYPE_CHECKING:
    from moot.graph.api import Event
    from moot.state.catalogue import DebateRow
    from moot.state.config import DebateConfig

LINE_CHARS = 10_000
"""Most characters of one utterance's line."""


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


@dataclass
class RunTally:
    """What a run has come to, for the bar and the counts."""

    turns: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    config: DebateConfig | None = None
    planned: int | None = None
    """Utterances that there can be at most, `None` where that cannot be said."""

    def follow(self, config: DebateConfig) -> None:
        """Take over a configuration, whose limits the bar runs towards."""
        from moot.nodes.protocols.stand_in import forecast

        planned = forecast(config)
        self.config, self.planned = config, planned.turns if planned else None

    def refresh(self, row: DebateRow) -> None:
        """Take over what the catalogue says has been spent.

        Turns are counted as they are shown, since a quick
        model is ahead of the screen.
        """
        self.tokens, self.cost_usd = row.tokens, row.cost_usd

    def goal(self) -> Goal:
        """Return the limit that is nearest to being reached."""
        passed = self.planned is not None and self.turns > self.planned  # somebody spoke up after the end
        turns = Goal("turn", self.turns, None if passed else self.planned)
        limits = self.config.limits if self.config else None
        goals = [
            turns,
            Goal("tokens", self.tokens, limits.total_tokens if limits else None),
            Goal("US$", self.cost_usd, limits.cost_usd if limits else None),
        ]
        return max((goal for goal in goals if goal.limit), key=lambda goal: goal.share, default=turns)

    def spent(self) -> str:
        """Return tokens and cost so far, in words."""
        return spent_words(self.tokens, self.cost_usd)


def spent_words(tokens: int, cost_usd: float) -> str:
    """Return tokens and, where there is any, cost in words."""
    return amount(tokens, "token") + (f" · US$ {cost_usd:.4f}" if cost_usd else "")


def event_line(event: Event, names: Mapping[str, str], tally: RunTally) -> str:
    """Return an event in one safe line, `""` for those that are not worth one."""
    match event["event"]:
        case "entry":
            entry = event["entry"]
            who = names.get(entry["speaker"], entry["speaker"])
            words = one_line(f"{who} ({entry_words(entry, names)}): {entry['content']}", LINE_CHARS)
            return f"[{tally.goal()}] {words}"
        case "step" if event["kind"] != "turn":
            return {"judge": "judging …", "reflect": "reflecting …"}.get(event["kind"], "")
        case "summary":
            return f"summary {event['version']} ({one_line(event['method'], 60)})"
        case "retry":
            return one_line(f"{event['model']}: {event['words']}", 200)
        case "end":
            which = "limit: " if event["status"] == "limit" else ""
            return one_line(f"{which}{event['reason']}", 200)
    return ""
