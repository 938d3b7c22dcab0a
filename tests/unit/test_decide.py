"""Stop conditions, final votes, options and the `escalate` protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moot.api import open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.config import OFFLINE
from moot.config.config_files import make_config
from moot.config.rubrics import Criterion, Rubric
from moot.documents import DebateDocument
from moot.judging.orders import reconcile
from moot.judging.panel import decision_of
from moot.judging.response_check import ResponseCheck
from moot.judging.response_schema import CriterionScore, response_type
from moot.state.verdict import Verdict
from tests.support.fakes import FakeModel

TOPIC = "Merge the change?"
DEBATERS = [{"name": "Ada"}, {"name": "Ben"}, {"name": "Cem"}]
JUDGE_RESPONSE = {
    "reasoning": "weighed",
    "decision": "hold",
    "winner": "synthesis",
    "confidence": 64,
    "scores": [],
}


def run(
    tmp_path: Path, reply: Callable[[ModelCall], Reply], **config: Any
) -> tuple[DebateDocument, FakeModel]:
    model = FakeModel(reply)
    settings = {"debaters": DEBATERS, "blackboard": {"extraction": "off"}, **config}
    if config.get("protocol") == "escalate":
        settings = config
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        return debates.start(TOPIC, make_config(settings)).run(), model


def debater_replies(
    answer_of: Callable[[str, int], str], final: Mapping[str, tuple[str, float]] | None = None
) -> Callable[[ModelCall], Reply]:
    """Return a function that replies to turns, to requests for final answers, and to the judge with `hold`.

    `answer_of` gives the answer line of a debater's turn by its number.
    """
    turns: dict[str, int] = {}

    def reply(call: ModelCall) -> Reply:
        speaker = str(call.hints.get("speaker", ""))
        if call.purpose == "decide":
            answer, confidence = (final or {})[speaker]
            return Reply(data={"reasoning": "", "answer": answer, "confidence": confidence}, model="m")
        if call.schema is not None:
            return Reply(data=dict(JUDGE_RESPONSE), model="m")
        turns[speaker] = turns.get(speaker, 0) + 1
        return Reply(text=f"Because.\nAnswer: {answer_of(speaker, turns[speaker])}", model="m")

    return reply


def count_messages(document: DebateDocument) -> int:
    return sum(entry["kind"] in ("speech", "proposal", "refinement") for entry in document["transcript"])


def test_stop_on_agreement_ends_a_debate_after_equal_openings(tmp_path: Path) -> None:
    document, model = run(
        tmp_path, debater_replies(lambda speaker, turn: "**Merge**."), turns=12, stop="agreement"
    )
    assert count_messages(document) == 3
    assert document["ended_because"] == "agreement: all 3 debaters answer “merge”"
    assert '"Answer: "' in model.calls[0].messages[-1]["content"]


def test_equal_answers_do_not_stop_a_debate_by_default(tmp_path: Path) -> None:
    document, model = run(tmp_path, debater_replies(lambda speaker, turn: "merge"), turns=6)
    assert count_messages(document) == 6
    assert '"Answer: "' not in model.calls[0].messages[-1]["content"]


def test_stop_on_stable_ends_after_a_round_without_changed_answers(tmp_path: Path) -> None:
    def answer_of(speaker: str, turn: int) -> str:
        return "wait" if speaker == "Ada" and turn == 1 else {"Ada": "4", "Ben": "5", "Cem": "6"}[speaker]

    document, _ = run(tmp_path, debater_replies(answer_of), turns=15, stop=["agreement", "stable"])
    # Ada changes in round 2, so round 3 is the first in which no answer changes.
    assert count_messages(document) == 7
    assert document["ended_because"].startswith("stable: no answer changed for a round")


@pytest.mark.parametrize(
    "answer", ["", "one two three four five six seven eight nine ten eleven twelve long"]
)
def test_empty_and_long_answers_do_not_count_as_agreement(tmp_path: Path, answer: str) -> None:
    document, _ = run(tmp_path, debater_replies(lambda speaker, turn: answer), turns=6, stop="agreement")
    assert count_messages(document) == 6


def as_placeholders(reply: Callable[[ModelCall], Reply]) -> Callable[[ModelCall], Reply]:
    """Return a function that gives the same replies, marked as placeholders of the offline model."""
    return lambda call: replace(reply(call), provider=OFFLINE)


def test_equal_placeholders_do_not_count_as_agreement(tmp_path: Path) -> None:
    answers = as_placeholders(debater_replies(lambda speaker, turn: "merge"))
    options = {"stop": ["agreement", "stable"], "options": ["merge", "hold"]}
    document, _ = run(tmp_path, answers, turns=6, **options)
    assert count_messages(document) == 6
    assert document["verdict"]["placeholder"]
    assert document["verdict"]["decision"] == ""


def test_council_stops_if_all_proposals_give_the_same_answer(tmp_path: Path) -> None:
    settings = {"protocol": "council", "rounds": 2, "stop": "agreement", "options": ["merge", "hold"]}
    document, _ = run(tmp_path, debater_replies(lambda speaker, turn: "hold"), **settings)
    assert count_messages(document) == 3
    assert document["ended_because"] == "agreement: all 3 debaters answer “hold”"


def test_planned_interjection_is_added_before_agreement_ends_the_debate(tmp_path: Path) -> None:
    planned = [{"after": 4, "text": "Hiring was frozen."}]
    answers = debater_replies(lambda speaker, turn: "merge")
    document, _ = run(tmp_path, answers, turns=12, stop="agreement", interjections=planned)
    assert "Hiring was frozen." in [entry["content"] for entry in document["transcript"]]
    assert document["ended_because"].startswith("agreement")


def test_requested_turns_run_although_the_debaters_agree(tmp_path: Path) -> None:
    model = FakeModel(debater_replies(lambda speaker, turn: "merge"))
    config = make_config({"debaters": DEBATERS, "turns": 12, "stop": "agreement"})
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        debate = debates.start(TOPIC, config)
        assert count_messages(debate.run()) == 3
        assert count_messages(debate.run(turns=4)) == 7


FINAL_ANSWERS = {"Ada": ("merge", 60.0), "Ben": ("hold", 95.0), "Cem": ("merge", 20.0)}


def test_final_vote_asks_each_debater_independently_and_no_judge(tmp_path: Path) -> None:
    options = ["merge", "hold"]
    answers = debater_replies(lambda speaker, turn: "?", FINAL_ANSWERS)
    document, model = run(tmp_path, answers, turns=6, decide="vote", options=options)
    verdict = document["verdict"]
    purposes = [call.purpose for call in model.calls]
    assert (purposes.count("decide"), purposes.count("judge")) == (3, 0)
    assert (verdict["judge"], verdict["decision"], verdict["confidence"]) == ("count", "merge", 67)
    assert verdict["outcome"]["tally"] == {"merge": 2, "hold": 1}
    assert verdict["final_position"] == {"ada": "merge", "ben": "hold", "cem": "merge"}
    assert verdict["options"] == options
    # No debater sees the final answer of another: the prompts differ only in the last message.
    calls = [call for call in model.calls if call.purpose == "decide"]
    assert len({str(call.messages[:-1]) for call in calls}) == 1
    schema = calls[0].schema
    assert schema is not None
    assert schema.model_json_schema()["properties"]["answer"]["enum"] == ["merge", "hold", "undecided"]


def test_weighted_vote_sums_the_confidences(tmp_path: Path) -> None:
    answers = debater_replies(lambda speaker, turn: "?", FINAL_ANSWERS)
    document, _ = run(tmp_path, answers, turns=3, decide="weighted-vote", options=["merge", "hold"])
    assert document["verdict"]["outcome"]["tally"] == {"merge": 0.8, "hold": 0.95}
    assert document["verdict"]["decision"] == "hold"


def test_judge_decides_a_tied_vote_and_a_note_says_so(tmp_path: Path) -> None:
    final = {"Ada": ("merge", 60.0), "Ben": ("hold", 95.0), "Cem": ("undecided", 20.0)}
    answers = debater_replies(lambda speaker, turn: "?", final)
    document, _ = run(tmp_path, answers, turns=3, decide="vote", options=["merge", "hold"])
    assert document["verdict"]["judge"] == "judge"
    assert any("The vote is a tie between “hold”, “merge”" in note for note in document["verdict"]["notes"])


def test_failed_final_answer_is_recorded_and_not_counted(tmp_path: Path) -> None:
    def reply(call: ModelCall) -> Reply:
        if call.purpose == "decide" and call.hints.get("speaker") == "Ben":
            return Reply(error="down")
        return debater_replies(lambda speaker, turn: "?", FINAL_ANSWERS)(call)

    document, _ = run(tmp_path, reply, turns=3, decide="vote", options=["merge", "hold"])
    assert document["verdict"]["outcome"]["tally"] == {"merge": 2}
    assert [error["error"] for error in document["errors"]] == ["no final answer of Ben: down"]


def test_vote_of_offline_debaters_is_a_placeholder(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        config = make_config({"turns": 2, "decide": "vote", "options": ["merge", "hold"]})
        document = debates.start(TOPIC, config).run()
    assert document["verdict"]["placeholder"]
    assert document["verdict"]["decision"] == ""


RUBRIC = Rubric(name="small", criteria=(Criterion(id="merit", name="Merit", scale_min=0),))


def response_verdict(
    decision: str, confidence: float = 80, order: tuple[str, ...] = ("ada", "bo")
) -> Verdict:
    response = response_type("contest")(
        reasoning="", winner="ada", decision=decision, confidence=confidence, winner_confidence=50
    )
    response.scores = [CriterionScore(debater="ada", criterion="merit", score=5)]  # type: ignore[attr-defined]
    return ResponseCheck(RUBRIC, order, judge="j", options=("Merge", "hold")).response_verdict(
        response, Reply()
    )


@pytest.mark.parametrize(
    ("decision", "recorded"),
    [("Merge", "Merge"), (" `HOLD`. ", "hold"), ("undecided", "undecided"), ("Ship it", "undecided")],
)
def test_judge_decision_is_an_option_or_undecided(decision: str, recorded: str) -> None:
    verdict = response_verdict(decision)
    assert verdict["decision"] == recorded
    assert verdict["options"] == ["Merge", "hold"]
    assert bool(verdict["notes"]) is (decision == "Ship it")


def test_two_orders_with_different_decisions_are_undecided() -> None:
    verdict = reconcile(response_verdict("Merge"), response_verdict("hold", order=("bo", "ada")))
    assert (verdict["decision"], verdict["confidence"]) == ("undecided", None)
    assert "The judgements chose different options: Merge (1 of 2), hold (1 of 2)." in verdict["notes"]


def scores_verdict(order: tuple[str, ...] = ("bo", "ada")) -> Verdict:
    """Return the verdict of a second presentation order, which has scores but no decision."""
    response = response_type("scores")(reasoning="", winner="ada")
    return ResponseCheck(RUBRIC, order, judge="j", options=("Merge", "hold")).response_verdict(
        response, Reply()
    )


def test_second_order_with_scores_only_keeps_the_decision() -> None:
    verdict = reconcile(response_verdict("Merge"), scores_verdict())
    assert (verdict["decision"], verdict["confidence"]) == ("Merge", 80)


def test_decision_is_undecided_if_the_deciding_order_failed() -> None:
    failed = ResponseCheck(RUBRIC, ("ada", "bo"), judge="j").failed("down")
    assert reconcile(failed, scores_verdict())["decision"] == "undecided"


def test_panel_decides_by_majority_and_dissent_lowers_the_confidence() -> None:
    verdicts = [
        {**response_verdict(option), "judge": f"j{n}"} for n, option in enumerate(["Merge", "hold", "Merge"])
    ]
    panel = decision_of(verdicts, "mean")  # type: ignore[arg-type]  # copies with other ids
    assert (panel["decision"], panel["confidence"]) == ("Merge", 53)


def solver_replies(
    answers: Mapping[str, str], debate: Mapping[str, str] | None = None
) -> Callable[..., Reply]:
    """Return a function that replies with `answers` by solver, and in the debate phase with `debate`."""

    def reply(call: ModelCall) -> Reply:
        if call.schema is not None:
            return Reply(data=dict(JUDGE_RESPONSE), model="m")
        speaker = str(call.hints["speaker"]).removeprefix("Solver ")
        replies = (debate or {}) if call.hints["phase"] == "debate" else answers
        return Reply(text=f"Because {speaker}.\nAnswer: {replies[speaker]}", model=call.model)

    return reply


def test_escalate_stops_after_two_equal_answers(tmp_path: Path) -> None:
    document, model = run(tmp_path, solver_replies({"1": "x", "2": "X."}), protocol="escalate")
    verdict = document["verdict"]
    assert len(model.calls) == 2
    assert verdict["decision"] == "x"
    assert document["ended_because"] == "the first two answers agree: “x”"
    assert verdict["stages"] == [{"name": "two answers", "calls": 2, "answer": "x", "votes": {"x": 2}}]


def test_escalate_takes_three_more_answers_if_two_differ(tmp_path: Path) -> None:
    answers = {"1": "x", "2": "y", "3": "y", "4": "y", "5": "z"}
    document, model = run(tmp_path, solver_replies(answers), protocol="escalate")
    assert len(model.calls) == 5
    assert len({call.digest for call in model.calls}) == 5
    assert document["verdict"]["decision"] == "y"
    assert [(each["calls"], each["answer"]) for each in document["verdict"]["stages"]] == [(2, ""), (3, "y")]
    assert document["verdict"]["notes"] == [
        "Answer after each stage: two answers (2 calls): no answer leads; five answers (3 calls): “y”."
    ]


def test_escalate_debates_different_answers_without_a_majority(tmp_path: Path) -> None:
    answers = {"1": "x", "2": "y", "3": "x", "4": "y", "5": "z"}
    document, model = run(
        tmp_path, solver_replies(answers, {"1": "y", "2": "y", "5": "y"}), protocol="escalate"
    )
    debate = [call for call in model.calls if call.hints["phase"] == "debate"]
    assert [call.hints["speaker"] for call in debate] == ["Solver 1", "Solver 2", "Solver 5"]
    shown = " ".join(message["content"] for message in debate[0].messages)
    assert all(f"Because {speaker}." in shown for speaker in "125")
    verdict = document["verdict"]
    assert verdict["decision"] == "y"
    assert verdict["outcome"]["tally"] == {"y": 4, "x": 1}
    assert [each["calls"] for each in verdict["stages"]] == [2, 3, 3]
    assert document["ended_because"] == "the authors of different answers agree"


def test_escalate_judge_prompt_says_if_authors_read_each_other(tmp_path: Path) -> None:
    answers = {"1": "x", "2": "y", "3": "x", "4": "y", "5": "z"}
    prompts = {}
    for rounds in (0, 1):
        folder = tmp_path / str(rounds)
        folder.mkdir()
        settings = {"protocol": "escalate", "decide": "judge", "escalate": {"rounds": rounds}}
        _, model = run(folder, solver_replies(answers, answers), **settings)
        (judging,) = [call for call in model.calls if call.purpose == "judge"]
        prompts[rounds] = str(judging.messages)
    assert ["no author saw another" in prompts[rounds] for rounds in (0, 1)] == [True, False]
    assert "Leave `moved` empty" not in prompts[1]


def test_escalate_debate_prompt_names_the_authors_own_answer(tmp_path: Path) -> None:
    answers = {"1": "x", "2": "y", "3": "x", "4": "y", "5": "z"}
    document, model = run(tmp_path, solver_replies(answers, answers), protocol="escalate")
    last = [call for call in model.calls if call.hints["phase"] == "debate"][-1]
    own = next(entry for entry in document["transcript"] if "Because 5." in entry["content"])
    assert f"answers and your own answer, [{own['id']}]." in last.messages[-1]["content"]


def test_escalate_takes_the_second_answer_from_another_model(tmp_path: Path) -> None:
    debaters = [{"name": f"Solver {n}", "model": "one" if n < 3 else "two"} for n in range(1, 6)]
    answers = dict.fromkeys("12345", "x")
    _, model = run(tmp_path, solver_replies(answers), protocol="escalate", debaters=debaters)
    assert [call.model for call in model.calls] == ["one", "two"]


def test_escalate_does_not_count_placeholders_as_agreement(tmp_path: Path) -> None:
    answers = as_placeholders(solver_replies(dict.fromkeys("12345", "x"), dict.fromkeys("12345", "x")))
    document, _ = run(tmp_path, answers, protocol="escalate")
    assert document["verdict"]["placeholder"]
    assert len([entry for entry in document["transcript"] if entry["phase"] == "answer"]) == 5
