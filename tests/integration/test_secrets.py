"""Canaries: a key and a password that are in no byte that is printed, stored or exported."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from moot.state.redaction import keep_secret, redact, shown_url
from tests.support.moot_command import Moot
from tests.support.openai_server import Act, OpenAIServer

KEY = "sk-canary-7f3a9c21d4"
PASSWORD = "pw-canary-55aa"  # noqa: S105  # nobody's

CONFIG = """
model: m
turns: 2
models:
  m: {{base_url: "{url}", max_attempts: 1, api_key_env: OPENAI_API_KEY}}
"""


def _bytes_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("failing", [True, False])
def test_no_byte_holds_a_secret(tmp_path: Path, failing: bool) -> None:
    def plan(asked: object, number: int) -> Act | None:
        return Act(status=401, message=f"wrong key: Bearer {KEY} at {'x' * 270}{KEY}") if failing else None

    moot = Moot(tmp_path / "home")
    moot.folder.mkdir()
    config = tmp_path / "debate.yaml"
    with OpenAIServer(plan) as server:
        url = server.base_url.replace("http://", f"http://me:{PASSWORD}@")
        config.write_text(CONFIG.format(url=url))
        keyed = partial(moot, OPENAI_API_KEY=KEY, MOOT_DEBUG="1")
        ran = keyed("run", "Which queue?", "-c", config, "--id", "d", "-o", "d.html", "--json")
        assert ran.code == (3 if failing else 0), ran.err
        assert len(server.requests) >= 1
        results = [ran, keyed("show", "d", "--json"), keyed("export", "d", "-o", "d.json")]
    shown = "".join(result.out + result.err for result in results)
    assert KEY not in shown
    assert PASSWORD not in shown
    written = _bytes_in(moot.folder)
    assert KEY.encode() not in written
    for export in ("d.json", "d.html"):
        assert PASSWORD not in (moot.folder / export).read_text()
    exported = json.loads((moot.folder / "d.json").read_text())["config"]["models"]["m"]["base_url"]
    assert exported.startswith("http://me:***@127.0.0.1")


def test_a_database_s_password_is_in_no_message(tmp_path: Path) -> None:
    moot = Moot(tmp_path)
    for address in (f"postgresql://me:{PASSWORD}@127.0.0.1:9/d", f"mysql://me:{PASSWORD}@h/d"):
        for words in (("list",), ("run", "T?"), ("show", "d")):
            result = moot(*words, "--db", address, MOOT_DEBUG="1")
            assert result.code == 2
            assert PASSWORD not in result.out + result.err


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:p@ss@h/d", "postgresql://me:***@h/d"),
        ("postgresql://me@h/d?password=hunter2&x=1", "postgresql://me@h/d?password=***&x=1"),
        ("https://token@h/v1?api_key=abc", "https://***@h/v1?api_key=***"),
        ("sqlite:///a/b.sqlite", "sqlite:///a/b.sqlite"),
        ("/data/a@b:c.sqlite", "/data/a@b:c.sqlite"),
    ],
)
def test_an_address_is_shown_without_what_is_secret_in_it(url: str, shown: str) -> None:
    assert shown_url(url) == shown


def test_what_is_too_short_to_be_a_secret_blots_out_no_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.state.redaction._known", set())
    for secret in ("k", "", None, "long-enough-1"):
        keep_secret(secret)
    assert redact("kick long-enough-1") == "kick ***"
