"""What a person meets first: no model, text on stdin, a context folder, a proposal, and the help."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from moot.api import DebateConfig, open_debates
from moot.cli import inputs
from moot.cli.commands import run, setup
from moot.cli.group import FIRST_WEEK, all_commands, app_of, make_group
from moot.config.config_files import data_in, make_config
from moot.config.participants import DebaterConfig
from moot.debates.config_checks import FOLDER_TOOLS
from moot.models.registry import OPENAI_URL
from moot.plugins.web.debate_host import DebateHost
from moot.state.errors import ConfigError, DebateNotFound, InputError, MootError, advice_for

ONE_TURN: dict[str, Any] = {"turns": 1, "judge": {"enabled": False}}


def moot(name: str, *words: str) -> Any:
    done = CliRunner().invoke(app_of(name), list(words))
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


# No model

NO_MODEL_ADVICE = {"command": "moot setup", "agent": '"env": {"OPENAI_API_KEY"'}


@pytest.mark.parametrize("caller", ["command", "agent"])
def test_a_server_starts_no_debate_without_a_model(tmp_path: Path, caller: Any) -> None:
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        host = DebateHost(debates, make_config({}))
        with advice_for(caller), pytest.raises(ConfigError, match="no model is set") as error:
            asyncio.run(host.make("Trams?", {}))
        assert NO_MODEL_ADVICE[caller] in str(error.value)
        assert not debates.rows()
        chosen = DebateHost(debates, make_config({"model": "offline"}))
        assert asyncio.run(chosen.make("Trams?", {})).config().model == "offline"
        assert asyncio.run(host.make("Ships?", {"model": "offline"}, by_operator=True))


@pytest.mark.parametrize(
    ("settings", "lacks"),
    [
        ({}, True),
        ({"model": "offline"}, False),
        ({"judge": {"model": "m"}}, True),
        ({"judge": {"model": "m"}, "debaters": [{"name": "A", "model": "m"}, {"name": "B"}]}, True),
        ({"judge": {"model": "m"}, "debaters": [{"name": "A", "model": "m"}]}, False),
        ({"judge": {"enabled": False}, "debaters": [{"name": "A", "model": "human"}]}, False),
        ({"judge": {"panel": [{"id": "j", "model": "m"}]}, "debaters": [{"name": "A", "model": "m"}]}, False),
    ],
    ids=["nothing", "offline", "only judge", "one debater without", "each", "people", "panel"],
)
def test_a_configuration_lacks_a_model_if_the_offline_model_would_take_part(
    settings: dict[str, Any], lacks: bool
) -> None:
    assert make_config(settings).lacks_model() is lacks


def test_a_debate_from_python_warns_that_no_model_is_set(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        debates.start("Trams?", DebateConfig.model_validate({**ONE_TURN, "model": "offline"}))
        assert not caplog.messages
        debates.start("Ships?", DebateConfig.model_validate(ONE_TURN))
    assert len([each for each in caplog.messages if each.startswith("no model is set")]) == 1


# Text on stdin


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Pipe on stdin. The value is the descriptor to write to."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        yield writing
    os.close(writing)


@pytest.mark.parametrize("paths", [None, ["-"]], ids=["piped", "requested"])
def test_piped_text_is_a_document_named_stdin(pipe: int, paths: list[str] | None) -> None:
    os.write(pipe, "+ größer\n".encode())
    os.dup2(os.open(os.devnull, os.O_WRONLY), pipe)  # ends the input
    assert inputs.read_context(paths) == (None, [{"name": "stdin", "content": "+ größer\n"}])


@pytest.mark.parametrize("ended", [False, True], ids=["silent", "empty"])
def test_a_pipe_without_text_is_reported_and_ignored(
    pipe: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ended: bool
) -> None:
    monkeypatch.setattr(inputs, "STDIN_WAIT_S", 0.05)
    if ended:
        os.dup2(os.open(os.devnull, os.O_WRONLY), pipe)
    assert inputs.read_context(None) == (None, [])
    assert "goes on without it" in capsys.readouterr().err


def test_binary_or_endless_text_on_stdin_is_refused(pipe: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MAX_STDIN_BYTES", 4)
    os.write(pipe, b"12345")
    with pytest.raises(InputError, match="more than 4 bytes"):
        inputs.read_context(None)
    os.write(pipe, b"\xff\xfe")
    os.dup2(os.open(os.devnull, os.O_WRONLY), pipe)
    with pytest.raises(InputError, match="stdin is not UTF-8 text"):
        inputs.read_context(None)


def test_a_device_such_as_dev_null_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert inputs.read_context(None) == (None, [])


# Context


@pytest.mark.parametrize("place", ["option", "file", "python"])
def test_an_address_as_context_is_refused_with_advice(tmp_path: Path, place: str) -> None:
    url = "https://example.org/page.html"
    file = tmp_path / "c.yaml"
    file.write_text(f"model: offline\ncontext: {url}\n")

    def start() -> None:
        with open_debates(str(tmp_path / "d.sqlite")) as debates:
            debates.start("Trams?", DebateConfig(context=url, model="offline"))

    use = {
        "option": lambda: inputs.read_context([url]),
        "file": lambda: inputs.run_config(file, {}),
        "python": start,
    }
    with pytest.raises(InputError, match=rf"Moot downloads nothing.*curl -o page.html {url}"):
        use[place]()


def test_debaters_get_tools_and_the_list_of_files_for_a_context_folder(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "trams.md").write_text("Trams are cheap.")
    config = DebateConfig.model_validate({**ONE_TURN, "model": "offline", "context": str(folder)})
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        debate = debates.start("Trams?", config)
        assert set(FOLDER_TOOLS) == {"list_files", "read_file", "search"}
        assert {each.tools for each in debate.config().debaters} == {FOLDER_TOOLS}
        texts = [entry["content"] for entry in debate.document()["transcript"]]
        assert "Files of the folder 'notes'\n\n1 files\ntrams.md (16 bytes)" in texts
        own = {"debaters": [{"name": "A", "tools": ["calculator"]}, {"name": "B"}]}
        tools = [
            each.tools
            for each in debates.start("T?", make_config({**config.to_json(), **own})).config().debaters
        ]
        assert tools == [("calculator",), ()]


def test_yes_and_no_in_yaml_are_text_and_truth_values_where_those_are_expected() -> None:
    text = """\
