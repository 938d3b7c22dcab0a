"""Untrusted configurations: the fields that a request may set, and those that only the operator may set."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, TypeAdapter

from moot import ConfigError, DebateConfig, build_graph, open_debates
from moot.config.boundary import Capability, Permissions, UntrustedConfig, capabilities_of
from moot.config.config_files import make_config
from moot.config.section import protocol_sections
from moot.config.stages import authorize, requested_config
from moot.graph.debate import graph
from moot.protocols.registry import PROTOCOLS
from moot.retrieval.indexes import embeddings_of
from tests.support.openai_server import OpenAIServer

MODEL = "far-away"
OFF = {"enabled": False}
CAPABILITY_FIELDS: dict[str, Any] = {
    "model": MODEL,
    "fallbacks": [MODEL],
    "debaters.*.model": MODEL,
    "debaters.*.fallbacks": [MODEL],
    "debaters.*.tools": ["calculator"],
    "judge.model": MODEL,
    "judge.panel.*.model": MODEL,
    "memory.summary_model": MODEL,
    "memory.retrieval.embeddings": "os:abort",
    "blackboard.model": MODEL,
    "moderator.model": MODEL,
    "context": "/etc/hostname",
    "models.*.command": ["touch", "here"],
    "models.*.parameters": {"service_tier": "priority"},
    "models.*.base_url": "http://169.254.169.254/",
    "models.*.api_key_env": "AWS_SECRET_ACCESS_KEY",
    "models.*.requests_per_minute": 0.01,
    "models.*.tokens_per_minute": 1,
    "models.*.concurrency": 1,
    "models.*.max_wait_s": 60,
    "models.*.input_usd_per_million": 0,
    "models.*.cached_usd_per_million": 0,
    "models.*.output_usd_per_million": 0,
    "mcp_servers.*.command": ["touch", "here"],
    "mcp_servers.*.env": ["AWS_SECRET_ACCESS_KEY"],
    "mcp_servers.*.url": "http://169.254.169.254/",
    "mcp_servers.*.api_key_env": "AWS_SECRET_ACCESS_KEY",
}
"""Fields that need the operator's permission, each with a value that needs it."""
_DATA_FIELDS = """
limits.refusals limits.retry_for models.*.total_timeout_s
topic protocol turns rounds temperature seed language order agreement_intensity options
openings stop decide calibration revisit
debaters.*.flip_conditions debaters.*.reference_documents.*.name
debaters.*.reference_documents.*.text debaters.*.id debaters.*.name debaters.*.role debaters.*.stance
debaters.*.persona debaters.*.identity debaters.*.temperature debaters.*.system_prompt
debaters.*.summary_prompt debaters.*.clarification_prompt debaters.*.perspective.enabled
debaters.*.perspective.threshold_chars debaters.*.perspective.threshold_tokens
debaters.*.perspective.max_chars debaters.*.perspective.max_tokens debaters.*.perspective.method
debaters.*.perspective.mode debaters.*.perspective.prompt debaters.*.tool_call_limit
blackboard.extraction blackboard.temperature blackboard.reply blackboard.confidence
blackboard.verify_changes blackboard.reflection_threshold memory.budget.total memory.budget.system
memory.budget.summary memory.budget.messages memory.budget.reply memory.budget.phases
memory.budget.turn_suffix
memory.keep_recent memory.summarize_every memory.summarizer memory.summary_temperature memory.layout
judge.summary.enabled judge.summary.threshold_chars judge.summary.threshold_tokens judge.summary.max_chars
judge.summary.max_tokens judge.summary.method judge.summary.mode judge.summary.prompt
memory.summary_prompt memory.mode memory.perspectives.enabled
memory.perspectives.threshold_chars memory.perspectives.threshold_tokens
memory.perspectives.max_chars memory.perspectives.max_tokens memory.perspectives.method
memory.perspectives.mode memory.perspectives.prompt memory.retrieval.enabled memory.retrieval.top_k
memory.retrieval.max_tokens memory.cross_debate judge.enabled judge.temperature judge.rubric
judge.instruction judge.blind judge.swap judge.panel.*.id judge.panel.*.rubric
judge.panel.*.temperature judge.rule judge.reply judge.test judge.quorum clarifications.enabled
clarifications.max_per_debater clarifications.rounds interjections.*.after interjections.*.text
interjections.*.speaker limits.total_tokens limits.cost_usd limits.wall_clock_s limits.concurrency
models.*.context_size models.*.encoding models.*.temperature models.*.seed
models.*.structured_output models.*.merge_roles models.*.system_role models.*.stream
models.*.reasoning_tokens models.*.max_tokens_field models.*.timeout_s models.*.max_attempts
mcp_servers.*.timeout_s mcp_servers.*.tools.*.name mcp_servers.*.tools.*.description
mcp_servers.*.tools.*.parameters
"""
DATA_FIELDS = set(_DATA_FIELDS.split())
"""All other fields. Every request may set them."""


