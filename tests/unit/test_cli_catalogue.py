"""Commands that list, find, change, import, fork and continue stored debates, run in this process."""

from __future__ import annotations

import io
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from moot.api import DebateConfig, open_debates
from moot.cli.commands.demo import QUESTIONS
from moot.cli.commands.show import age
from moot.cli.group import app_of
from moot.cli.terminal import wrap_for_terminal
from moot.models.offline import recording_config
from moot.state.errors import (
    ConfigError,
    DebateExists,
    DebateNotFound,
    InputError,
    MootError,
    UserError,
    advice_for,
)

TRANSCRIPT = (
    "Ann: Trams are cheap.\nBob: Trams are slow.\nPhil: And the clock says time.\nAnn: Not in the rain.\n"
)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("list") / "d.sqlite")
    with open_debates(path) as debates:
        debates.start(None, DebateConfig(**recording_config("monolith")), name="monolith").run()
        short = DebateConfig.model_validate({"turns": 1, "judge": {"enabled": False}})
        debates.start("Ships?", short, name="eval-cup-0123456789").run()
        debates.start("Trams?", short, name="trams")
    return path


def moot(name: str, *words: str, stdin: str = "") -> Any:
    with advice_for("command"):
        done = CliRunner().invoke(app_of(name), list(words), input=stdin)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_list_refuses_an_unknown_status(db: str) -> None:
    with pytest.raises(InputError, match="'don' is not a status: choose from done, limit"):
        moot("list", "--status", "don", "--db", db)


def on_terminal(monkeypatch: pytest.MonkeyPatch, width: int = 100) -> None:
    monkeypatch.setattr("moot.cli.terminal.is_terminal", lambda: True)
    monkeypatch.setattr("moot.cli.terminal.columns", lambda: width)


