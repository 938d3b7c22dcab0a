from __future__ import annotations

import os
from pathlib import Path

import pytest

from moot.state import settings
from moot.state.errors import ConfigError

KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MOOT_MODEL", "MOOT_CONFIG", "MISTRAL_API_KEY")


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.setenv(name, "")  # restored afterwards, whatever the file sets
        del os.environ[name]


def _file(folder: Path, text: str) -> Path:
    (folder / ".env").write_text(text, encoding="utf-8")
    return folder / ".env"


def test_it_says_what_the_environment_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOOT_MODEL", "mine")
    folder = _file(
        tmp_path, "# mine\nOPENAI_API_KEY='k-1'\nOPENAI_BASE_URL=http://here/v1\nMOOT_MODEL=theirs\n"
    )
    assert settings.read_dotenv(folder) == ""
    assert (settings.api_key("OPENAI_API_KEY"), settings.variable("OPENAI_BASE_URL")) == (
        "k-1",
        "http://here/v1",
    )
    assert settings.variable("MOOT_MODEL") == "mine"


def test_a_key_of_the_environment_goes_to_no_address_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    said = settings.read_dotenv(_file(tmp_path, "OPENAI_BASE_URL=https://elsewhere.example/v1\n"))
    assert settings.variable("OPENAI_BASE_URL") is None
    assert "OPENAI_BASE_URL in .env is ignored" in said


def test_a_key_of_a_file_goes_to_no_address_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:11434/v1")
    said = settings.read_dotenv(_file(tmp_path, "OPENAI_API_KEY=sk-of-the-file\nMISTRAL_API_KEY=m\n"))
    assert settings.api_key("OPENAI_API_KEY") is None
    assert settings.api_key("MISTRAL_API_KEY") == "m"
    assert "OPENAI_API_KEY in .env is ignored" in said


def test_imports_and_other_programs_are_no_matter_of_it_and_nothing_is_expanded(tmp_path: Path) -> None:
    path = os.environ["PATH"]
    text = "MOOT_CONFIG=evil.yaml\nPATH=/tmp\nOPENAI_BASE_URL=http://x/${PATH}\n"
    settings.read_dotenv(_file(tmp_path, text))
    assert (settings.variable("MOOT_CONFIG"), os.environ["PATH"]) == (None, path)
    assert settings.variable("OPENAI_BASE_URL") == "http://x/${PATH}"


def test_one_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot read"):
        settings.read_dotenv(tmp_path / ".env")
