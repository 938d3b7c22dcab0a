"""Test of a decision's draft by the debaters, and the judge's answers to their findings."""

from __future__ import annotations

import io
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from moot.api import open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.cli.show_parts import answer_parts, verdict_parts
from moot.config import DebateConfig
from moot.config.config_files import make_config
from moot.debates.dry_run import dry_run
from moot.documents import DebateDocument
from moot.judging.draft_test import _adopted_text, asked_debaters
from moot.reports import render_brief, render_html, render_markdown
from moot.state.entries import ENTRY_ID, make_entry
from tests.support.fakes import FakeModel, fake_reply

SOLUTION = """\
The release is expected on 6 October. Mara signs the contract with the depot.

On 14 September, unless ten depots count, start the fallback. The cost is 3 x 400 = 1,500 euros."""
VERDICT = {
    "reasoning": "weighed",
    "question": "When?",
    "decision": "Release the counter on 6 October.",
    "confidence": 80,
    "conditions": ["Ten depots count before the release."],
    "winner": "synthesis",
    "scores": [],
    "solution_markdown": SOLUTION,
}
NOTHING = {"quotes": ["Mara signs the contract with the depot."], "problem": ""}
DATES = {
    "quotes": [
        "The release is expected on 6 October.",
        "On 14 September, unless ten depots count, start the fallback.",
    ],
    "problem": "The fallback always starts, because nothing counts before the release.",
}
SUM = {"quotes": ["The cost is 3 x 400 = 1,500 euros."], "problem": "3 x 400 is 1,200."}
FOUND = {"fails": NOTHING, "contradicts": DATES, "sums": SUM, "missing": NOTHING}
LATER = {"replaces": "On 14 September, unless ten", "by": "On 14 October, unless ten"}
POINTS = [(1, "release"), (2, "contract"), (3, "fallback")]
ANSWERS: dict[str, Any] = {
    "answers": [
        {"finding": "F1", "reason": "True.", "edits": [LATER]},
        {"finding": "F2", "reason": "The figure includes a reserve.", "right": False, "edits": []},
    ],
    "confidence": 70,
}


def is_reading(call: ModelCall) -> bool:
    return call.purpose == "evaluate" and call.hints.get("phase") == "test"


def is_answer(call: ModelCall) -> bool:
    return call.purpose == "judge" and call.hints.get("phase") == "test"


def council(
    tmp_path: Path, readings: Any = (FOUND,), answers: Any = ANSWERS, verdict: Any = VERDICT, **settings: Any
) -> Any:
    """Run a council of one round whose members find `readings`, one each, and then nothing."""
    pending = [*readings]

    def reply(call: ModelCall) -> Reply:
        if is_reading(call):
            nothing = dict.fromkeys(FOUND, NOTHING)
            data = pending.pop(0) if pending else nothing
        elif is_answer(call):
            data = answers
        elif call.purpose == "judge":
            data = verdict
        else:
            return fake_reply(call)
        return Reply(model=call.model, data=data, error="" if data else "out of order")

    model = FakeModel(reply)
    config = make_config({"protocol": "council", "rounds": 1, **settings})
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        return debates.start("When do we release?", config).run(), model.calls


def test_a_contradiction_that_a_member_finds_is_corrected_in_the_solution(tmp_path: Path) -> None:
    document, _ = council(tmp_path)
    assert "On 14 October, unless ten depots count" in document["solution"]
    assert document["verdict"]["solution_markdown"] == SOLUTION.replace("14 September", "14 October")
    assert document["verdicts"][0]["solution_markdown"] == SOLUTION
    finding = document["verdict"]["test"]["findings"][0]
    assert (finding["question"], finding["outcome"], finding["edits"]) == (
        "contradicts",
        "corrected",
        [{**LATER, "field": "solution_markdown"}],
    )
    assert document["verdict"]["confidence"] == 70


@pytest.mark.parametrize("quoted", ["Start on 14 September", "If yes: Start on 14 September."])
def test_a_question_to_answer_before_deciding_is_tested_and_corrected(quoted: str, tmp_path: Path) -> None:
    check = {"question": "Do ten depots count?", "if_yes": "Start on 14 September", "if_no": "Wait."}
    dates = {"quotes": [quoted, "On 14 September, unless ten depots"], "problem": "They disagree."}
    edit = {"replaces": "Start on 14 September", "by": "Start on 14 October"}
    answers = {"answers": [{"finding": "F1", "reason": "True.", "right": True, "edits": [edit]}]}
    readings = [{**dict.fromkeys(FOUND, NOTHING), "contradicts": dates}]
    document, _ = council(tmp_path, readings, answers, {**VERDICT, "checks": [check]})
    (finding,) = document["verdict"]["test"]["findings"]
    assert finding["edits"] == [{**edit, "field": "checks"}]
    assert [each["if_yes"] for each in document["verdict"]["checks"]] == ["Start on 14 October"]
    assert "Start on 14 October" in render_markdown(document)