def test_list_shows_decisions_and_hides_debates_of_evaluations(
    db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_terminal(monkeypatch)
    result = moot("list", "--db", db)
    line = next(line for line in result.stdout.splitlines() if line.startswith("monolith"))
    assert "Do not split" in line
    assert "Should we split" in line
    assert " 80 " in line
    assert "eval-cup" not in result.stdout
    assert "not shown: 1 debate of evaluations" in result.stderr
    assert "eval-cup" in moot("list", "--evaluations", "--db", db).stdout
    rows = json.loads(moot("list", "--status", "done", "--limit", "9", "--json", "--db", db).stdout)
    assert {row["status"] for row in rows} == {"done"}
    assert [
        row["name"] for row in json.loads(moot("list", "--grep", "OKAFOR", "--json", "--db", db).stdout)
    ] == ["monolith"]


def test_list_prints_the_whole_names_in_a_pipe_and_the_latest_last_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, names = str(tmp_path / "d.sqlite"), ["n" * 60, "second"]
    with open_debates(path) as debates:
        for name in names:
            debates.start("Should the\tcity buy trams?", DebateConfig(turns=1), name=name)
    lines = moot("list", "--db", path).stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == names[::-1]
    assert {line.count("\t") for line in lines} == {4}
    assert moot("list", "--limit", "1", "--db", path).stdout.splitlines() == lines[:1]
    on_terminal(monkeypatch)
    shown = moot("list", "--db", path).stdout.splitlines()[1:]
    assert [line.split()[0][0] for line in shown] == ["n", "s"]


def test_json_and_table_list_the_same_debates(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    on_terminal(monkeypatch)

    def listed(*words: str) -> list[str]:
        rows = json.loads(moot("list", "--json", "--db", db, *words).stdout)
        lines = moot("list", "--db", db, *words).stdout.splitlines()[1:]
        assert [line.split()[0] for line in lines] == [row["name"] for row in rows][::-1]
        return [row["name"] for row in rows]

    assert listed() == ["trams", "monolith"]
    assert listed("--limit", "2") == ["trams", "monolith"]
    assert listed("--evaluations") == ["trams", "eval-cup-0123456789", "monolith"]
    assert listed("--evaluations", "--limit", "2") == ["trams", "eval-cup-0123456789"]
    messages = moot("list", "--json", "--limit", "1", "--db", db).stderr
    assert "1 more" in messages
    assert "not shown: 1 debate of evaluations" in messages


def test_list_shows_results_of_a_database_without_questions(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    with open_debates(str(path)) as debates:
        debates.start(None, DebateConfig(**recording_config("monolith")), name="monolith").run()
    with closing(sqlite3.connect(path)) as old, old:
        for column in ("question", "confidence"):
            old.execute(f"ALTER TABLE moot_results DROP COLUMN {column}")
        old.execute("PRAGMA user_version = 2")
    (row,) = json.loads(moot("list", "--json", "--db", str(path)).stdout)
    assert row["decision"].startswith("Do not split")
    assert (row["question"], row["confidence"]) == ("", None)


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        ("2026-01-01T11:59:30+00:00", "30 s"),
        ("2026-01-01T09:00:00+00:00", "3 h"),
        ("2025-12-20T12:00:00+00:00", "12 d"),
    ],
    ids=str,
)
def test_age_is_shown_in_its_largest_unit(at: str, shown: str) -> None:
    assert age(at, datetime(2026, 1, 1, 12, tzinfo=UTC)) == shown


def test_show_blackboard_prints_text(tmp_path: Path) -> None:
    path = str(tmp_path / "d.sqlite")
    with open_debates(path) as debates:
        debates.start(None, DebateConfig(**recording_config("free-transport")), name="free").run()
    result = " ".join(moot("show", "free", "--blackboard", "--db", path).stdout.split())
    assert "- p000 (" in result
    assert "narrower ground than I opened.” [m000016] (events e002, e041, e066)" in result
    assert "Open challenges - c005 to " in result
    assert "Crux cards - " in result
    assert "claim_events" not in result


def test_search_covers_all_debates_and_messages(tmp_path: Path) -> None:
    path = str(tmp_path / "d.sqlite")
    with open_debates(path) as debates:
        for name in ("one", "two"):
            debates.import_transcript(TRANSCRIPT, topic="Trams?", name=name)

    def found(*words: str) -> list[tuple[str, str]]:
        matches = json.loads(moot("search", *words, "--json", "--db", path).stdout)
        return sorted((match["debate"], match["id"]) for match in matches)

    assert found("slow") == [("one", "m000002"), ("two", "m000002")]
    assert len(found("slow", "--limit", "1")) == 1


def test_search_finds_messages_of_stored_debates(db: str) -> None:
    result = moot("search", "freeze", "rotation", "--db", db)
    assert "monolith · m0000" in result.stdout
    matches = json.loads(moot("search", "hiring", "--json", "--limit", "1", "--db", db).stdout)
    assert "hiring" in matches[0]["text"]
    assert "no message contains these words" in moot("search", "no such words", "--db", db).stderr


@pytest.mark.parametrize("words", [("",), (" ", "\t")])
def test_search_refuses_blank_words(db: str, words: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="nothing to search for: give one or more words"):
        moot("search", *words, "--db", db)


def test_search_excerpts_contain_the_searched_word(tmp_path: Path) -> None:
    path = str(tmp_path / "d.sqlite")
    moot(
        "import",
        "-",
        "--topic",
        "T?",
        "--db",
        path,
        stdin=f"Ann: {'ßŉ' * 200} the Straße is {'dry ' * 50}\nBob: No.\n",
    )
    for word in ("strasse", "STRAßE", "dry"):
        (match,) = json.loads(moot("search", word, "--json", "--db", path).stdout)
        assert "the Straße is dry" in match["text"]


def test_rename_keeps_old_names_and_delete_takes_several(tmp_path: Path) -> None:
    path = str(tmp_path / "d.sqlite")
    with open_debates(path) as debates:
        ids = {name: debates.start("Trams?", name=name).id for name in ("one", "two", "three")}
    moot("rename", "one", "first", "--db", path)
    with open_debates(path) as debates:
        assert debates.get("first").id == debates.get("one").id == ids["one"]
    with pytest.raises(DebateExists, match="the name 'one' is or was used by"):
        moot("rename", "two", "one", "--db", path)
    with pytest.raises(DebateNotFound):
        moot("delete", "first", "four", "--yes", "--db", path)
    deleted = json.loads(moot("delete", "first", "two", "--yes", "--json", "--db", path).stdout)
    assert [each["name"] for each in deleted] == ["first", "two"]
    assert [row["name"] for row in json.loads(moot("list", "--json", "--db", path).stdout)] == ["three"]


def test_say_suggests_a_similar_debater_name(db: str) -> None:
    with pytest.raises(InputError, match="Did you mean 'Ben Okafor'"):
        moot("say", "monolith", "Wait.", "--as", "Ben Okafr", "--db", db)
    moot("say", "trams", "Wait.", "--as", "Zoe", "--db", db)


@pytest.mark.parametrize(("words", "debaters"), [((), 3), (("--moderator", "phil"), 2)])
def test_import_excludes_moderators_from_the_debaters(
    tmp_path: Path, words: tuple[str, ...], debaters: int
) -> None:
    file, path = tmp_path / "trams.txt", str(tmp_path / "d.sqlite")
    file.write_text(TRANSCRIPT)
    result = moot("import", str(file), "--id", "t", "--db", path, *words)
    with open_debates(path) as debates:
        assert len(debates.get("t").config().debaters) == debaters
    assert ("--moderator NAME" in result.stderr) is not bool(words)
    with pytest.raises(InputError, match=r"no speaker has this name\. The speakers are Ann, Bob, Phil"):
        moot("import", str(file), "--moderator", "Zoe", "--db", path)


def test_import_refuses_a_speaker_as_debater_and_moderator(tmp_path: Path) -> None:
    file, path = tmp_path / "trams.txt", str(tmp_path / "d.sqlite")
    file.write_text(TRANSCRIPT)
    two = ("--debater", "Ann", "--debater", "Bob")
    moot("import", str(file), "--id", "t", "--db", path, *two, "--moderator", "Phil")
    with open_debates(path) as debates:
        assert [each.name for each in debates.get("t").config().debaters] == ["Ann", "Bob"]
    with pytest.raises(InputError, match=r"'Bob' is given with both --debater and --moderator"):
        moot("import", str(file), "--db", path, *two, "--moderator", "bob")
    with pytest.raises(InputError, match=r"no speaker has this name"):
        moot("import", str(file), "--db", path, *two, "--moderator", "Zoe")


NAMESAKES = "speaker,text\nJo Lee,Trams.\njo-lee,Buses.\nAnn,Ferries.\nBob Ray,Cars.\n"
"""A transcript in which the speaker `jo-lee` has the id `jo-lee-2`, because `Jo Lee` has the id `jo-lee`."""


@pytest.mark.parametrize(
    ("text", "moderators", "debaters"),
    [
        pytest.param(TRANSCRIPT, ["phil", "Phil"], ["Ann", "Bob"], id="one speaker twice"),
        pytest.param(TRANSCRIPT, [" PHIL "], ["Ann", "Bob"], id="other letter case"),
        pytest.param(NAMESAKES, ["jo-lee"], ["Jo Lee", "Ann", "Bob Ray"], id="name that is also an id"),
        pytest.param(NAMESAKES, ["Jo Lee"], ["jo-lee", "Ann", "Bob Ray"], id="namesake"),
        pytest.param(NAMESAKES, ["jo-lee-2"], ["Jo Lee", "Ann", "Bob Ray"], id="by id"),
        pytest.param(
            NAMESAKES, ["Bob Ray", "bob-ray"], ["Jo Lee", "jo-lee", "Ann"], id="one speaker by name and id"
        ),
    ],
)
def test_import_accepts_moderators_by_name_or_id(
    tmp_path: Path, text: str, moderators: list[str], debaters: list[str]
) -> None:
    path = str(tmp_path / "d.sqlite")
    words = [word for each in moderators for word in ("--moderator", each)]
    document = json.loads(moot("import", "-", "-t", "T?", "--json", "--db", path, *words, stdin=text).stdout)
    assert [each["name"] for each in document["config"]["debaters"]] == debaters


@pytest.mark.parametrize(
    ("text", "moderators", "error"),
    [
        (NAMESAKES, ["jo-lee", "Zoe"], "--moderator 'Zoe': no speaker has this name"),
        (TRANSCRIPT, ["Phil", ""], "--moderator '': no speaker has this name"),
        (TRANSCRIPT, ["Ann", "Bob", "Phil"], "leaves no speaker who debates"),
    ],
)
def test_import_refuses_unknown_moderators_and_no_debaters(
    tmp_path: Path, text: str, moderators: list[str], error: str
) -> None:
    words = [word for each in moderators for word in ("--moderator", each)]
    with pytest.raises(InputError, match=error):
        moot("import", "-", "-t", "T?", "--db", str(tmp_path / "d.sqlite"), *words, stdin=text)


def test_import_names_the_debate_after_its_question(tmp_path: Path) -> None:
    file, path = tmp_path / "openai.json", str(tmp_path / "d.sqlite")
    chat = [{"role": "user", "content": "Should we migrate?"}, {"role": "assistant", "content": "Yes."}]
    file.write_text(json.dumps(chat))
    result = moot("import", str(file), "--db", path)
    assert result.stdout == "migrate\n"
    assert result.stderr.startswith("2 messages · ")
    again = moot("import", str(file), "--topic", "Will it last?", "--db", path)
    assert again.stdout == "last\n"


def test_show_follow_prints_a_finished_debate_and_ends(db: str) -> None:
    result = moot("show", "monolith", "--follow", "--db", db).stdout
    assert result.index("Ada Lindqvist") < result.index("Argued best: Ben Okafor")


def test_narrow_terminals_break_no_words_and_no_commands(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "20")
    wrapped = wrap_for_terminal(
        "Antidisestablishmentarianism is long, and so is this.\n"
        "  go on: moot resume a-debate --turns 6\n"
        "  read it    .venv/bin/moot show a-debate --transcript\n"
        "  ask   moot ask d ?\n"
        "no key: run `moot setup` once",
        Terminal(),
    )
    assert wrapped.split("\n") == [
        "Antidisestablishmentarianism",
        "is long, and so is",
        "this.",
        "  go on:",
        "  moot resume a-debate --turns 6",
        "  read it",
        "  .venv/bin/moot show a-debate --transcript",
        "  ask   moot ask d ?",
        "no key: run",
        "`moot setup` once",
    ]
    on_terminal(monkeypatch, 40)
    listed = " ".join(moot("list", "--db", db).stdout.split())
    assert "done · confidence 80" in listed
    assert "· recorded:monolith" in listed


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MOOT_MODEL"):
        monkeypatch.delenv(variable, raising=False)
    path = str(tmp_path / "d.sqlite")
    with open_debates(path) as debates:
        debates.start(None, DebateConfig(**recording_config("monolith")), name="monolith").run()
    return path


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--model", "NAME", "--run"), "no API key for the model 'NAME'"),
        (("--model", "NAME"), "no API key for the model 'NAME'"),
        (("--judge-model", "NAME"), "no API key for the model 'NAME'"),
        (("--run",), "cannot reply in a fork of that debate: .*`moot setup`"),
        (("--run", "--turns", "2"), "no more recorded turns: .*`moot setup`"),
    ],
    ids=["model with run", "model", "judge model", "recorded model", "more recorded turns"],
)
def test_a_refused_fork_stores_nothing(sample: str, words: tuple[str, ...], why: str) -> None:
    with pytest.raises(UserError, match=why):
        moot("fork", "monolith", "--without", "m000005", *words, "--db", sample)
    with open_debates(sample) as debates:
        assert [row.name for row in debates.rows()] == ["monolith"]