debaters: [{name: Ada, stance: yes}, {name: Ben, stance: No}]
options: [yes, no]
language: no
judge: {enabled: no, blind: on}
"""
    config = make_config(data_in(text, Path("c.yaml"), "configuration"))  # type: ignore[arg-type]  # a mapping
    assert [each.stance for each in config.debaters] == ["yes", "No"]
    assert (config.options, config.language) == (("yes", "no"), "no")
    assert (config.judge.enabled, config.judge.blind) == (False, True)
    with pytest.raises(ConfigError, match=r"debaters.0.stance: give text: put the value in quotes"):
        make_config({"debaters": [{"name": "Ada", "stance": True}]})


# Options of `moot run`


def test_gate_without_options_lets_the_judge_choose_between_the_option_and_its_opposite() -> None:
    gate, config = run._gate(run.RunOptions(gate="merge"), make_config({}))
    assert gate is not None
    assert (gate.option, config.options) == ("merge", ("merge", "not merge"))


def test_max_cost_sets_the_limit_and_dry_run_calls_no_model(tmp_path: Path) -> None:
    words = ("Trams?", "--turns", "1", "--db", str(tmp_path / "d.sqlite"))
    planned = moot("run", *words, "--dry-run", "--json").stdout
    assert '"calls"' in planned
    assert not (tmp_path / "d.sqlite").exists()
    prices = tmp_path / "c.yaml"
    prices.write_text("models: {offline: {input_usd_per_million: 1, output_usd_per_million: 1}}\n")
    moot("run", *words, "--max-cost", "0.5", "--config", str(prices), "--id", "trams")
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        assert debates.get("trams").config().limits.cost_usd == 0.5


def test_plan_does_not_call_a_debate_free_if_no_model_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MOOT_MODEL")
    assert "US$             unknown: no model is set" in moot("plan", "Trams?").stdout


class Answers:
    """Scripted answers to the questions of `typer.prompt`. An empty one keeps the default."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)

    def __call__(self, question: str, default: Any = None, **_: Any) -> Any:
        if not self.answers:
            raise typer.Abort
        return self.answers.pop(0) or default


