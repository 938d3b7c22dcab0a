"""Commands that are killed at random moments until they finish, and the invariants that must hold."""

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
from tests.support.openai_server import Act, OpenAIServer, Plan, Recorded
from tests.support.patience import LONG_TIMEOUT_S
from tests.support.warm_process import WarmProcess

SMALL: dict[str, Any] = {
    "memory": {"budget": {"messages": 300}, "keep_recent": 2, "summarize_every": 2, "summarizer": "llm"},
    "judge": {"panel": [{"id": "one"}, {"id": "two"}]},
}
"""So little is shown of what was said that summaries are made of the rest; two judge."""
TALK = 'speaker,minute,text\nAnn,01:00,"Yes, it cuts costs by 20 %."\nBob,02:00,"No, it hits the poor."\n'
DOSSIER = "The build takes 41 minutes."
FAILED = 3
CALLING = ("run", "resume", "judge")
NO_ROOM = re.compile("free some space|File too large|readonly")  # the last if not even 32 KB may be written


@dataclass(frozen=True)
class Scenario:
    """A debate from its beginning to the last that is done with it."""

    name: str
    config: Mapping[str, Any] = field(default_factory=dict)
    steps: Sequence[tuple[str, ...]] = (("run", "Should we?", "-c", "c.json", "--id", "d"),)


def _begun(**config: Any) -> dict[str, Any]:
    return {"model": "m", "seed": 1, **SMALL, **config}


_AFTERWARDS: tuple[tuple[str, ...], ...] = (
    ("judge", "d", "--panel", "1"),
    ("gc", "d"),
    ("fork", "d", "--after", "2", "--id", "f"),
    ("resume", "f"),
    ("report", "d", "-o", "d.html"),
)
SCENARIOS = {
    each.name: each
    for each in (
        Scenario("round-robin", _begun(turns=5)),
        Scenario("afterwards", _begun(turns=2, judge={}), (*Scenario("").steps, *_AFTERWARDS)),
        Scenario("moderated", _begun(protocol="moderated", turns=4)),
        Scenario("random", _begun(protocol="random", turns=4)),
        Scenario("council", _begun(protocol="council", rounds=1)),
        Scenario("dialogue", _begun(protocol="dialogue", rounds=1)),
        Scenario("single", _begun(protocol="single")),
        Scenario("vote", _begun(protocol="vote")),
        Scenario(
            "tools",
            _begun(
                turns=3,
                memory={"keep_recent": 2},
                context="dossier",
                debaters=[{"name": "Ada", "tools": ["search"]}, {"name": "Bo", "tools": ["search"]}],
            ),
        ),
        Scenario(
            "import",
            _begun(),
            (("import", "talk.csv", "-t", "Tax carbon?", "-c", "c.json", "--id", "d"), *_AFTERWARDS[:2]),
        ),
    )
}


def tool_using_replies(asked: Any, number: int) -> Act | None:
    """Search before every speech, where that is offered."""
    if not asked.get("tools") or any(message["role"] == "tool" for message in asked["messages"]):
        return None
    return Act(tool_calls=[("search", {"query": "build"})])


FAULTS = (
    Act(status=500),
    Act(status=503, headers={"retry-after": "0.1"}),
    Act(status=429, headers={"retry-after": "0.1"}),
    Act(reset_after=0),
    Act(reset_after=2),
    Act(text=""),
    Act(body="no JSON"),
)
"""All the ways of failing that pass."""


def failing(share: float, seed: int, failed: list[Act]) -> Plan:
    """Return a plan by which this share of all requests fails; what did is added to the list."""
    rng = random.Random(seed)

    def plan(asked: Any, number: int) -> Act | None:
        if rng.random() >= share:
            return tool_using_replies(asked, number)
        failed.append(rng.choice(FAULTS))
        return failed[-1]

    return plan


@dataclass
class RuleResult:
    """What a scenario came to."""

    documents: dict[str, Any]
    """What the debates said and decided, by name, without times and usage."""
    requests: Sequence[Recorded]
    kills: dict[int, Counter[str]] = field(default_factory=dict)
    """Number of each process that was killed, and how often each answer was in a journal by then."""
    failed: int = 0
    """Runs that ended with exit 3, saved."""
    full: int = 0
    """Commands that had no room to write and said so."""
    wrong: list[str] = field(default_factory=list)

    def called_again(self, whole: RuleResult) -> int:
        """Return how many requests more than the uninterrupted run's were made that no kill had cut off."""
        asked, allowed = (Counter(each.said for each in run.requests) for run in (self, whole))
        cut: Counter[str] = Counter()
        for killed, journalled in self.kills.items():
            so_far = (each.said for each in self.requests if _process_of(each) <= killed)
            cut += Counter(so_far) - journalled - cut
        return sum((asked - allowed - cut).values())

    def lost(self, whole: RuleResult) -> list[str]:
        """Return the debates that did not come to what they are uninterrupted."""
        return [name for name, each in whole.documents.items() if self.documents.get(name) != each]


def _process_of(request: Recorded) -> int:
    return int(request.headers["authorization"].removeprefix("Bearer k"))


