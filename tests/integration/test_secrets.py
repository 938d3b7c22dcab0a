"""Moot prints, stores and exports no secret. Canary strings stand for keys and passwords."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import httpx
import pytest

from moot.api import open_debates
from moot.config import DebateConfig
from moot.state.errors import MootError
from moot.state.settings import (
    StreamRedactor,
    check_database,
    redact,
    redact_urls,
    register_database_password,
    register_password,
    register_secret,
)
from tests.support.moot_command import Moot
from tests.support.openai_server import OpenAIServer, ServerReply

KEY = "sk-canary-7f3a9c21d4"
PASSWORD = "pw-canary-55aa"  # noqa: S105  # not a real password

HEADER = "hd-canary-91b2"
OTHER = "ev-canary-8d1e"
CANARIES = (KEY, PASSWORD, HEADER, OTHER)

CONFIG = """
model: m
turns: 2
debaters: [{name: Ann, tools: [calculator]}, {name: Bob}]
judge: {enabled: true}
models: {m: {max_attempts: 1}}
"""


def _bytes_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("failing", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_output_and_files_contain_no_secret(tmp_path: Path, failing: bool) -> None:
    message = f"wrong key: Bearer {KEY} at http://me:{PASSWORD}@host {'x' * 270}{KEY}"

    def plan(asked: object, number: int) -> ServerReply | None:
        return ServerReply(status=401, message=message) if failing else None

    moot = Moot(tmp_path / "home")
    moot.folder.mkdir()
    config = tmp_path / "debate.yaml"
    config.write_text(CONFIG)
    with OpenAIServer(plan) as server:
        keyed = partial(
            moot,
            OPENAI_API_KEY=KEY,
            OPENAI_BASE_URL=server.base_url.replace("http://", f"http://me:{PASSWORD}@"),
            OTEL_EXPORTER_OTLP_HEADERS=f"authorization={HEADER}",
            UNRELATED_TOKEN=OTHER,
            MOOT_DEBUG="1",
        )
        ran = keyed("run", "Which queue?", "-c", config, "--id", "d", "-o", "d.html", "--json", "--log-json")
        assert ran.code == (3 if failing else 0), ran.err
        assert len(server.requests) >= 1
        results = [ran, keyed("show", "d", "--json"), keyed("doctor"), keyed("config", "-c", config)]
        results += [keyed("report", "d", "-o", f"d.{form}") for form in ("json", "md", "html")]
        results += [keyed("backup", "copy.sqlite"), keyed("fork", "d"), keyed("ask", "d", "Which queue?")]
    shown = "".join(result.out + result.err for result in results)
    written = _bytes_in(moot.folder)
    assert b"which queue?" in written.lower()
    for canary in CANARIES:
        assert canary not in shown
        assert canary.encode() not in written


def test_a_secret_that_a_model_repeats_in_a_reply_is_redacted(tmp_path: Path) -> None:
    escaped, plain = "pw-canary%40x", "pw-canary@x"

    def plan(asked: object, number: int) -> ServerReply:
        return ServerReply(text=f"The key is {KEY}, the password is {escaped} or {plain}.")

    moot = Moot(tmp_path / "home")
    moot.folder.mkdir()
    with OpenAIServer(plan) as server:
        address = server.base_url.replace("http://", f"http://me:{escaped}@")
        ran = moot(
            *("run", "Which queue?", "--turns", "2", "--no-judge", "-m", "m", "--id", "d", "--json"),
            OPENAI_API_KEY=KEY,
            OPENAI_BASE_URL=address,
        )
    assert ran.code == 0, ran.err
    reported = moot("report", "d", "-o", "d.json")  # a process that does not know the key
    shown = ran.out + ran.err + reported.out
    assert "The key is ***" in shown + (moot.folder / "d.json").read_text()
    for canary in (KEY, escaped, plain):
        assert canary not in shown
        assert canary.encode() not in _bytes_in(moot.folder)


@pytest.mark.parametrize(
    "settings",
    [
        f'{{base_url: "http://me:{PASSWORD}@127.0.0.1:9/v1"}}',
        f'{{base_url: "http://{PASSWORD}@127.0.0.1:9/v1"}}',
        f'{{base_url: "http://127.0.0.1:9/v1?api_key={KEY}"}}',
        f"{{api_key_env: {KEY}}}",
    ],
)
def test_a_configuration_with_a_secret_is_refused_without_showing_it(tmp_path: Path, settings: str) -> None:
    config = tmp_path / "debate.yaml"
    config.write_text(f"model: m\nmodels: {{m: {settings}}}\n")
    moot = Moot(tmp_path / "home")
    moot.folder.mkdir()
    ran = moot("run", "Which queue?", "-c", config, MOOT_DEBUG="1")
    assert ran.code == 2
    assert "models.m." in ran.err
    for canary in CANARIES:
        assert canary not in ran.out + ran.err
        assert canary.encode() not in _bytes_in(moot.folder)


def test_no_message_shows_the_database_password(tmp_path: Path) -> None:
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
def test_redact_urls_hides_passwords_and_keys(url: str, shown: str) -> None:
    assert redact_urls(url) == shown


def test_a_secret_that_is_too_short_is_not_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.state.settings._secrets", set())
    for secret in ("k", "", None, "long-enough-1"):
        register_secret(secret)
    assert redact("kick long-enough-1") == "kick ***"


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_a_secret_split_over_stream_chunks_is_redacted(size: int) -> None:
    register_secret(KEY)
    text = f"It is {KEY}, or {KEY[:-1]}? No: {KEY}{KEY}."
    redactor = StreamRedactor()
    seen = [redactor.feed(text[at : at + size]) for at in range(0, len(text), size)]
    assert "".join([*seen, redactor.close()]) == redact(text)


def test_each_of_several_secrets_split_over_stream_chunks_is_redacted() -> None:
    for secret in (KEY, PASSWORD, HEADER):
        register_secret(secret)
    text = f"{PASSWORD}, {KEY}, {HEADER}."
    redactor = StreamRedactor()
    seen = [redactor.feed(letter) for letter in text]
    assert "".join([*seen, redactor.close()]) == "***, ***, ***."


def test_token_events_contain_no_part_of_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    config = DebateConfig.model_validate({"model": "m", "turns": 1, "judge": {"enabled": False}})
    text = f"The key is {KEY}."
    pieces = [text[at : at + 5] for at in range(0, len(text), 5)]
    with OpenAIServer(lambda *_: ServerReply(pieces=pieces)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        with open_debates(str(tmp_path / "d.sqlite")) as debates:
            events = list(debates.start("Which queue?", config).stream(tokens=True))
    streamed = [event["text"] for event in events if event["event"] == "token"]
    assert "".join(streamed) == "The key is ***."
    assert len(streamed) > 1


def test_a_password_is_redacted_in_a_basic_auth_header(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.state.settings._secrets", set())
    register_password("http://me:pw-canary%40x@h/v1")
    sent = httpx.BasicAuth("me", "pw-canary@x")._auth_header
    assert redact(f"Authorization: {sent}") == "Authorization: Basic ***"


@pytest.mark.parametrize("how", ["MOOT_DB", "--db"])
@pytest.mark.parametrize(
    "userinfo",
    ["ro:p@w-SECRET-8", "ro:pw SECRET 7", "ro:a@b@SECRET@c", "ro:pw/SECRET", "ro:pw?SECRET", "ro:%zz SECRET"],
)
@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
def test_no_error_shows_any_part_of_an_unescaped_password(
    scheme: str, userinfo: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moot.state.settings._secrets", set())
    url = f"{scheme}://{userinfo}@127.0.0.1:1/x"
    if how == "MOOT_DB":
        monkeypatch.setenv("MOOT_DB", url)
    with pytest.raises(MootError) as caught:
        open_debates(check_database(url if how == "--db" else None))
    assert "SECRET" not in redact(str(caught.value))
    assert "SECRET" not in str(caught.value)


def test_an_open_debates_error_shows_no_part_of_the_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("moot.state.settings._secrets", set())
    with pytest.raises(MootError) as caught:
        open_debates("postgresql://ro:p@w-SECRET-8@127.0.0.1:1/x")
    assert "SECRET" not in str(caught.value)


def test_a_well_formed_database_address_redacts_no_ordinary_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.state.settings._secrets", set())
    register_database_password("postgresql://ro:data@127.0.0.1:5432/moot")
    assert redact("the database moot") == "the database moot"
