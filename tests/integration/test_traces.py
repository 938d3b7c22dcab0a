"""Traces of runs in LangSmith and OpenTelemetry, which are off by default."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from langchain_core.tracers import LangChainTracer
from langgraph.checkpoint.memory import InMemorySaver
from langsmith import Client, tracing_context
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from moot import DebateConfig, JudgeConfig, build_graph, open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.debates.dry_run import estimate
from moot.graph.debate import NODES
from moot.models.offline import ScriptedModel
from moot.runtime.background_loop import call_from_sync
from moot.runtime.environment import Environment
from moot.state.errors import ModelError
from tests.support import mcp_tool_server
from tests.support.fakes import FakeModel, fake_reply
from tests.support.loopback import LoopbackServer
from tests.support.moot_command import Moot
from tests.support.openai_server import OpenAIServer, ServerReply

CANARY = "sk-canary-0123456789abcdef"
TOOL_SERVER = str(Path(mcp_tool_server.__file__))
THREAD: Any = {"configurable": {"thread_id": "5c5a9dd3-7d52-4bd0-9bd9-7b1ccd6cd3d5"}}


class LangSmithServer(LoopbackServer):
    """A server that stores what a tracer uploads."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        http = ThreadingHTTPServer(("127.0.0.1", 0), _UploadHandler)
        http.owner = self  # type: ignore[attr-defined]  # read by its handler
        super().__init__(http)


class _UploadHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        packed = self.headers.get("Content-Encoding") == "gzip"
        self.server.owner.bodies.append(gzip.decompress(body) if packed else body)  # type: ignore[attr-defined]  # see above
        self._answer({})

    do_PATCH = do_POST

    def _answer(self, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_: object) -> None:
        """Do not log requests."""


def _runs(bodies: list[bytes]) -> dict[str, dict[str, Any]]:
    runs: dict[str, dict[str, Any]] = {}
    for body in bodies:
        part = json.loads(body)
        runs.setdefault(part["id"], {}).update({k: v for k, v in part.items() if v is not None})
    return runs


def test_starting_and_running_a_debate_is_one_trace(tmp_path: Path) -> None:
    with LangSmithServer() as langsmith, open_debates(str(tmp_path / "moot.sqlite")) as debates:
        client = Client(api_url=langsmith.base_url, api_key="ls-key", auto_batch_tracing=False)
        with tracing_context(enabled=True, client=client):
            debate = debates.start("Tabs or spaces?", DebateConfig(turns=2))
            debate.run()
    runs = _runs(langsmith.bodies).values()
    (root,) = [run for run in runs if not run.get("parent_run_id")]
    assert (root["name"], root["inputs"]) == ("debate", {"topic": "Tabs or spaces?"})
    assert root["end_time"]
    assert root["extra"]["metadata"]["thread_id"] == debate.id
    assert {run["trace_id"] for run in runs} == {root["id"]}
    assert {run["name"] for run in runs} >= {"open", "turn", "judge", "close"}


def _run_debate(run: Any, config: DebateConfig) -> Any:
    environment = Environment()
    graph = build_graph(InMemorySaver(), environment=environment)
    graph.invoke({"topic": "Tabs or spaces?"}, run, context=config)
    call_from_sync(environment.aclose)
    return graph.get_state(THREAD).values


def test_langsmith_gets_nodes_without_states_and_calls_by_speaker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with LangSmithServer() as langsmith, OpenAIServer() as models:
        monkeypatch.setenv("OPENAI_BASE_URL", models.base_url)
        client = Client(api_url=langsmith.base_url, api_key="ls-key", auto_batch_tracing=False)
        prices: Any = {"gpt-4o-mini": {"input_usd_per_million": 1, "output_usd_per_million": 2}}
        config = DebateConfig(turns=4, model="gpt-4o-mini", models=prices)
        run = {**THREAD, "callbacks": [LangChainTracer(client=client)]}
        state = _run_debate(run, config)
    runs = _runs(langsmith.bodies).values()
    nodes = [each for each in runs if each["name"] in NODES and each["run_type"] == "chain"]
    turn_calls = [each for each in runs if each["run_type"] == "llm" and " m0" in each["name"]]
    assert len(turn_calls) == 4
    assert len([each for each in nodes if each["name"] == "turn"]) == 3  # both openings are one step
    inner = [each for each in runs if each["run_type"] == "chain" and each.get("parent_run_id")]
    assert [each["name"] for each in inner if each not in nodes] == []
    assert max(len(json.dumps([each.get("inputs"), each.get("outputs")])) for each in nodes) < 500
    parents = {each["id"]: each["name"] for each in nodes}
    assert {parents.get(each["parent_run_id"]) for each in turn_calls} == {"turn"}
    metadata = turn_calls[0]["extra"]["metadata"]
    assert (metadata["ls_provider"], metadata["ls_model_name"]) == ("openai", "gpt-4o-mini")
    priced = [each["extra"]["metadata"]["usage_metadata"] for each in runs if each["run_type"] == "llm"]
    assert sum(each["total_cost"] for each in priced) == pytest.approx(state["usage"]["cost_usd"])
    assert CANARY.encode() not in b"".join(langsmith.bodies)


