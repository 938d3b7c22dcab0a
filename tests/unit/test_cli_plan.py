import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from moot.cli.group import app_of
from moot.cli.terminal import print_error
from moot.config.file_references import with_files
from moot.state.errors import ConfigError


def _invoke(words: list[str]) -> Any:
    return CliRunner().invoke(app_of("plan"), words)


def test_the_plan_shows_calls_and_the_critical_path() -> None:
    done = _invoke(["Design a cache", "--protocol", "council", "--latency", "0.2"])
    assert done.exit_code == 0
    assert "calls           17–32, about 25" in done.stdout
    assert "10 calls in a row at concurrency 8: 2.0 s at 0.2 s a call (at most 13: 2.6 s)" in done.stdout


def test_the_plan_warns_if_prompts_may_leave_out_messages() -> None:
    done = _invoke(["Design a cache", "--protocol", "council"])
    assert "memory.budget.total: prompts of the phase 'judge' hold 8,000 tokens" in " ".join(
        done.stderr.split()
    )
    assert "phase 'refine'" in done.stderr
    planned = json.loads(_invoke(["Design a cache", "--protocol", "council", "--json"]).stdout)
    assert planned["left_out_tokens"]["judge"] > 4000
    short = _invoke(["Ships?", "--turns", "4"])
    assert "leave out" not in short.stderr


def test_the_plan_gives_the_range_of_calls_of_a_dialogue(tmp_path: Path) -> None:
    done = _invoke(["Ships?", "--protocol", "dialogue"])
    assert "calls           12–24, about 18" in done.stdout
    asked = CliRunner().invoke(
        app_of("plan"), ["Ships?", "--protocol", "dialogue", "--latency", "1", "--json"]
    )
    planned = json.loads(asked.stdout)
    assert (planned["calls_at_least"], planned["calls_at_most"]) == (12, 24)
    assert planned["calls"] == 18
    assert planned["seconds_at_most"] == planned["critical_path_calls_at_most"] > planned["seconds"]
    file = tmp_path / "debate.yaml"
    file.write_text("topic: Ships?\nprotocol: dialogue\nmodel: some-model\n")
    read = CliRunner().invoke(app_of("plan"), ["--config", str(file), "--latency", "1", "--json"])
    by_model = json.loads(read.stdout)
    assert by_model["seconds_at_most"] == by_model["critical_path_calls_at_most"] > by_model["seconds"]


def test_the_json_plan_estimates_the_configuration_file(tmp_path: Path) -> None:
    file = tmp_path / "debate.yaml"
    file.write_text("protocol: vote\nvote: {answers: 9}\nlimits: {concurrency: 3}\n")
    done = _invoke(["--config", str(file), "--json"])
    planned = json.loads(done.stdout)
    assert (planned["calls"], planned["critical_path_calls"], planned["seconds"]) == (15, 6, 30.0)
    assert planned["calls_at_least"] == 9, "the judge is called only for a tie"


def test_a_plan_of_an_invalid_debate_is_rejected() -> None:
    done = _invoke(["--protocol", "council", "-d", "Ann"])
    assert isinstance(done.exception, ConfigError)


def test_personas_are_read_from_files(tmp_path: Path) -> None:
    (tmp_path / "ann.md").write_text("She counts.", encoding="utf-8")
    debaters = [
        {"name": "Ann", "persona": "@ann.md"},
        {"name": "Bo", "persona": {"Temper": "@ann.md", "Voice": "dry"}},
    ]
    read = with_files({"debaters": debaters}, tmp_path)["debaters"]
    assert [each["persona"] for each in read] == ["She counts.", {"Temper": "She counts.", "Voice": "dry"}]


def test_an_unreadable_prompt_file_warns_and_the_built_in_prompt_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.md").write_text("Mind the doors.")
    debater = {"name": "Ann", "system_prompt": "@mine.md", "summary_prompt": "@gone.md"}
    memory = {"perspectives": {"prompt": "@lost.md"}}
    data = with_files({"debaters": [debater], "memory": memory}, tmp_path, print_error)
    assert data["debaters"] == [{"name": "Ann", "system_prompt": "Mind the doors."}]
    assert data["memory"] == {"perspectives": {}}
    warnings = capsys.readouterr().err
    assert "gone.md" in warnings
    assert warnings.count("the default prompt is used") == 2


def test_the_plan_counts_documents_of_the_option_and_of_the_file_alike(tmp_path: Path) -> None:
    document, file = tmp_path / "note.md", tmp_path / "debate.yaml"
    document.write_text("The pipes of the old town are of lead. " * 60)
    file.write_text("context: note.md\nturns: 4\n")
    planned = {
        key: json.loads(_invoke(["Pipes?", *words, "--json"]).stdout)["prompt_tokens"]
        for key, words in {
            "none": ["--turns", "4"],
            "option": ["--turns", "4", "--context", str(document)],
            "file": ["--config", str(file)],
        }.items()
    }
    assert planned["option"] == planned["file"] > planned["none"] + 4 * 500
