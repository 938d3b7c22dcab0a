"""Commands that import, judge, evaluate and report, with the offline model and over HTTP."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.moot_command import CommandResult, Moot
from tests.support.openai_server import OpenAIServer, ServerReply

CSV = """speaker,minute,text
Moderator,00:01,Welcome. Should we tax carbon?
Ann Lee,01:20,"Yes, a carbon tax cuts emissions by 20 % at 50 dollars a tonne."
Bob Ray,02:00,"No. It hits the poor first, and Ann Lee has no figures for leakage."
Ann Lee,03:00,"Rebates solve that, as one province showed."
Bob Ray,04:10,"I concede that rebates help, but leakage remains."
"""
OFFLINE = ("--model", "offline")
DEBATES = Path(__file__).parents[3] / "shared" / "data" / "debates"
TELEVISED = DEBATES / "us_election_2020_1st_presidential_debate.csv"


@pytest.fixture
def moot(tmp_path: Path) -> Moot:
    (tmp_path / "talk.csv").write_text(CSV)
    return Moot(tmp_path)


def ok(result: CommandResult) -> CommandResult:
    assert result.code == 0, result.err
    return result


@dataclass(frozen=True)
class MootWithServer(Moot):
    """The `moot` command with a model server at `base_url`."""

    base_url: str

    def environment(self, **variables: str) -> dict[str, str]:
        return super().environment(OPENAI_BASE_URL=self.base_url, OPENAI_API_KEY="test", **variables)


def with_server(moot: Moot, server: OpenAIServer) -> MootWithServer:
    return MootWithServer(moot.folder, server.base_url)


def import_judge_report(moot: Moot, path: Path, *model: str) -> dict[str, Any]:
    """Import a transcript, judge it and write its report. Return its document."""
    name = ok(moot("import", path, "--id", "tv", "-q")).out.strip()
    judged = ok(moot("judge", name, *model, "--json")).json
    assert judged["verdict"]["status"] == "ok"
    ok(moot("report", name, "-o", "tv.html"))
    page = (moot.folder / "tv.html").read_text()
    assert "</html>" in page
    assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=[\"']?https?:", page)
    document: dict[str, Any] = ok(moot("report", name, "--json")).json
    assert document["verdict"]["winner"] == judged["verdict"]["winner"]
    return document


def test_a_transcript_is_imported_judged_and_reported(moot: Moot) -> None:
    document = import_judge_report(moot, Path("talk.csv"), "--model", "offline")
    assert [debater["id"] for debater in document["config"]["debaters"]] == ["ann-lee", "bob-ray"]
    assert document["status"] == "done"
    assert len(document["verdicts"]) == 1


@pytest.mark.slow
def test_judge_over_http_uses_structured_output(moot: Moot) -> None:
    with OpenAIServer() as server:
        document = import_judge_report(with_server(moot, server), Path("talk.csv"), "--model", "test-model")
        schemas = [chat["response_format"]["json_schema"]["name"] for chat in server.chats]
    assert schemas == ["JudgeResponse", "JudgeResponse"]
    assert document["verdict"]["model"] == "test-model"
    assert document["usage"]["calls"] == 2


@pytest.mark.skipif(not TELEVISED.exists(), reason="the televised debates are not here")
@pytest.mark.parametrize("over_http", [False, True], ids=["offline model", "loopback server"])
@pytest.mark.slow
def test_televised_debate_is_imported_judged_and_reported(moot: Moot, over_http: bool) -> None:
    config = {"memory": {"summarizer": "llm" if over_http else "rule-based"}, "model": "test-model"}
    if not over_http:
        del config["model"]
    (moot.folder / "config.json").write_text(json.dumps(config))
    with OpenAIServer() as server:
        used = with_server(moot, server) if over_http else moot
        ok(used("import", TELEVISED, "--id", "tv", "-t", "Who should be president?", "-c", "config.json"))
        model_option = () if over_http else ("--model", "offline")
        judged = ok(used("judge", "tv", "--panel", "2", *model_option, "--json")).json
        ok(used("report", "tv"))
        document = ok(used("report", "tv", "--json")).json
        sizes = [len(json.dumps(chat["messages"])) for chat in server.chats]
    assert bool(sizes) == over_http
    assert all(size < 60_000 for size in sizes)
    assert judged["agreement"]["judges"] == 2
    assert document["summaries"][-1]["covers_through_seq"] > 600
    assert len(document["transcript"]) > 700
    assert (moot.folder / "tv.html").stat().st_size > 200_000


def test_judging_again_adds_a_verdict_and_a_dry_run_does_not(moot: Moot) -> None:
    ok(moot("import", "talk.csv", "--id", "t", "-q"))
    ok(moot("judge", "t", "--panel", "3", "--rule", "majority", *OFFLINE))
    ok(moot("judge", "t", "--dry-run", *OFFLINE))
    again = ok(moot("judge", "t", "--rubric", "design", "--no-swap", "--no-blind", "--json", *OFFLINE)).json
    assert again["verdicts"][0]["rubric"] == "design"
    assert again["verdicts"][0]["flip"]["flipped"] is None
    document = ok(moot("report", "t", "--json")).json
    assert len(document["verdicts"]) == 4
    assert document["agreement"]["judges"] == 1
    row = ok(moot("list", "--json")).json[0]
    assert row["tokens"] == document["usage"]["prompt_tokens"] + document["usage"]["completion_tokens"]


def test_panel_output_shows_the_judges_and_their_agreement(moot: Moot) -> None:
    shown = ok(moot("judge", "talk.csv", "--panel", "2", "-t", "A carbon tax?", *OFFLINE))
    assert {"judge-1", "judge-2"} <= {*re.findall(r"judge-\d", shown.out)}
    assert re.search(r"Panel: α of scores .* flip rate [01]\.00 \(.*n = 2\)", shown.out)
    assert "not stored" in shown.err
    assert not moot.db.exists()


def test_offline_model_judges_only_if_it_is_named(moot: Moot) -> None:
    ok(moot("import", "talk.csv", "--id", "t", "-q"))
    for words, models, message in (
        (["judge", "t"], ["", "offline"], "no judge model is set"),
        (["judge", "talk.csv"], ["", "offline"], "no judge model is set"),
        (["eval", "debate", "t"], [""], "no model is set"),
        (["eval", "debate", "talk.csv", "-p", "A tax?"], [""], "no model is set"),
    ):
        for model in models:
            refused = moot(*words, MOOT_MODEL=model)
            assert refused.code == 2
            assert message in refused.err
    assert not ok(moot("report", "t", "--json")).json["verdicts"]


def test_several_model_options_form_a_panel(moot: Moot) -> None:
    with OpenAIServer() as server:
        asked = ("judge", "talk.csv", "-m", "model-a", "-m", "model-b", "--json")
        judged = ok(with_server(moot, server)(*asked)).json
    assert [verdict["judge"] for verdict in judged["verdicts"]] == ["model-a", "model-b"]
    assert [verdict["model"] for verdict in judged["verdicts"]] == ["model-a", "model-b"]


def test_judge_that_fails_twice_stores_a_failed_verdict(moot: Moot) -> None:
    ok(moot("import", "talk.csv", "--id", "t", "-q"))
    ok(moot("judge", "t", "-q", *OFFLINE))
    with OpenAIServer(lambda request, number: ServerReply(text="I think it was lovely.")) as server:
        failed = with_server(moot, server)("judge", "t", "--model", "test-model", "--json")
        asked = len(server.chats)
    assert failed.code == 3
    assert failed.json["verdict"]["status"] == "failed"
    assert "lovely" not in json.dumps(failed.json["verdict"]["solution_markdown"])
    assert asked >= 4
    document = ok(moot("report", "t", "--json")).json
    assert document["verdict"]["status"] == "ok"
    assert document["verdicts"][-1]["status"] == "failed"
    assert document["errors"][-1]["node"] == "judge"


def test_judging_an_unfinished_debate_finishes_it_with_the_verdict(moot: Moot) -> None:
    with OpenAIServer([ServerReply(), ServerReply(), ServerReply(status=400, message="no")]) as server:
        assert with_server(moot, server)("run", "Cars?", "--id", "c", "-m", "test-model").code == 3
    ok(moot("judge", "c", "--model", "offline", "--dry-run", OPENAI_API_KEY="x"))
    assert ok(moot("report", "c", "--json")).json["status"] == "failed"
    ok(moot("judge", "c", "--model", "offline", OPENAI_API_KEY="x"))
    document = ok(moot("report", "c", "--json")).json
    assert (document["status"], document["verdict"]["status"]) == ("done", "ok")
    assert ok(moot("list", "--json")).json[0]["status"] == "done"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["judge"], 2, "nothing to judge"),
        (["judge", "nobody"], 4, "no debate"),
        (["judge", "nowhere.csv"], 2, "cannot read"),
        (["judge", "talk.csv", "--rubric", "nowhere.yaml"], 2, "nowhere.yaml"),
        (["judge", "talk.csv", "-m", "a", "-m", "b", "--panel", "2"], 2, "--panel"),
        (["judge", "talk.csv", "-m", "gpt-4o"], 2, "OPENAI_API_KEY"),
        (["judge", "t", "-c", "nowhere.yaml"], 2, "nowhere.yaml"),
        (["judge", "t", "-c", "other.json"], 2, "sets neither `judge` nor `models`"),
        (["judge", "t", "--topic", "Tea?"], 2, "--topic"),
        (["import", "nowhere.csv"], 2, "cannot read"),
        (["import", "talk.csv", "--format", "json"], 2, "not valid JSON"),
        (["import", "talk.csv", "-d", "Carl"], 2, "is not the name of a speaker"),
        (["report", "talk", "-o", "x.pdf"], 2, "must end in one of .html, .htm, .md, .json"),
        (["report", "talk", "-f", "adr", "-o", "x.html"], 2, "must end in .md"),
        (["report", "talk", "-f", "html,pdf"], 2, "choose from html, md, json, brief, adr"),
        (["report", "talk", "-f", "md,html", "-o", "x.md"], 2, "give only one --format"),
        (["report", "talk", "--json", "-o", "x.json"], 2, "--json prints to stdout"),
        (["eval", "debate", "nowhere.json"], 2, "cannot read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_commands_refuse_invalid_input_without_a_traceback(
    moot: Moot, words: list[str], code: int, says: str
) -> None:
    (moot.folder / "panel.json").write_text(json.dumps({"judge": {"panel": [{"id": "a"}, {"id": "b"}]}}))
    (moot.folder / "other.json").write_text(json.dumps({"turns": 4}))
    refused = moot(*words)
    assert refused.code == code
    assert says in " ".join(refused.err.split())
    assert "Traceback" not in refused.err


def test_judge_reads_a_configuration_file_and_options_override_it(moot: Moot) -> None:
    ok(moot("import", "talk.csv", "--id", "t", "-q"))
    judge = {"rubric": "design", "rule": "ranked", "panel": [{"id": "a"}, {"id": "b"}]}
    (moot.folder / "judges.json").write_text(json.dumps({"judge": judge}))
    judged = ok(moot("judge", "t", "-c", "judges.json", "--rule", "approval", "--json", *OFFLINE)).json
    assert [verdict["judge"] for verdict in judged["verdicts"]] == ["a", "b"]
    assert {verdict["rubric"] for verdict in judged["verdicts"]} == {"design"}
    assert judged["verdict"]["outcome"]["rule"] == "approval"


def test_resume_continues_an_imported_debate(moot: Moot) -> None:
    ok(moot("import", "talk.csv", "--id", "t", "-q", "-t", "A carbon tax?"))
    ok(moot("resume", "t", "--turns", "3", "-q"))
    document = ok(moot("report", "t", "--json")).json
    speakers = [entry["speaker"] for entry in document["transcript"]]
    assert speakers[:6] == ["user", "moderator", "ann-lee", "bob-ray", "ann-lee", "bob-ray"]
    assert speakers[6:] == ["ann-lee", "bob-ray", "ann-lee"]
    assert document["verdict"]["status"] == "ok"


@pytest.mark.slow
def test_import_of_an_export_restores_the_same_document(moot: Moot, tmp_path: Path) -> None:
    ok(moot("run", "Round trip?", "--turns", "4", "--id", "r", "-q", "-o", "r.json"))
    ok(moot("import", "r.json", "-q", MOOT_DB=str(tmp_path / "other.sqlite")))
    again = ok(moot("report", "r", "--json", MOOT_DB=str(tmp_path / "other.sqlite"))).json
    assert again.pop("imported_at")
    assert again == json.loads((tmp_path / "r.json").read_text())
    taken = moot("import", "r.json")
    assert taken.code == 2
    assert "--id" in taken.err


def test_eval_prints_tables_and_json_and_appends_rows_to_a_file(moot: Moot) -> None:
    ok(moot("import", "talk.csv", "--id", "t", "-q"))
    evaluators = {"agents": [{"id": f"eval-{n}", "name": f"E{n}", "model": "offline"} for n in (1, 2)]}
    (moot.folder / "eval.json").write_text(json.dumps(evaluators))
    table = ok(moot("eval", "debate", "t", "talk.csv", "-c", "eval.json", "-p", "Cut emissions."))
    assert re.search(r"Overall Score +N/A +N/A", table.out)
    assert table.out.count("placeholder: no model judged this") == 4
    for _ in range(2):
        ok(moot("eval", "debate", "t", "-e", "offline", "-o", "scores.csv"))
    rows = (moot.folder / "scores.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows] == ["debate", "t", "t"]
    ok(moot("eval", "debate", "t", "--model", "offline", "-o", "scores.md"))
    assert (moot.folder / "scores.md").read_text().startswith("| debate | Functional Completeness |")
    data = ok(moot("eval", "debate", "t", "-c", "eval.json", "--json")).json
    assert [each["id"] for each in data["debates"][0]["evaluators"]] == ["eval-1", "eval-2"]


def test_failed_evaluator_is_reported_with_exit_code_3(moot: Moot) -> None:
    with OpenAIServer(lambda request, number: ServerReply(status=400, message="no such model")) as server:
        failed = with_server(moot, server)("eval", "debate", "talk.csv", "-e", "gone", "-f", "md")
    assert failed.code == 3
    assert "| talk | N/A |" in failed.out
    assert "no such model" in failed.err