@contextmanager
def _span_exporter() -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "_TRACER_PROVIDER", provider)
        yield exporter
    provider.shutdown()


def test_spans_describe_debate_steps_and_calls_without_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with _span_exporter() as exporter, OpenAIServer() as models:
        monkeypatch.setenv("OPENAI_BASE_URL", models.base_url)
        config = DebateConfig(turns=2, model="gpt-4o-mini", temperature=0.5)
        state = _run_debate(THREAD, config)
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
    exported = "".join(span.to_json() for span in spans)
    assert CANARY not in exported
    assert state["messages"][1].text[:30] not in exported


def test_an_estimate_makes_no_spans_and_a_later_debate_makes_them() -> None:
    config = DebateConfig(turns=2)
    with _span_exporter() as exporter:
        estimate(config)
        assert not exporter.get_finished_spans()
        _run_debate(THREAD, config)
        assert exporter.get_finished_spans()


def test_spans_of_a_python_model_do_not_name_openai() -> None:
    model = ScriptedModel(["I say yes.", "I say no."])
    config = DebateConfig(turns=2, model="mine", judge=JudgeConfig(enabled=False))
    with _span_exporter() as exporter:
        build_graph(InMemorySaver(), models={"mine": model}).invoke({"topic": "T?"}, THREAD, context=config)
    calls = [span for span in exporter.get_finished_spans() if span.name == "chat mine"]
    assert {str((span.attributes or {})["gen_ai.provider.name"]) for span in calls} == {"scripted"}


def test_the_span_of_a_failed_call_has_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(call: ModelCall) -> Reply:
        return Reply(error=f"the provider echoed {CANARY}", status=401)

    graph = build_graph(InMemorySaver(), environment=FakeModel(fails).environment())
    with _span_exporter() as exporter, pytest.raises(ModelError):
        graph.invoke({"topic": "T?"}, THREAD, context=DebateConfig(turns=2))
    spans = exporter.get_finished_spans()
    assert {str((span.attributes or {}).get("error.type")) for span in spans} >= {"401", "ModelError"}
    failed = [span for span in spans if "error.type" in (span.attributes or {})]
    assert {span.status.status_code for span in failed} == {trace.StatusCode.ERROR}
    assert all("gen_ai.response.finish_reasons" not in (span.attributes or {}) for span in failed)
    assert CANARY not in "".join(span.to_json() for span in spans)


def test_no_traces_are_sent_by_default(tmp_path: Path) -> None:
    with LangSmithServer() as elsewhere:
        asked: Any = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": elsewhere.base_url,
            "LANGSMITH_ENDPOINT": elsewhere.base_url,
        }
        words = ("run", "Tabs or spaces?", "--turns", 2, "-q")
        quiet = Moot(tmp_path)(*words, "--id", "one", LANGSMITH_API_KEY="k", **asked)
        assert (quiet.code, elsewhere.bodies) == (0, [])
        traced = Moot(tmp_path)(*words, "--id", "two", MOOT_OTEL="1", **asked)
        assert traced.code == 0, traced.err
        sent = b"".join(elsewhere.bodies)
        Moot(tmp_path)(*words, "--id", "three", MOOT_OTEL="1", OTEL_SERVICE_NAME="my-debates", **asked)
    assert b"invoke_workflow debate" in sent
    assert version("moot").encode() in sent
    assert b"my-debates" not in sent
    assert b"my-debates" in b"".join(elsewhere.bodies)


RECORD_CONNECTIONS = """
import sys

def record(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        address = arguments[1] if event == "socket.connect" else arguments
        if isinstance(address, tuple):
            with open(LOG, "a") as log:
                print(address[0], address[1], file=log)

sys.addaudithook(record)
"""


