"""`make real`: run debates with a small real model on llama.cpp's server, and print what was seen as a table.

    python -m tests.support.real_model PYTHON [PART …] [--turns N] [--reply N]

Without a part all parts run, one after the other. The exit code is 1 if the server refuses a request, an
overflow ends a debate, a message is lost, or the server generates on for a client that left. What the model
writes does not matter: the model is far too small to debate well.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from moot.models.learning import LEAST_TOKENS, OVERHEAD_TOKENS
from moot.protocols.registry import protocol_names
from tests.support.moot_command import Moot
from tests.support.openai_server import OpenAIServer
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
MODEL = "smollm2"
CONTEXT_SIZE = 8192
"""Context that SmolLM2 was trained with, in tokens."""
SMALL_CONTEXT = 2048
TOPIC = "Should a small team keep all its code in one repository?"
GERMAN_TOPIC = "Sollte ein kleines Team seinen gesamten Quelltext in einem einzigen Repository verwalten?"
GERMAN_BACKGROUND = (
    "Das Team besteht aus sechs Leuten. Es pflegt vier Dienste, zwei Bibliotheken und eine Oberfläche für "
    "Kunden. Änderungen an den Bibliotheken erreichen die Dienste heute erst nach mehreren Tagen, weil jede "
    "Bibliothek eine eigene Veröffentlichung braucht. Die Übersetzung aller Teile dauert zwanzig Minuten. "
    "Zwei Dienste dürfen aus rechtlichen Gründen nur von drei Personen gelesen werden. "
)
ENGLISH_BACKGROUND = (
    "The team has six members. It maintains four services, two libraries and a web interface for customers. "
    "Changes of the libraries reach the services only after several days, because each library needs a "
    "release of its own. A build of all parts takes twenty minutes. For legal reasons, only three people may "
    "read the code of two services. "
)
DEBATE_S = 900.0
"""Limit for one command. About 4,000 prompt tokens and 4,000 reply tokens take this long on one busy core."""
STOP_S = 60.0
"""Seconds after which a server must have given up the request of a client that left. llama.cpp checks the
connection between two tokens and between two pieces of a prompt, each of at most 2,048 tokens."""
NO_JUDGE = {"enabled": False}
ONE_SENTENCE = {MODEL: {"parameters": {"stop": [".", "?", "!"]}}}
"""Settings that end every message after a sentence. A message that is cut off would be requested again with
the same prompt, which would distort the counts of prompt tokens."""
REFUSED = re.compile(r"got exception: (.*)|send_error: .*error: (.*)")
"""Lines of the server's log on a request that it answered with an error."""


@dataclass
class Row:
    """One line of the table."""

    case: str
    seconds: float
    exit_code: int
    document: dict[str, Any] = field(default_factory=dict)
    """Stored debate, or `{}` if there is none."""
    remarks: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What is Moot's fault, or must be looked at. The run then fails."""

    def cells(self) -> list[str]:
        """Return the row's texts."""
        usage, entries = self.document.get("usage", {}), messages_of(self.document)
        prompt = usage.get("prompt_tokens", 0)
        marks = Counter(mark for entry in entries for mark in marks_of(entry))
        return [
            self.case,
            f"{self.seconds:.0f}",
            str(self.exit_code),
            str(len(entries)),
            str(usage.get("calls", "")),
            f"{prompt:,}" if prompt else "",
            f"{usage['cached_tokens'] / prompt:.0%}" if prompt else "",
            f"{ratio:.2f}" if (ratio := real_by_own(self.document)) else "",
            "; ".join(
                [f"PROBLEM: {each}" for each in self.problems]
                + [f"{number} {mark}" for mark, number in marks.items()]
                + self.remarks
            ),
        ]


HEADINGS = ["case", "s", "exit", "messages", "calls", "prompt tokens", "cached", "real/own", "remarks"]


def messages_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the transcript's entries that a model wrote."""
    return [entry for entry in document.get("transcript", []) if entry.get("usage")]


def marks_of(entry: dict[str, Any]) -> Iterator[str]:
    """Yield what Moot said about a message: cut off, repeated, written in another name."""
    for mark in re.findall(r"\[…([^\]]+)\]", entry["content"]):
        yield mark.strip()
    if not entry["content"].strip():
        yield "empty"


