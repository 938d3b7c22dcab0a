"""Configurations: validation, defaults, files and ids."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, strategies as st
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from moot.config import DebateConfig, differing_keys, slug
from moot.config.config_files import load_config, make_config
from moot.config.memory_config import Budget
from moot.graph.debate import build_graph
from moot.plugins.importing.transcript import slugs
from moot.state.errors import ConfigError


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param({"debaters": []}, "the list has no debaters", id="no debaters"),
        pytest.param(
            {"debaters": [{"name": "A"}, {"name": "a"}]},
            "duplicate debater ids ['a']",
            id="duplicate debater",
        ),
        pytest.param({"debaters": [{"name": "司"}]}, "set `id`", id="no letters for a slug"),
        pytest.param({"debaters": [{"name": "Judge"}]}, "'judge' is reserved", id="reserved id"),
        pytest.param({"debaters": [{"id": "A b", "name": "x"}]}, "not a valid id", id="invalid id"),
        pytest.param({"turns": -1}, "turns", id="negative turns"),
        pytest.param({"turnz": 3}, "unknown key 'turnz': did you mean 'turns'?", id="unknown key"),
        pytest.param(
            {"memory": {"budget": {"totl": 1}}}, "did you mean 'memory.budget.total'", id="nested unknown key"
        ),
        pytest.param({"memory": {"budget": {"total": 300}}}, "memory.budget.total is 300", id="tiny total"),
        pytest.param(
            {"memory": {"budget": {"total": 1000, "system": 500, "summary": 400, "messages": 400}}},
            "system, summary and messages add up to 1300",
            id="parts beyond the total",
        ),
        pytest.param({"model": "http://localhost/v1"}, "not the name of a model", id="URL as model"),
        pytest.param({"topic": "  "}, "the topic is empty", id="empty topic"),
        pytest.param(
            {"model": "m", "models": {"m": {"context_size": 4000}}},
            "context_size of model 'm' is 4000",
            id="context too small",
        ),
        pytest.param(
            {"judge": {"panel": [{"id": "a"}, {"id": "a"}]}}, "are not unique", id="duplicate panel ids"
        ),
        pytest.param(
            {"order": ["advocate", "eve"]},
            "['eve', 'skeptic'] are missing or unknown",
            id="unknown debater in the order",
        ),
        pytest.param({"options": ["merge"]}, "'merge' is the only option", id="one option"),
        pytest.param({"options": ["a", " A"]}, "duplicate options ['a']", id="duplicate option"),
        pytest.param({"options": ["a", " "]}, "is empty or too long: use 1 to", id="empty option"),
        pytest.param(
            {"options": ["a", "Undecided"]}, "'undecided' is always a possible", id="reserved option"
        ),
        pytest.param(
            {"order": ["a"], "protocol": "council"},
            "'council' does not use `order`: remove it",
            id="unused order",
        ),
    ],
)
def test_invalid_configurations_are_refused_with_the_reason(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        make_config(data)


def test_empty_configuration_uses_the_defaults() -> None:
    config = make_config({})
    assert [debater.id for debater in config.debaters] == ["advocate", "skeptic"]
    assert config.total_turns() == 6
    assert config.model == "offline"


def test_options_are_stored_in_the_state_of_a_new_debate() -> None:
    options = ("merge", "hold")
    graph = build_graph(InMemorySaver())
    run: RunnableConfig = {"configurable": {"thread_id": str(uuid4())}}
    graph.invoke({"topic": "Merge?"}, run, context=DebateConfig(options=options, turns=1))
    assert graph.get_state(run).values["options"] == list(options)


def test_rounds_are_multiplied_by_the_length_of_the_order() -> None:
    assert make_config({"rounds": 4}).total_turns() == 8
    assert make_config({"rounds": 4, "order": ["advocate", "skeptic", "advocate"]}).total_turns() == 12


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.yaml", "topic: x\nturns: 4\n"),
        ("c.toml", 'topic = "x"\nturns = 4\n'),
        ("c.json", '{"topic": "x", "turns": 4}'),
    ],
)
def test_configurations_are_read_in_three_formats(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert load_config(path) == {"topic": "x", "turns": 4}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.yaml", "a: [1"),
        ("c.toml", "a ="),
        ("c.json", "{"),
        ("c.ini", "a=1"),
        ("list.json", "[1]"),
        ("hex.yaml", f"a: 0x{'f' * 9999}"),
        ("hex.toml", f"a = 0x{'f' * 9999}"),
    ],
)
def test_error_of_a_malformed_configuration_names_its_file(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError, match=name):
        load_config(path)


def test_error_of_a_missing_configuration_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.yaml"):
        load_config(tmp_path / "missing.yaml")


def test_configuration_survives_a_json_round_trip() -> None:
    config = make_config({"turns": 3, "models": {"o3": {"max_attempts": 2}}, "debaters": [{"name": "Ada"}]})
    again = DebateConfig.model_validate(json.loads(json.dumps(config.to_json())))
    assert again.fingerprint() == config.fingerprint()
    assert again.models["o3"].model_fields_set == {"max_attempts"}


def test_fingerprint_ignores_the_topic_but_not_the_turns() -> None:
    base = make_config({})
    assert make_config({"topic": "x"}).fingerprint() == base.fingerprint()
    assert make_config({"turns": 7}).fingerprint() != base.fingerprint()


def test_differing_keys_are_dotted_paths() -> None:
    one, other = make_config({}).to_json(), make_config({"turns": 7, "memory": {"keep_recent": 3}}).to_json()
    assert differing_keys(one, other) == ["memory.keep_recent", "turns"]


@given(st.integers(400, 200_000))
def test_default_budget_sections_fit_into_the_total(total: int) -> None:
    budget = Budget(total=total)
    assert budget.system + budget.summary + budget.messages <= total
    assert budget.turn_suffix <= total // 2


@given(st.text(max_size=60))
def test_slug_is_empty_or_short_ascii_and_stable(name: str) -> None:
    made = slug(name)
    assert made == "" or (made.isascii() and made == slug(made) and len(made) <= 40)


@pytest.mark.parametrize("name", ["Zoë Weiß", "Иван Петров", "Ada's friend", "山田 Taro"])
def test_debaters_get_the_same_ids_as_imported_speakers(name: str) -> None:
    assert slugs([name]) == {name: slug(name)}
