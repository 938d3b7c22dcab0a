"""The `moot` command as a subprocess, with the offline model and a database file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.moot_command import Moot
from tests.support.openai_server import OpenAIServer, ServerReply
from tests.unit.test_cli_terminal_text import HOSTILE

TOPIC = "Should we adopt a monorepo?"


@pytest.fixture
def moot(tmp_path: Path) -> Moot:
    return Moot(tmp_path)


def _without_times(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the transcript without its timestamps."""
    return [{key: value for key, value in entry.items() if key != "at"} for entry in document["transcript"]]


def test_the_same_seed_gives_the_same_transcript(moot: Moot) -> None:
    words = ("run", TOPIC, "--turns", 12, "--seed", 1, "--json")
    one, two = moot(*words).json, moot(*words).json
    assert len(one["transcript"]) == 13
    assert _without_times(one) == _without_times(two)
    assert one["id"] != two["id"]
    assert one["verdict"]["winner"] == two["verdict"]["winner"]


def test_a_debate_can_be_run_read_extended_forked_exported_and_deleted(moot: Moot) -> None:
    ran = moot("run", TOPIC, "--turns", 4, "--seed", 1, "--id", "mono", "-o", "out.md", "--model", "offline")
    assert ran.code == 0
    assert "Verdict:" in ran.out
    assert "offline model (built in; no network)" in ran.err
    assert "[turn 4/4]" in ran.err
    assert "moot resume mono --turns" in ran.err
    assert TOPIC in (moot.folder / "out.md").read_text(encoding="utf-8")

    shown = moot("show", "mono").out
    assert "all 4 turns are taken" in shown
    assert "agreement" not in shown

    assert [row["name"] for row in moot("list", "--json").json] == ["mono"]
    assert "mono" in moot("list").out

    again = moot("run", TOPIC, "--id", "mono")
    assert again.code == 2
    assert "moot resume mono" in again.err

    finished = moot("resume", "mono")
    assert (finished.code, finished.out) == (0, "")
    assert "finished" in finished.err
    assert "--turns" in finished.err

    longer = moot("resume", "mono", "--turns", 2, "--json").json
    assert longer["status"] == "done"
    assert sum(entry["speaker"] != "user" for entry in longer["transcript"]) == 6

    fork = moot("fork", "mono", "--after", 2, "--id", "other", "--run", "--json").json
    assert re.search(r"forked from +mono\n", re.sub(r" +\n", "\n", moot("show", "other").out))
    assert fork["transcript"][:3] == longer["transcript"][:3]
    assert fork["parent"] == longer["id"]

    assert moot("report", "mono", "--json").json == longer
    page = moot("report", "mono", "--format", "html", "-o", "-").out
    assert page.lstrip().lower().startswith("<!doctype html")
    assert moot("report", "mono", "-f", "md,brief", "-f", "adr", "-f", "json").code == 0
    written = {path.name for path in moot.folder.glob("mono*")}
    assert written == {"mono.md", "mono.brief.html", "mono.adr.md", "mono.json"}
    assert json.loads((moot.folder / "mono.json").read_text()) == longer
    assert moot("report", "mono", "-f", "brief", "-o", "brief.md").code == 0
    assert moot("report", "mono", "-f", "brief", "-o", "-").out == (moot.folder / "brief.md").read_text()
    assert moot("delete", "mono").code == 2
    assert moot("delete", "mono", "--yes").code == 0
    assert [row["name"] for row in moot("list", "--json").json] == ["other"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Moot:
    """Run the debate `mono`: four turns with control characters in its topic, and summaries."""
    moot = Moot(tmp_path_factory.mktemp("finished"))
    (moot.folder / "topic.txt").write_bytes(HOSTILE.encode("utf-8", "replace"))
    config = {"turns": 4, "memory": {"keep_recent": 1, "summarize_every": 1}}
    (moot.folder / "c.json").write_text(json.dumps(config))
    done = moot(
        "run", "@topic.txt", "--config", "c.json", "--id", "mono", "--debater", "A\x1b[31m", "-d", "B"
    )
    assert done.code == 0, done.err
    return moot


PARTS = ("--transcript", "--summary", "--summaries", "--blackboard", "--receipts", "--verdict", "--prompt=3")


@pytest.mark.parametrize("part", ["", *PARTS])
def test_show_prints_no_control_characters_and_valid_json(finished: Moot, part: str) -> None:
    words = ["show", "mono", *([part] if part else [])]
    plain, data = finished(*words), finished(*words, "--json")
    assert (plain.code, data.code) == (0, 0), plain.err + data.err
    assert plain.out.strip()
    assert data.json
    for text in (plain.out, data.out):
        assert not {"\x1b", "\x9b", "\u202e", "\x07", "\x00"} & set(text)


def test_show_prompt_verifies_the_digest_of_the_sent_prompt(finished: Moot) -> None:
    screen = finished("show", "mono", "--prompt", "3").out
    assert "exact: its digest is the recorded one" in screen
    prompt = finished("show", "mono", "--prompt", "3", "--json").json
    named = [part for part in prompt["prompt"] if part.get("name")]
    assert named
    for part in named:
        assert f"── {part['section']} · {part['role']} {part['name']} · {part['tokens']} tokens" in screen
    assert prompt["exact"] is True
    assert prompt["digest"] == prompt["receipt"]["digest"]
    assert sum(part["tokens"] for part in prompt["prompt"]) == sum(prompt["receipt"]["sections"].values())


def test_show_refuses_two_parts_at_once(finished: Moot) -> None:
    assert finished("show", "mono", "--transcript", "--verdict").code == 2


def test_quiet_run_prints_only_the_result(moot: Moot) -> None:
    done = moot("run", TOPIC, "--turns", 2, "--quiet")
    assert done.err == ""
    assert "Verdict:" in done.out


def test_without_a_judge_there_is_no_verdict(moot: Moot) -> None:
    document = moot("run", TOPIC, "--turns", 2, "--no-judge", "--json").json
    assert document["verdict"] is None
    assert document["status"] == "done"


def test_topic_is_read_from_stdin(moot: Moot) -> None:
    document = moot(
        "run", "-", "--turns", 1, "--no-judge", "--json", stdin="Ist das wahr? 日本\n".encode()
    ).json
    assert document["topic"] == "Ist das wahr? 日本"


def test_context_documents_are_in_the_transcript(moot: Moot) -> None:
    (moot.folder / "facts.md").write_text("The sky is green.")
    document = moot("run", TOPIC, "--turns", 1, "--no-judge", "--context", "facts.md", "--json").json
    context = next(entry for entry in document["transcript"] if entry["kind"] == "context")
    assert "The sky is green." in context["content"]


def test_flags_override_the_configuration_file(moot: Moot) -> None:
    (moot.folder / "c.toml").write_text('turns = 9\ntopic = "From the file?"\n[judge]\nenabled = false\n')
    document = moot("run", "--config", "c.toml", "--turns", 2, "--json").json
    assert document["topic"] == "From the file?"
    assert document["config"]["turns"] == 2
    assert document["config"]["judge"]["enabled"] is False


def test_resume_refuses_a_changed_setting_without_reconfigure(moot: Moot) -> None:
    (moot.folder / "c.yaml").write_text("temperature: 0.2\nturns: 2\n")
    moot("run", TOPIC, "--config", "c.yaml", "--id", "d", "--json")
    assert "finished" in moot("resume", "d", "--config", "c.yaml").err
    (moot.folder / "c.yaml").write_text("temperature: 0.9\nturns: 2\n")
    refused = moot("resume", "d", "--config", "c.yaml", "--turns", 1)
    assert refused.code == 2
    assert "temperature" in refused.err
    assert "--reconfigure" in refused.err
    taken = moot("resume", "d", "--config", "c.yaml", "--turns", 1, "--reconfigure", "--json").json
    assert taken["config"]["temperature"] == 0.9
    (moot.folder / "c.yaml").write_text("temperature: 0.9\nturns: 8\n")
    finished = moot("resume", "d", "--config", "c.yaml", "--reconfigure")
    assert "takes no further turns from `turns`: extend it with --turns" in " ".join(finished.err.split())


def test_topic_may_be_very_long(moot: Moot) -> None:
    topic = ("<|endoftext|> \x1b[31m 日本語 🎉 " * 10_000)[:250_000]
    document = moot("run", "-", "--turns", 2, "--json", stdin=topic.encode()).json
    assert document["status"] == "done"
    assert all(receipt["total_tokens"] <= receipt["budget"] for receipt in document["receipts"])


def test_config_init_writes_a_valid_file_and_replaces_it_only_with_force(moot: Moot) -> None:
    assert moot("config", "init").code == 0
    assert moot("config", "check", "moot.yaml").out.startswith("ok")
    assert moot("config", "init").code == 2
    assert moot("config", "init", "--force").code == 0
    assert moot("config", "schema").json["title"] == "DebateConfig"
    assert not moot.db.exists()


def test_log_json_prints_every_progress_line_as_json(moot: Moot) -> None:
    done = moot("run", TOPIC, "--turns", 1, "--log-json", "-o", "out.md")
    events = [json.loads(line)["event"] for line in done.err.splitlines()]
    assert (events[0], events[-1], "entry" in events) == ("step", "end", True)


def test_show_works_on_a_terminal_that_cannot_encode_the_text(moot: Moot) -> None:
    moot("run", "日本?", "--turns", 1, "--no-judge", "--id", "j", "-q")
    assert moot("show", "j", PYTHONIOENCODING="latin-1").code == 0
    assert moot("show", "j", "--json", PYTHONIOENCODING="latin-1").json["topic"] == "日本?"


def test_resume_refuses_an_answer_without_an_open_question(finished: Moot) -> None:
    assert finished("resume", "mono", "--answer", "yes").code == 2


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("moot res", ["resume"]),
        ("moot config ", ["init", "check", "schema"]),
        ("moot resume --answer", ["--answer", "--answers"]),
        ("moot show mo", ["mono"]),
        ("moot show x", []),
    ],
    ids=["command", "subcommand", "option", "debate", "no debate"],
)
def test_shell_completion_offers_commands_options_and_debates(
    moot: Moot, typed: str, offered: list[str]
) -> None:
    assert moot("run", TOPIC, "--turns", 1, "--no-judge", "--id", "mono", "-q").code == 0
    position = str(typed.count(" "))
    done = moot(_MOOT_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=position)
    assert done.out.split() == offered


