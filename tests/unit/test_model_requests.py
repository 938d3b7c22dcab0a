"""Model requests: which model is called, and that requests are built in one place."""

from __future__ import annotations

import ast

import pytest
from pydantic import BaseModel

from moot.calls.model_calls import Prompt
from moot.config import DebateConfig
from moot.prompts.request import ModelParams, make_call, model_params
from moot.protocols.long_form import ModeratorConfig
from tests.support.source import ROOT, source_files, syntax_tree

CONFIG = DebateConfig.model_validate(
    {
        "model": "house",
        "temperature": 0.5,
        "fallbacks": ["spare"],
        "seed": 3,
        "debaters": [
            {"name": "Ada", "model": "own", "temperature": 0.1, "fallbacks": []},
            {"name": "Ben"},
            {"name": "Cy", "model": "human"},
        ],
        "judge": {
            "model": "context",
            "panel": [{"id": "j1", "temperature": 0.9}, {"id": "j2", "model": "k"}],
        },
        "memory": {"budget": {"reply": 700}, "summary_temperature": 0.2},
        "blackboard": {"temperature": None, "reply": 900},
        "moderator": {"model": "chair", "temperature": 0.3},
    }
)
PROMPT = Prompt(({"role": "user", "content": "Speak."},), total_tokens=8, budget=100)


class StructuredReply(BaseModel):
    """The schema of a reply."""

    words: str


@pytest.mark.parametrize(
    ("section", "params"),
    [
        pytest.param(CONFIG.debaters[0], ModelParams("own", 0.1, (), 3, 700), id="debater with own settings"),
        pytest.param(
            CONFIG.debaters[1], ModelParams("house", 0.5, ("spare",), 3, 700), id="debater with defaults"
        ),
        pytest.param(CONFIG.debaters[2], ModelParams("house", 0.5, ("spare",), 3, 700), id="human debater"),
        pytest.param(CONFIG.judge, ModelParams("context", 0.0, ("spare",), 3, 2000), id="judge"),
        pytest.param(
            CONFIG.judge.panel[0],
            ModelParams("context", 0.9, ("spare",), 3, 2000),
            id="panel judge with default model",
        ),
        pytest.param(
            CONFIG.judge.panel[1], ModelParams("k", 0.0, ("spare",), 3, 2000), id="panel judge with own model"
        ),
        pytest.param(CONFIG.memory, ModelParams("house", 0.2, ("spare",), 3, 700), id="summaries"),
        pytest.param(CONFIG.blackboard, ModelParams("house", None, ("spare",), 3, 900), id="blackboard"),
        pytest.param(
            ModeratorConfig.of(CONFIG), ModelParams("chair", 0.3, ("spare",), 3, 700), id="moderator"
        ),
    ],
)
def test_unset_model_settings_default_to_the_debates(section: object, params: ModelParams) -> None:
    assert model_params(CONFIG, section) == params  # type: ignore[arg-type]  # a section of the configuration


def test_a_call_has_the_given_parameters_and_prompt() -> None:
    call = make_call(
        model_params(CONFIG, CONFIG.judge), "judge", PROMPT, schema=StructuredReply, hints={"round": 2}
    )
    assert (call.model, call.temperature, call.fallbacks, call.seed) == ("context", 0.0, ("spare",), 3)
    assert (call.messages, call.prompt_tokens, call.max_tokens) == (PROMPT.messages, 8, 2000)
    assert call.hints == {"phase": "judge", "round": 2}


def test_hints_and_call_indexes_do_not_change_the_digest() -> None:
    params = model_params(CONFIG, CONFIG.debaters[0])
    plain = make_call(params, "turn", PROMPT, hints={})
    assert make_call(params, "turn", PROMPT, call_index=2, hints={"phase": "propose"}).digest == plain.digest
    assert make_call(params, "turn", PROMPT, reply=16, hints={}).digest != plain.digest


def test_model_calls_are_built_in_one_module() -> None:
    makers = {
        str(path.relative_to(ROOT))
        for path in source_files()
        for node in ast.walk(syntax_tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ModelCall"
    }
    assert makers == {"prompts/request.py"}
