"""Questions to people, as an interrupt carries them, and answers in whatever shape they come back.

The payload is `{"kind", "round", "questions": [{"id", "debater", "name", "question"}, …]}`, grouped by
debater; `kind` is `clarifications` (a debater asks) or `turn` (a person who debates is given the floor). A
question's id is the debater's with a running number, `architect.2`, the same in every run. Beside these stand
`response_schema`, a JSON Schema of the answers, `problem` where an answer could not be used, and what Agent
Inbox shows: `action_request`, `config` and `description`.
"""

from collections.abc import Generator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from moot.nodes.effects import Ask, Effect
from moot.state.entries import JsonObject, clean_text

MAX_ANSWER_CHARS = 100_000
QUESTIONS_TOKENS = 800
"""What a debater's questions have at most: twice what five of a few sentences take."""


class PersonQuestion(TypedDict):
    """One question to a person."""

    id: str
    """Debater's id and running number, `architect.2`."""
    debater: str
    """Id of who asks, or of who is given the floor."""
    name: str
    """Display name of that debater."""
    question: str


def question_payload(kind: str, round_no: int, questions: Sequence[PersonQuestion]) -> JsonObject:
    """Return what an interrupt holds."""
    properties = {
        each["id"]: {"type": "string", "title": each["name"], "description": each["question"]}
        for each in questions
    }
    return {
        "kind": kind,
        "round": round_no,
        "questions": [dict(question) for question in questions],
        "response_schema": {
            "anyOf": [
                {"type": "string", "minLength": 1, "description": "The answer to the first question."},
                {"type": "object", "properties": properties, "additionalProperties": False},
            ]
        },
        "action_request": {"action": kind, "args": {each["id"]: "" for each in questions}},
        "config": {
            "allow_respond": True,
            "allow_edit": True,
            "allow_ignore": False,
            "allow_accept": False,
        },
        "description": "\n\n".join(f"**{each['name']}**: {each['question']}" for each in questions),
    }


def ask_people(
    kind: str, round_no: int, questions: Sequence[PersonQuestion]
) -> Generator[Effect, object, dict[str, str]]:
    """Ask until an answer can be used, and return the answer to each question by its id."""
    payload = question_payload(kind, round_no, questions)
    given = yield Ask(payload)
    while problem := answer_problem(questions, given):
        given = yield Ask({**payload, "problem": problem})
    return match_answers(questions, given)


def answer_problem(questions: Sequence[PersonQuestion], given: object) -> str:
    """Return why an answer cannot be used, `""` where it can.

    Who has nothing to say to a question says so: with `""` under its id.
    """
    if not questions:
        return "the debate waits for no answer: leave it out"
    plain, ids = _plain(given), ", ".join(question["id"] for question in questions)
    if isinstance(plain, Mapping):
        known = {key for question in questions for key in _keys(question)}
        if unknown := [str(key) for key in plain if str(key) not in known]:
            return f"no question that was asked is {unknown[0]!r}: use {ids}"
    answers = _answers(questions, plain).values()
    passes = isinstance(plain, Mapping) and any(answer is not None for answer in answers)
    if passes or any(answers):
        return ""
    return f'the answer is empty: answer {ids}, or give "" under an id to pass'


def _plain(given: object) -> object:
    """Return what an answer holds, of the shapes that Agent Inbox, middleware and chats put it into."""
    if isinstance(given, BaseMessage):
        return given.text
    if isinstance(given, list | tuple) and len(given) == 1 and isinstance(given[0], Mapping):
        return _plain(given[0])
    if isinstance(given, Mapping):
        decisions = given.get("decisions")
        if isinstance(decisions, list) and len(decisions) == 1:
            return _plain(decisions[0])
        if given.get("type") in ("response", "respond", "edit", "accept", "ignore", "approve", "reject"):
            inner = given.get("args", given.get("message"))
            return inner.get("args", inner) if isinstance(inner, Mapping) else inner
        if given.keys() & {"role", "type"} and isinstance(given.get("content"), str):
            return given["content"]
    return given


def questions_in(payload: Any) -> list[PersonQuestion]:
    """Return the questions of an interrupt's payload, or of a list of such; `[]` for anything else."""
    if isinstance(payload, Sequence) and not isinstance(payload, str):
        return [question for each in payload for question in questions_in(each)]
    return list(payload.get("questions", ())) if isinstance(payload, Mapping) else []


def match_answers(questions: Sequence[PersonQuestion], given: Any) -> dict[str, str]:
    """Return the answer to each question by its id, `""` where none was given.

    Args:
        questions: what was asked.
        given: a text (the answer to the first question), a list in the order of the questions, or a mapping
            by question id, by the question's words, or by a debater's id or name. Under a debater, a text
            answers its first question here, a list its question number 1, 2 and so on since the beginning.
    """
    return {key: answer or "" for key, answer in _answers(questions, given).items()}


def answers_any(questions: Sequence[PersonQuestion], given: Any) -> bool:
    """Return whether what was given, maybe before the questions were known, answers any of them."""
    return any(answer is not None for answer in _answers(questions, given).values())


def left_after(questions: Sequence[PersonQuestion], given: Any) -> Any:
    """Return what is left of prepared answers once these questions have had theirs.

    Lists under a debater stay, since they are counted through; a text is used up.
    """
    if not isinstance(given, Mapping):
        return {}
    used = {key for question in questions for key in _keys(question)}
    return {key: value for key, value in given.items() if str(key) not in used or not isinstance(value, str)}


def unused_answers(questions: Sequence[PersonQuestion], given: Any) -> list[str]:
    """Return, in words, which prepared answers none of all the questions that were asked has had."""
    if not isinstance(given, Mapping):
        left = len(given) - len(questions) if _is_list(given) else int(not questions)
        return [f"the last {left}"] if left > 0 else []
    unused = []
    for key, value in given.items():
        numbers = [_number(each) for each in questions if str(key) in _keys(each)]
        if not numbers:
            unused.append(str(key))
        elif _is_list(value) and len(value) > max(numbers):
            unused.append(f"{key}, from number {max(numbers) + 1} on")
    return unused


def _answers(questions: Sequence[PersonQuestion], given: Any) -> dict[str, str | None]:
    """Return the answer to each question by its id, `None` where it has none."""
    given = _plain(given)
    if not isinstance(given, Mapping):
        listed = chain(given if _is_list(given) else [given], repeat(None))
        return {question["id"]: _text(answer) for question, answer in zip(questions, listed, strict=False)}
    by_key = {str(key): value for key, value in given.items()}
    firsts = {question["debater"]: question["id"] for question in reversed(questions)}
    return {
        question["id"]: _answer(question, by_key, first=firsts[question["debater"]] == question["id"])
        for question in questions
    }


def _keys(question: PersonQuestion) -> tuple[str, ...]:
    return (question["id"], question["question"], question["debater"], question["name"])


def _number(question: PersonQuestion) -> int:
    return int(question["id"].rpartition(".")[2])


def _answer(question: PersonQuestion, given: Mapping[str, Any], *, first: bool) -> str | None:
    for key in _keys(question):
        if key not in given:
            continue
        value = given[key]
        if _is_list(value):
            return _text(value[_number(question) - 1]) if _number(question) <= len(value) else None
        if first or key in (question["id"], question["question"]):
            return _text(value)
    return None


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return clean_text(value if isinstance(value, str) else str(value)).strip()[:MAX_ANSWER_CHARS]
