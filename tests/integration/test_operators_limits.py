"""The operator's limits and prices apply to every run and override requests and stored states."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from starlette.testclient import TestClient

from moot.api import Debate, Debates, open_debates
from moot.calls.model_calls import Reply
from moot.config.boundary import Capability
from moot.config.config_files import make_config
from moot.config.stages import operators_config, requested_config
from moot.graph.debate import build_graph
from moot.judging.response_check import failed_verdict
from moot.plugins.web.debate_host import MAX_ASKED_AT_ONCE, DebateHost
from moot.plugins.web.page_routes import page_app
from moot.runtime.background_loop import call_from_sync
from moot.runtime.environment import Environment
from moot.state.entries import tokens_of
from moot.state.errors import ConfigError, InputError
from tests.support.fakes import FakeModel, fake_reply
from tests.support.openai_server import OpenAIServer
from tests.support.waiting import wait_until

OFF = {"enabled": False}
TOKEN_LIMIT = 3000
TOKENS_AFTER_LAST_STEP = 4000
"""Upper bound of tokens at the limit. A step that reaches the limit is finished."""


@pytest.fixture
def operators_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def write(**data: Any) -> None:
        path = tmp_path / f"moot-{len(list(tmp_path.iterdir()))}.json"
        path.write_text(json.dumps(data))
        monkeypatch.setenv("MOOT_CONFIG", str(path))

    monkeypatch.delenv("MOOT_MODEL", raising=False)
    return write


def served_graph() -> Any:
    return build_graph(InMemorySaver(), environment=Environment(default_config=operators_config))


def thread(name: str = "11111111-1111-1111-1111-111111111111") -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


@pytest.mark.parametrize("asked", ["999999999", 999999999, 999999999.0, None], ids=repr)
def test_request_cannot_exceed_the_operators_limit(
    asked: object, operators_file: Callable[..., None]
) -> None:
    operators_file(limits={"total_tokens": TOKEN_LIMIT}, judge=OFF)
    graph = served_graph()
    graph.invoke({"topic": "T?"}, thread(), context={"turns": 60, "limits": {"total_tokens": asked}})
    values = graph.get_state(thread()).values
    assert values["status"] == "limit"
    assert values["config"]["limits"]["total_tokens"] == TOKEN_LIMIT
    assert tokens_of(values["usage"]) < TOKENS_AFTER_LAST_STEP


def test_stored_state_cannot_exceed_the_operators_limit(operators_file: Callable[..., None]) -> None:
    operators_file(limits={"total_tokens": TOKEN_LIMIT}, judge=OFF)
    graph = served_graph()
    graph.invoke({"topic": "T?"}, thread(), context={"turns": 60}, interrupt_after=["open"])
    config = graph.get_state(thread()).values["config"]
    for limits in ({"total_tokens": 10**9}, {}):
        graph.update_state(thread(), {"config": {**config, "limits": limits}}, "trim")
    graph.invoke(None, thread())
    values = graph.get_state(thread()).values
    assert values["status"] == "limit"
    assert tokens_of(values["usage"]) < TOKENS_AFTER_LAST_STEP


def test_client_written_step_takes_no_turn_after_the_operators_limit(
    operators_file: Callable[..., None],
) -> None:
    operators_file(limits={"total_tokens": TOKEN_LIMIT}, judge=OFF)
    graph = served_graph()
    graph.invoke({"topic": "T?"}, thread(), context={"turns": 60})
    before = graph.get_state(thread()).values
    turn = {"speaker": "advocate", "targets": [], "instruction": "", "room": ""}
    step = {"number": 99, "kind": "turn", "phase": "argument", "round": 1, "turns": [turn] * 9}
    graph.update_state(thread(), {"step": step, "status": "running"}, "plan")
    graph.invoke(None, thread())
    after = graph.get_state(thread()).values
    assert (after["status"], after["usage"]["calls"]) == ("limit", before["usage"]["calls"])


def test_chat_question_makes_no_call_after_the_operators_limit(
    operators_file: Callable[..., None],
) -> None:
    operators_file(limits={"total_tokens": TOKEN_LIMIT}, judge=OFF)
    graph = served_graph()
    graph.invoke({"topic": "T?"}, thread(), context={"turns": 60})
    before = graph.get_state(thread()).values
    graph.invoke({"messages": [("user", "What was said?")]}, thread())
    after = graph.get_state(thread()).values
    assert after["usage"]["calls"] == before["usage"]["calls"]
    assert "only the operator can raise the limit" in str(after["messages"][-1].content)


def graph_at_its_limit(model: FakeModel, **context: Any) -> Any:
    """Return a graph whose debate has ended at a limit."""
    environment = replace(model.environment(), default_config=operators_config)
    graph: Any = build_graph(InMemorySaver(), environment=environment)
    graph.invoke({"topic": "T?"}, thread(), context={"turns": 60, **context})
    assert graph.get_state(thread()).values["status"] == "limit"
    return graph


@pytest.mark.parametrize("limit", [{"total_tokens": TOKEN_LIMIT}, {"wall_clock_s": 1e-6}], ids=str)
@pytest.mark.parametrize(
    "message", [("user", "Go on"), ("user", "@advocate Why?"), ("system", "More")], ids=str
)
def test_message_causes_no_new_verdict_after_the_operators_limit(
    message: tuple[str, str], limit: dict[str, float], operators_file: Callable[..., None]
) -> None:
    operators_file(limits=limit)
    model = FakeModel()
    graph = graph_at_its_limit(model)
    before, calls = graph.get_state(thread()).values, len(model.calls)
    for _ in range(2):
        graph.invoke({"messages": [message]}, thread())
        after = graph.get_state(thread()).values
        assert "No answer" in str(after["messages"][-1].content)
        assert "is reached" in str(after["messages"][-1].content)
    assert len(model.calls) == calls
    assert (after["verdict"], after["status"]) == (before["verdict"], "limit")
    assert after["config"] == before["config"]


def test_debate_at_its_own_limit_reports_that_it_takes_no_more_turns() -> None:
    model = FakeModel()
    graph = graph_at_its_limit(model, limits={"total_tokens": TOKEN_LIMIT})
    calls = len(model.calls)
    graph.invoke({"messages": [("user", "Go on")]}, thread())
    response = str(graph.get_state(thread()).values["messages"][-1].content)
    assert (
        response == "**No answer.** limits.total_tokens of 3000 is reached, so the debate takes no more turns"
    )
    assert len(model.calls) == calls


LAST_STEP: dict[str, Any] = {"kind": "judge", "phase": "closing", "round": 3, "aspect": "", "turns": []}
END_REASON = {"cause": "limit", "setting": "limits.total_tokens", "reason": "x"}
CLARIFYING_TURN = {"speaker": "advocate", "targets": [], "instruction": "", "room": ""}
REPEATING_UPDATES: dict[str, tuple[dict[str, Any], str]] = {
    "verdict": ({"step": {**LAST_STEP, "end_reason": END_REASON}}, "plan"),
    "verdict after a failed one": (
        {"step": {**LAST_STEP, "end_reason": END_REASON}, "verdict": failed_verdict("judge", "x")},
        "plan",
    ),
    "end of the debate": ({"round": 7}, "trim"),
    "final answers": (
        {"step": {**LAST_STEP, "phase": "decide"}, "config": {"decide": "vote"}},
        "plan",
    ),
    "convergence check": (
        {"step": {**LAST_STEP, "phase": "convergence"}, "config": {"protocol": "council"}},
        "plan",
    ),
    "clarifying questions": (
        {
            "step": {**LAST_STEP, "kind": "clarify", "phase": "clarify", "turns": [CLARIFYING_TURN]},
            "config": {"clarifications": {"enabled": True}},
        },
        "plan",
    ),
    "claims": (
        {
            "claim_events": [{"type": "extraction_pass", "through": 0, "by": "model", "dropped": {}}],
            "config": {"blackboard": {"extraction": "llm"}, "turns": 1},
        },
        "turn",
    ),
}


@pytest.mark.parametrize("limit", [{"total_tokens": TOKEN_LIMIT}, {"wall_clock_s": 1e-6}], ids=str)
@pytest.mark.parametrize(("update", "node"), REPEATING_UPDATES.values(), ids=REPEATING_UPDATES)
def test_state_update_causes_no_second_verdict_after_the_operators_limit(
    update: dict[str, Any], node: str, limit: dict[str, float], operators_file: Callable[..., None]
) -> None:
    operators_file(limits=limit, model="house")
    model = FakeModel()
    graph = graph_at_its_limit(model)
    verdict, spent = graph.get_state(thread()).values["verdict"], []
    assert verdict["status"] == "ok"
    for number in range(4):
        step = {"step": {**update["step"], "number": 60 + number}} if "step" in update else {}
        events = [{**each, "dropped": {"x": number}} for each in update.get("claim_events", ())]
        claims = {"claim_events": events} if events else {}
        graph.update_state(thread(), {**update, "status": "running", **step, **claims}, node)
        graph.invoke(None, thread())
        spent.append(len(model.calls))
    values = graph.get_state(thread()).values
    assert spent == spent[:1] * 4, "only calls that the debate had not made yet are made once"
    assert values["status"] == "limit"
    if "verdict" not in update:
        assert values["verdict"] == verdict


def test_failed_verdict_is_requested_again_after_the_operators_limit(
    operators_file: Callable[..., None],
) -> None:
    operators_file(limits={"total_tokens": TOKEN_LIMIT})
    model = FakeModel(lambda call: Reply(error="HTTP 500") if call.purpose == "judge" else fake_reply(call))
    graph = graph_at_its_limit(model)
    assert graph.get_state(thread()).values["verdict"]["status"] == "failed"
    model.reply = fake_reply
    for _ in range(2):
        graph.update_state(thread(), {"step": {**LAST_STEP, "number": 60, "end_reason": END_REASON}}, "plan")
        graph.invoke(None, thread())
    judged = [call for call in model.calls if call.purpose == "judge"]
    assert len(judged) == 2 * len({call.digest for call in judged})


def test_turns_after_a_raised_limit_are_judged_again(operators_file: Callable[..., None]) -> None:
    operators_file(limits={"total_tokens": TOKEN_LIMIT})
    model = FakeModel()
    graph = graph_at_its_limit(model)
    operators_file(limits={"total_tokens": 2 * TOKEN_LIMIT})
    graph.update_state(thread(), {"config": {"limits": {"total_tokens": 2 * TOKEN_LIMIT}}})
    turns = graph.get_state(thread()).values["turn_count"]
    for _ in range(9):
        graph.invoke({"messages": [("user", "Go on")]}, thread())
    values = graph.get_state(thread()).values
    assert (values["status"], values["verdict"]["status"]) == ("limit", "ok")
    assert values["turn_count"] > turns


def test_debate_at_its_own_limit_still_answers_questions(
    operators_file: Callable[..., None],
) -> None:
    operators_file(judge=OFF)
    graph = served_graph()
    graph.invoke({"topic": "T?"}, thread(), context={"turns": 60, "limits": {"total_tokens": TOKEN_LIMIT}})
    assert graph.get_state(thread()).values["status"] == "limit"
    graph.invoke({"messages": [("user", "What was said?")]}, thread())
    assert "No answer" not in str(graph.get_state(thread()).values["messages"][-1].content)


def test_served_debate_respects_the_operators_limit(tmp_path: Path) -> None:
    operator = make_config({"limits": {"total_tokens": TOKEN_LIMIT}})
    path = str(tmp_path / "d.sqlite")
    with open_debates(path) as debates:
        debates.start("T?", make_config({"turns": 2, "judge": OFF}), name="mine").run()
    served = Environment(default_config=lambda: operator)
    app = page_app(lambda: open_debates(path, environment=served), operator)
    with TestClient(app, base_url="http://127.0.0.1:2025", client=("127.0.0.1", 5)) as page:
        debate = "/moot/api/debates/mine"
        assert page.post(f"{debate}/run", json={"turns": 60}).is_success
        assert wait_until(lambda: page.get(debate).json()["over"] and not page.get(debate).json()["running"])
        row = page.get(debate).json()
        assert (row["status"], row["tokens"] < TOKENS_AFTER_LAST_STEP) == ("limit", True)
        response = page.post(f"{debate}/ask", json={"question": "What was said?"})
        assert (response.status_code, "only the operator" in response.text) == (400, True)
        assert page.post(f"{debate}/judge", json={}).is_success  # it had no verdict
        response = page.post(f"{debate}/judge", json={})
        assert (response.status_code, "only the operator" in response.text) == (400, True)


def test_sample_and_its_fork_respect_the_operators_limit(
    tmp_path: Path, operators_file: Callable[..., None]
) -> None:
    operators_file(limits={"total_tokens": TOKEN_LIMIT})
    path = str(tmp_path / "d.sqlite")
    served = Environment(default_config=operators_config)
    app = page_app(lambda: open_debates(path, environment=served), operators_config())
    with TestClient(app, base_url="http://127.0.0.1:2025", client=("127.0.0.1", 5)) as page:

        def ended(debate: str) -> Any:
            address = f"/moot/api/debates/{debate}"
            assert wait_until(lambda: not page.get(address).json()["running"])
            return page.get(address).json()

        sample = page.post("/moot/api/samples/rate-limiter", json={}).json()["id"]
        played = ended(sample)
        assert played["status"] == "limit"
        fork = page.post(f"/moot/api/debates/{sample}/fork", json={}).json()["id"]
        for debate in (sample, fork):
            page.post(f"/moot/api/debates/{debate}/run", json={"turns": 30})
            assert ended(debate)["tokens"] == played["tokens"]
    with open_debates(path) as debates:
        assert not {*debates.records.grants.of(sample), *debates.records.grants.of(fork)}


@pytest.mark.parametrize("by_operator", [False, True], ids=["visitor", "operator"])
def test_fork_keeps_a_raised_limit_only_if_the_operator_creates_it(
    tmp_path: Path, operators_file: Callable[..., None], by_operator: bool
) -> None:
    operators_file(limits={"total_tokens": TOKEN_LIMIT})
    path = str(tmp_path / "d.sqlite")
    raised = make_config({"turns": 60, "judge": OFF, "limits": {"total_tokens": 10**6}})
    with open_debates(path) as debates:
        source = debates.start("T?", raised, name="raised")
        assert source.config().limits.total_tokens == 10**6
    served = Environment(default_config=operators_config)
    app = page_app(lambda: open_debates(path, environment=served), operators_config(), None, "launched")
    headers = {"x-api-key": "launched"} if by_operator else {}
    with TestClient(app, base_url="http://127.0.0.1:2025", client=("127.0.0.1", 5), headers=headers) as page:
        fork = page.post("/moot/api/debates/raised/fork", json={}).json()["id"]
        page.post(f"/moot/api/debates/{fork}/run", json={})
        assert wait_until(lambda: page.get(f"/moot/api/debates/{fork}").json()["over"])
        row = page.get(f"/moot/api/debates/{fork}").json()
    if by_operator:
        assert (row["status"], row["tokens"] > TOKENS_AFTER_LAST_STEP) == ("done", True)
    else:
        assert (row["status"], row["tokens"] < TOKENS_AFTER_LAST_STEP) == ("limit", True)
    with open_debates(path) as debates:
        assert debates.records.grants.of(source.id) == {Capability("limit", "total_tokens 1e+06")}


def test_thread_copied_by_a_client_does_not_inherit_a_raised_limit(
    tmp_path: Path, operators_file: Callable[..., None]
) -> None:
    operators_file(limits={"total_tokens": TOKEN_LIMIT}, model="named")
    raised = make_config({"model": "offline", "judge": OFF, "limits": {"total_tokens": 10**6}})
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        source = debates.start("T?", raised)
        debates.records.grants.add(source.id, [Capability("model", "other")])
        debates.records.copy(source.id, "copy")
        assert debates.records.grants.of("copy") == {Capability("model", "other")}


def test_grants_include_only_capabilities_of_the_operators_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "mine")
    monkeypatch.setenv("MOOT_ALLOW_MODELS", "allowed")
    operator = make_config({"model": "named", "judge": OFF})
    asked = make_config({"model": "named", "judge": OFF, "fallbacks": ["allowed"]})
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start("T?", asked, operator=operator)
        assert debates.records.grants.of(debate.id) == {Capability("model", "named")}


def test_config_without_a_limit_gets_the_operators_limit(
    tmp_path: Path, operators_file: Callable[..., None]
) -> None:
    operators_file(limits={"total_tokens": TOKEN_LIMIT, "concurrency": 2})
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start("T?", make_config({"turns": 60, "judge": OFF}))
        assert debates.records.grants.of(debate.id) == set()
        debate.run()
        assert (debate.row.status, debate.config().limits.concurrency) == ("limit", 2)


@pytest.fixture
def debates(tmp_path: Path) -> Iterator[Debates]:
    with open_debates(str(tmp_path / "moot.sqlite")) as opened:
        yield opened


@pytest.fixture
def finished_debate(debates: Debates) -> Debate:
    debate = debates.start("T?", make_config({"turns": 2, "judge": OFF}))
    debate.run()
    return debate


def test_questions_count_toward_the_operators_limit(tmp_path: Path, finished_debate: Debate) -> None:
    before = finished_debate.row.tokens
    operator = make_config({"limits": {"total_tokens": before + 1}})
    served = Environment(default_config=lambda: operator)
    with open_debates(str(tmp_path / "moot.sqlite"), environment=served) as debates:
        host, debate = DebateHost(debates, operator), debates.get(finished_debate.id)
        host.ask(debate, "What was said?")
        assert debate.row.tokens > before
        assert tokens_of(debate.document()["usage"]) == debate.row.tokens
        with pytest.raises(InputError, match="only the operator can raise the limit"):
            host.ask(debate, "What was said?")


def test_question_is_counted_once_when_turns_follow(debates: Debates, finished_debate: Debate) -> None:
    other = debates.start("T?", finished_debate.config())
    for debate in (finished_debate, other):
        debate.run()
        if debate is finished_debate:
            debate.ask("What was said?")
        for _ in range(2):
            debate.run(turns=1)
    calls = [debate.document()["usage"]["calls"] for debate in (finished_debate, other)]
    assert calls[0] == calls[1] + 1
    assert calls[0] == finished_debate.state().values["usage"]["calls"]
    assert finished_debate.row.tokens == tokens_of(finished_debate.document()["usage"])


def test_questions_count_toward_the_debates_own_limit(finished_debate: Debate) -> None:
    config = finished_debate.config()
    limits = config.limits.model_copy(update={"total_tokens": finished_debate.row.tokens + 1})
    finished_debate.reconfigure(config.model_copy(update={"limits": limits}))
    assert finished_debate.can_go_on()
    finished_debate.ask("What was said?")
    assert not finished_debate.can_go_on()
    with pytest.raises(InputError, match=r"limits\.total_tokens of .* is reached"):
        finished_debate.run(turns=1)


def test_chat_makes_no_call_after_questions_reached_the_limit(
    operators_file: Callable[..., None], debates: Debates, finished_debate: Debate
) -> None:
    operators_file(limits={"total_tokens": finished_debate.row.tokens + 1})
    finished_debate.ask("What was said?")
    calls = finished_debate.document()["usage"]["calls"]
    config: Any = thread(finished_debate.id)
    debates.graph.invoke({"messages": [("user", "What was said?")]}, config)
    assert finished_debate.document()["usage"]["calls"] == calls
    assert "only the operator can raise the limit" in str(
        finished_debate.state().values["messages"][-1].content
    )


def test_concurrent_questions_about_a_debate_are_limited(
    debates: Debates, finished_debate: Debate, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, go = DebateHost(debates, make_config({})), threading.Event()
    monkeypatch.setattr(Debate, "ask", lambda *_: go.wait(20))
    with ThreadPoolExecutor(2 * MAX_ASKED_AT_ONCE) as threads:
        answers = [threads.submit(host.ask, finished_debate, "What?") for _ in range(2 * MAX_ASKED_AT_ONCE)]
        assert wait_until(lambda: sum(each.done() for each in answers) == MAX_ASKED_AT_ONCE)
        go.set()
    refused = [each for each in answers if isinstance(each.exception(), InputError)]
    assert len(refused) == MAX_ASKED_AT_ONCE
    host.ask(finished_debate, "What?")


def test_imported_debate_and_its_fork_respect_the_operators_limit(
    tmp_path: Path, operators_file: Callable[..., None]
) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        config = make_config({"turns": 60, "judge": OFF, "limits": {"total_tokens": 10**9}})
        document = debates.start("T?", config).document()
        operators_file(limits={"total_tokens": TOKEN_LIMIT})
        imported = debates.import_document(document, name="imported")
        for debate in (imported.fork(), imported):
            debate.run()
            assert debate.row.status == "limit"
            assert debate.row.tokens < TOKENS_AFTER_LAST_STEP


def test_operators_own_config_may_exceed_the_limit_in_the_file(
    tmp_path: Path, operators_file: Callable[..., None]
) -> None:
    operators_file(limits={"total_tokens": TOKEN_LIMIT})
    config = make_config({"turns": 30, "judge": OFF, "limits": {"total_tokens": 10**6}})
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        document = debates.start("T?", config).run()
        assert document["status"] == "done"
        limited = debates.import_document(document, name="imported")
        limited.run(turns=1)
        assert limited.row.status == "limit"
        limited.reconfigure(
            make_config({**config.to_json(), "turns": 40, "limits": {"total_tokens": 2 * 10**6}})
        )
        limited.run()
        assert limited.row.status == "done"
        assert limited.row.turns == 40


PRICES = {"input_usd_per_million": 1e6, "output_usd_per_million": 1e6}
FREE = dict.fromkeys(PRICES, 0)


def test_request_cannot_set_prices() -> None:
    graph = build_graph()
    for name in PRICES:
        with pytest.raises(ConfigError, match=rf"models\.offline\.{name}.*needs the operator"):
            graph.invoke({"topic": "T?"}, context={"turns": 1, "models": {"offline": {name: 0}}})


def test_operators_prices_override_a_request() -> None:
    operator = make_config({"model": "m", "models": {"m": PRICES}})
    made = requested_config(operator, {"models": {"m": FREE}})
    assert made.models["m"] == operator.models["m"]


@pytest.mark.parametrize("models", [FREE, None], ids=["free", "missing"])
def test_operators_prices_override_a_stored_state(
    models: dict[str, Any] | None, operators_file: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAIServer() as house:
        monkeypatch.setenv("OPENAI_BASE_URL", house.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "mine")
        operators_file(model="m", models={"m": PRICES}, judge=OFF, limits={"cost_usd": 1.0})
        graph = served_graph()
        asked = {"turns": 60, "openings": "sequential"}
        graph.invoke({"topic": "T?"}, thread(), context=asked, interrupt_after=["open"])
        config = graph.get_state(thread()).values["config"]
        stored = {**config, "models": {"m": models} if models else {}}
        graph.update_state(thread(), {"config": stored}, "trim")
        graph.invoke(None, thread())
        call_from_sync(graph.environment.aclose)
    values = graph.get_state(thread()).values
    assert values["status"] == "limit"
    assert values["usage"]["cost_usd"] > 1.0
    assert values["turn_count"] == 1