def test_a_fork_uses_the_changed_models(sample: str) -> None:
    moot("fork", "monolith", "--model", "offline", "--judge-model", "offline", "--db", sample)
    with open_debates(sample) as debates:
        config = debates.get("monolith-fork").config()
        assert (config.model, config.judge.model) == ("offline", "offline")
        assert debates.get("monolith").config().model == "recorded:monolith"


def test_fork_of_a_sample_suggests_setup_without_a_model(
    sample: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name)
    result = moot("fork", "monolith", "--db", sample)
    assert f"  moot setup && moot resume monolith-fork --db {sample}" in result.stderr
    with pytest.raises(InputError, match="continue with your own model"):
        moot("resume", "monolith-fork", "--db", sample)
    monkeypatch.setenv("MOOT_MODEL", "mine")
    result = moot("fork", "monolith", "--db", sample)
    assert "setup" not in result.stderr
    with pytest.raises(ConfigError, match="no API key for the model 'mine'"):
        moot("resume", "monolith-fork", "--db", sample)


def test_ask_about_an_offline_debate_says_what_to_do(sample: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name)
    with open_debates(sample) as debates:
        config = DebateConfig.model_validate({"turns": 2, "judge": {"enabled": False}})
        debates.start("Is it late?", config, name="late").run()
    result = moot("ask", "late", "Why?", "--db", sample)
    assert "no message shares a word with the question" in result.stdout
    assert "wrote only placeholder messages" in result.stderr
    assert result.stderr.endswith("own model: moot setup && moot run 'Is it late?'\n")


