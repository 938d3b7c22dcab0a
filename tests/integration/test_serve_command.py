"""`moot serve` as a process: the token it prints, whom it lets in, how it ends."""

from __future__ import annotations

import re
import signal
import socket
from importlib import util
from pathlib import Path

import httpx
import pytest

from moot.graph.cli.commands.servers import serve
from moot.state.errors import ConfigError
from tests.support.moot_command import Moot
from tests.support.patience import PATIENT_S, until


def test_on_every_address_it_prints_a_token_and_ends_at_ctrl_c_with_a_page_open(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    moot = Moot(tmp_path)
    with moot.start("serve", "--host", "0.0.0.0", "--port", port) as process:  # noqa: S104  # what is tried
        try:
            assert until(lambda: "?token=" in process.errors(), 20)
            page = httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, follow_redirects=True)
            elsewhere = {"Host": "box.lan"}
            assert until(lambda: answers(page), 20)
            assert page.get("/moot").status_code == 200
            assert page.get("/moot", headers=elsewhere).status_code == 403
            token = re.findall(r"token=(\S+)", process.errors())[0]
            assert page.get("/moot/api/debates", headers={**elsewhere, "x-api-key": token}).json()["all"] == 0
            begun = page.post(
                "/moot/api/debates", json={"question": "Tabs?", "turns": 1}, timeout=PATIENT_S
            ).json()
            with page.stream("GET", f"/moot/api/debates/{begun['id']}/events") as events:
                assert next(events.iter_lines()).startswith("data: ")
                process.send_signal(signal.SIGINT)
                process.wait(PATIENT_S)
        finally:
            process.kill()
    assert "Traceback" not in process.communicate()[1]


def answers(page: httpx.Client) -> bool:
    try:
        return page.get("/").is_success
    except httpx.TransportError:
        return False


def test_without_its_packages_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "moot.graph.cli.commands.servers.find_spec", lambda name: util.find_spec(f"no_{name}")
    )
    with pytest.raises(ConfigError, match=re.escape("pip install 'moot[serve]'")):
        serve()