def real_by_own(document: dict[str, Any]) -> float:
    """Return the server's count of tokens divided by Moot's count, for long prompts, or 0 without any.

    The constant tokens of the chat template are subtracted, as Moot does.
    """
    usage = {entry["id"]: entry.get("usage") for entry in document.get("transcript", [])}
    pairs = [(each["total_tokens"], usage.get(each["entry_id"])) for each in document.get("receipts", [])]
    pairs += [(each["total_tokens"], each["usage"]) for each in document.get("calls", [])]
    own = [(count, used["prompt_tokens"]) for count, used in pairs if used and count >= LEAST_TOKENS]
    return sum(real - OVERHEAD_TOKENS for _, real in own) / sum(count for count, _ in own) if own else 0.0


class LlamaServer:
    """Running llama.cpp server."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        """Wait until the server has loaded its model."""
        self._process, self._log, self._read = process, log, 0
        loaded = wait_until(lambda: self._address() or process.poll() is not None, 120)
        if not loaded or not self._address():
            raise SystemExit(f"llama.cpp's server did not start:\n{log.read_text(errors='replace')[-2000:]}")
        self.root = self._address()

    def _address(self) -> str:
        found = re.search(r"^address (http\S+)$", self._log.read_text(errors="replace"), re.MULTILINE)
        return found[1] if found else ""

    def refusals(self) -> list[str]:
        """Return the errors that the server has answered since the last call."""
        text = self._log.read_text(errors="replace")
        lines, self._read = text[self._read :], len(text)
        return [(match[1] or match[2])[:200] for match in REFUSED.finditer(lines)]

    def cancelled_requests(self) -> int:
        """Return how many requests the server has given up because their client left."""
        return self._log.read_text(errors="replace").count("cancel task")

    def is_generating(self) -> bool:
        """Return True if the server works on a request."""
        slots = httpx.get(f"{self.root}/slots", timeout=60).json()
        return any(slot["is_processing"] for slot in slots)


@contextmanager
def llama_server(python: str, context_size: int, folder: Path) -> Iterator[LlamaServer]:
    """Run a server within a `with` block."""
    script = Path(__file__).with_name("llama_server.py")
    log = folder / f"server-{context_size}.log"
    with log.open("wb") as out:
        process = subprocess.Popen([python, str(script), str(context_size)], stdout=out, stderr=out)
    try:
        yield LlamaServer(process, log)
    finally:
        process.kill()
        process.wait()


class Lab:
    """Runs the command `moot` against the server, and collects the rows."""

    def __init__(self, python: str, folder: Path, options: argparse.Namespace) -> None:
        """Create the folder's configuration file."""
        self.python, self.folder, self.options = python, folder, options
        self.rows: list[Row] = []

    def config(self, **changes: Any) -> dict[str, Any]:
        """Return a configuration with short replies."""
        return {
            "topic": TOPIC,
            "model": MODEL,
            "seed": 1,
            "turns": self.options.turns,
            "memory": {"budget": {"reply": self.options.reply}},
            "judge": {"reply": 400, "swap": False},
            "blackboard": {"reply": 300},
            **changes,
        }

    def command(self, *words: str) -> list[str]:
        """Return the arguments of the real command."""
        return [str(Path(sys.executable).with_name("moot")), *words]

    def environment(self, server: LlamaServer) -> dict[str, str]:
        """Return the environment of a command that uses the server."""
        return Moot(self.folder).environment(OPENAI_BASE_URL=f"{server.root}/v1")

    def run(self, case: str, server: LlamaServer, *words: str, name: str) -> Row:
        """Run a command to its end, and add its row."""
        began = time.monotonic()
        process = subprocess.Popen(
            self.command(*words),
            env=self.environment(server),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            out, err = process.communicate(timeout=DEBATE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        row = Row(case, time.monotonic() - began, process.returncode, self.document(server, name))
        (self.folder / f"{case.replace(' ', '-')}.log").write_text(f"{out}\n--- stderr\n{err}")
        if process.returncode == -signal.SIGKILL:
            row.problems.append(f"not finished after {DEBATE_S:.0f} s")
        elif process.returncode not in (0, 3):  # 3: the model failed, for example as a judge
            row.problems.append(err.strip()[-200:])
        self.check(row, server)
        self.add(row)
        return row

    def debate(self, case: str, server: LlamaServer, **changes: Any) -> Row:
        """Run a new debate, and add its row."""
        name = case.replace(" ", "-")
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(self.config(**changes)))
        return self.run(case, server, "run", "-c", str(path), "--id", name, name=name)

    def document(self, server: LlamaServer, name: str) -> dict[str, Any]:
        """Return a stored debate, or `{}` if there is none."""
        out = self.folder / f"{name}.debate.json"
        subprocess.run(
            self.command("report", name, "-o", str(out)), env=self.environment(server), capture_output=True
        )
        return json.loads(out.read_text()) if out.exists() else {}

    def check(self, row: Row, server: LlamaServer) -> None:
        """Add the problems that the server's log and the stored debate show."""
        for text in server.refusals():
            if "context size" in text:
                row.remarks.append("the server refused a prompt as too long")
            else:
                row.problems.append(f"the server refused a request: {text}")
        errors = Counter(
            (each.get("purpose") or each.get("node", ""), str(each.get("error") or each.get("message"))[:90])
            for each in [
                *row.document.get("errors", []),
                *(c for c in row.document.get("calls", []) if c["error"]),
            ]
        )
        row.remarks += [f"{number} × {where}: {text}" for (where, text), number in errors.items()]
        if row.exit_code == 3 and any("context" in text for _, text in errors):
            row.problems.append("an overflow ended the debate")
        if (verdict := row.document.get("verdict")) and "confidence" in verdict:
            row.remarks.append(f"verdict {verdict.get('winner', '')!s:.20} {verdict['confidence']}")

    def add(self, row: Row) -> None:
        """Add a row, and print it."""
        self.rows.append(row)
        print(" | ".join(row.cells()), flush=True)

    def interrupt(self, case: str, server: LlamaServer, *signals: int) -> None:
        """Stop a debate with signals while the server generates, then resume it to its end."""
        name = case.replace(" ", "-")
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(self.config(judge=NO_JUDGE, turns=max(4, self.options.turns))))
        with subprocess.Popen(
            self.command("run", "-c", str(path), "--id", name),
            env=self.environment(server),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            row = self.interrupted(case, server, process, signals)
        row.document = self.document(server, name)
        kept = [entry["content"] for entry in messages_of(row.document)]
        self.add(row)
        resumed = self.run(f"{case} resumed", server, "resume", name, name=name)
        texts = [entry["content"] for entry in messages_of(resumed.document)]
        if texts[: len(kept)] != kept or len(texts) < max(4, self.options.turns):
            resumed.problems.append(f"{len(kept)} messages before the signal, {len(texts)} after the end")

    def interrupted(
        self, case: str, server: LlamaServer, process: subprocess.Popen[str], signals: Sequence[int]
    ) -> Row:
        """Send signals to a process while it waits for its third message, and wait for its end.

        The first two messages are independent openings, which are stored in one step.
        """
        assert process.stdout is not None
        has_message = any(line.startswith("[turn 2") for line in process.stdout)
        is_busy = wait_until(server.is_generating, 60, every_s=0.1)
        began, cancelled = time.monotonic(), server.cancelled_requests()
        for number in signals:
            process.send_signal(number)
            time.sleep(0.5)  # two signals at once would count as one
        stopped = wait_until(lambda: server.cancelled_requests() > cancelled, STOP_S, every_s=0.1)
        seconds = time.monotonic() - began
        process.stdout.read()
        row = Row(case, seconds, process.wait(60))
        row.remarks.append(f"the server gave up the request {seconds:.1f} s after the signal")
        if not (has_message and is_busy) or row.exit_code == 0:
            row.problems.append("the debate ended before the signal")
        if not stopped:
            row.problems.append("the server generates on for a client that left")
        return row


def run_protocols(lab: Lab, server: LlamaServer) -> None:
    """Run every protocol once."""
    for protocol in lab.options.protocols or protocol_names():
        lab.debate(protocol, server, protocol=protocol, rounds=1)


def run_schemas(lab: Lab, server: LlamaServer) -> None:
    """Send the schema of every structured reply to the server, with prompts and replies of a few tokens.

    A scripted server collects the schemas: each protocol runs against it in seconds, with every extra on.
    """
    extras = {
        "blackboard": {"extraction": "llm", "reflection_threshold": 1},
        "clarifications": {"enabled": True},
        "memory": {"summarizer": "llm", "keep_recent": 2, "summarize_every": 2, "budget": {"messages": 300}},
    }
    schemas: dict[str, Any] = {}
    moot = Moot(lab.folder / "scripted")  # another database: what Moot learns about this server is not true
    moot.folder.mkdir(exist_ok=True)
    with OpenAIServer() as scripted:
        for protocol in protocol_names():
            path, name = moot.folder / f"{protocol}.json", protocol
            path.write_text(json.dumps(lab.config(protocol=protocol, rounds=1, turns=6, **extras)))
            for words in (("run", "-c", str(path), "--id", name), ("ask", name, "What is feared?")):
                moot(*words, OPENAI_BASE_URL=scripted.base_url)
        for request in scripted.chats:
            sent = request.get("response_format", {}).get("json_schema")
            if sent:
                schemas[json.dumps(sent, sort_keys=True)] = sent
    for sent in schemas.values():
        began = time.monotonic()
        response = httpx.post(
            f"{server.root}/v1/chat/completions",
            json={
                "messages": [{"role": "user", "content": "Reply."}],
                "max_tokens": 8,
                "response_format": {"type": "json_schema", "json_schema": sent},
            },
            timeout=DEBATE_S,
        )
        row = Row(f"schema {sent['name']}", time.monotonic() - began, 0 if response.is_success else 1)
        lab.check(row, server)
        lab.add(row)


def run_ask(lab: Lab, server: LlamaServer) -> None:
    """Ask a question about a debate."""
    lab.debate("ask debate", server, judge=NO_JUDGE)
    lab.run("ask", server, "ask", "ask-debate", "What does the skeptic fear?", name="ask-debate")


def run_small_context(lab: Lab, server: LlamaServer) -> None:
    """Run a debate that does not fit the context of the server, with the default budgets."""
    file = lab.folder / "background.md"
    file.write_text(ENGLISH_BACKGROUND * 30)
    with llama_server(lab.python, SMALL_CONTEXT, lab.folder) as small:
        lab.debate("small context", small, turns=max(6, lab.options.turns), memory={}, context=str(file))


def run_tokens(lab: Lab, server: LlamaServer) -> None:
    """Count the tokens of long prompts in English and in German."""
    for language, topic, text in (
        ("english", TOPIC, ENGLISH_BACKGROUND),
        ("german", GERMAN_TOPIC, GERMAN_BACKGROUND),
    ):
        file = lab.folder / f"{language}.md"
        file.write_text(text * 12)
        changes = {"topic": topic, "context": str(file), "turns": 2, "memory": {"budget": {"reply": 200}}}
        lab.debate(f"tokens {language}", server, judge=NO_JUDGE, models=ONE_SENTENCE, **changes)


def run_cache(lab: Lab, server: LlamaServer) -> None:
    """Measure the share of prompt tokens that the server reads from its cache, in both layouts."""
    for layout in ("shared", "per-speaker"):
        memory = {"layout": layout, "budget": {"reply": 200}}
        turns = lab.options.cache_turns
        lab.debate(f"cache {layout}", server, turns=turns, memory=memory, judge=NO_JUDGE, models=ONE_SENTENCE)


def run_interrupts(lab: Lab, server: LlamaServer) -> None:
    """Interrupt and kill a debate, and resume it."""
    lab.interrupt("Ctrl-C twice", server, signal.SIGINT, signal.SIGINT)
    lab.interrupt("kill", server, signal.SIGKILL)


PARTS: dict[str, Callable[[Lab, LlamaServer], None]] = {
    "schemas": run_schemas,
    "protocols": run_protocols,
    "ask": run_ask,
    "context": run_small_context,
    "tokens": run_tokens,
    "cache": run_cache,
    "interrupts": run_interrupts,
}


def main() -> int:
    """Run the parts, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", help="interpreter of the environment with llama.cpp's server")
    parser.add_argument("parts", nargs="*", help=f"parts to run: {', '.join(PARTS)}")
    parser.add_argument("--protocols", nargs="*", help="protocols of the part `protocols`")
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--cache-turns", type=int, default=30)
    parser.add_argument("--reply", type=int, default=120, help="limit for a message, in tokens")
    parser.add_argument("--folder", type=Path, help="folder for databases and logs, which stays")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="moot-real-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        lab = Lab(options.python, folder, options)
        with llama_server(options.python, CONTEXT_SIZE, folder) as server:
            for part in options.parts or PARTS:
                PARTS[part](lab, server)
    print(f"\n| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}")
    for row in lab.rows:
        print(f"| {' | '.join(row.cells())} |")
    return 1 if any(row.problems for row in lab.rows) else 0


if __name__ == "__main__":
    os.nice(5)  # hours of computing should not slow down other programs
    sys.exit(main())
