"""Extensions: one file with public imports adds a plug-in, and one line adds a field of the verdict."""

from __future__ import annotations

import ast
import io
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from rich.console import Console

from moot import ConfigError, DebateConfig, build_graph, open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.cli.group import load_command
from moot.cli.reference import pages
from moot.cli.show_parts import transcript, verdict_parts
from moot.config.config_files import make_config
from moot.debates.config_checks import warnings_about
from moot.debates.dry_run import estimate
from moot.graph.json_schemas import config_schema
from moot.memory.summarizers.registry import SUMMARIZERS, summarizer_named
from moot.models.offline import ScriptedModel
from moot.plugins.evals.statistics import compare_debates, render_comparison
from moot.protocols import Protocol
from moot.protocols.registry import PROTOCOLS
from moot.protocols.suffix import SECTIONS, SectionText, SuffixSection
from moot.reports import render_brief, render_brief_html, render_html, render_markdown
from moot.reports.html import render_messages
from moot.rubrics import Criterion, Rubric
from moot.runtime.environment import Environment
from moot.state.entries import ENTRY_DETAILS
from moot.state.verdict import VERDICT_FIELDS, VerdictField
from moot.summarizers import Summarizer
from moot.tools import Tool
from moot.tools.registry import TOOLS
from tests.support.fakes import FakeModel

PUBLIC = {"moot", "moot.protocols", "moot.summarizers", "moot.tools", "moot.rubrics"}

RELAY = '''
"""Relay: every debater takes one turn per lap."""

from moot.protocols import End, Protocol, ProtocolSettings, make_step, make_turn


class RelaySettings(ProtocolSettings):
    """Length of a relay."""

    key = "relay"
    laps: int = 1
    """Turns of every debater."""


class Relay(Protocol):
    name, settings = "relay", RelaySettings

    def next_step(self, state, config):
        turn, names = state.get("turn_count", 0), list(config.names())
        lap, place = divmod(turn, len(names))
        if lap == RelaySettings.of(config).laps:
            return End("every lap is run")
        return make_step("lap", lap + 1, [make_turn(names[place], "Say one sentence.")])
'''

HEADLINES = """
from moot.summarizers import Draft, Summarizer


class Headlines(Summarizer):
    name, asks_model = "headlines", False

    def summarize(self, request):
        yield from ()
        return Draft("Headline: " + request.entries[-1]["content"][:20])


class Digest(Summarizer):
    name = "digest"

    def summarize(self, request):
        from moot.summarizers import messages_text, summary_call

        text = messages_text(request, request.entries)
        (reply,) = yield [summary_call(request, "Summarise.", text, max_tokens=64)]
        return Draft(reply.require().text)
"""

DICE = """
from moot.tools import Tool


class Dice(Tool):
    name = "dice"
    description = "Throws a die."

    sides: int = 6

    def run(self, context):
        return f"a {self.sides - 2}"
"""

WIT = """
from moot.rubrics import Criterion, Rubric

WIT = Rubric(name="wit", criteria=(Criterion(id="jokes", name="Jokes", description="It is funny."),))
"""

ENTRY_POINTS = """
[moot.protocols]
relay = relay:Relay
[moot.summarizers]
headlines = headlines:Headlines
digest = headlines:Digest
[moot.tools]
dice = dice:Dice
[moot.rubrics]
wit = wit:WIT
"""


