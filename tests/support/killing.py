"""Kills commands at random moments, resumes them, and compares the results with an uninterrupted run."""

from __future__ import annotations

import json
import random
import re
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any

from moot import open_debates
from moot.api import Debates, is_judged
from moot.cli.commands.doctor import inspect_database
from moot.state.errors import DebateNotFound
from tests.support.moot_command import Moot
from tests.support.openai_server import OpenAIServer, Plan, RecordedRequest, ServerReply
from tests.support.waiting import LONG_TIMEOUT_S
from tests.support.warm_process import WarmProcess

SMALL_MEMORY: dict[str, Any] = {
    "memory": {"budget": {"messages": 300}, "keep_recent": 2, "summarize_every": 2, "summarizer": "llm"},
    "judge": {"panel": [{"id": "one"}, {"id": "two"}]},
}
"""Settings with a small prompt budget, so that summaries are made, and with two judges."""
TRANSCRIPT_CSV = (
    'speaker,minute,text\nAnn,01:00,"Yes, it cuts costs by 20 %."\nBob,02:00,"No, it hits the poor."\n'
)
DOSSIER = "The build takes 41 minutes."
FAILED_RUN_EXIT_CODE = 3
MODEL_COMMANDS = ("run", "resume", "judge", "import")
LONG_TOPIC = "Should we?\n\nThe build takes 41 minutes."
"""Topic in which a model finds the question before the first turn."""
DISK_FULL_ERROR = re.compile(
    "free some space|File too large|readonly"
)  # "readonly" if the limit is below 32 KB


@dataclass(frozen=True)
class Scenario:
    """A debate: its configuration, and the commands that run it and use its result."""

    name: str
    config: Mapping[str, Any] = field(default_factory=dict)
    steps: Sequence[tuple[str, ...]] = (("run", "Should we?", "-c", "c.json", "--id", "d"),)


def _config(**config: Any) -> dict[str, Any]:
    return {"model": "m", "seed": 1, **SMALL_MEMORY, **config}


_FOLLOW_UPS: tuple[tuple[str, ...], ...] = (
    ("judge", "d", "--panel", "1"),
    ("gc", "d"),
    ("fork", "d", "--after", "2", "--id", "f"),
    ("resume", "f"),
    ("report", "d", "-o", "d.html"),
)
SCENARIOS = {
    each.name: each
    for each in (
        Scenario("round-robin", _config(turns=5)),
        Scenario("follow-ups", _config(turns=2, judge={}), (*Scenario("").steps, *_FOLLOW_UPS)),
        Scenario("moderated", _config(protocol="moderated", turns=4)),
        Scenario("random", _config(protocol="random", turns=4)),
        Scenario("council", _config(protocol="council", rounds=1)),
        Scenario("dialogue", _config(protocol="dialogue", rounds=1)),
        Scenario("single", _config(protocol="single")),
        Scenario("vote", _config(protocol="vote")),
        Scenario(
            "tools",
            _config(
                turns=3,
                memory={"keep_recent": 2},
                context="dossier",
                debaters=[{"name": "Ada", "tools": ["search"]}, {"name": "Bo", "tools": ["search"]}],
            ),
        ),
        Scenario(
            "import",
            _config(),
            (("import", "talk.csv", "-t", "Tax carbon?", "-c", "c.json", "--id", "d"), *_FOLLOW_UPS[:2]),
        ),
        Scenario(
            "long topic",
            _config(protocol="council", rounds=1),
            (("run", LONG_TOPIC, "-c", "c.json", "--id", "d"),),
        ),
        Scenario(
            "delete",
            _config(turns=2, judge={}),
            (*Scenario("").steps, _FOLLOW_UPS[2], ("delete", "d", "--yes"), ("resume", "f")),
        ),
    )
}


def tool_using_replies(asked: Any, number: int) -> ServerReply | None:
    """Call the tool `search` before every message of a debater that has it."""
    if not asked.get("tools") or any(message["role"] == "tool" for message in asked["messages"]):
        return None
    return ServerReply(tool_calls=[("search", {"query": "build"})])