def test_a_debate_connects_only_to_the_models_server(tmp_path: Path) -> None:
    log = tmp_path / "connections.txt"
    code = f"LOG = {str(log)!r}\n{RECORD_CONNECTIONS}\nfrom moot.cli import main\nmain()\n"
    with OpenAIServer() as server:
        environment = Moot(tmp_path).environment(OPENAI_BASE_URL=server.base_url)
        words = ["run", "Trams?", "--turns", "2", "--model", "m", "--yes", "-q"]
        run = subprocess.run(
            [sys.executable, "-c", code, *words], env=environment, capture_output=True, text=True, check=False
        )
        port = urlsplit(server.base_url).port
    assert run.returncode == 0, run.stderr
    assert set(log.read_text("utf-8").splitlines()) == {f"127.0.0.1 {port}"}


def test_metrics_record_the_tokens_and_duration_of_calls() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics._internal, "_METER_PROVIDER", provider)
        graph = build_graph(environment=FakeModel().environment())
        graph.invoke({"topic": "T?"}, context=DebateConfig(turns=2, model="m"))
    points: dict[str, list[Any]] = {}
    data = reader.get_metrics_data()
    assert data is not None
    for metric in data.resource_metrics[0].scope_metrics[0].metrics:
        points[metric.name] = list(metric.data.data_points)
    durations = points["gen_ai.client.operation.duration"]
    assert {point.attributes["moot.purpose"] for point in durations} >= {"turn", "judge"}
    tokens = points["gen_ai.client.token.usage"]
    assert {point.attributes["gen_ai.token.type"] for point in tokens} == {"input", "output"}
    turns = [point for point in tokens if point.attributes["moot.purpose"] == "turn"]
    outputs = [point for point in turns if point.attributes["gen_ai.token.type"] == "output"]
    assert [(point.count, point.sum) for point in outputs] == [(2, 40)]
    provider.shutdown()


def test_a_failed_tool_call_is_an_event_of_its_step() -> None:
    def divides(call: ModelCall) -> Reply:
        if not call.tools or call.schema or any(each["role"] == "tool" for each in call.messages):
            return fake_reply(call)
        wrong = {"id": "c", "name": "calculator", "args": {"expression": "1 / 0"}}
        return Reply(tool_calls=(wrong,), model="m")

    ada: Any = {"name": "Ada", "tools": ["calculator"]}
    config = DebateConfig.model_validate({"turns": 1, "debaters": [ada, {"name": "Bo"}]})
    with _span_exporter() as exporter:
        build_graph(InMemorySaver(), environment=FakeModel(divides).environment()).invoke(
            {"topic": "T?"}, THREAD, context=config
        )
    events = [event for span in exporter.get_finished_spans() for event in span.events]
    assert [(each.name, dict(each.attributes or {})) for each in events] == [
        ("moot.tool_error", {"gen_ai.tool.name": "calculator"})
    ]


def test_message_texts_are_captured_if_the_operator_enables_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")
    environment = FakeModel().environment()
    with _span_exporter() as exporter:
        build_graph(environment=environment).invoke({"topic": "T?"}, context=DebateConfig(turns=1, model="m"))
    calls = [span.attributes or {} for span in exporter.get_finished_spans() if span.name == "chat m"]
    turn = next(each for each in calls if each["moot.purpose"] == "turn")
    inputs = json.loads(str(turn["gen_ai.input.messages"]))
    assert inputs[0]["role"] == "system"
    assert any("T?" in part["content"] for message in inputs for part in message["parts"])
    (output,) = json.loads(str(turn["gen_ai.output.messages"]))
    assert output["parts"][0]["content"].startswith("I say ")
    assert output["finish_reason"] == "stop"


def test_streamed_calls_record_the_time_to_the_first_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    reader = InMemoryMetricReader()
    with _span_exporter() as exporter, OpenAIServer() as models, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", models.base_url)
        patch.setattr(metrics._internal, "_METER_PROVIDER", MeterProvider([reader]))
        environment = Environment()
        graph, config = build_graph(environment=environment), DebateConfig(turns=2, model="gpt-4o-mini")
        list(graph.stream({"topic": "T?"}, context=config, stream_mode="messages"))
        call_from_sync(environment.aclose)
    facts = [dict(span.attributes or {}) for span in exporter.get_finished_spans()]
    streamed = [each for each in facts if each.get("gen_ai.request.stream")]
    assert len([each for each in streamed if each["moot.purpose"] == "turn"]) == 2
    assert all(float(str(each["gen_ai.response.time_to_first_chunk"])) > 0 for each in streamed)
    data = reader.get_metrics_data()
    assert data is not None
    recorded = {metric.name: metric for metric in data.resource_metrics[0].scope_metrics[0].metrics}
    first = recorded["gen_ai.client.operation.time_to_first_chunk"]
    assert first.unit == "s"
    points: list[Any] = list(first.data.data_points)
    assert sum(point.count for point in points) == len(streamed)