def test_vote_prints_its_answer_once_and_lists_it(moot: Moot) -> None:
    with OpenAIServer(lambda asked, number: ServerReply(text="Tabs.")) as server:
        voted = moot(
            "run",
            "Tabs or spaces?",
            "--protocol",
            "vote",
            "-m",
            "test-model",
            OPENAI_BASE_URL=server.base_url,
        )
    assert voted.out.startswith("Tabs or spaces?\nAnswer: Tabs. (5 of 5)")
    assert "Solution" not in voted.out
    assert moot("list", "--json").json[0]["winner"] == "Tabs."


def test_list_counts_only_the_tokens_of_a_fork_itself(moot: Moot) -> None:
    moot("run", "Tabs or spaces?", "--turns", "4", "--id", "long", "-q")
    moot("fork", "long", "--after", "m000002", "--id", "short", "-q")
    tokens = {row["name"]: row["tokens"] for row in moot("list", "--json").json}
    assert 0 < tokens["short"] < tokens["long"]


def test_resume_reports_when_a_whole_phase_takes_more_turns(moot: Moot) -> None:
    council = ("--protocol", "council", "--rounds", 1, "--model", "offline", "--no-judge")
    assert moot("run", TOPIC, *council, "--id", "c", "-q").code == 0
    longer = moot("resume", "c", "--turns", 5, "--json")
    assert "took 6 turns instead of 5" in longer.err  # three criticisms and three refinements