FAULTS = (
    ServerReply(status=500),
    ServerReply(status=503, headers={"retry-after": "0.1"}),
    ServerReply(status=429, headers={"retry-after": "0.1"}),
    ServerReply(reset_after=0),
    ServerReply(reset_after=2),
    ServerReply(text=""),
    ServerReply(body="no JSON"),
)
"""Temporary failures, after which a retry can succeed."""


def failing_plan(share: float, seed: int, failures: list[ServerReply]) -> Plan:
    """Return a plan in which a share of all requests fails. Add each failure to `failures`."""
    rng = random.Random(seed)

    def plan(asked: Any, number: int) -> ServerReply | None:
        if rng.random() >= share:
            return tool_using_replies(asked, number)
        failures.append(rng.choice(FAULTS))
        return failures[-1]

    return plan


@dataclass
class ScenarioResult:
    """Result of a scenario."""

    documents: dict[str, Any]
    """Comparable documents of the debates, by name."""
    requests: Sequence[RecordedRequest]
    kills: dict[int, Counter[str]] = field(default_factory=dict)
    """By number of each killed process: how often the journals held each reply at that time."""
    failed_runs: int = 0
    """Number of runs that ended with exit code 3."""
    disk_full_exits: int = 0
    """Number of commands that reported a full disk."""
    problems: list[str] = field(default_factory=list)
    """Unexpected exit codes, damaged databases and partly written reports."""

    def repeated_calls(self, uninterrupted: ScenarioResult) -> int:
        """Return the number of repeated requests, without those that a kill had interrupted."""
        asked, allowed = (Counter(each.reply_text for each in run.requests) for run in (self, uninterrupted))
        interrupted: Counter[str] = Counter()
        for killed, journalled in self.kills.items():
            so_far = (each.reply_text for each in self.requests if _process_number(each) <= killed)
            interrupted += Counter(so_far) - journalled - interrupted
        return sum((asked - allowed - interrupted).values())

    def changed_debates(self, uninterrupted: ScenarioResult) -> list[str]:
        """Return the names of the debates that differ from the uninterrupted run."""
        return [name for name, each in uninterrupted.documents.items() if self.documents.get(name) != each]


def _process_number(request: RecordedRequest) -> int:
    return int(request.headers["authorization"].removeprefix("Bearer k"))