@pytest.fixture
def proposals(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Stances that each proposal is told to avoid."""
    rejected_stances: list[list[str]] = []

    def propose(question: str, config: Any, environment: Any, rejected: Any) -> Any:
        rejected_stances.append([each.stance for each in rejected])
        number = len(rejected_stances)
        pair = [DebaterConfig(name=name, role="cook", stance=f"{name}: {number}") for name in ("Ada", "Ben")]
        return tuple(pair), 0.01

    monkeypatch.setattr("moot.debates.proposed_debaters.propose_debaters", propose)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.argv", ["moot", "Trams?", "--model", "gpt-4o-mini"])
    return rejected_stances


def confirmed(*answers: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    monkeypatch.setattr("typer.prompt", Answers(*answers))
    settings = make_config({"model": "gpt-4o-mini", "topic": "Trams?"})
    chosen = run._propose_and_confirm(settings, [], yes=False)
    return [(each.name, each.stance) for each in chosen.debaters]


def test_a_proposal_is_accepted_replaced_or_edited(
    proposals: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert confirmed("y", monkeypatch=monkeypatch) == [("Ada", "Ada: 1"), ("Ben", "Ben: 1")]
    proposals.clear()
    assert confirmed("what", "a", "y", monkeypatch=monkeypatch)[0] == ("Ada", "Ada: 2")
    assert proposals == [[], ["Ada: 1", "Ben: 1"]]
    edits = ("e", "Eva", "", "No trams.", "", "", "", "y")
    assert confirmed(*edits, monkeypatch=monkeypatch) == [("Eva", "No trams."), ("Ben", "Ben: 3")]


@pytest.mark.parametrize("answers", [("n",), ()], ids=["no", "Ctrl-C"])
def test_a_declined_proposal_is_printed_as_a_command(
    proposals: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answers: tuple[str, ...],
) -> None:
    with pytest.raises(typer.Exit):
        confirmed(*answers, monkeypatch=monkeypatch)
    line = "run 'Trams?' --model gpt-4o-mini --debater 'Ada:cook:Ada: 1' --debater 'Ben:cook:Ben: 1'"
    assert line in capsys.readouterr().err
    parsed = inputs.parse_debaters(["Ada:cook:Ada: 1"])
    assert parsed == [{"name": "Ada", "role": "cook", "stance": "Ada: 1"}]


# Names


def test_any_unique_beginning_of_a_name_or_id_selects_a_debate(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        config = DebateConfig.model_validate({**ONE_TURN, "model": "offline"})
        trams = debates.start("Trams?", config, name="trams_cheap")
        debates.start("Trains?", config, name="trains")
        assert debates.get("tram").id == trams.id
        assert debates.get(trams.id[:6]).id == trams.id
        with pytest.raises(InputError, match="'tra' is the beginning of trains, trams_cheap"):
            debates.get("tra")
        for unknown in ("trams%", "tr_m", ""):
            with pytest.raises(DebateNotFound):
                debates.get(unknown)


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Should we split the monolith?", "split-monolith"),
        ("Should we split the monolith into services over the next year?", "split-monolith-services"),
        ("Donaudampfschifffahrtsgesellschaftskapitän?", "donaudampfschifffahrtsge"),
        ("Should we?", "should-we"),
    ],
    ids=str,
)
def test_a_debate_is_named_after_the_decisive_words(tmp_path: Path, question: str, name: str) -> None:
    words = (question, "--turns", "1", "--no-judge", "--db", str(tmp_path / "d.sqlite"))
    for _ in range(2):
        moot("run", *words)
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        latest, first = (row.name for row in debates.rows())
    assert first == name
    assert latest.endswith("-2")
    assert len(latest) <= 24


def test_show_report_and_ask_take_the_latest_debate_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    moot("run", "Trams?", "--turns", "1", "--db", "d.sqlite")
    for command in (["show"], ["report"], ["report", "--format", "markdown"], ["ask", "Why trams?"]):
        assert "The latest debate: trams" in moot(*command, "--db", "d.sqlite").stderr
    assert Path("trams.md").exists()
    with pytest.raises(InputError, match=r"there is no question: add one in quotes, as in .*ask tram 'Why"):
        moot("ask", "tram", "--db", "d.sqlite")


# Help


def command_line(*words: str) -> tuple[int, str]:
    """Run `moot` and return the exit code with stdout, or with the error."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises((SystemExit, MootError)) as ended:
        make_group().main(list(words), prog_name="moot", standalone_mode=False)
    if isinstance(ended.value, MootError):
        return ended.value.exit_code, str(ended.value)
    return int(getattr(ended.value, "code", 0) or 0), out.getvalue()


def test_help_lists_the_commands_of_the_first_week_and_all_on_request() -> None:
    code, text = command_line("--help")
    assert code == 0
    assert [line.split()[0] for line in text.partition("Commands:")[2].splitlines() if line[:3].strip()] == [
        *('"Should', *FIRST_WEEK),
        "`moot",
    ]
    every = command_line("help", "--all")[1]
    assert all(f"\n  {name} " in every for name in all_commands())


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["help", "list"], 0, "Usage: moot list"),
        (["help", "config", "check"], 0, "Usage: moot config check"),
        (["help", "nothing"], 2, "there is no command 'nothing'"),
        (["version"], 0, "moot "),
        (["-V"], 0, "moot "),
        (["--show-completion", "zsh"], 0, "#compdef moot"),
        (["--show-completion", "csh"], 2, "there is no completion for 'csh': choose from bash, zsh"),
        (["run", "--foo"], 2, "no such option: --foo"),
        (
            ["run", "--show-completion"],
            2,
            "--show-completion is an option of `moot` itself: write `moot --sh",
        ),
        (["list", "--version"], 2, "--version is an option of `moot` itself: write `moot --version`"),
        (["delete"], 2, "missing argument 'ID …': see `moot delete --help`"),
        (["debates"], 2, "there is no command 'debates'. `moot help --all` lists the commands."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_people_type_first_works_or_is_explained_in_one_style(
    words: list[str], code: int, text: str
) -> None:
    ended, shown = command_line(*words)
    assert (ended, shown[: len(text)]) == (code, text)


@pytest.mark.parametrize(
    ("answers", "url"),
    [
        (("",), "https://api.openai.com/v1"),
        (("4",), "http://localhost:11434/v1"),
        (("8", "acme"), "https://acme.openai.azure.com/openai/v1"),
        (("9", "http://localhost:9/v1"), "http://localhost:9/v1"),
        (("https://example.org/v1",), "https://example.org/v1"),
    ],
    ids=["Enter", "Ollama", "Azure", "other", "URL"],
)
def test_setup_lists_the_providers_and_fills_in_the_address(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answers: tuple[str, ...], url: str
) -> None:
    monkeypatch.setattr("typer.prompt", Answers(*answers))
    assert setup._ask_url(OPENAI_URL) == url
    listed = capsys.readouterr().err
    assert all(provider in listed for provider in setup.PROVIDERS)
