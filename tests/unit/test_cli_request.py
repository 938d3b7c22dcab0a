from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from moot.cli.commands.config import template
from moot.cli.group import load_command
from moot.cli.inputs import parse_debaters, read_topic, run_config
from moot.cli.options import protocols_like
from moot.config import DebateConfig
from moot.config.config_files import make_config, with_settings
from moot.config.memory_config import Budget
from moot.config.stages import file_data
from moot.graph.json_schemas import config_schema, field_docs
from moot.people import PersonQuestion, unused_replies
from moot.plugins.importing.read_context import read_documents
from moot.protocols.registry import PROTOCOLS
from moot.state.errors import ConfigError, InputError


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("Ada", {"name": "Ada"}),
        ("Ada:engineer", {"name": "Ada", "role": "engineer"}),
        ("Ada : engineer : for: it", {"name": "Ada", "role": "engineer", "stance": "for: it"}),
        ("Ada::for it", {"name": "Ada", "role": "", "stance": "for it"}),
    ],
    ids=["name", "role", "stance with a colon", "no role"],
)
def test_debater_option_has_name_role_and_stance(option: str, expected: dict[str, str]) -> None:
    assert parse_debaters([option]) == [expected]


def test_a_debater_without_a_name_is_refused() -> None:
    with pytest.raises(InputError, match="NAME"):
        parse_debaters([":engineer"])


def test_only_given_flags_override_the_file() -> None:
    data = {"turns": 4, "judge": {"enabled": True, "blind": False}}
    flags = {"turns": None, "model": "m", "judge.enabled": False}
    assert with_settings(data, flags) == {
        "turns": 4,
        "model": "m",
        "judge": {"enabled": False, "blind": False},
    }
    assert data["judge"] == {"enabled": True, "blind": False}


def test_a_flag_of_a_section_that_is_no_mapping_is_refused() -> None:
    with pytest.raises(ConfigError, match="judge"):
        with_settings({"judge": "strict"}, {"judge.enabled": False})


def test_rubric_path_is_relative_to_the_configuration_file(tmp_path: Path) -> None:
    rubric = {"name": "mine", "criteria": [{"id": "wit", "name": "Wit"}]}
    (tmp_path / "wit.yaml").write_text(yaml.safe_dump(rubric))
    (tmp_path / "c.yaml").write_text(
        yaml.safe_dump({"judge": {"rubric": "wit.yaml", "panel": [{"id": "one", "rubric": "wit.yaml"}]}})
    )
    config = make_config(file_data(tmp_path / "c.yaml"))
    assert isinstance(config.judge.rubric, dict)
    assert config.judge.rubric["criteria"][0]["id"] == "wit"
    assert config.judge.panel[0].rubric == config.judge.rubric


def test_system_prompt_path_is_relative_to_the_configuration_file(tmp_path: Path) -> None:
    (tmp_path / "ada.md").write_text("You are Ada.")
    (tmp_path / "c.yaml").write_text("debaters: [{name: Ada, system_prompt: '@ada.md'}]")
    assert make_config(file_data(tmp_path / "c.yaml")).debaters[0].system_prompt == "You are Ada."


def test_topic_is_read_from_words_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "topic.txt").write_text("From a file?\x00")
    assert read_topic("Words?") == "Words?"
    assert read_topic(f"@{tmp_path / 'topic.txt'}") == "From a file?"
    assert read_topic(None) is None


def test_folder_documents_are_sorted_by_name_without_hidden_files(tmp_path: Path) -> None:
    for name in ("b.md", "a.md", ".hidden"):
        (tmp_path / name).write_text(name)
    assert [each["name"] for each in read_documents([tmp_path])] == ["a.md", "b.md"]


def test_model_flag_overrides_the_file_and_the_file_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("MOOT_MODEL", "of-environment")
    file = tmp_path / "c.yaml"
    file.write_text("model: of-file")
    assert run_config(None, {}).model == "of-environment"
    assert run_config(file, {}).model == "of-file"
    assert run_config(file, {"model": "of-flag"}).model == "of-flag"


def test_the_template_loads_as_the_default_configuration() -> None:
    assert make_config(yaml.safe_load(template())) == DebateConfig()


@pytest.mark.parametrize("protocol", ["council", "dialogue", "vote"])
def test_template_is_valid_with_another_protocol(protocol: str) -> None:
    changed = {**yaml.safe_load(template()), "protocol": protocol}
    assert make_config(changed) == DebateConfig(protocol=protocol)


def test_template_names_every_setting() -> None:
    for name in DebateConfig.model_fields:
        assert f"\n{name}:" in template() or f"\n# {name}:" in template()
    assert f"# {field_docs(Budget)['total']}"[:40] in template()


def test_the_schema_accepts_the_template_and_refuses_unknown_keys() -> None:
    schema = Draft202012Validator(config_schema())
    assert schema.is_valid(yaml.safe_load(template()))
    assert not schema.is_valid({"tuns": 4})
    assert config_schema()["properties"]["seed"]["description"]


def test_debater_name_in_any_script_gets_an_ascii_id() -> None:
    options = ["北京:engineer", "Мария", "مريم", "✨"]
    config = make_config({"debaters": parse_debaters(options)})
    assert list(config.names().values()) == ["北京", "Мария", "مريم", "✨"]
    assert next(iter(config.names())) == "debater-1"
    assert all(id_.isascii() for id_ in config.names())


def test_help_and_shell_completion_list_the_protocols() -> None:
    (option,) = [each for each in load_command("run").params if "--protocol" in each.opts]
    assert all(name in option.help for name in PROTOCOLS)
    assert protocols_like("co") == ["council"]


@pytest.mark.parametrize(
    ("replies", "unused"),
    [
        pytest.param({"ada": ["Yes.", "No."]}, [], id="all used"),
        pytest.param({"Ada": ["Yes.", "No.", "Why?"]}, ["Ada, from number 3 on"], id="one too many"),
        pytest.param({"ada.1": "Yes.", "ben": "No."}, ["ben"], id="nobody asked"),
        pytest.param(["a", "b", "c"], ["the last 1"], id="a list"),
    ],
)
def test_unused_prepared_replies_are_named(replies: object, unused: list[str]) -> None:
    questions = [
        PersonQuestion(id=f"ada.{n}", debater="ada", name="Ada", question=f"What {n}?") for n in (1, 2)
    ]
    assert unused_replies(questions, replies) == unused


def test_one_debater_is_refused_except_by_the_single_protocol() -> None:
    alone = {"debaters": parse_debaters(["Ada"])}
    with pytest.raises(InputError, match="add another --debater"):
        run_config(None, alone)
    assert len(run_config(None, {**alone, "protocol": "single"}).debaters) == 1
    assert len(run_config(None, {"debaters": parse_debaters(["Ada", "Ben"])}).debaters) == 2


def test_template_uses_the_environments_model_without_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("MOOT_MODEL", "of-environment")
    file = tmp_path / "moot.yaml"
    file.write_text(template())
    plain = run_config(None, {}, topic="Trams?")
    without_file = capsys.readouterr().err
    assert run_config(file, {}, topic="Trams?").model == plain.model == "of-environment"
    assert capsys.readouterr().err == without_file == ""