def test_failed_summaries_and_extractions_are_events_of_their_steps() -> None:
    def fails(call: ModelCall) -> Reply:
        failing = call.purpose in ("summary", "extract")
        return Reply(error=f"no {CANARY}", status=500, model="m") if failing else fake_reply(call)

    config = DebateConfig.model_validate(
        {
            "turns": 12,
            "model": "m",
            "memory": {"summarizer": "llm", "keep_recent": 2, "summarize_every": 2},
            "blackboard": {"extraction": "llm"},
        }
    )
    with _span_exporter() as exporter:
        build_graph(environment=FakeModel(fails).environment()).invoke({"topic": "T?"}, context=config)
    events = [event for span in exporter.get_finished_spans() for event in span.events]
    nodes = {
        str((event.attributes or {})["moot.node"]) for event in events if event.name == "moot.recovered_error"
    }
    assert nodes >= {"summarize", "extract"}
    assert CANARY not in str([dict(event.attributes or {}) for event in events])


SECRETS = {
    "OPENAI_API_KEY": "sk-canary-7f3a9c21d4e5",
    "DOCS_KEY": "tool-canary-5b6c7d8e9f",
    "LANGSMITH_API_KEY": "ls-canary-0a1b2c3d4e",
    "MOOT_TOKEN": "server-canary-1122334455",
    "OTHER": "ev-canary-8d1e9f0a1b",
}
PASSWORD = "pw-canary-55aa66bb"  # noqa: S105  # used only in this test
HEADER = "hd-canary-91b2c3d4e5"


@pytest.mark.slow  # starts the tool's server
@pytest.mark.parametrize("failing", [False, True])
def test_a_traced_run_with_a_tool_leaks_no_secret(tmp_path: Path, failing: bool) -> None:
    every = [*SECRETS.values(), PASSWORD, HEADER]

    def plan(asked: dict[str, Any], number: int) -> ServerReply | None:
        if asked.get("tools") and not any(each["role"] == "tool" for each in asked["messages"]):
            return ServerReply(tool_calls=[("docs__search", {"query": "trams"})])
        text = f"The secrets are {SECRETS['OPENAI_API_KEY']}, {SECRETS['DOCS_KEY']} and {PASSWORD}."
        return (
            ServerReply(status=401, message=text)
            if failing
            else ServerReply(text=text)
            if not asked.get("response_format")
            else None
        )

    moot = Moot(tmp_path / "home")
    moot.folder.mkdir()
    config = {
        "model": "m",
        "turns": 2,
        "debaters": [{"name": "Ann", "tools": ["docs__search"]}, {"name": "Bob"}],
        "mcp_servers": {"docs": {"command": [sys.executable, TOOL_SERVER], "env": ["DOCS_KEY"]}},
        "models": {"m": {"max_attempts": 1}},
    }
    (tmp_path / "debate.json").write_text(json.dumps(config))
    with LangSmithServer() as collector, OpenAIServer(plan) as models:
        variables: Any = SECRETS
        ran = moot(
            *("run", "Trams?", "-c", tmp_path / "debate.json", "--id", "d", "-o", "d.html", "--log-json"),
            **variables,
            OPENAI_BASE_URL=models.base_url.replace("http://", f"http://me:{PASSWORD}@"),
            LANGSMITH_TRACING="true",
            LANGSMITH_ENDPOINT=collector.base_url,
            MOOT_OTEL="1",
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.base_url,
            OTEL_EXPORTER_OTLP_HEADERS=f"authorization={HEADER}",
            OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="SPAN_ONLY",
            MOOT_DEBUG="1",
        )
        assert ran.code == (3 if failing else 0), ran.err
        shown = [moot(*words) for words in (("show", "d", "--json"), ("doctor",), ("backup", "copy.sqlite"))]
    traced = b"".join(collector.bodies)
    assert b"invoke_workflow debate" in traced
    assert b"docs__search" in traced
    asked = "".join(request.body.decode() for request in models.requests)
    assert "12 incidents in 2026. Key: ***" in asked
    stored = b"".join(path.read_bytes() for path in moot.folder.rglob("*") if path.is_file())
    places = {
        "traces": traced,
        "prompts": asked.encode(),
        "files": stored,
        "output": "".join(each.out + each.err for each in (ran, *shown)).encode(),
    }
    assert [(place, each) for place, held in places.items() for each in every if each.encode() in held] == []
