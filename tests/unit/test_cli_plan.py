import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from moot.graph.cli.group import app_of
from moot.graph.cli.screen.output import complain
from moot.graph.operator_config import with_files
from moot.state.errors import ConfigError


def _invoke(words: list[str]) -> Any:
    return CliRunner().invoke(app_of("plan"), words)


def test_the_plan_is_a_table_with_calls_tokens_and_the_critical_path() -> None:
    done = _invoke(["Design a cache", "--protocol", "council", "--latency", "0.2"])
    assert done.exit_code == 0
    assert "calls           38" in done.stdout
    assert "11 calls in a row at concurrency 8: 2.2 s at 0.2 s a call" in done.stdout


def test_the_plan_says_how_many_calls_the_debate_itself_may_add(tmp_path: Path) -> None:
    done = _invoke(["Ships?", "--protocol", "dialogue"])
    assert "(at least 13, at most 25)" in done.stdout
    asked = CliRunner().invoke(
        app_of("plan"), ["Ships?", "--protocol", "dialogue", "--latency", "1", "--json"]
    )
    planned = json.loads(asked.stdout)
    assert (planned["calls_at_least"], planned["calls_at_most"]) == (13, 25)
    assert planned["seconds_at_most"] == planned["critical_path_calls_at_most"] == planned["seconds"]
    file = tmp_path / "debate.yaml"
    file.write_text("topic: Ships?\nprotocol: dialogue\nmodel: some-model\n")
    read = CliRunner().invoke(app_of("plan"), ["--config", str(file), "--latency", "1", "--json"])
    by_model = json.loads(read.stdout)
    assert by_model["seconds_at_most"] == by_model["critical_path_calls_at_most"] > by_model["seconds"]


def test_the_plan_as_json_is_the_forecast_of_the_configuration_file(tmp_path: Path) -> None:
    file = tmp_path / "debate.yaml"
    file.write_text("protocol: vote\nvote: {answers: 9}\nlimits: {concurrency: 3}\n")
    done = _invoke(["--config", str(file), "--json"])
    planned = json.loads(done.stdout)
    assert (planned["calls"], planned["critical_path_calls"], planned["seconds"]) == (9, 3, 15.0)


def test_a_plan_of_what_cannot_run_is_refused() -> None:
    done = _invoke(["--protocol", "council", "-d", "Ann"])
    assert isinstance(done.exception, ConfigError)


def test_a_prompt_file_that_cannot_be_read_warns_and_leaves_the_built_in_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.md").write_text("Mind the doors.")
    given = {"name": "Ann", "system_prompt": "@mine.md", "summary_prompt": "@gone.md"}
    memory = {"perspectives": {"prompt": "@lost.md"}}
    data = with_files({"debaters": [given], "memory": memory}, tmp_path, complain)
    assert data["debaters"] == [{"name": "Ann", "system_prompt": "Mind the doors."}]
    assert data["memory"] == {"perspectives": {}}
    said = capsys.readouterr().err
    assert "gone.md" in said
    assert said.count("the built-in prompt is used") == 2