def sections_in(annotation: object) -> Iterator[tuple[type[BaseModel], bool]]:
    """Yield the sections within a field's annotation, and whether there may be several."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, False
    several = getattr(annotation, "__origin__", None) in (tuple, dict)
    for argument in get_args(annotation):
        yield from ((section, several or more) for section, more in sections_in(argument))


def fields_of(section: type[BaseModel], under: str = "") -> Iterator[str]:
    for name, field in section.model_fields.items():
        inner = list(sections_in(field.annotation))
        for nested, several in inner:
            yield from fields_of(nested, f"{under}{name}." + ("*." if several else ""))
        if not inner:
            yield under + name


def nested(place: str, value: object) -> dict[str, Any]:
    """Return a configuration in which one field has a value."""
    section, _, rest = place.partition(".*.")
    if section == "models":
        return {"models": {"m": {rest: value}}}
    if section == "mcp_servers":
        reached = {"url": "http://here/"} if rest in ("url", "api_key_env") else {"command": ["touch"]}
        return {"mcp_servers": {"docs": {**reached, rest: value}}}
    if section == "judge.panel":
        return {"judge": {"panel": [{"id": "one", rest: value}]}}
    if section == "debaters":
        return {"debaters": [{"name": "Ada", rest: value}, {"name": "Ben"}]}
    made: Any = value
    for key in reversed(place.split(".")):
        made = {key: made}
    return dict(made)


def is_refused(config: DebateConfig) -> bool:
    try:
        authorize(config).authorize()
    except ConfigError:
        return True
    return False


@pytest.fixture(autouse=True)
def no_permissions_from_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MODEL", "CONFIG", "ALLOW_MODELS", "ALLOW_TOOLS", "CONTEXT_ROOT"):
        monkeypatch.delenv(f"MOOT_{name}", raising=False)


def test_every_config_field_is_classified_as_data_or_capability() -> None:
    protocols = {
        f"{key}.{name}"
        for key, section in protocol_sections(PROTOCOLS).items()
        for name in fields_of(section)
    }
    named = {place for place in protocols if place.rpartition(".")[2] == "model"}
    fields = {place for place in fields_of(DebateConfig)} | named
    assert fields == DATA_FIELDS | CAPABILITY_FIELDS.keys()
    assert not DATA_FIELDS & CAPABILITY_FIELDS.keys()
    texts = {place for place in protocols - named if "model" in place or "path" in place or "url" in place}
    assert not texts, "classify these fields"


@pytest.mark.parametrize("place", CAPABILITY_FIELDS)
def test_field_that_needs_permission_is_refused_and_named(place: str) -> None:
    config = make_config(nested(place, CAPABILITY_FIELDS[place]))
    with pytest.raises(ConfigError, match=r"needs the operator's permission.*MOOT_CONFIG") as error:
        Permissions(config).authorize()
    assert place.split(".")[0] in str(error.value).split(" needs the operator")[0]
    assert Permissions.of_operator(config).authorize() is config
    graph_input = {"topic": "T?", "settings": nested(place, CAPABILITY_FIELDS[place])}
    with pytest.raises(
        ConfigError, match="needs the operator's permission"
    ):  # also if the context is the operator's
        graph.invoke(graph_input, context=DebateConfig(turns=1))


def test_settings_in_a_runs_input_override_its_context() -> None:
    settings: Any = {"turns": 1, "debaters": [{"name": "Ada"}, {"name": "Ben"}], "protocol": "random"}
    made = graph.invoke({"topic": "T?", "settings": settings}, context={"turns": 5, "seed": 1, "judge": OFF})
    assert [message.name in ("ada", "ben") for message in made["messages"]] == [False, True, False]
    with pytest.raises(ConfigError, match="turns"):
        graph.invoke({"topic": "T?", "settings": {"turns": -1}})


DATA_CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "topic": st.text(min_size=1).filter(str.strip),
        "protocol": st.sampled_from(["round-robin", "council", "vote"]),
        "turns": st.integers(1, 99),
        "seed": st.integers(0, 9),
        "language": st.text(),
        "memory": st.fixed_dictionaries(
            {"keep_recent": st.integers(1, 99), "summary_prompt": st.text()},
        ),
        "limits": st.fixed_dictionaries({"cost_usd": st.floats(0.1, 9), "concurrency": st.integers(1, 9)}),
        "models": st.dictionaries(
            st.text(min_size=1), st.fixed_dictionaries({"timeout_s": st.floats(1, 9), "seed": st.booleans()})
        ),
    },
)


@given(DATA_CONFIGS, st.sampled_from(sorted(CAPABILITY_FIELDS)))
def test_data_is_allowed_until_one_field_needs_permission(settings: dict[str, Any], place: str) -> None:
    assert not capabilities_of(make_config(settings))
    assert not is_refused(make_config(settings))
    assert is_refused(
        make_config({**settings, "protocol": "round-robin", **nested(place, CAPABILITY_FIELDS[place])})
    )


@pytest.mark.parametrize(
    ("variable", "value", "settings"),
    [
        pytest.param("MOOT_MODEL", "m", {"model": "m"}, id="model"),
        pytest.param("MOOT_ALLOW_MODELS", "other, m-*", {"model": "m-1"}, id="pattern"),
        pytest.param("MOOT_ALLOW_TOOLS", "calculator", nested("debaters.*.tools", ["calculator"]), id="tool"),
    ],
)
def test_environment_variables_grant_permission(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, settings: dict[str, Any]
) -> None:
    assert is_refused(make_config(settings))
    monkeypatch.setenv(variable, value)
    assert not is_refused(make_config(settings))


def test_operators_file_allows_an_endpoint_only_with_its_own_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = {
        "a": {"base_url": "http://a", "api_key_env": "KEY_A"},
        "b": {"base_url": "http://b", "api_key_env": "KEY_B"},
    }
    path = tmp_path / "moot.json"
    path.write_text(f'{{"models": {models!r}, "context": "notes"}}'.replace("'", '"'))
    monkeypatch.setenv("MOOT_CONFIG", str(path))
    assert not is_refused(make_config({"models": models}))
    assert is_refused(make_config({"models": {"a": {**models["a"], "api_key_env": "KEY_B"}}}))
    assert not is_refused(make_config({"context": str(tmp_path / "notes")}))


def test_context_folder_may_not_leave_the_root_through_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, secret = tmp_path / "root", tmp_path / "secret"
    (root / "notes").mkdir(parents=True)
    secret.mkdir()
    (root / "link").symlink_to(secret)
    monkeypatch.setenv("MOOT_CONTEXT_ROOT", str(root))
    assert not is_refused(make_config({"context": str(root / "notes")}))
    for outside in (root / "link", root / ".." / "secret", secret):
        assert is_refused(make_config({"context": str(outside)}))


def test_untrusted_config_has_all_fields_and_refuses_capabilities(tmp_path: Path) -> None:
    schema = TypeAdapter(UntrustedConfig).json_schema()
    assert set(schema["properties"]) == set(DebateConfig.model_fields)
    graph = build_graph()
    request: Any = {"turns": 1, "memory": {"retrieval": {"embeddings": "antigravity:fly"}}}
    with pytest.raises(ConfigError, match=r"memory\.retrieval\.embeddings"):
        graph.invoke({"topic": "T?"}, context=request)
    request = {"context": "/etc/hostname"}
    with pytest.raises(ConfigError, match=r"MOOT_CONTEXT_ROOT"):
        graph.invoke({"topic": "T?"}, context=request)
    assert "antigravity" not in sys.modules


def test_request_cannot_name_a_rubric_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("name: hidden words")
    request: Any = {"turns": 1, "judge": {"rubric": str(tmp_path / "secret")}}
    with pytest.raises(ConfigError, match=r"judge\.rubric") as error:
        build_graph().invoke({"topic": "T?"}, context=request)
    assert "hidden" not in str(error.value)


def change_config(document: Mapping[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    config = {**document["config"], **settings}
    return {**document, "config": config, "state": {**document.get("state", {}), "config": config}}


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"memory": {"retrieval": {"embeddings": "antigravity:fly"}}}, id="import"),
        pytest.param({"model": "m", "models": {"m": {"base_url": "http://127.0.0.1:9"}}}, id="endpoint"),
        pytest.param({"context": "/etc/hostname"}, id="file"),
    ],
)
def test_modified_export_is_imported_but_needs_permission_to_run(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        exported = debates.start("T?", DebateConfig(turns=2)).run()
        imported = debates.import_document(change_config(exported, settings), name="foreign")
        assert imported.document()["transcript"][1:] == exported["transcript"][1:]
        for use in (
            lambda: imported.run(turns=1),
            lambda: imported.judge(model="offline"),
            lambda: imported.judge(dry_run=True),
            lambda: debates.replay("foreign"),
        ):
            with pytest.raises(ConfigError, match="needs the operator's permission"):
                use()
        assert "antigravity" not in sys.modules
        imported.allow(make_config(settings))
        assert capabilities_of(make_config(settings)).keys() <= debates.records.grants.of(imported.id)


def test_operators_grants_apply_only_to_the_debate_and_its_forks(tmp_path: Path) -> None:
    (tmp_path / "facts.md").write_text("Trams are quiet.")
    config = DebateConfig(turns=2, context=str(tmp_path / "facts.md"))
    granted = {Capability("context", path) for path in config.context_paths()}
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        own, other = debates.start("T?", config), debates.start("T?")
        own.run()
        assert debates.records.grants.of(own.id) == granted
        assert debates.records.grants.of(own.fork().id) == granted
        assert debates.records.grants.of(other.id) == set()
        own.delete()
        assert debates.records.grants.of(own.id) == set()


def test_embeddings_are_not_imported_without_permission() -> None:
    config = make_config({"memory": {"retrieval": {"embeddings": "antigravity:fly"}}})
    with pytest.raises(ConfigError, match="needs the operator's permission"):
        embeddings_of(Permissions(config))
    assert "antigravity" not in sys.modules


def test_request_is_merged_by_section_within_the_operators_limits() -> None:
    default_config = make_config(
        {
            "limits": {"cost_usd": 0.5, "wall_clock_s": 60},
            "memory": {"budget": {"total": 4000}},
            "models": {"house": {"base_url": "http://a", "api_key_env": "KEY_A"}},
            "debaters": [{"name": "Ann"}, {"name": "Bo"}],
        }
    )
    settings = {
        "limits": {"cost_usd": 1e6, "total_tokens": 900},
        "memory": {"keep_recent": 9},
        "models": {"house": {"base_url": "http://elsewhere"}},
        "temperature": 0,
        "seed": None,
    }
    made = requested_config(default_config, settings, {"limits": {"wall_clock_s": 5}})
    assert (made.limits.cost_usd, made.limits.wall_clock_s, made.limits.total_tokens) == (0.5, 5, 900)
    assert (made.memory.budget.total, made.memory.keep_recent, made.temperature) == (4000, 9, 0)
    assert made.models["house"] == default_config.models["house"]
    assert made.names() == default_config.names()
    assert make_config({"limits": {"cost_usd": 3}}) == requested_config(
        make_config({}), {"limits": {"cost_usd": 3}}
    )


@pytest.mark.parametrize("swapped", [False, True])
def test_the_lower_limit_of_two_operators_applies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped: bool
) -> None:
    file, given = {"cost_usd": 2.0, "total_tokens": 900}, {"cost_usd": 0.5, "wall_clock_s": 60}
    if swapped:
        file, given = given, file
    path = tmp_path / "moot.json"
    path.write_text(json.dumps({"limits": file}))
    monkeypatch.setenv("MOOT_CONFIG", str(path))
    request = make_config({"limits": {"cost_usd": 9, "total_tokens": 9000, "wall_clock_s": 600}})
    limits = authorize(request, make_config({"limits": given})).config.limits
    assert (limits.cost_usd, limits.total_tokens, limits.wall_clock_s) == (0.5, 900, 60)


@pytest.mark.parametrize("context", [None, {"turns": 1}])
def test_graph_uses_the_operators_file_for_missing_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, context: Any
) -> None:
    with OpenAIServer() as house:
        file = {"model": "house", "models": {"house": {"base_url": house.base_url, "api_key_env": "KEY_A"}}}
        path = tmp_path / "moot.json"
        path.write_text(json.dumps({**file, "turns": 2, "judge": {"enabled": False}}))
        monkeypatch.setenv("MOOT_CONFIG", str(path))
        monkeypatch.setenv("KEY_A", "a")
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
        monkeypatch.setenv("OPENAI_API_KEY", "mine")
        done = graph.invoke({"topic": "T?"}, context=context)
        assert done["status"] == "done"
    turns = 1 if context else 2
    assert [each.headers["authorization"] for each in house.requests] == ["Bearer a"] * turns