class KillRunner:
    """Runs scenarios in a folder, with a new database for each run."""

    def __init__(self, folder: Path, rng: random.Random, *, plan: Plan = tool_using_replies) -> None:
        """Create the files that the scenarios use."""
        self._folder, self._rng, self._plan = folder, rng, plan
        self._durations: dict[tuple[str, ...], float] = {}
        """Seconds that each step takes without a kill. A kill must come before its end."""
        (folder / "dossier").mkdir(parents=True, exist_ok=True)
        (folder / "dossier" / "facts.md").write_text(DOSSIER)
        (folder / "talk.csv").write_text(TRANSCRIPT_CSV)

    def run(self, scenario: Scenario, db: str, *, kills: int = 0, disk_full: int = 0) -> ScenarioResult:
        """Run a scenario to its end with a number of kills and full disks. Resume after each failure."""
        (self._folder / "c.json").write_text(json.dumps(scenario.config))
        result, numbers = ScenarioResult({}, ()), count()
        with OpenAIServer(self._plan, latency=0.05) as server:
            for words in scenario.steps:
                while not result.problems and (remaining := _remaining_command(db, words)):
                    is_killed, disk_bytes = (
                        len(result.kills) < kills,
                        self._disk_limit(db) if result.disk_full_exits < disk_full else 0,
                    )
                    number = next(numbers)
                    began, duration = time.monotonic(), self._durations.get(words, LONG_TIMEOUT_S)
                    with self._start(server, db, remaining, disk_bytes, key=f"k{number}") as process:
                        if is_killed and self._kill(
                            process, server, duration, calls=remaining[0] in MODEL_COMMANDS
                        ):
                            result.kills[number] = count_journal_replies(db)
                            continue
                        code = process.wait(LONG_TIMEOUT_S)
                        self._durations.setdefault(words, time.monotonic() - began)
                    if disk_bytes and code and DISK_FULL_ERROR.search(process.errors()):
                        result.disk_full_exits += 1
                        continue
                    if code == FAILED_RUN_EXIT_CODE:
                        result.failed_runs += 1
                    elif code:
                        result.problems.append(
                            f"{' '.join(remaining)}: exit {code}: {process.errors()[-400:]}"
                        )
                    if words[0] not in MODEL_COMMANDS:
                        break
        result.requests = server.requests
        self._inspect(result, db)
        return result

    def _start(
        self, server: OpenAIServer, db: str, words: Sequence[str], disk_bytes: int, key: str
    ) -> WarmProcess:
        variables: Any = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": key, "PYTHONHASHSEED": "0"}
        return Moot(self._folder).start(*words, MOOT_DB=db, disk_bytes=disk_bytes, **variables)

    def _disk_limit(self, db: str) -> int:
        """Return a random limit for the size of a file, a little above that of the database or its log."""
        log = Path(db + "-wal")
        size = max(path.stat().st_size if path.exists() else 0 for path in (Path(db), log))
        return self._rng.randrange(4096, max(size, 8192) + 500_000)

    def _kill(self, process: WarmProcess, server: OpenAIServer, duration: float, *, calls: bool) -> bool:
        """Kill a process at a random moment, and return True if it was still running.

        Args:
            duration: seconds that the process takes without a kill.
            calls: True if the process calls models; most kills then come soon after a call.
        """
        asked, patience = len(server.requests), self._rng.choice((0.0, *[3.0] * 3)) if calls else 0.0
        until = time.monotonic() + patience
        while process.poll() is None and len(server.requests) == asked and time.monotonic() < until:
            time.sleep(0.005)
        try:
            process.wait(
                timeout=self._rng.uniform(0, min(0.4, duration / 2) if patience else min(1.5, duration))
            )
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait() < 0
        return False

    def _inspect(self, result: ScenarioResult, db: str) -> None:
        with open_debates(db) as debates:
            for row in debates.rows():
                result.documents[row.name] = comparable_document(debates.get(row.id).document())
            result.problems += [
                f"{each.what}: {each.message}" for each in inspect_database(debates) if not each.ok
            ]
        pages = self._folder.glob("*.html")
        result.problems += [
            f"{page.name} is partly written" for page in pages if "</html>" not in page.read_text()
        ]


def count_journal_replies(db: str) -> Counter[str]:
    """Return the replies in the journals of all debates, in the form of `RecordedRequest.reply_text`."""
    with open_debates(db) as debates:
        replies = [debates.records.journal.replies(row.id).values() for row in debates.rows()]
    return Counter(
        json.dumps([call["args"] for call in each.tool_calls]) if each.tool_calls else each.text
        for each in chain.from_iterable(replies)
    )


def _remaining_command(db: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that continues a step, `()` if the step is complete."""
    with open_debates(db) as debates:
        match words[0]:
            case "run":
                return _run_or_resume(debates, words, words[-1])
            case "resume":
                return _run_or_resume(debates, words, words[1])
            case "import" | "fork":
                return () if _exists(debates, words[-1]) else words
            case "delete":
                return words if _exists(debates, words[1]) else ()
            case "judge":
                judged = debates.get(words[1]).state().values.get("verdicts") or []
                return () if any(each["judge"] == "judge-1" for each in judged) else words
    return words


def _exists(debates: Debates, name: str) -> bool:
    try:
        debates.get(name)
    except DebateNotFound:
        return False
    return True


def _run_or_resume(debates: Debates, words: tuple[str, ...], name: str) -> tuple[str, ...]:
    if not _exists(debates, name):
        return words
    return () if is_judged(debates.get(name)) else ("resume", name)


_VOLATILE = frozenset(
    {"at", "usage", "tokens_used", "created_at", "updated_at", "id_", "checkpoint", "latency_s", "elapsed_s"}
)
_COMPARED_KEYS = ("transcript", "summaries", "blackboard", "verdicts", "verdict", "solution", "status")


def comparable_document(document: Mapping[str, Any]) -> Any:
    """Return the parts of a document that kills do not change: its content without times and usage."""
    return _without_volatile_fields({key: document[key] for key in _COMPARED_KEYS})


def _without_volatile_fields(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_volatile_fields(each) for key, each in value.items() if key not in _VOLATILE}
    return [_without_volatile_fields(each) for each in value] if isinstance(value, list) else value