def test_a_finding_that_the_judge_rejects_keeps_its_reason(tmp_path: Path) -> None:
    document, _ = council(tmp_path)
    finding = document["verdict"]["test"]["findings"][1]
    assert (finding["outcome"], finding["reason"]) == ("rejected", "The figure includes a reserve.")
    assert "3 x 400 = 1,500" in document["solution"]


def test_a_correction_that_is_repeated_settles_the_next_finding_too(tmp_path: Path) -> None:
    answers = {**ANSWERS, "answers": [{**each, "edits": [LATER]} for each in ANSWERS["answers"]]}
    document, _ = council(tmp_path, answers=answers)
    assert [each["outcome"] for each in document["verdict"]["test"]["findings"]] == ["corrected"] * 2
    assert "Corrected as above." in render_markdown(document)


@pytest.mark.parametrize(
    "answer",
    [
        {"reason": "True: 3 x 400 is 1,200.", "right": True, "edits": []},
        {"reason": "", "right": False, "edits": []},
        {"reason": "True: 3 x 400 is 1,200.", "edits": []},
        {"reason": "", "edits": [{"replaces": SUM["quotes"][0], "by": SUM["quotes"][0]}]},
    ],
    ids=["agreed but not corrected", "rejected without a reason", "not said", "replaced by itself"],
)
def test_a_finding_without_correction_and_reason_against_it_is_not_answered(
    answer: dict[str, Any], tmp_path: Path
) -> None:
    """Each display says so, and never "Rejected because"."""
    answers = {"answers": [ANSWERS["answers"][0], {"finding": "F2", **answer}]}
    document, _ = council(tmp_path, answers=answers)
    test, warning = document["verdict"]["test"], "neither corrected nor rejected 1 of 2 findings of the test."
    assert [each["outcome"] for each in test["findings"]] == ["corrected", "unanswered"]
    assert "1 corrected, 1 not answered by the judge" in document["verdict"]["notes"][0]
    written = render_markdown(document)
    shown = [written, render_html(document)]
    for text in (*shown, render_brief(document), render_brief(document, form="adr")):
        assert warning in text
    for text in shown:
        assert "Not answered by the judge" in text
        assert "Rejected because" not in text
    assert ("who wrote: True: 3 x 400 is 1,200." in written) == bool(answer["reason"])


def test_every_member_tests_the_draft_at_the_same_time(tmp_path: Path) -> None:
    _, calls = council(tmp_path)
    readings = [call for call in calls if is_reading(call)]
    assert [call.hints["speaker"] for call in readings] == ["Architect", "Performance", "Testing"]
    assert all("On 14 September, unless ten" in call.messages[0]["content"] for call in readings)
    assert sum(map(is_answer, calls)) == 1


def test_a_member_reads_its_own_last_proposal_after_what_all_members_read(tmp_path: Path) -> None:
    document, calls = council(tmp_path)
    own = {e["speaker"]: e["id"] for e in document["transcript"] if e["kind"] == "refinement"}
    readings = [call for call in calls if is_reading(call)]
    prompts = ["\n".join(message["content"] for message in call.messages) for call in readings]
    assert [ENTRY_ID.findall(text.partition("# Task")[2]) for text in prompts] == [
        [key] for key in own.values()
    ]
    assert len({call.messages[0]["content"] for call in readings}) == 1


def test_the_judge_is_not_asked_again_if_nobody_finds_a_fault(tmp_path: Path) -> None:
    document, calls = council(tmp_path, ())
    assert not any(map(is_answer, calls))
    assert document["verdict"]["test"]["status"] == "tested"
    assert document["verdict"]["notes"][0].startswith("3 debaters tested the decision: no findings; 12 of 12")


def test_a_finding_without_a_sentence_of_the_draft_does_not_count(tmp_path: Path) -> None:
    invented = {"quotes": ["The release is expected on 7 October."], "problem": "A Wednesday."}
    one_side = {"quotes": DATES["quotes"][:1], "problem": "Contradicts something."}
    document, _ = council(tmp_path, [{**FOUND, "fails": invented, "contradicts": one_side, "sums": NOTHING}])
    test = document["verdict"]["test"]
    assert (test["findings"], test["dropped"], test["quoted_answers"]) == ([], 2, 11)
    assert "2 findings without a quotation did not count." in document["verdict"]["notes"][0]


