"""Settings without effect and answers without a question: a warning or an error before any call."""

from __future__ import annotations

from typing import Any

import pytest

from moot.cli.inputs import read_words, warn_of_ignored_length
from moot.cli.live import check_answers
from moot.config import DebateConfig
from moot.config.config_files import make_config
from moot.people import PersonQuestion
from moot.state.errors import ConfigError, InputError

CONFIG = make_config({"debaters": [{"name": "Ada King"}, {"name": "Bo"}]})
QUESTION: PersonQuestion = {"id": "bo.2", "debater": "bo", "name": "Bo", "question": "How many?"}


@pytest.mark.parametrize(
    ("protocol", "flags", "warning"),
    [
        ("council", {"turns": 3}, "--turns has no effect on protocol 'council': use --rounds"),
        ("dialogue", {"turns": 3}, "use dialogue.aspects or dialogue.max_aspects or dialogue.minirounds"),
        ("dialogue", {"rounds": 3}, "--rounds has no effect on protocol 'dialogue'"),
        ("vote", {"turns": 3}, "use vote.answers"),
        ("single", {"turns": 3}, "its length is fixed"),
    ],
    ids=["council", "dialogue", "dialogue rounds", "vote", "single"],
)
def test_length_options_without_effect_cause_a_warning(
    protocol: str, flags: dict[str, Any], warning: str, capsys: pytest.CaptureFixture[str]
) -> None:
    warn_of_ignored_length(flags, DebateConfig(protocol=protocol))
    assert warning in capsys.readouterr().err


@pytest.mark.parametrize(
    ("protocol", "flags"),
    [
        ("round-robin", {"turns": 3, "rounds": 2}),
        ("moderated", {"turns": 3}),
        ("random", {"turns": 3}),
        ("council", {"rounds": 3, "turns": None}),
        ("dialogue", {}),
    ],
    ids=["round-robin", "moderated", "random", "council", "no options"],
)
def test_length_options_with_effect_cause_no_warning(
    protocol: str, flags: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    warn_of_ignored_length(flags, DebateConfig(protocol=protocol))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("aspects", [["", " "], ["Cost", "\t"]], ids=["all empty", "one empty"])
def test_an_empty_aspect_is_refused(aspects: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"dialogue\.aspects.*an aspect is empty"):
        make_config({"protocol": "dialogue", "dialogue": {"aspects": aspects}})


@pytest.mark.parametrize(
    "answers",
    [None, ["yes"], {"ada-king": "yes", "Bo": ["no"]}, {"ada-king.12": "yes"}, {"How many?": "two"}],
    ids=["no answers", "list", "debaters", "future question", "question text"],
)
def test_possible_answers_are_accepted(answers: Any) -> None:
    check_answers(answers, CONFIG, [QUESTION])


@pytest.mark.parametrize("key", ["carl", "ada-king.x", "carl.1", "Why?", 7], ids=str)
def test_answers_with_unknown_keys_are_refused_with_the_valid_keys(key: Any) -> None:
    with pytest.raises(InputError, match=rf"'{key}'.*ada-king, bo.*bo\.2".replace("?", r"\?")):
        check_answers({"bo": "yes", key: "no"}, CONFIG, [QUESTION])
    with pytest.raises(InputError, match=r"ada-king\.1"):
        check_answers({key: "no"}, CONFIG)


def test_empty_remark_is_refused() -> None:
    with pytest.raises(InputError, match="the remark is empty"):
        read_words(" ", "remark", "give the words")
