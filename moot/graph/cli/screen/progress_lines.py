"""What a run shows on stderr: a heading, where it stands, and what happens, a line each."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from moot.graph.cli.screen.terminal_text import entry_words, one_line
from moot.nodes.text.plain import amount
from moot.state.redaction import redact

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
        """Take over what the catalogue says has been spent; its turns are ahead of the screen."""
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


class Progress(AbstractContextManager["Progress"]):
    """Shows nothing of a run, as whoever is quiet wants it."""

    tokens = False
    """Whether it shows speeches while they are spoken."""

    def __exit__(self, *_: object) -> None:
        """Leave what was written."""

    def show(self, event: Event, tally: RunTally) -> None:
        """Show one event."""


class ProgressLines(Progress):
    """One line for each thing that happened, for logs and pipes."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def show(self, event: Event, tally: RunTally) -> None:
        """Write the event's line, if it has one."""
        if line := event_line(event, self._names, tally):
            print(line, file=sys.stderr, flush=True)


class JsonLines(Progress):
    """One JSON object a line for each thing that happened, for programs that read logs."""

    def show(self, event: Event, tally: RunTally) -> None:
        """Write the event with what has been spent."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"at": at, **event, "tokens": tally.tokens, "cost_usd": tally.cost_usd}
        print(redact(json.dumps(line, default=str)), file=sys.stderr, flush=True)


def header_lines(topic: str, config: DebateConfig) -> list[str]:
    """Return what is said before a run: topic, protocol, debaters, and which model argues."""
    from moot.state.config import OFFLINE
    from moot.state.config.model_settings import RECORDED
    from moot.state.settings import api_key, variable

    names = ", ".join(debater.name for debater in config.debaters)
    models = config.model_names()
    argues = "offline model (built in; no network)" if models == [OFFLINE] else ", ".join(models)
    if all(name.startswith(RECORDED) for name in models):
        argues = "recorded with a capable model; facts unchecked"
    lines = [one_line(topic, 300), f"{config.protocol} · {one_line(names, 200)} · {one_line(argues, 200)}"]
    if models != [OFFLINE]:
        return lines

    advice = "For a real model: --model NAME with OPENAI_API_KEY set, or OPENAI_BASE_URL for another server."
    if variable("OPENAI_BASE_URL"):
        advice = "Your endpoint is set; name a model with --model: `moot models` lists what it offers."
    elif api_key("OPENAI_API_KEY"):
        advice = "Your key is set; name a model with --model."
    return [*lines, advice]
