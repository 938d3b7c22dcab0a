"""`moot setup` against a loopback server, and commands that use its settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.moot_command import Moot
from tests.support.openai_server import OpenAIServer, ServerReply

QUESTION = "Should we split the monolith?"
PROPOSED = {
    "debaters": [
        {"name": "Ada", "role": "platform engineer", "stance": "Split it along team boundaries."},
        {"name": "Ben", "role": "reliability engineer", "stance": "Keep one deployable."},
    ]
}


def _act(request: dict[str, object], number: int) -> ServerReply | None:
    asked = json.dumps(request)
    if "Propose two debaters" in asked:
        return ServerReply(text=json.dumps(PROPOSED))
    return ServerReply(text='{"word": "ready"}') if "ready" in asked else None


@pytest.fixture
def moot(tmp_path: Path) -> Moot:
    return Moot(tmp_path, model="")


def test_bare_question_after_setup_runs_with_two_proposed_debaters(moot: Moot) -> None:
    with OpenAIServer(_act) as server:
        done = moot("setup", "--base-url", server.base_url, "--key-stdin", "--json", stdin=b"sk-mine\n")
        assert done.code == 0, done.err
        assert done.json["model"] == "test-model"
        assert "replies in" in done.json["test"]
        file = Path(done.json["file"])
        assert file.stat().st_mode & 0o777 == 0o600
        assert {each.headers["authorization"] for each in server.requests} == {"Bearer sk-mine"}

        ran = moot(QUESTION, "--turns", "2")
        assert ran.code == 0, ran.err
        assert "Ada (platform engineer): Split it along team boundaries." in ran.err
        assert "price unknown for test-model" in ran.err
        document = moot("show", "split-monolith", "--json").json
        assert [each["stance"] for each in document["config"]["debaters"]] == [
            "Split it along team boundaries.",
            "Keep one deployable.",
        ]
        again = moot(QUESTION, "--turns", "1", "-d", "Eve::yes", "-d", "Kim::no", "--no-judge", "--json")
        assert again.json["name"] == "split-monolith-2"
        assert [each["name"] for each in again.json["config"]["debaters"]] == ["Eve", "Kim"]
        proposals = [chat for chat in server.chats if "Propose two debaters" in json.dumps(chat)]
        assert len(proposals) == 1
        assert moot("-c", "--turns", "1", "--json").json["name"] == again.json["name"]
        asked = moot("-c", "What does Eve say?", "--json")
        assert asked.code == 0, asked.err
        doctor = moot("doctor")
        assert f"endpoint: {server.base_url}, from {file}" in doctor.out.replace("\n", " ")
        assert "ok    reached: the endpoint offers 1 model" in doctor.out
        assert "sk-mine" not in doctor.out + ran.err + done.out
    unreachable = moot("doctor")
    assert (unreachable.code, "WRONG reached: cannot list the models" in unreachable.out) == (1, True)


def test_key_env_reads_the_key_from_a_variable_and_stores_no_key(moot: Moot) -> None:
    with OpenAIServer(_act) as server:
        done = moot("setup", "--base-url", server.base_url, "--key-env", "MY_KEY", MY_KEY="sk-else")
        assert done.code == 0, done.err
        assert "sk-else" not in (moot.folder / "config" / "moot" / "settings.env").read_text()
        assert moot("models", MY_KEY="sk-else").out.strip() == "test-model"
        unset = moot("setup", "--base-url", server.base_url, "--key-env", "OTHER_KEY")
        assert (unset.code, "is not set" in unset.err) == (2, True)


def test_the_shell_completes_models_and_samples(moot: Moot) -> None:
    def completed(words: str, base_url: str = "") -> list[str]:
        count = str(len(words.split()) - 1 + words.endswith(" "))
        done = moot(
            COMP_WORDS=words,
            COMP_CWORD=count,
            _MOOT_COMPLETE="complete_bash",
            OPENAI_BASE_URL=base_url,
        )
        return done.out.split()

    with OpenAIServer() as server:
        run = completed("moot run Why? --model t", server.base_url)
        resume = completed("moot resume x --model ", server.base_url)
    assert (run, resume) == (["test-model"], ["offline", "test-model"])
    assert completed("moot demo mono") == ["monolith"]


def test_setup_stores_nothing_if_the_test_call_fails(moot: Moot) -> None:
    with OpenAIServer(lambda request, number: ServerReply(status=401, message="wrong key")) as server:
        done = moot("setup", "--base-url", server.base_url, "--key-stdin", stdin=b"sk-wrong\n")
        assert done.code == 3
        assert "The settings were not stored" in done.err
        assert not (moot.folder / "config" / "moot" / "settings.env").exists()
        other = moot("setup", "--base-url", server.base_url, "--no-key", "--model", "test-modl")
        assert (other.code, "does not offer the model 'test-modl': choose from test-model" in other.err) == (
            2,
            True,
        )


def test_environment_variables_override_the_stored_endpoint(moot: Moot) -> None:
    with OpenAIServer(_act) as server, OpenAIServer(_act) as other:
        assert moot("setup", "--base-url", server.base_url, "--no-key").code == 0
        before = len(server.requests)
        ran = moot("run", "Why?", "--turns", "1", "--no-judge", OPENAI_BASE_URL=other.base_url)
        assert ran.code == 0, ran.err
        assert (len(server.requests), bool(other.chats)) == (before, True)


def test_keys_are_sent_only_to_the_endpoint_of_their_source(moot: Moot) -> None:
    with OpenAIServer(_act) as stored, OpenAIServer(_act) as other:
        assert moot("setup", "--base-url", stored.base_url, "--key-stdin", stdin=b"sk-stored\n").code == 0
        proxy = "http://127.0.0.1:9"  # no request reaches OpenAI
        keyed = moot("models", OPENAI_API_KEY="sk-env", HTTPS_PROXY=proxy)
        assert "OPENAI_BASE_URL in settings.env is ignored" in " ".join(keyed.err.split())
        assert stored.authorizations == {"Bearer sk-stored"}
        words = ("run", "Why?", "--turns", "1", "--no-judge", "--model", "test-model")
        for command in (words, ("models",)):
            assert moot(*command, OPENAI_BASE_URL=other.base_url).code == 0
        assert other.chats
        assert "sk-stored" not in str(other.authorizations)
        assert moot("models", OPENAI_API_KEY="sk-env", OPENAI_BASE_URL=other.base_url).code == 0
        assert "Bearer sk-env" in other.authorizations
        assert stored.authorizations == {"Bearer sk-stored"}


def test_commands_without_a_key_suggest_moot_setup(moot: Moot) -> None:
    assert "no API key: run `moot setup`" in moot("models").err
    assert "none: run `moot setup`" in moot("doctor").out
    assert "no model is set: run `moot setup`" in " ".join(moot("Should we?").err.split())
    assert moot("Should we?").code == 2
    refused = moot("setup")
    assert (refused.code, "OpenAI needs a key" in refused.err) == (2, True)
