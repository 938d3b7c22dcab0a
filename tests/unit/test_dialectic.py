"""Configuration files of dialectic: every field is converted or named in a warning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moot.cli.inputs import run_config
from moot.cli.terminal import print_error
from moot.config import DebateConfig
from moot.config.config_files import make_config
from moot.config.stages import file_data, read_config
from moot.memory.perspectives import perspective_settings
from moot.plugins.importing.dialectic import Converted, from_dialectic, is_dialectic
from moot.prompts.templates import shipped_role
from moot.protocols.council.convergence import TerminationConfig
from moot.state.errors import ConfigError

AGENT: Any = {
    "id": "agent-architect",
    "name": "System Architect",
    "role": "architect",
    "model": "anthropic/claude-sonnet-4.5",
    "provider": "openrouter",
    "temperature": 0.5,
    "enabled": True,
}
KISS: Any = {
    **AGENT,
    "id": "agent-kiss",
    "name": "KISS",
    "role": "kiss",
    "model": "gpt-4",
    "provider": "openai",
}
JUDGE: Any = {**AGENT, "id": "judge-main", "role": "generalist", "temperature": 0.3}
DEBATE: Any = {
    "rounds": 3,
    "terminationCondition": {"type": "fixed"},
    "synthesisMethod": "judge",
    "includeFullHistory": True,
}


def _converted(folder: Path = Path(), **parts: Any) -> Converted:
    return from_dialectic({"agents": [AGENT, KISS], "judge": JUDGE, "debate": DEBATE, **parts}, folder)


def _config(folder: Path = Path(), **parts: Any) -> DebateConfig:
    return make_config(_converted(folder, **parts).data)


def test_a_dialectic_file_is_recognised_by_its_keys() -> None:
    assert is_dialectic({"agents": []})
    assert is_dialectic({"debate": {}})
    assert not is_dialectic({"debaters": [], "judge": {}})


def test_agents_become_the_debaters_of_a_council() -> None:
    config = _config()
    assert (config.protocol, config.rounds) == ("council", 3)
    assert [(d.id, d.name, d.role, d.temperature) for d in config.debaters] == [
        ("agent-architect", "System Architect", "architect", 0.5),
        ("agent-kiss", "KISS", "kiss", 0.5),
    ]
    assert config.judge.model == "anthropic/claude-sonnet-4.5"
    assert config.judge.temperature == 0.3
    assert config.judge.judges()[0].id == "judge-main"


@pytest.mark.parametrize(
    ("role", "built_in"),
    [
        ("architect", "architect"),
        ("performance", "performance"),
        ("security", "security"),
        ("testing", "testing"),
        ("kiss", "simplicity"),
        ("generalist", "generalist"),
        ("data-modeling", "data-modeling"),
        ("datamodeling", "data-modeling"),
    ],
)
def test_dialectic_roles_map_to_built_in_roles(role: str, built_in: str) -> None:
    converted = _converted(agents=[{**AGENT, "role": role, "id": "a"}, KISS])
    shipped = shipped_role(make_config(converted.data).debaters[0])
    assert shipped is not None
    assert shipped.name == built_in
    assert not any("role" in warning for warning in converted.warnings)


def test_openrouter_has_its_own_address_and_key() -> None:
    settings = _config().settings("anthropic/claude-sonnet-4.5")
    assert settings.base_url == "https://openrouter.ai/api/v1"
    assert settings.api_key_env == "OPENROUTER_API_KEY"
    assert _config().settings("gpt-4").base_url is None


def test_a_disabled_agent_is_left_out() -> None:
    off = {**AGENT, "id": "off", "enabled": False}
    assert [d.id for d in _config(agents=[AGENT, KISS, off]).debaters] == ["agent-architect", "agent-kiss"]
    alone = _converted(agents=[AGENT, off])
    assert make_config(alone.data).protocol == "single"
    assert "Enable another agent" in alone.defaults["protocol"]


def test_summary_limits_in_characters_fit_into_the_token_budget() -> None:
    wide = {"enabled": True, "threshold": 30_000, "maxLength": 15_000, "method": "length-based"}
    own = {
        **AGENT,
        "summarization": {"enabled": False, "threshold": 100, "maxLength": 200, "method": "length-based"},
    }
    config = _config(agents=[own, KISS], debate={**DEBATE, "summarization": wide})
    shared = perspective_settings(config, config.debater("agent-kiss"))
    assert (shared.threshold_chars, shared.max_chars, shared.method) == (30_000, 15_000, "llm")
    assert not perspective_settings(config, config.debater("agent-architect")).enabled
    assert config.memory.budget.summary * 3 >= 15_000
    assert config.memory.budget.messages * 3 >= 30_000


def test_clarifications_and_convergence_are_converted() -> None:
    debate = {
        **DEBATE,
        "interactiveClarifications": True,
        "clarificationsMaxPerAgent": 2,
        "terminationCondition": {"type": "convergence", "threshold": 90},
    }
    config = _config(debate=debate)
    assert config.clarifications.enabled
    assert config.clarifications.max_per_debater == 2
    termination = TerminationConfig.of(config)
    assert (termination.type, termination.threshold) == ("convergence", 0.9)


def test_prompt_paths_are_relative_to_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.md").write_text("You draw boxes.")
    (tmp_path / "s.md").write_text("Keep the boxes.")
    (tmp_path / "j.md").write_text("Be strict.")
    agent = {
        **AGENT,
        "systemPromptPath": "./a.md",
        "summaryPromptPath": "s.md",
        "clarificationPromptPath": "none.md",
    }
    data = {"agents": [agent, KISS], "judge": {**JUDGE, "systemPromptPath": "j.md"}, "debate": DEBATE}
    file = tmp_path / "debate-config.json"
    file.write_text(json.dumps(data))
    config = make_config(file_data(file, print_error))
    assert config.debaters[0].system_prompt == "You draw boxes."
    assert config.debaters[0].summary_prompt == "Keep the boxes."
    assert config.debaters[0].clarification_prompt == ""
    assert config.judge.instruction == "Be strict."
    assert "none.md" in capsys.readouterr().err


def test_tools_are_converted_and_the_files_folder_is_the_context(tmp_path: Path) -> None:
    tools = [
        {"name": "context_search", "description": "x", "parameters": {}},
        {"name": "file_read"},
        {"name": "x"},
    ]
    converted = _converted(tmp_path, agents=[{**AGENT, "tools": tools, "toolCallLimit": 4}, KISS])
    config = make_config(converted.data)
    assert config.debaters[0].tools == ("search_debate", "read_file")
    assert config.debaters[0].tool_call_limit == 4
    assert config.context == str(tmp_path)
    assert any("'x'" in warning for warning in converted.warnings)
    assert "--context" in converted.defaults["context"]


def test_a_chosen_context_folder_needs_no_warning_to_choose_one(tmp_path: Path) -> None:
    file = tmp_path / "debate-config.json"
    agent = {**AGENT, "tools": [{"name": "file_read"}]}
    file.write_text(json.dumps({"agents": [agent, KISS], "judge": JUDGE, "debate": DEBATE}))
    for options, count in (({}, 1), ({"context": str(tmp_path)}, 0)):
        warnings: list[str] = []
        read_config(file, options, warnings.append)
        assert sum("--context" in warning for warning in warnings) == count


def test_dialectics_default_thresholds_and_rounds_of_questions_apply() -> None:
    config = _config(debate={"rounds": 1})
    perspectives = config.memory.perspectives
    assert (perspectives.threshold_chars, perspectives.max_chars) == (5000, 2500)
    assert config.clarifications.rounds == 3


def test_an_unknown_summary_method_is_refused_in_the_words_of_the_file() -> None:
    unknown = {**DEBATE, "summarization": {"method": "nope"}}
    with pytest.raises(ConfigError, match=r"debate\.summarization\.method: 'nope'.*length-based, semantic"):
        _config(debate=unknown)


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ({"debate": {**DEBATE, "trace": "langfuse"}}, "debate.trace"),
        ({"debate": {**DEBATE, "synthesisMethod": "voting"}}, "debate.synthesisMethod"),
        ({"debate": {**DEBATE, "includeFullHistory": False}}, "debate.includeFullHistory"),
        ({"debate": {**DEBATE, "terminationCondition": {"type": "quality", "threshold": 85}}}, "quality"),
        ({"debate": {**DEBATE, "timeoutPerRound": 300_000}}, "debate.timeoutPerRound"),
        ({"agents": [{**AGENT, "avatar": "x"}, KISS]}, "agents.0.avatar"),
        ({"agents": [{**AGENT, "role": "wizard"}, KISS]}, "wizard"),
        ({"agents": [{**AGENT, "id": "Agent One"}, KISS]}, "agent-one"),
        ({"agents": [AGENT, {**KISS, "model": AGENT["model"]}]}, "agents.1.provider"),
        ({"agents": []}, "agents"),
        ({"judge": {**JUDGE, "toolCallLimit": 3}}, "judge.toolCallLimit"),
        ({"extra": 1}, "extra"),
    ],
)
def test_a_warning_names_each_field_that_is_not_converted(parts: Any, named: str) -> None:
    converted = _converted(**parts)
    assert any(named in warning for warning in converted.warnings), converted.warnings
    make_config(converted.data)


def test_keys_without_a_setting_share_one_warning_with_alternatives() -> None:
    agents = [{**AGENT, "maxTokens": 100, "avatar": "x"}, KISS]
    converted = _converted(agents=agents, debate={**DEBATE, "trace": "langfuse"}, extra=1)
    assert converted.warnings == [
        "Moot has no setting for agents.0.maxTokens, agents.0.avatar, debate.trace, extra, so they are "
        "ignored. Instead of maxTokens, use `memory.budget.reply` in a Moot configuration. Instead of trace, "
        "use the environment variable MOOT_OTEL=1"
    ]


@pytest.mark.parametrize(
    "parts",
    [
        {"debate": {**DEBATE, "synthesisMethod": "voting"}},
        {"debate": {**DEBATE, "includeFullHistory": False}},
        {"debate": {**DEBATE, "terminationCondition": {"type": "quality"}}},
        {"agents": [{**AGENT, "role": "wizard"}, KISS]},
        {"agents": [{**AGENT, "tools": ["web_search"]}, KISS]},
        {"agents": [AGENT, {**KISS, "model": AGENT["model"]}]},
    ],
    ids=["synthesis", "history", "termination", "role", "tool", "provider"],
)
def test_a_warning_says_what_to_use_instead(parts: Any) -> None:
    (warning,) = _converted(**parts).warnings
    assert ". Use " in warning


def test_the_timeout_per_round_becomes_the_wall_clock_limit() -> None:
    assert _config(debate={**DEBATE, "timeoutPerRound": 300_000}).limits.wall_clock_s == 900
    with pytest.raises(ConfigError, match=r"^debate.rounds: give a number"):
        _converted(debate={"rounds": "x", "timeoutPerRound": 1})


@pytest.mark.parametrize(
    "parts",
    [
        {"agents": [{**AGENT, "provider": "acme"}]},
        {"agents": {"a": 1}},
        {"agents": ["x"]},
        {"judge": "strict"},
        {"debate": {"rounds": 0}},
    ],
    ids=["unknown provider", "agents no list", "agent no mapping", "judge no mapping", "zero rounds"],
)
def test_invalid_values_are_rejected(parts: Any) -> None:
    with pytest.raises(ConfigError):
        make_config(_converted(**parts).data)


def test_command_line_options_override_the_file(tmp_path: Path) -> None:
    file = tmp_path / "debate-config.json"
    agents = [{**each, "model": "offline", "provider": "openai"} for each in (AGENT, KISS)]
    file.write_text(json.dumps({"agents": agents, "debate": DEBATE}))
    assert run_config(file, {"rounds": 1}).rounds == 1


def test_the_judges_prompts_and_the_semantic_method_are_converted(tmp_path: Path) -> None:
    (tmp_path / "judge.md").write_text("Prefer what is cheap to undo.", encoding="utf-8")
    judge = {
        **JUDGE,
        "promptPath": "judge.md",
        "summaryPromptPath": "s.md",
        "summarization": {"threshold": 700, "maxLength": 300, "method": "length-based"},
    }
    debate = {**DEBATE, "summarization": {"enabled": True, "method": "semantic"}}
    converted = _converted(tmp_path, judge=judge, debate=debate)
    config = make_config(converted.data)
    assert config.judge.instruction == "Prefer what is cheap to undo."
    assert config.memory.perspectives.method == "hierarchical"
    summary = config.judge.summary
    assert summary is not None
    own = (summary.threshold_chars, summary.max_chars, summary.method, summary.prompt)
    assert own == (700, 300, "llm", "@s.md")
    named = " ".join(converted.warnings)
    assert "debate.summarization.method: 'semantic' becomes" in named
    assert "judge.s" not in named


def test_errors_name_the_keys_of_the_dialectic_file(tmp_path: Path) -> None:
    agents = [{**AGENT, "enabled": False}, {**KISS, "toolCallLimit": 0, "summarization": {"maxLength": -1}}]
    debate = {
        "rounds": 0,
        "clarificationsMaxPerAgent": -1,
        "summarization": {"threshold": -5},
        "terminationCondition": {"type": "convergence", "threshold": -1},
    }
    file = tmp_path / "debate-config.json"
    file.write_text(json.dumps({"agents": agents, "judge": {"temperature": 7}, "debate": debate}))
    with pytest.raises(ConfigError) as refused:
        run_config(file, {})
    named = {line.partition(": ")[0] for line in str(refused.value).splitlines()}
    assert named == {
        "agents.1.toolCallLimit",
        "agents.1.summarization.maxLength",
        "judge.temperature",
        "debate.rounds",
        "debate.clarificationsMaxPerAgent",
        "debate.summarization.threshold",
        "debate.terminationCondition.threshold",
    }


def test_without_its_plugin_a_dialectic_file_has_unknown_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moot.config.stages.plugin_entry_points", lambda group: {})
    file = tmp_path / "debate.json"
    file.write_text(json.dumps({"agents": [AGENT]}))
    with pytest.raises(ConfigError, match="agents"):
        run_config(file, {})