@pytest.fixture
def plugin_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a package that adds a protocol, two summarisers, a tool and a rubric."""
    site = tmp_path / "site"
    info = site / "extras-1.0.dist-info"
    info.mkdir(parents=True)
    for name, source in {"relay": RELAY, "headlines": HEADLINES, "dice": DICE, "wit": WIT}.items():
        (site / f"{name}.py").write_text(source)
        monkeypatch.delitem(sys.modules, name, raising=False)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extras\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(site)
    for registry, table in (
        ("moot.protocols.registry.PROTOCOLS", PROTOCOLS),
        ("moot.memory.summarizers.registry.SUMMARIZERS", SUMMARIZERS),
        ("moot.tools.registry.TOOLS", TOOLS),
        ("moot.config.rubrics._REGISTERED", {}),
    ):
        monkeypatch.setattr(registry, dict(table))
    summarizer_named.cache_clear()
    yield
    summarizer_named.cache_clear()


@pytest.mark.parametrize(
    "source", [RELAY, HEADLINES, DICE, WIT], ids=["protocol", "summarizer", "tool", "rubric"]
)
def test_a_plugin_needs_only_public_imports(source: str) -> None:
    imported = {node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
    assert imported <= PUBLIC


@pytest.mark.usefixtures("plugin_package")
def test_a_protocol_plugin_runs_and_appears_in_help_docs_and_schema(tmp_path: Path) -> None:
    config = make_config({"protocol": "relay", "relay": {"laps": 3}, "judge": {"enabled": False}})
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel().environment()) as debates:
        document = debates.start("Is chance fair?", config).run()
    assert [entry["round"] for entry in document["transcript"] if entry["phase"] == "lap"] == [
        1,
        1,
        2,
        2,
        3,
        3,
    ]
    planned = estimate(config)
    assert planned is not None
    assert planned.calls == 6
    (option,) = (param for param in load_command("run").params if param.name == "protocol")
    assert "relay" in option.help.split(": ")[1].rstrip(".").split(", ")
    assert "relay" in pages()["cli.md"]
    assert "\nrelay:\n  # Turns of every debater.\n  laps: 1\n" in pages()["configuration.md"]
    assert "relay" in config_schema()["properties"]["protocol"]["enum"]


MEMORY = {"keep_recent": 4, "summarize_every": 2}


@pytest.mark.parametrize(("name", "asks"), [("headlines", False), ("digest", True)])
@pytest.mark.usefixtures("plugin_package")
def test_a_summarizer_plugin_declares_whether_it_calls_a_model(tmp_path: Path, name: str, asks: bool) -> None:
    def config(protocol: str) -> DebateConfig:
        settings = {"protocol": protocol, "turns": 20, "model": "m", "judge": {"enabled": False}}
        return make_config({**settings, "memory": {**MEMORY, "summarizer": name}})

    model = FakeModel()
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        document = debates.start("Is chance fair?", config("round-robin")).run()
    assert {summary["method"] for summary in document["summaries"]} == {name}
    called = {call.purpose for call in model.calls}
    assert called == ({"turn", "summary"} if asks else {"turn"})
    planned = estimate(config("round-robin"))
    assert planned is not None
    assert planned.calls == len(model.calls)
    # The prompts of a dialogue show no summary, so a summariser that calls a model gets a warning.
    warned = [text for text in warnings_about(config("dialogue")) if "memory.summarizer" in text]
    assert bool(warned) is asks
    (option,) = (param for param in load_command("run").params if param.name == "summarizer")
    assert name in option.help


@pytest.mark.usefixtures("plugin_package")
def test_a_tool_plugin_runs_in_a_debate(tmp_path: Path) -> None:
    debaters: list[Any] = [{"name": "Ada", "tools": ["dice"]}]
    config = DebateConfig(turns=1, debaters=debaters, model="m", judge={"enabled": False})
    call = {"id": "c1", "name": "dice", "args": {"sides": 6}}
    model = ScriptedModel([AIMessage("", tool_calls=[call]), "It is: I threw a 4."])
    environment = Environment(factory=lambda name, settings: model)
    with open_debates(str(tmp_path / "d.sqlite"), environment=environment) as debates:
        transcript = debates.start("Is chance fair?", config).run()["transcript"]
    assert [entry["content"] for entry in transcript if entry["kind"] == "tool_result"] == ["dice: a 4"]
    (option,) = (param for param in load_command("run").params if param.name == "tools")
    assert "dice" in option.help


@pytest.mark.usefixtures("plugin_package")
def test_a_rubric_plugin_reaches_the_judge_prompt(tmp_path: Path) -> None:
    config = make_config({"turns": 2, "model": "m", "judge": {"rubric": "wit", "swap": False}})
    model = FakeModel()
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debates.start("Is chance fair?", config).run()
    (asked,) = (call for call in model.calls if call.purpose == "judge")
    assert {"- jokes:", "It is funny."} <= set(re.findall(r"- jokes:|It is funny\.", str(asked.messages)))
    (option,) = (param for param in load_command("run").params if param.name == "rubric")
    assert "wit" in option.help


@pytest.mark.usefixtures("plugin_package")
@pytest.mark.parametrize(
    ("module", "other", "message"),
    [
        (
            "moot.protocols",
            type("Other", (Protocol,), {"name": "council"})(),
            "'council' is empty or already",
        ),
        ("moot.summarizers", type("Other", (Summarizer,), {"name": "llm"})(), "'llm' is empty or already"),
        ("moot.tools", type("Other", (Tool,), {"name": "search"}), "'search' is empty or already"),
        (
            "moot.rubrics",
            Rubric(name="debate", criteria=(Criterion(id="a", name="A"),)),
            "'debate' is already",
        ),
    ],
)
def test_a_plugin_cannot_replace_a_built_in_one(module: str, other: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        import_module(module).register(other)


RISKS = VerdictField(
    "Risks", "What may go wrong.", orders="union", panel="union", name="risks", kind=list[str]
)


DANGERS = ["Rivers flood.", "Prices fall.", "Nobody votes.", "Bridges break."]


def test_a_registered_verdict_field_is_recorded_merged_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The schema asks for the field. Two orders and a panel are merged. Every output shows the result."""
    monkeypatch.setitem(VERDICT_FIELDS, "risks", RISKS)
    asked: list[ModelCall] = []

    def reply(call: ModelCall) -> Reply:
        if call.schema is None:
            return Reply(text="I say so.", model=call.model)
        asked.append(call)
        verdict = {
            "reasoning": "weighed",
            "winner": "synthesis",
            "risks": [DANGERS[len(asked) - 1]],
            "decision": "Do it.",
        }
        return Reply(data=verdict, model=call.model)

    judge: Any = {"blind": False, "panel": [{"id": "one"}, {"id": "two"}]}
    debaters: list[Any] = [{"name": "Ada"}, {"name": "Bo"}]
    config = DebateConfig(turns=2, debaters=debaters, model="m", judge=judge)
    environment = FakeModel(reply).environment()
    with open_debates(str(tmp_path / "d.sqlite"), environment=environment) as debates:
        debate = debates.start("Is chance fair?", config)
        document = debate.run()
        last = debate.state().values["messages"][-1].text
    assert len(asked) == 4  # two judges in two orders
    schemas = [call.schema.model_json_schema()["properties"] for call in asked if call.schema]
    described = [schema["risks"]["description"] for schema in schemas if "risks" in schema]
    assert described == 2 * ["What may go wrong."], "the second order only scores"
    recorded: list[Any] = document["verdicts"]
    kept = [DANGERS[0], DANGERS[2]]  # from the first order of each judge
    assert [verdict["risks"] for verdict in recorded] == [[each] for each in kept]
    panel: Any = document["verdict"]
    assert panel["risks"] == kept
    compared = compare_debates([document, document])
    screen = Console(width=100, record=True, file=io.StringIO())
    screen.print(*verdict_parts(document))
    renderings = {
        "screen and show": screen.export_text(),
        "HTML report and live page": render_html(document),
        "Markdown report": render_markdown(document),
        "brief": render_brief(document),
        "brief as HTML": render_brief_html(document),
        "decision record": render_brief(document, "adr"),
        "last message and MCP result": last,
        "comparison": render_comparison(compared),
    }
    for name, text in renderings.items():
        assert "Risks" in text, name
        for danger in kept:
            assert danger in text, name


