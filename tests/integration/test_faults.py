"""Faults of the machine and its servers. A run waits, continues or reports an error. It repeats no call."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.support.killing import TRANSCRIPT_CSV
from tests.support.moot_command import Moot
from tests.support.openai_server import OpenAIServer
from tests.support.postgres_proxy import postgres_proxy
from tests.support.postgres_server import new_database, postgres_server, restart, rows
from tests.support.transcripts import message_texts
from tests.support.waiting import LONG_TIMEOUT_S, wait_until
from tests.support.worker_fleet import Fleet, enqueue_debates, planned_debates, run_serially

pytestmark = pytest.mark.heavy


RESTARTS: list[tuple[int, Literal["fast", "immediate"]]] = [(4, "fast"), (9, "immediate")]
"""After how many model calls the server is restarted, and how."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as address:
        yield address


def test_workers_survive_a_postgres_restart_and_repeat_no_finished_call(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, debates = new_database(server), planned_debates(6)
    serial = run_serially(debates, tmp_path / "alone.sqlite", monkeypatch)
    enqueue_debates(debates, url)
    with OpenAIServer(latency=0.3) as model:
        fleet = Fleet(tmp_path, url, model)
        names = [fleet.start("--drain", "--quiet") for _ in range(2)]
        restart(server, "immediate")  # while the workers start
        for count, mode in RESTARTS:
            assert wait_until(lambda count=count: len(model.requests) >= count)  # type: ignore[misc]
            restart(server, mode)
        codes = [fleet.running[name].wait(LONG_TIMEOUT_S) for name in names]
        assert codes == [0, 0], [fleet.running[name].errors() for name in names]
        fleet.stop_all()
    serial.check(url, model.requests)


def test_workers_go_on_after_the_network_to_postgres_was_cut_silent_or_slow(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, debates = new_database(server), planned_debates(6)
    serial = run_serially(debates, tmp_path / "alone.sqlite", monkeypatch)
    enqueue_debates(debates, url)
    with OpenAIServer(latency=0.3) as model, postgres_proxy(server) as network:
        fleet = Fleet(tmp_path, network.url(url), model)
        network.cut()  # while the workers start
        names = [fleet.start("--drain", "--quiet") for _ in range(2)]
        assert wait_until(lambda: all("waiting up to" in fleet.running[name].errors() for name in names))
        network.restore()
        network.delay_s = 0.01
        for count, fault in ((4, network.cut), (8, network.silence), (12, network.cut)):
            assert wait_until(lambda count=count: len(model.requests) >= count)  # type: ignore[misc]
            fault()
            time.sleep(2)
            network.restore()
        codes = [fleet.running[name].wait(LONG_TIMEOUT_S) for name in names]
        errors = [fleet.running[name].errors() for name in names]
        assert codes == [0, 0], errors
        assert "Traceback" not in "".join(errors)
        fleet.stop_all()
    serial.check(url, model.requests)


def test_debates_of_killed_workers_equal_a_serial_run(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, debates, rng = new_database(server), planned_debates(100), random.Random(1)
    serial = run_serially(debates, tmp_path / "alone.sqlite", monkeypatch)
    enqueue_debates(debates, url)
    killed = 0
    with OpenAIServer(latency=0.05) as model:
        fleet = Fleet(tmp_path, url, model)
        names = [fleet.start("--drain", "--quiet") for _ in range(4)]
        for share in (0.1, 0.25, 0.4, 0.55, 0.7):
            assert wait_until(lambda share=share: len(model.requests) >= share * len(serial.requests))  # type: ignore[misc]
            victim = rng.choice(names)
            fleet.signal(victim, signal.SIGKILL)
            killed += 1
            # A worker counts as dead after 20 s without a heartbeat.
            rows(url, "UPDATE procrastinate_workers SET last_heartbeat = now() - interval '21 s'")
            names.remove(victim)
            names.append(fleet.start("--drain", "--quiet"))
        codes = [fleet.running[name].wait(4 * LONG_TIMEOUT_S) for name in names]
        assert codes == [0] * 4, [fleet.running[name].errors() for name in names]
        fleet.stop_all()
    # A worker has two debates at a time, each with up to two calls under way.
    serial.check(url, model.requests, repeated=4 * killed)


def _library(package: str, pattern: str) -> str:
    """Return the path of a system library. Root installs it with apt-get if it is missing."""
    path = next(map(str, Path("/usr/lib").rglob(pattern)), "")
    if not path and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-y", "-qq", package], capture_output=True, check=False)  # noqa: S607  # Debian's
        path = next(map(str, Path("/usr/lib").rglob(pattern)), "")
    return path or pytest.skip(f"{package} cannot be installed here")


def test_debates_continue_after_the_clock_jumps_by_years(tmp_path: Path) -> None:
    preload = _library("libfaketime", "libfaketime.so.1")
    moot = Moot(tmp_path)
    (tmp_path / "c.yaml").write_text("model: m\nturns: 2\nmodels: {m: {requests_per_minute: 6000}}\n")
    with OpenAIServer() as model:
        base = moot.environment(OPENAI_BASE_URL=model.base_url, OPENAI_API_KEY="k")

        def run(days: int, *words: str) -> str:
            clock = {"LD_PRELOAD": preload, "FAKETIME": f"{days:+}d", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
            done = subprocess.run(
                [sys.executable, "-m", "moot", *words],
                cwd=tmp_path,
                env={**base, **clock, "PYTHONPATH": str(Path(__file__).parents[2])},
                capture_output=True,
                text=True,
                timeout=LONG_TIMEOUT_S,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        for days in (400, 0, -400):
            run(days, "run", "Which queue?", "-c", "c.yaml", "--id", f"d{days}")
        for days in (400, 0, -400):
            run(-500 if days else 3000, "resume", f"d{days}", "--turns", "2")
            shown = json.loads(run(0, "show", f"d{days}", "--json"))
            assert (shown["status"], len(shown["transcript"])) == ("done", 5)
        run(0, "doctor")


@pytest.mark.parametrize("secure", [True, False], ids=["untrusted certificate", "no TLS"])
def test_a_server_without_a_trusted_certificate_fails_without_a_retry(tmp_path: Path, secure: bool) -> None:
    requests: list[str] = []

    class RecordingHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(self.path)

    listener = HTTPServer(("127.0.0.1", 0), RecordingHandler)
    listener.handle_error = lambda *_: None  # type: ignore[method-assign]
    if secure:
        words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
        output_options = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
        subprocess.run(["openssl", *words, *output_options], check=True, capture_output=True)  # noqa: S607
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
        listener.socket = context.wrap_socket(listener.socket, server_side=True)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    moot, url = Moot(tmp_path), f"https://127.0.0.1:{listener.server_port}/v1"
    ran = moot("run", "Which queue?", "--model", "m", OPENAI_BASE_URL=url, OPENAI_API_KEY="k")
    listener.shutdown()
    listener.server_close()
    assert ran.code == 3
    assert "no secure connection" in ran.err
    assert "retry" not in ran.err
    assert requests == []


FORK_PROGRAM = """
import os, sys
from moot import DebateConfig, InputError, open_debates
CONFIG = DebateConfig(turns=1)
with open_debates("d.sqlite") as debates:
    debate = debates.start("Which queue?", CONFIG)
    child = os.fork()
    if child == 0:
        try:
            debate.run()
        except InputError as error:
            assert "before fork()" in str(error)
            with open_debates("d.sqlite") as own:
                own.start("Which cache?", CONFIG).run()
            debates.close()
            os._exit(0)
        os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert debate.run()["status"] == "done"
    assert {row.status for row in debates.rows()} == {"done"}
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_a_forked_child_must_open_the_database_again(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FORK_PROGRAM],
        cwd=tmp_path,
        env={**Moot(tmp_path).environment(), "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=LONG_TIMEOUT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("replaced", [False, True], ids=["deleted", "replaced"])
def test_a_run_stops_when_its_database_is_deleted_or_replaced(tmp_path: Path, replaced: bool) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    with OpenAIServer(latency=0.2) as model:
        process = Moot(tmp_path).start(
            *("run", "Which queue?", "--model", "m", "--turns", "9", "--id", "d"),
            MOOT_DB=str(folder / "d.sqlite"),
            OPENAI_BASE_URL=model.base_url,
            OPENAI_API_KEY="k",
        )
        assert wait_until(lambda: len(model.requests) >= 3)
        shutil.rmtree(folder)
        if replaced:
            folder.mkdir()
            (folder / "d.sqlite").touch()
        _, errors = process.communicate(timeout=LONG_TIMEOUT_S)
        assert process.returncode == 4
        assert "was deleted or replaced" in errors
        assert "is saved" not in errors
        assert len(model.requests) <= 5


COMMANDS = {
    "import": ("import", "talk.csv", "-t", "Tax carbon?", "--id", "imported"),
    "gc": ("gc", "d0", "d1", "d2"),
    "backup": ("backup", "copy.sqlite"),
    "eval": ("eval", "debate", "d0", "d1"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_command_leaves_an_intact_database_and_can_be_repeated(tmp_path: Path, name: str) -> None:
    moot, rng, words = Moot(tmp_path), random.Random(name), COMMANDS[name]
    (tmp_path / "talk.csv").write_text(TRANSCRIPT_CSV)
    with OpenAIServer(latency=0.02) as model:
        keyed: Any = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "k", "MOOT_MODEL": "m"}
        for number in range(3):
            assert moot("run", "Which queue?", "--turns", "4", "--id", f"d{number}").code == 0
        before = [moot("show", f"d{number}", "--json").json["transcript"] for number in range(3)]
        started = time.monotonic()
        copy = shutil.copy(moot.db, tmp_path / "spare.sqlite")
        assert moot(*words, "--db", copy, **keyed).code == 0
        lasts = time.monotonic() - started
        (tmp_path / "copy.sqlite").unlink(missing_ok=True)
        for _ in range(6):
            process = moot.start(*words, **keyed)
            time.sleep(rng.uniform(0.1, 1.0) * lasts)
            process.kill()
            process.wait()
            assert moot("doctor").code == 0
        (tmp_path / "copy.sqlite").unlink(missing_ok=True)
        last = moot(*words, **keyed)
    assert last.code in (0, 2 if name == "import" else 0), (
        last.err
    )  # 2: a killed import had already succeeded
    assert [moot("show", f"d{number}", "--json").json["transcript"] for number in range(3)] == before
    assert moot("doctor").code == 0
    if name == "backup":
        assert len(moot("list", "--json", MOOT_DB=str(tmp_path / "copy.sqlite")).json) == 3


def test_a_full_disk_gives_an_error_and_the_debate_resumes_with_more_space(tmp_path: Path) -> None:
    with OpenAIServer() as model:
        moot = Moot(tmp_path)
        keyed: Any = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "k"}
        words = ("--model", "m", "--turns", "4", "--quiet")
        assert moot("run", "Which queue?", "--id", "whole", *words, **keyed).code == 0
        expected = message_texts(moot("show", "whole", "--json").json)
        whole = Counter(request.body for request in model.requests)
        full = 0
        for number, size in enumerate(range(40_000, 700_000, 60_000)):
            del model.requests[:]
            db = str(tmp_path / f"{number}.sqlite")
            keyed["MOOT_DB"] = db
            process = moot.start("run", "Which queue?", "--id", "d", *words, disk_bytes=size, **keyed)
            _, errors = process.communicate(timeout=LONG_TIMEOUT_S)
            if process.returncode:
                full += 1
                assert process.returncode in (2, 3), errors
                assert "ulimit -f" in errors or "free some space" in errors or "too large" in errors
                begun = bool(moot("list", "--json", **keyed).json)
                assert begun or "is saved" not in errors
                done = moot(*(("resume", "d") if begun else ("run", "Which queue?", *words)), **keyed)
                assert done.code == 0, done.err
            [row, *_] = moot("list", "--json", **keyed).json
            shown = moot("show", row["id"], "--json", MOOT_DB=db).json
            assert message_texts(shown) == expected
            paid = Counter(request.body for request in model.requests)
            assert paid.keys() == whole.keys()
            assert sum(paid.values()) <= sum(whole.values()) + 2  # calls under way when the disk was full
        assert full >= 3
