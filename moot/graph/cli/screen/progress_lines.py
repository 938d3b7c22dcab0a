"""What a run shows on stderr: a heading, then a live screen on a terminal, lines elsewhere, or nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from moot.graph.cli.screen.tally import RunTally, event_line
from moot.graph.cli.screen.terminal_text import one_line
from moot.state.redaction import redacted

if TYPE_CHECKING:
    from moot.graph.api import Event
    from moot.state.config import DebateConfig


class Progress(AbstractContextManager["Progress"], Protocol):
    """Shows a run; a context manager around it."""

    tokens: bool
    """Whether it shows speeches while they are spoken."""

    def show(self, event: Event, tally: RunTally) -> None:
        """Show one event."""


class ProgressLines(Progress):
    """One line for each thing that happened, for logs and pipes; none where quiet."""

    tokens = False

    def __init__(self, names: Mapping[str, str], *, quiet: bool) -> None:
        self._names, self._quiet = names, quiet

    def __exit__(self, *_: object) -> None:
        """Leave what was written."""

    def show(self, event: Event, tally: RunTally) -> None:
        """Write the event's line, if it has one."""
        if not self._quiet and (line := event_line(event, self._names, tally)):
            print(line, file=sys.stderr, flush=True)


class JsonLines(Progress):
    """One JSON object a line for each thing that happened, for programs that read logs."""

    tokens = False

    def __exit__(self, *_: object) -> None:
        """Leave what was written."""

    def show(self, event: Event, tally: RunTally) -> None:
        """Write the event with what has been spent."""
        line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), **event}
        line = {**line, "tokens": tally.tokens, "cost_usd": tally.cost_usd}
        print(redacted(json.dumps(line, default=str)), file=sys.stderr, flush=True)


def make_progress(names: Mapping[str, str], *, quiet: bool, as_json: bool = False) -> Progress:
    """Return what suits stderr."""
    if as_json:
        return JsonLines()
    if quiet or not sys.stderr.isatty():
        return ProgressLines(names, quiet=quiet)
    from moot.graph.cli.screen.live import LiveScreen

    return LiveScreen(names)


def _way_to_a_model() -> str:
    from moot.state.settings import api_key, base_url

    if base_url():
        return "Your endpoint is set; name a model with --model: `moot models` lists what it offers."
    if api_key("OPENAI_API_KEY"):
        return "Your key is set; name a model with --model."
    return "For a real model: --model NAME with OPENAI_API_KEY set, or OPENAI_BASE_URL for another server."


def header_lines(topic: str, config: DebateConfig) -> list[str]:
    """Return what is said before a run: topic, protocol, debaters, and which model argues."""
    from moot.state.config import OFFLINE
    from moot.state.config.model_settings import RECORDED

    names = ", ".join(debater.name for debater in config.debaters)
    models = config.model_names()
    argues = "offline model (built in; no network)" if models == [OFFLINE] else ", ".join(models)
    if all(name.startswith(RECORDED) for name in models):
        argues = "recorded with a capable model; facts unchecked"
    lines = [one_line(topic, 300), f"{config.protocol} · {one_line(names, 200)} · {one_line(argues, 200)}"]
    if models == [OFFLINE]:
        lines.append(_way_to_a_model())
    return lines