RULE = "Cite a figure only with its year."
HOUSE_RULES = SuffixSection(
    "house rules", lambda ctx, request: SectionText(f"# House rules\n{RULE}"), order=5, share=1 / 10
)
SHORT = {"judge": {"enabled": False}, "dialogue": {"aspects": ["cost"]}, "vote": {"answers": 2}}


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "pairwise"])
def test_a_row_adds_a_section_to_the_prompts_of_every_debater(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moot.protocols.suffix.SECTIONS", (*SECTIONS, HOUSE_RULES))
    model = FakeModel()
    config = make_config({"protocol": protocol, "model": "m", "turns": 4, **SHORT})
    graph: Any = build_graph(environment=model.environment())
    graph.invoke({"topic": "Is chance fair?"}, context=config)
    prompts = [call.messages[-1]["content"] for call in model.calls if call.purpose == "turn"]
    assert prompts
    assert all(prompt.count(RULE) == 1 for prompt in prompts)


def test_a_row_adds_a_detail_of_an_entry_to_transcript_reports_and_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENTRY_DETAILS, "mood", lambda entry: f"mood of {entry['speaker']}")
    config = make_config({"turns": 2, "model": "m", "judge": {"enabled": False}})
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel().environment()) as debates:
        document = debates.start("Is chance fair?", config).run()
    screen = Console(width=200, record=True, file=io.StringIO())
    screen.print(*transcript(document))
    renderings = {
        "transcript": screen.export_text(),
        "HTML report": render_html(document),
        "live page": "".join(html for _, html in render_messages(document["transcript"], document)),
        "Markdown report": render_markdown(document),
    }
    assert [name for name, text in renderings.items() if "mood of advocate" not in text] == []
