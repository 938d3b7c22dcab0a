"""The nginx configuration of docs/deploy.md, in front of a real `moot serve`."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.moot_command import Moot
from tests.support.waiting import LONG_TIMEOUT_S, wait_until

pytestmark = pytest.mark.heavy

DOCS = Path(__file__).parents[2] / "docs" / "deploy.md"
TOKEN = "token-of-the-operator"  # noqa: S105  # used only in this test
ANN = ("ann", "pass-of-ann")
NGINX_CONF = """
pid {folder}/nginx.pid;
error_log {folder}/error.log;
user root;
events {{}}
http {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
{server}
}}
"""


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _nginx() -> str:
    if os.geteuid() != 0:
        pytest.skip("nginx is started as root here")
    if not shutil.which("nginx") and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-y", "-qq", "nginx-light"], capture_output=True, check=False)  # noqa: S607  # Debian's command
    return shutil.which("nginx") or pytest.skip("nginx cannot be installed here")


@pytest.fixture
def addresses(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Serve Moot behind nginx with the token, and yield the address of nginx and that of Moot."""
    with behind_nginx(tmp_path, MOOT_TOKEN=TOKEN) as (proxy, moot):
        assert wait_until(lambda: _status_code(f"{moot}/moot") == 403)
        yield proxy, moot


@contextmanager
def behind_nginx(tmp_path: Path, **variables: Any) -> Iterator[tuple[str, str]]:
    """Serve Moot behind nginx, and yield both addresses. Without `MOOT_TOKEN`, nginx sends no token."""
    nginx, folder = _nginx(), tmp_path / "nginx"
    folder.mkdir()
    inner, outer = _free_port(), _free_port()
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    outputs = ["-keyout", str(folder / "debates.key"), "-out", str(folder / "debates.pem")]
    subprocess.run(["openssl", *words, *outputs], check=True, capture_output=True)  # noqa: S607  # the system's command
    (folder / "debates.users").write_text(f"{ANN[0]}:{{PLAIN}}{ANN[1]}\n")
    block = re.search(r"```nginx\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert block
    server = (
        block[1].replace("listen 443 ssl", f"listen 127.0.0.1:{outer} ssl").replace("/etc/nginx", str(folder))
    )
    server = server.replace(":2025", f":{inner}").replace('"TOKEN"', f'"{variables.get("MOOT_TOKEN", "")}"')
    (folder / "nginx.conf").write_text(NGINX_CONF.format(folder=folder, server=server))
    with (
        Moot(tmp_path).start("serve", "--port", inner, **variables) as moot,
        subprocess.Popen([nginx, "-c", folder / "nginx.conf", "-p", folder, "-g", "daemon off;"]) as proxy,
    ):
        try:
            assert wait_until(lambda: _status_code(f"https://127.0.0.1:{outer}/") == 401), moot.errors()
            assert wait_until(lambda: _status_code(f"http://127.0.0.1:{inner}/moot")), moot.errors()
            yield f"https://127.0.0.1:{outer}", f"http://127.0.0.1:{inner}"
        finally:
            proxy.send_signal(signal.SIGTERM)
            moot.send_signal(signal.SIGINT)
            moot.wait(LONG_TIMEOUT_S)


def _status_code(url: str) -> int:
    with suppress(httpx.TransportError):
        return httpx.get(url, verify=False, trust_env=False).status_code  # noqa: S501  # a certificate of the test
    return 0


def test_only_authenticated_proxy_users_run_and_watch_debates(addresses: tuple[str, str]) -> None:
    proxy, moot = addresses
    spoofed = {"X-Forwarded-For": "127.0.0.1", "Host": "localhost", "X-Real-IP": "127.0.0.1"}
    for path in ("/moot", "/moot/api/debates"):
        assert httpx.get(f"{moot}{path}", headers=spoofed, trust_env=False).status_code == 403
    with httpx.Client(base_url=proxy, verify=False, trust_env=False, timeout=LONG_TIMEOUT_S) as stranger:  # noqa: S501
        assert stranger.get("/moot/api/debates").status_code == 401
        assert stranger.get("/moot/api/debates", headers={"x-api-key": "guess", **spoofed}).status_code == 401
    with httpx.Client(base_url=proxy, auth=ANN, verify=False, trust_env=False, timeout=LONG_TIMEOUT_S) as ann:  # noqa: S501
        assert ann.get("/moot").status_code == 200
        assert ann.get("/moot/api/setup").json()["operator"] is True
        asked = {"question": "Tabs?", "turns": 1}
        foreign = ann.post("/moot/api/debates", json=asked, headers={"Origin": "https://elsewhere.example"})
        assert foreign.status_code == 403
        begun = ann.post("/moot/api/debates", json=asked, headers={"Origin": proxy}).json()
        with ann.stream("GET", f"/moot/api/debates/{begun['id']}/events") as events:
            assert next(events.iter_lines()).startswith("data: ")
        assert ann.post("/moot/api/debates", content=b"x" * 2_000_000).status_code == 413


def test_a_proxy_without_the_token_grants_no_operator_permissions(tmp_path: Path) -> None:
    own = {"question": "Tabs?", "model": "mine", "models": {"mine": {"base_url": "http://127.0.0.1:9/v1"}}}
    with (
        behind_nginx(tmp_path, MOOT_ALLOW_HOSTS="127.0.0.1") as (proxy, _),
        httpx.Client(base_url=proxy, auth=ANN, verify=False, trust_env=False, timeout=LONG_TIMEOUT_S) as ann,  # noqa: S501
    ):
        assert ann.get("/moot/api/setup").json()["operator"] is False
        refused = ann.post("/moot/api/debates", json=own, headers={"Origin": proxy})
        assert (refused.status_code, "needs the operator's permission" in refused.text) == (400, True)
