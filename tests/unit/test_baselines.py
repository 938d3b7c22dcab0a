"""The baselines `single` and `vote`."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moot.api import open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.config.config_files import make_config
from moot.documents import DebateDocument
from moot.protocols.voting import answer_as_written
from moot.text.answers import answer_key
from tests.support.fakes import FakeModel, fake_reply
from tests.support.snapshots import check_snapshot, prompt_markdown

TOPIC = "What is the capital of Australia?"


def run(
    tmp_path: Path, reply: Callable[[ModelCall], Reply] = fake_reply, **config: Any
) -> tuple[DebateDocument, FakeModel]:
    model = FakeModel(reply)
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        return debates.start(TOPIC, make_config(config)).run(), model


def answer_by_seed(answers: list[str]) -> Callable[[ModelCall], Reply]:
    """Return a model function that chooses its answer by the seed of the call."""

    def reply(call: ModelCall) -> Reply:
        choice = answers[call.seed or 0]
        return (
            Reply(error=choice)
            if choice.startswith("!")
            else Reply(text=f"Because.\nAnswer: {choice}", model="m")
        )

    return reply


def test_single_makes_one_call_and_has_a_solution_but_no_verdict(tmp_path: Path) -> None:
    document, model = run(tmp_path, protocol="single")
    assert len(model.calls) == 1
    assert document["solution"] == document["transcript"][-1]["content"]
    assert document["verdict"] is None
    assert document["status"] == "done"


def test_vote_samples_independent_answers_to_the_same_prompt(tmp_path: Path) -> None:
    document, model = run(tmp_path, protocol="vote", vote={"answers": 4})
    answers = [call for call in model.calls if call.purpose == "turn"]
    assert len({call.digest for call in answers}) == 4
    assert len({str(call.messages) for call in answers}) == 1
    assert len([e for e in document["transcript"] if e["phase"] == "answer"]) == 4


def test_vote_winner_has_the_most_votes_and_their_share_as_confidence(tmp_path: Path) -> None:
    answers = ["Sydney", "Canberra", "**canberra.**", "Perth", "Canberra"]
    document, model = run(tmp_path, answer_by_seed(answers), protocol="vote")
    verdict = document["verdict"]
    assert len(model.calls) == 5
    assert verdict["confidence"] == 60
    assert verdict["outcome"]["tally"] == {"sydney": 1, "canberra": 3, "perth": 1}
    assert document["solution"].endswith("Answer: Canberra")


def test_judge_decides_a_tied_vote(tmp_path: Path) -> None:
    def reply(call: ModelCall) -> Reply:
        judge_reply = {"reasoning": "b is right", "decision": "b", "winner": "synthesis", "confidence": 70}
        return (
            Reply(data=judge_reply, model="m") if call.schema else answer_by_seed(["a", "b", "b", "a"])(call)
        )

    document, model = run(tmp_path, reply, protocol="vote", vote={"answers": 4})
    verdict = document["verdict"]
    assert [call.purpose for call in model.calls].count("judge") == 1
    assert (verdict["judge"], verdict["decision"]) == ("judge", "b")
    assert "The vote is a tie between “a”, “b”, with 2 of 4 each: the judge decided." in verdict["notes"]


def test_placeholder_answers_of_the_offline_model_elect_no_winner(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        document = debates.start(TOPIC, make_config({"protocol": "vote"})).run()
    verdict = document["verdict"]
    assert verdict["placeholder"]
    assert (verdict["winner"], verdict["decision"], verdict["confidence"]) == ("tie", "", None)
    assert all(entry["placeholder"] for entry in document["transcript"] if entry["phase"] == "answer")


def test_vote_ignores_placeholders_beside_real_answers(tmp_path: Path) -> None:
    def reply(call: ModelCall) -> Reply:
        provider = "offline" if (call.seed or 0) < 2 else ""
        return Reply(text=f"Answer: {'x' if provider else 'y'}", model="m", provider=provider)

    document, _ = run(tmp_path, reply, protocol="vote", vote={"answers": 3})
    assert document["verdict"]["decision"] == "y"
    assert document["verdict"]["outcome"]["tally"] == {"y": 1}


def test_weighted_vote_uses_calibrated_confidences(tmp_path: Path) -> None:
    answers = ["a\nConfidence: 90", "a\nConfidence: 90", "b\nConfidence: 95"]
    measured = {"m": [[50, 10], [90, 20], [100, 100]]}
    settings = {"protocol": "vote", "vote": {"answers": 3}, "decide": "weighted-vote"}
    stated, model = run(tmp_path / "stated", answer_by_seed(answers), **settings)
    assert "Confidence: " in model.calls[0].messages[-1]["content"]
    assert stated["verdict"]["outcome"]["tally"] == {"a": 1.8, "b": 0.95}
    calibrated, _ = run(tmp_path / "calibrated", answer_by_seed(answers), **settings, calibration=measured)
    assert calibrated["verdict"]["outcome"]["tally"] == {"a": 0.4, "b": 0.6}
    assert calibrated["verdict"]["decision"] == "b"


def test_a_vote_with_options_counts_only_the_options(tmp_path: Path) -> None:
    answers = ["merge", "**Hold**.", "hold", "wait and see", "wait and see"]
    document, model = run(tmp_path, answer_by_seed(answers), protocol="vote", options=["Merge", "Hold"])
    assert "“Merge”, “Hold”" in model.calls[0].messages[-1]["content"]
    assert document["verdict"]["decision"] == "Hold"
    assert document["verdict"]["options"] == ["Merge", "Hold"]
    assert document["verdict"]["outcome"]["tally"] == {"merge": 1, "hold": 2}


def test_vote_continues_without_a_failed_answer(tmp_path: Path) -> None:
    document, _ = run(tmp_path, answer_by_seed(["a", "!down", "a"]), protocol="vote", vote={"answers": 3})
    assert document["verdict"]["outcome"]["judges"] == 2
    assert [e["kind"] for e in document["transcript"]] == ["topic", "speech", "notice", "speech"]


def test_judge_can_decide_a_vote_instead_of_a_count(tmp_path: Path) -> None:
    document, model = run(tmp_path, protocol="vote", vote={"answers": 3}, decide="judge")
    assert [call.purpose for call in model.calls].count("judge") == 1
    assert document["verdict"]["judge"] == "judge"
    # The answers are independent: the judge's prompt asks nothing about rebuttals or a debate.
    (asked,) = [call for call in model.calls if call.purpose == "judge"]
    words = " ".join(message["content"] for message in asked.messages).lower()
    assert "independent answers" in words
    assert not re.search(r"\bdebate\b|rebuttal|was answered|challenge", words)


def test_pairwise_judge_is_told_to_compare_answers(tmp_path: Path) -> None:
    model = FakeModel()
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        config = make_config({"protocol": "pairwise", "model": "m"})
        answers = "Candidate 1: It is four.\n\nCandidate 2: It is five."
        debates.import_transcript(answers, topic="What is 2 + 2?", config=config).judge()
    (first, second) = [call for call in model.calls if call.purpose == "judge"]
    assert "The winner is the answer that follows the input better" in first.messages[-1]["content"]
    for call in (first, second):
        assert "Every part of the question is answered." in call.messages[0]["content"]  # rubric `answers`


@pytest.mark.parametrize(
    ("text", "normalised"),
    [
        ("Think.\nAnswer: 1,000", "1000"),
        ("**Answer:** Yes.", "yes"),
        ("Answer: a\nAnswer: B", "b"),
        ("no such line", "no such line"),
        ("ANSWER: Ｃａｎｂｅｒｒａ", "canberra"),
        ("> Answer:  “two   words” ", "two words"),
        ("Answer: 4.50", "4.5"),
        ("Answer: 100", "100"),
    ],
)
def test_answers_are_normalised_before_they_are_compared(text: str, normalised: str) -> None:
    assert answer_key(answer_as_written(text)) == normalised


@pytest.mark.parametrize("protocol", ["single", "vote"])
def test_baseline_prompts_match_their_snapshots(protocol: str, tmp_path: Path) -> None:
    _, model = run(tmp_path, protocol=protocol)
    check_snapshot(f"{protocol}-answer", prompt_markdown(model.calls[0].messages))
