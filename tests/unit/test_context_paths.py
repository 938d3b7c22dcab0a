"""The setting `context` with several paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot.api import open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.config.boundary import Capability, capabilities_of
from moot.config.stages import read_config
from moot.debates.dry_run import estimate
from moot.state.errors import ConfigError
from tests.support.fakes import FakeModel, fake_reply


def _config(folder: Path, *paths: str) -> DebateConfig:
    (folder / "a.md").write_text("The mains are of iron. " * 100)
    (folder / "b.md").write_text("The service lines are of lead. " * 100)
    for name in ("notes", "more"):
        (folder / name).mkdir()
    (folder / "moot.yaml").write_text(f"context: [{', '.join(paths)}]\nturns: 2\n")
    return read_config(folder / "moot.yaml", {}, lambda _: None)


def test_context_files_enter_the_transcript_in_listed_order(tmp_path: Path) -> None:
    config = _config(tmp_path, "b.md", "notes", "a.md")
    assert config.context == tuple(str(tmp_path / name) for name in ("b.md", "notes", "a.md"))
    assert {Capability("context", path) for path in config.context} <= capabilities_of(config).keys()
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        entries = debates.start("Pipes?", config).run()["transcript"]
    titles = [entry["content"].partition("\n")[0] for entry in entries[1:4]]
    assert titles == ["b.md", "Files of the folder 'notes'", "a.md"]
    all_files, one_file, none = (
        planned.to_json()["prompt_tokens"]
        for context in (config.context, config.context[0], None)
        if (planned := estimate(config.model_copy(update={"context": context})))
    )
    assert all_files > one_file > none


def test_two_folders_are_refused(tmp_path: Path) -> None:
    config = _config(tmp_path, "notes", "more")
    with (
        open_debates(str(tmp_path / "d.sqlite")) as debates,
        pytest.raises(ConfigError, match="at most one folder"),
    ):
        debates.start("Pipes?", config).run()


def test_file_tool_reads_the_context_folder_beside_a_context_file(tmp_path: Path) -> None:
    def reply(call: ModelCall) -> Reply:
        if not call.tools or any(message["role"] == "tool" for message in call.messages):
            return fake_reply(call)
        return Reply(text="", tool_calls=({"id": "c", "name": "list_files", "args": {}},), model="m")

    config = _config(tmp_path, "a.md", "notes")
    (tmp_path / "notes" / "valves.txt").write_text("Three valves leak.")
    debaters = [{"name": "Ada", "tools": ["list_files"]}, {"name": "Ben"}]
    model = FakeModel(reply)
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debate = debates.start("Pipes?", DebateConfig(context=config.context, debaters=debaters, turns=2))
        entries = debate.run()["transcript"]
    (result,) = [entry["content"] for entry in entries if entry["kind"] == "tool_result"]
    assert "valves.txt" in result
    assert "b.md" not in result


@pytest.mark.parametrize("context", ["''", "['']"])
def test_an_empty_path_names_no_folder(context: str, tmp_path: Path) -> None:
    (tmp_path / "moot.yaml").write_text(f"context: {context}\n")
    assert read_config(tmp_path / "moot.yaml", {}, lambda _: None).context_paths() == ()
    assert DebateConfig(context="").context_paths() == ()
