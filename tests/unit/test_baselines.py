import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moot.graph.api import open_debates
from moot.nodes.calls import ModelCall, Reply
from moot.nodes.protocols.baselines.vote import final_answer
from moot.state.config.config_files import make_config
from tests.support.fakes import FakeModel, answer
from tests.support.snapshots import check_snapshot, prompt_markdown

TOPIC = "What is the capital of Australia?"


def run(
    tmp_path: Path, reply: Callable[[ModelCall], Reply] = answer, **config: Any
) -> tuple[dict[str, Any], FakeModel]:
    model = FakeModel(reply)
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        return debates.start(TOPIC, make_config(config)).run(), model


def voting(answers: list[str]) -> Callable[[ModelCall], Reply]:
    """Answer by the seed that tells equal requests apart."""

    def reply(call: ModelCall) -> Reply:
        said = answers[call.seed or 0]
        return (
            Reply(error=said) if said.startswith("!") else Reply(text=f"Because.\nAnswer: {said}", model="m")
        )

    return reply


def test_single_is_one_call_whose_answer_is_the_solution_and_no_verdict(tmp_path: Path) -> None:
    document, model = run(tmp_path, protocol="single")
    assert len(model.calls) == 1
    assert document["solution"] == document["transcript"][-1]["content"]
    assert document["verdict"] is None
    assert document["status"] == "done"


def test_equal_answers_of_a_vote_are_independent_samples_at_the_same_time(tmp_path: Path) -> None:
    document, model = run(tmp_path, protocol="vote", vote={"answers": 4})
    assert len({call.digest for call in model.calls}) == 4
    assert len({str(call.messages) for call in model.calls}) == 1
    assert len([e for e in document["transcript"] if e["phase"] == "answer"]) == 4


def test_most_votes_win_and_their_share_is_the_confidence(tmp_path: Path) -> None:
    said = ["Sydney", "Canberra", "**canberra.**", "Perth", "Canberra"]
    document, model = run(tmp_path, voting(said), protocol="vote")
    verdict = document["verdict"]
    assert len(model.calls) == 5
    assert verdict["confidence"] == 60
    assert verdict["outcome"]["tally"] == {"sydney": 1, "canberra": 3, "perth": 1}
    assert document["solution"].endswith("Answer: Canberra")


def test_a_vote_that_is_tied_is_a_tie_and_names_no_solution(tmp_path: Path) -> None:
    document, _ = run(tmp_path, voting(["a", "b", "b", "a"]), protocol="vote", vote={"answers": 4})
    assert document["verdict"]["winner"] == "tie"
    assert document["verdict"]["outcome"]["tied"] == ["a", "b"]
    assert document["solution"] == ""


def test_a_vote_goes_on_without_an_answer_that_failed(tmp_path: Path) -> None:
    document, _ = run(tmp_path, voting(["a", "!down", "a"]), protocol="vote", vote={"answers": 3})
    assert document["verdict"]["outcome"]["judges"] == 2
    assert [e["kind"] for e in document["transcript"]] == ["topic", "speech", "notice", "speech"]


def test_a_judge_may_count_instead(tmp_path: Path) -> None:
    document, model = run(tmp_path, protocol="vote", vote={"answers": 3, "by": "judge"})
    assert [call.purpose for call in model.calls].count("judge") == 1
    assert document["verdict"]["judge"] == "judge"
    # None of them heard another: nothing is asked about answers to each other, or about a debate.
    (asked,) = [call for call in model.calls if call.purpose == "judge"]
    words = " ".join(message["content"] for message in asked.messages).lower()
    assert "independent answers" in words
    assert not re.search(r"\bdebate\b|rebuttal|was answered|challenge", words)


@pytest.mark.parametrize(
    ("text", "normalised"),
    [
        ("Think.\nAnswer: 1,000", "1000"),
        ("**Answer:** Yes.", "yes"),
        ("Answer: a\nAnswer: B", "b"),
        ("no such line", "no such line"),
        ("ANSWER: Ｃａｎｂｅｒｒａ", "canberra"),
        ("> Answer:  “two   words” ", "two words"),
    ],
)
def test_answers_are_compared_by_what_they_say(text: str, normalised: str) -> None:
    assert final_answer(text) == normalised


@pytest.mark.parametrize("protocol", ["single", "vote"])
def test_the_prompts_of_the_baselines_are_as_reviewed(protocol: str, tmp_path: Path) -> None:
    _, model = run(tmp_path, protocol=protocol)
    check_snapshot(f"{protocol}-answer", prompt_markdown(model.calls[0].messages))