def test_ask_without_a_model_suggests_setup(sample: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name)
    result = moot("ask", "monolith", "Why?", "--db", sample)
    assert result.stderr.endswith(f"own model: moot setup && moot ask monolith 'Why?' --db {sample}\n")
    assert "own model" not in moot("ask", "monolith", "Why?", "--quiet", "--db", sample).stderr


def test_ask_uses_the_configured_model_for_imported_debates(
    sample: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "talk.txt").write_text(TRANSCRIPT)
    moot("import", str(tmp_path / "talk.txt"), "--id", "talk", "--db", sample)
    monkeypatch.setenv("MOOT_MODEL", "mine")
    with pytest.raises(MootError, match="no API key for the model 'mine'"):
        moot("ask", "talk", "What is cheap?", "--db", sample)


def test_resume_of_a_finished_sample_suggests_setup(sample: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name)
    result = moot("resume", "monolith", "--db", sample)
    assert f"  moot setup && moot resume monolith --turns 6 --db {sample}\n" in result.stderr


@pytest.mark.parametrize(("name", "command"), [("monolith", "fork"), ("rate-limiter", "judge")])
def test_the_demo_suggests_setup_before_commands_that_need_a_key(
    sample: str, name: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name)
    result = moot("demo", name)
    lines = [
        line for line in result.stderr.splitlines() if f"moot {command} " in line or "moot 'Should" in line
    ]
    assert len(lines) == 2
    assert all("  moot setup && moot " in line for line in lines)
    assert "NAME" not in result.stderr
    assert all(len(line) <= 80 for line in result.stderr.splitlines() if "moot " in line)
    monkeypatch.setenv("MOOT_MODEL", "mine")
    assert "setup" not in moot("demo", name).stderr