class KillRunner:
    """Runs scenarios in a folder and a database of their own."""

    def __init__(
        self, folder: Path, rng: random.Random, *, latency: float = 0.05, plan: Plan = tool_using_replies
    ) -> None:
        """Make the folder's files, which scenarios name."""
        self._folder, self._rng, self._latency, self._plan = folder, rng, latency, plan
        self._took: dict[tuple[str, ...], float] = {}
        """Seconds that each step takes that is left alone: a kill must come before its end."""
        (folder / "dossier").mkdir(parents=True, exist_ok=True)
        (folder / "dossier" / "facts.md").write_text(DOSSIER)
        (folder / "talk.csv").write_text(TALK)

    def run(self, scenario: Scenario, db: str, *, kills: int = 0, full: int = 0) -> RuleResult:
        """Run a scenario to its end, killed or without room so often; what fails for what passes goes on."""
        (self._folder / "c.json").write_text(json.dumps(scenario.config))
        done, numbers = RuleResult({}, ()), count()
        with OpenAIServer(self._plan, latency=0.05) as server:
            for words in scenario.steps:
                while not done.wrong and (left := _left(db, words)):
                    deadly, disk_bytes = len(done.kills) < kills, self._room(db) if done.full < full else 0
                    number = next(numbers)
                    began, most = time.monotonic(), self._took.get(words, LONG_TIMEOUT_S)
                    with self._started(server, db, left, disk_bytes, key=f"k{number}") as process:
                        if deadly and self._killed(process, server, most, calls=left[0] in CALLING):
                            done.kills[number] = journalled(db)
                            continue
                        code = process.wait(LONG_TIMEOUT_S)
                        self._took.setdefault(words, time.monotonic() - began)
                    if disk_bytes and code and NO_ROOM.search(process.errors()):
                        done.full += 1
                        continue
                    if code == FAILED:
                        done.failed += 1
                    elif code:
                        done.wrong.append(f"{' '.join(left)}: exit {code}: {process.errors()[-400:]}")
                    if words[0] not in CALLING:
                        break
        done.requests = server.requests
        self._look(done, db)
        return done

    def _started(
        self, server: OpenAIServer, db: str, words: Sequence[str], disk_bytes: int, key: str
    ) -> WarmProcess:
        variables: Any = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": key, "PYTHONHASHSEED": "0"}
        return Moot(self._folder).start(*words, MOOT_DB=db, disk_bytes=disk_bytes, **variables)

    def _room(self, db: str) -> int:
        """Return how large a file may become that is too small for a while: the database or its log grows."""
        log = Path(db + "-wal")
        has = max(path.stat().st_size if path.exists() else 0 for path in (Path(db), log))
        return self._rng.randrange(4096, max(has, 8192) + 100_000)

    def _killed(self, process: WarmProcess, server: OpenAIServer, most: float, *, calls: bool) -> bool:
        """Kill a process, soon after it `calls` or at any moment; return whether it was still there.

        It takes `most` seconds undisturbed.
        """
        asked, patience = len(server.requests), self._rng.choice((0.0, *[3.0] * 3)) if calls else 0.0
        until = time.monotonic() + patience
        while process.poll() is None and len(server.requests) == asked and time.monotonic() < until:
            time.sleep(0.005)
        try:
            process.wait(timeout=self._rng.uniform(0, min(0.4, most / 2) if patience else min(1.5, most)))
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait() < 0
        return False

    def _look(self, done: RuleResult, db: str) -> None:
        with open_debates(db) as debates:
            for row in debates.rows():
                done.documents[row.name] = comparable_document(debates.get(row.id).document())
            done.wrong += [
                f"{each.what}: {each.message}" for each in inspect_database(debates) if not each.ok
            ]
        pages = self._folder.glob("*.html")
        done.wrong += [f"{page.name} is half written" for page in pages if "</html>" not in page.read_text()]


def journalled(db: str) -> Counter[str]:
    """Return the answers that any debate's journal holds, as the server has them said."""
    with open_debates(db) as debates:
        replies = [debates.records.journal.replies(row.id).values() for row in debates.rows()]
    return Counter(
        json.dumps([call["args"] for call in each.tool_calls]) if each.tool_calls else each.text
        for each in chain.from_iterable(replies)
    )


def _left(db: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return what of a step is left to do, `()` for nothing."""
    with open_debates(db) as debates:
        match words[0]:
            case "run":
                return _resuming(debates, words, words[-1])
            case "resume":
                return _resuming(debates, words, words[1])
            case "import" | "fork":
                return () if _there(debates, words[-1]) else words
            case "judge":
                judged = debates.get(words[1]).state().values.get("verdicts") or []
                return () if any(each["judge"] == "judge-1" for each in judged) else words
    return words


def _there(debates: Debates, name: str) -> bool:
    try:
        debates.get(name)
    except DebateNotFound:
        return False
    return True


def _resuming(debates: Debates, words: tuple[str, ...], name: str) -> tuple[str, ...]:
    if not _there(debates, name):
        return words
    return () if is_judged(debates.get(name)) else ("resume", name)


_VOLATILE = frozenset(
    {"at", "usage", "tokens_used", "created_at", "updated_at", "id_", "checkpoint", "latency_s", "elapsed_s"}
)
_COMPARED_KEYS = ("transcript", "summaries", "blackboard", "verdicts", "verdict", "solution", "status")


def comparable_document(document: Mapping[str, Any]) -> Any:
    """Return what a debate said, noted and decided: all that is the same however often it was killed."""
    return _scrubbed({key: document[key] for key in _COMPARED_KEYS})


def _scrubbed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _scrubbed(each) for key, each in value.items() if key not in _VOLATILE}
    return [_scrubbed(each) for each in value] if isinstance(value, list) else value