def test_a_correction_of_a_passage_that_is_not_in_the_draft_is_not_called_corrected(tmp_path: Path) -> None:
    lost = {"replaces": "On 15 September, start", "by": "On 14 October, start"}
    document, _ = council(tmp_path, answers={"answers": [{"finding": "F1", "reason": "", "edits": [lost]}]})
    outcomes = [each["outcome"] for each in document["verdict"]["test"]["findings"]]
    assert outcomes == ["not found", "unanswered"]
    assert document["solution"].startswith(SOLUTION)


@pytest.mark.parametrize(("readings", "answers"), [((None, None, None), ANSWERS), ((FOUND,), None)])
def test_the_draft_stands_and_is_marked_if_a_pass_fails(readings: Any, answers: Any, tmp_path: Path) -> None:
    document, _ = council(tmp_path, readings, answers)
    assert document["status"] == "done"
    assert document["verdict"]["test"]["status"] == "not tested"
    assert document["verdict"]["solution_markdown"] == SOLUTION
    assert "The decision was not tested: " in render_markdown(document)
    assert document["errors"]


def test_the_verdict_shows_the_spread_of_the_members_probabilities(tmp_path: Path) -> None:
    document, _ = council(tmp_path, [{**FOUND, "probability": 40}, {**FOUND, "probability": 75}])
    assert document["verdict"]["test"]["probabilities"] == {"architect": 40, "performance": 75}
    assert "They said with 40 to 75 of 100 that the draft holds." in document["verdict"]["notes"][0]


def test_a_run_that_stops_in_the_test_resumes_without_a_second_verdict(tmp_path: Path) -> None:
    class Stop(Exception):
        """End of the process."""

    stops = [True]

    def reply(call: ModelCall) -> Reply:
        if is_reading(call):
            if stops and call.hints["speaker"] == "Testing":
                stops.pop()
                raise Stop
            return Reply(model=call.model, data={question: NOTHING for question in FOUND})
        return Reply(model=call.model, data=VERDICT) if call.schema else fake_reply(call)

    model, config = FakeModel(reply), make_config({"protocol": "council", "rounds": 1})
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        debate = debates.start("When?", config)
        with pytest.raises(Stop):
            debate.run()
        assert debate.document()["verdict"]["solution_markdown"] == SOLUTION
        assert debate.run()["verdict"]["test"]["members"] == ["architect", "performance", "testing"]
    assert sum(call.purpose == "judge" for call in model.calls) == 1
    assert [call.hints["speaker"] for call in model.calls if is_reading(call)].count("Architect") == 1


def test_a_test_with_one_failed_member_still_counts(tmp_path: Path) -> None:
    document, _ = council(tmp_path, (None, FOUND))
    test = document["verdict"]["test"]
    assert (test["status"], test["members"], len(test["findings"])) == (
        "tested",
        ["performance", "testing"],
        2,
    )
    assert "2 debaters tested the decision" in document["verdict"]["notes"][0]


def test_the_decision_stays_one_of_the_options(tmp_path: Path) -> None:
    finding = {"quotes": ["Release on 6 October"], "problem": "Too early."}
    changed = {"replaces": "Release on 6 October", "by": "Never release it"}
    answers = {"answers": [{"finding": "F1", "reason": "True.", "edits": [changed]}]}
    verdict = {**VERDICT, "decision": "Release on 6 October"}

    def reply(call: ModelCall) -> Reply:
        replies = {True: {**FOUND, "fails": finding, "contradicts": NOTHING, "sums": NOTHING}}
        data = replies.get(is_reading(call), answers if is_answer(call) else verdict)
        return Reply(model=call.model, data=data) if call.schema else fake_reply(call)

    model = FakeModel(reply)
    options = ["Release on 6 October", "Wait"]
    config = make_config({"protocol": "council", "rounds": 1, "options": options})
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        document = debates.start("When?", config).run()
    assert document["verdict"]["decision"] == "Release on 6 October"


def test_the_report_shows_each_finding_and_what_came_of_it(tmp_path: Path) -> None:
    document, _ = council(tmp_path)
    report = render_markdown(document)
    assert "Architect: The fallback always starts, because nothing counts before the release." in report
    assert "Corrected in “Solution”: “On 14 October, unless ten”" in report
    assert "Rejected because: The figure includes a reserve." in report


def printed(*parts: Any) -> str:
    console = Console(file=io.StringIO(), width=300, record=True)
    console.print(*parts)
    return console.export_text()


