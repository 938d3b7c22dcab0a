"""`moot serve` as a process: token, access checks and shutdown."""

from __future__ import annotations

import re
import signal
import socket
import sys
from importlib import util
from pathlib import Path

import httpx
import pytest

from moot.plugins.web.server_commands import serve
from moot.state.errors import ConfigError
from tests.support.moot_command import Moot
from tests.support.waiting import LONG_TIMEOUT_S, wait_until


def test_serve_on_all_addresses_requires_a_token_and_stops_on_ctrl_c(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    moot = Moot(tmp_path)
    with moot.start("serve", "--host", "0.0.0.0", "--port", port) as process:  # noqa: S104  # under test
        try:
            assert wait_until(lambda: "?token=" in process.errors(), 20)
            page = httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, follow_redirects=True)
            elsewhere = {"Host": "box.lan"}
            assert wait_until(lambda: answers(page), 20)
            assert page.get("/moot").status_code == 403  # a proxy on this machine looks like this machine
            assert page.get("/moot", headers=elsewhere).status_code == 403
            launch_token, token = re.findall(r"token=(\S+)", process.errors())
            setups = {
                key: page.get("/moot/api/setup", headers={"x-api-key": key}).json()
                for key in (launch_token, token)
            }
            assert [each["operator"] for each in setups.values()] == [True, False]
            assert page.get("/moot/api/debates", headers={**elsewhere, "x-api-key": token}).json()["all"] == 0
            page.headers["x-api-key"] = token
            assert page.get("/moot").status_code == 200
            started = page.post(
                "/moot/api/debates", json={"question": "Tabs?", "turns": 1}, timeout=LONG_TIMEOUT_S
            ).json()
            with page.stream("GET", f"/moot/api/debates/{started['id']}/events") as events:
                assert next(events.iter_lines()).startswith("data: ")
                process.send_signal(signal.SIGINT)
                process.wait(LONG_TIMEOUT_S)
        finally:
            process.kill()
    assert "Traceback" not in process.communicate()[1]


def answers(page: httpx.Client) -> bool:
    try:
        return page.get("/").status_code in (200, 403)
    except httpx.TransportError:
        return False


def test_missing_packages_are_reported_with_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "moot.plugins.web.server_commands.find_spec", lambda name: util.find_spec(f"no_{name}")
    )
    with pytest.raises(ConfigError, match=re.escape(f"{sys.executable} -m pip install 'moot[serve]'")):
        serve()