def test_the_demos_question_returns_passages_without_a_key() -> None:
    for name, question in QUESTIONS.items():
        assert f"ask {name} '{question}'" in moot("demo", name).stderr
        assert "most relevant passages" in moot("ask", name, question).stdout


@pytest.mark.parametrize("cost", [1.7e308, -1.7e308, 12345678.9])
def test_list_keeps_its_columns_with_extreme_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cost: float
) -> None:
    on_terminal(monkeypatch)
    path = str(tmp_path / "d.sqlite")
    with open_debates(path) as debates:
        short = DebateConfig.model_validate({"turns": 1, "judge": {"enabled": False}})
        debate = debates.start("Trams?", short, name="trams")
        debates.records.catalogue.update(debate.id, cost_usd=cost)
    heading, line = moot("list", "--db", path).stdout.splitlines()[:2]
    assert heading.split() == ["debate", "question", "decision", "sure", "status", "cost", "age"]
    assert {"trams", "Trams?"} <= {*line.split()}


@pytest.mark.parametrize(
    ("width", "question", "shown"),
    [
        (120, "Trams?", 60),
        (120, "Should the city replace " + "its buses and " * 12 + "its cars?", 39),
        (200, "Should the city replace " + "its buses and " * 12 + "its cars?", 60),
    ],
    ids=["short question", "long question", "wide terminal"],
)
def test_list_truncates_long_names_only_if_the_width_requires_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int, question: str, shown: int
) -> None:
    on_terminal(monkeypatch, width)
    path, name = str(tmp_path / "d.sqlite"), "n" * 60
    with open_debates(path) as debates:
        short = DebateConfig.model_validate({"turns": 1, "judge": {"enabled": False}})
        debates.start(question, short, name=name)
    line = moot("list", "--db", path).stdout.splitlines()[1]
    assert line.count("n" * shown) == 1
    assert (name in line) == (shown == 60)
    assert len(line) <= width
    assert ("…" in line.partition(" ")[0]) == (shown < 60)


def test_run_uses_the_offline_model_only_if_somebody_chose_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MOOT_MODEL")
    Path("chosen.yaml").write_text("model: offline\n")
    Path("topics.txt").write_text("Trams?\n")
    words = ("Trams?", "--turns", "1", "--no-judge", "--db", "d.sqlite")
    with pytest.raises(ConfigError, match="no model is set: run"):
        moot("run", *words)
    with pytest.raises(ConfigError, match=r"topics.txt, line 1: no model is set"):
        moot("batch", "topics.txt", "--db", "d.sqlite")
    assert not Path("d.sqlite").exists()
    assert moot("run", *words, "--model", "offline").exit_code == 0
    assert moot("run", *words, "--config", "chosen.yaml").exit_code == 0
    monkeypatch.setenv("MOOT_MODEL", "offline")
    assert moot("run", *words).exit_code == 0


def test_a_name_close_to_latest_suggests_latest(tmp_path: Path) -> None:
    path = str(tmp_path / "d.sqlite")
    with open_debates(path) as debates:
        with pytest.raises(DebateNotFound, match="there is no debate 'lates': call"):
            debates.get("lates")
        short = DebateConfig.model_validate({"turns": 1, "judge": {"enabled": False}})
        debates.start("Trams?", short, name="trams")
        with pytest.raises(DebateNotFound, match="is 'latest' meant"):
            debates.get("lates")