def test_the_confidence_says_what_it_means(tmp_path: Path) -> None:
    """Each display shows beside it the members' spread and what would raise it."""
    verdict = {**VERDICT, "raised_by": "A count in one depot before June."}
    readings = [{**FOUND, "probability": 55}, {**dict.fromkeys(FOUND, NOTHING), "probability": 75}]
    document, _ = council(tmp_path, readings, {"answers": []}, verdict)
    note = "The debaters: 55 to 75. It would rise most by this: A count in one depot before June."
    assert document["verdict"]["raised_by"] == "A count in one depot before June."
    for text in (
        render_html(document),
        render_markdown(document),
        render_brief(document),
        render_brief(document, "adr"),
    ):
        assert note in unescape(text).replace("\\", "")
    assert f"80 of 100. {note}" in printed(*answer_parts(document))
    assert f"80 of 100. {note}" in printed(*verdict_parts(document))


def test_people_do_not_test_the_decision() -> None:
    debaters = [{"name": "Ann", "model": "human"}, {"name": "Ben"}, {"name": "Cyd"}]
    config = make_config({"protocol": "council", "debaters": debaters})
    transcript = [{"speaker": each.id} for each in config.debaters]
    context: Any = SimpleNamespace(state={"full_transcript": transcript}, config=config)
    verdict: Any = {"solution_markdown": SOLUTION, "winner": "synthesis"}
    assert [each.id for each in asked_debaters(context, verdict)] == ["ben", "cyd"]


def test_the_test_can_be_switched_off(tmp_path: Path) -> None:
    document, calls = council(tmp_path, judge={"test": False})
    assert not any(map(is_reading, calls))
    assert "test" not in document["verdict"]


def test_a_debate_that_reached_its_limit_is_marked_as_not_tested(tmp_path: Path) -> None:
    document, calls = council(tmp_path, limits={"total_tokens": 1})
    assert not any(map(is_reading, calls))
    assert document["verdict"]["test"]["status"] == "not tested"
    assert "limits.total_tokens" in document["verdict"]["notes"][0]


def _round_robin(tmp_path: Path, **judge: Any) -> tuple[DebateDocument, list[ModelCall]]:
    scores = [
        {"debater": side, "criterion": "evidence", "reason": "r", "citations": [], "score": score}
        for side, score in (("ann", 4), ("ben", 8))
    ]
    verdict = {**VERDICT, "winner": "ben", "winner_confidence": 80, "scores": scores}
    verdict.pop("solution_markdown")

    def reply(call: ModelCall) -> Reply:
        data = dict.fromkeys(FOUND, NOTHING) if is_reading(call) else verdict
        return Reply(model=call.model, data=data) if call.schema else fake_reply(call)

    model = FakeModel(reply)
    settings = {
        "debaters": [{"name": "Ann"}, {"name": "Ben"}],
        "turns": 2,
        "judge": {"blind": False, "swap": False, **judge},
    }
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        return debates.start("When do we release?", make_config(settings)).run(), model.calls


def test_the_losing_side_tests_the_decision_of_a_round_robin_if_this_is_set(tmp_path: Path) -> None:
    document, calls = _round_robin(tmp_path, test=True)
    assert [call.hints["speaker"] for call in calls if is_reading(call)] == ["Ann"]
    assert document["verdict"]["test"]["members"] == ["ann"]


def test_other_protocols_do_not_test_the_decision_by_default(tmp_path: Path) -> None:
    document, calls = _round_robin(tmp_path)
    assert not any(map(is_reading, calls))
    assert "test" not in document["verdict"]


def test_a_forecast_counts_the_test_and_the_answer() -> None:
    config = make_config({"protocol": "council", "rounds": 1, "model": "m"})
    untested = make_config({**config.to_json(), "judge": {"test": False}})
    agreeing, disputing = (
        dry_run(config, scenario).calls - dry_run(untested, scenario).calls
        for scenario in ("agreeing", "disputing")
    )
    assert (agreeing, disputing) == (3, 4)


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [(10_000, ["1A.1", "1A.2", "1A.3"]), (44, ["1A.2", "1A.3", "Left out: 1 earlier point."]), (10, [])],
)
def test_adopted_points_that_do_not_fit_leave_out_the_oldest(tokens: int, shown: list[str]) -> None:
    points = "\n".join(f"{number}. The date of the {word} is too late by a month." for number, word in POINTS)
    critique = make_entry(0, "ada", "critique", points, round=1, targets=["bob"])
    rows = [{"point": f"1A.{number}", "message_id": "m000002", "sentence": "x"} for number, _ in POINTS]
    state: Any = {"full_transcript": [critique], "convergence": [{"round": 1, "adopted": rows}]}
    debate: Any = SimpleNamespace(state=state, count=lambda text: len(text.split()), config=DebateConfig())
    lines = _adopted_text(debate, tokens).splitlines()[1:-1]
    labels = [line[2:].partition(":")[0] if "1A" in line else line[2:] for line in lines]
    assert labels == shown
