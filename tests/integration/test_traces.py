"""What is told of a run, and to whom: to LangSmith or OpenTelemetry where they are asked for, never more."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tracers import LangChainTracer
from langgraph.checkpoint.memory import InMemorySaver
from langsmith import Client
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from moot import DebateConfig, build_graph
from moot.graph.debate import NODES
from moot.nodes.calls import ModelCall, Reply
from moot.nodes.driving.environment import Environment
from moot.nodes.driving.portal import call_from_sync
from moot.state.errors import ModelError
from tests.support.fakes import FakeModel
from tests.support.loopback import LoopbackServer
from tests.support.moot_command import Moot
from tests.support.openai_server import OpenAIServer

CANARY = "sk-canary-0123456789abcdef"
THREAD: Any = {"configurable": {"thread_id": "5c5a9dd3-7d52-4bd0-9bd9-7b1ccd6cd3d5"}}


class LangSmithStandIn(LoopbackServer):
    """Takes what a tracer uploads."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        http = ThreadingHTTPServer(("127.0.0.1", 0), _Uploads)
        http.owner = self  # type: ignore[attr-defined]  # for its handler
        super().__init__(http)


class _Uploads(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        packed = self.headers.get("Content-Encoding") == "gzip"
        self.server.owner.bodies.append(gzip.decompress(body) if packed else body)  # type: ignore[attr-defined]  # see above
        self._answer({})

    do_PATCH = do_POST

    def _answer(self, said: dict[str, Any]) -> None:
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_: object) -> None:
        """Say nothing."""


def _runs(bodies: list[bytes]) -> dict[str, dict[str, Any]]:
    runs: dict[str, dict[str, Any]] = {}
    for body in bodies:
        part = json.loads(body)
        runs.setdefault(part["id"], {}).update({k: v for k, v in part.items() if v is not None})
    return runs


def _argued(run: Any, config: DebateConfig) -> Any:
    environment = Environment()
    graph = build_graph(InMemorySaver(), environment=environment)
    graph.invoke({"topic": "Tabs or spaces?"}, run, context=config)
    call_from_sync(environment.aclose)
    return graph.get_state(THREAD).values


def test_langsmith_gets_each_node_once_without_states_and_calls_by_who_speaks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with LangSmithStandIn() as langsmith, OpenAIServer() as models:
        monkeypatch.setenv("OPENAI_BASE_URL", models.base_url)
        client = Client(api_url=langsmith.base_url, api_key="ls-key", auto_batch_tracing=False)
        prices: Any = {"gpt-4o-mini": {"input_usd_per_million": 1, "output_usd_per_million": 2}}
        config = DebateConfig(turns=4, model="gpt-4o-mini", models=prices)
        run = {**THREAD, "callbacks": [LangChainTracer(client=client)]}
        spent = _argued(run, config)
    runs = _runs(langsmith.bodies).values()
    nodes = [each for each in runs if each["name"] in NODES and each["run_type"] == "chain"]
    speeches = [each for each in runs if each["run_type"] == "llm" and " m0" in each["name"]]
    assert len(speeches) == 4
    assert len([each for each in nodes if each["name"] == "turn"]) == 4
    inner = [each for each in runs if each["run_type"] == "chain" and each.get("parent_run_id")]
    assert [each["name"] for each in inner if each not in nodes] == []
    assert max(len(json.dumps([each.get("inputs"), each.get("outputs")])) for each in nodes) < 500
    parents = {each["id"]: each["name"] for each in nodes}
    assert {parents.get(each["parent_run_id"]) for each in speeches} == {"turn"}
    told = speeches[0]["extra"]["metadata"]
    assert (told["ls_provider"], told["ls_model_name"]) == ("openai", "gpt-4o-mini")
    priced = [each["extra"]["metadata"]["usage_metadata"] for each in runs if each["run_type"] == "llm"]
    assert sum(each["total_cost"] for each in priced) == pytest.approx(spent["usage"]["cost_usd"])
    assert CANARY.encode() not in b"".join(langsmith.bodies)


@contextmanager
def _collected() -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "_TRACER_PROVIDER", provider)
        yield exporter
    provider.shutdown()


def test_spans_tell_of_debate_steps_and_calls_but_no_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with _collected() as exporter, OpenAIServer() as models:
        monkeypatch.setenv("OPENAI_BASE_URL", models.base_url)
        config = DebateConfig(turns=2, model="gpt-4o-mini", temperature=0.5)
        made = _argued(THREAD, config)
    spans = exporter.get_finished_spans()
    (debate,) = [span for span in spans if span.name == "invoke_workflow debate"]
    by_id = {span.context.span_id: span for span in spans if span.context}
    calls = [span for span in spans if span.name == "chat gpt-4o-mini"]
    facts = [dict(span.attributes or {}) for span in calls]
    assert len([each for each in facts if each["moot.purpose"] == "turn"]) == 2
    assert facts[0]["gen_ai.conversation.id"] == THREAD["configurable"]["thread_id"]
    assert (facts[0]["gen_ai.operation.name"], facts[0]["gen_ai.provider.name"]) == ("chat", "openai")
    assert int(str(facts[0]["gen_ai.usage.input_tokens"])) > 100
    assert facts[0]["gen_ai.request.temperature"] == 0.5
    for span in calls:
        step = by_id[span.parent.span_id] if span.parent else span
        assert step.name.startswith("step ")
        assert step.parent
        assert step.parent.span_id == debate.context.span_id
    told = "".join(span.to_json() for span in spans)
    assert CANARY not in told
    assert made["messages"][1].text[:30] not in told


def test_a_call_that_fails_is_told_without_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(call: ModelCall) -> Reply:
        return Reply(error=f"the provider echoed {CANARY}", status=401)

    graph = build_graph(InMemorySaver(), environment=FakeModel(fails).environment())
    with _collected() as exporter, pytest.raises(ModelError):
        graph.invoke({"topic": "T?"}, THREAD, context=DebateConfig(turns=2))
    spans = exporter.get_finished_spans()
    assert {str((span.attributes or {}).get("error.type")) for span in spans} >= {"401", "ModelError"}
    assert CANARY not in "".join(span.to_json() for span in spans)


def test_nothing_is_sent_unless_it_is_asked_for(tmp_path: Path) -> None:
    with LangSmithStandIn() as elsewhere:
        asked: Any = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": elsewhere.base_url,
            "LANGSMITH_ENDPOINT": elsewhere.base_url,
        }
        words = ("run", "Tabs or spaces?", "--turns", 2, "-q")
        quiet = Moot(tmp_path)(*words, "--id", "one", LANGSMITH_API_KEY="k", **asked)
        assert (quiet.code, elsewhere.bodies) == (0, [])
        told = Moot(tmp_path)(*words, "--id", "two", MOOT_OTEL="1", **asked)
        assert told.code == 0, told.err
    assert b"invoke_workflow debate" in b"".join(elsewhere.bodies)
