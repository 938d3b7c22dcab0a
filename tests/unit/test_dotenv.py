"""Variables from a `.env` file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from moot.state import settings
from moot.state.errors import ConfigError, InputError

VARIABLES = ("MOOT_DB", "OPENAI_API_KEY", "OPENAI_BASE_URL", "MOOT_MODEL", "MOOT_CONFIG", "MISTRAL_API_KEY")


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, "")  # so that monkeypatch restores it after the test
        del os.environ[name]


def _write_dotenv(folder: Path, text: str) -> Path:
    (folder / ".env").write_text(text, encoding="utf-8")
    return folder / ".env"


def test_dotenv_sets_only_variables_missing_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOT_MODEL", "mine")
    path = _write_dotenv(
        tmp_path, "# mine\nOPENAI_API_KEY='k-1'\nOPENAI_BASE_URL=http://here/v1\nMOOT_MODEL=theirs\n"
    )
    assert settings.read_dotenv(path) == ""
    assert (settings.api_key("OPENAI_API_KEY"), settings.variable("OPENAI_BASE_URL")) == (
        "k-1",
        "http://here/v1",
    )
    assert settings.variable("MOOT_MODEL") == "mine"


def test_dotenv_cannot_set_the_address_for_an_environment_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    warning = settings.read_dotenv(_write_dotenv(tmp_path, "OPENAI_BASE_URL=https://elsewhere.example/v1\n"))
    assert settings.variable("OPENAI_BASE_URL") is None
    assert "OPENAI_BASE_URL in .env is ignored" in warning


def test_dotenv_cannot_set_the_key_for_an_environment_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:11434/v1")
    warning = settings.read_dotenv(
        _write_dotenv(tmp_path, "OPENAI_API_KEY=sk-of-the-file\nMISTRAL_API_KEY=m\n")
    )
    assert settings.api_key("OPENAI_API_KEY") is None
    assert settings.api_key("MISTRAL_API_KEY") == "m"
    assert "OPENAI_API_KEY in .env is ignored" in warning


def test_dotenv_ignores_other_variables_and_expands_nothing(tmp_path: Path) -> None:
    path = os.environ["PATH"]
    text = "MOOT_CONFIG=evil.yaml\nPATH=/tmp\nOPENAI_BASE_URL=http://x/${PATH}\n"
    settings.read_dotenv(_write_dotenv(tmp_path, text))
    assert (settings.variable("MOOT_CONFIG"), os.environ["PATH"]) == (None, path)
    assert settings.variable("OPENAI_BASE_URL") == "http://x/${PATH}"


def test_a_binary_dotenv_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot read"):
        settings.read_dotenv(tmp_path / ".env")


def test_a_nul_character_in_dotenv_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="NUL character"):
        settings.read_dotenv(_write_dotenv(tmp_path, "OPENAI_API_KEY=a\0b\n"))


def test_user_settings_are_stored_together_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "settings.env"
    path.write_text("OPENAI_API_KEY='old'\nOPENAI_BASE_URL='http://old/v1'\n")
    before = path.read_text()
    monkeypatch.setattr(settings, "user_settings_file", lambda: path)

    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dotenv.unset_key", fail)
    with pytest.raises(InputError, match="No space left"):
        settings.write_user_settings({"OPENAI_API_KEY": "new", "OPENAI_BASE_URL": ""})
    assert path.read_text() == before
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_dotenv_of_a_folder_cannot_choose_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MOOT_DB", raising=False)
    monkeypatch.chdir(tmp_path)
    _write_dotenv(tmp_path, "MOOT_DB=postgresql://somebody.example/x\n")
    assert settings.read_settings_files()[0].startswith("MOOT_DB in .env is ignored")
    assert "MOOT_DB" not in os.environ
