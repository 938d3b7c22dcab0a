"""Questions to people as payloads of interrupts, and parsing of their replies.

The payload is `{"kind", "round", "questions": [{"id", "debater", "name", "question"}, …]}`, grouped by
debater. `kind` is `clarifications` (a debater asks) or `turn` (it is the turn of a person who debates). A
question's id is the debater's id with a running number, such as `architect.2`. It is the same in every run.
`response_schema` is a JSON Schema of the replies. `problem` says why a reply was refused. `action_request`,
`config` and `description` are for Agent Inbox. `action_requests`, with one action for each question, and
`review_configs` are for clients that know the human-in-the-loop middleware of LangChain 1.
"""

from collections.abc import Generator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from moot.calls.effects import Ask, Effect
from moot.state.config.section import MAX_KEY_CHARS
from moot.state.entries import JsonObject, clean_text
from moot.text.plain_text import clip

MAX_REPLY_CHARS = 100_000
"""Maximum number of characters in a person's reply. A longer reply is truncated."""
QUESTIONS_TOKENS = 800
"""Maximum number of tokens in a model's reply that asks a person questions."""


class PersonQuestion(TypedDict):
    """Question that the debate asks a person."""

    id: str
    """Id of the question, such as `architect.2` for the architect's second question."""
    debater: str
    """Id of the debater who asks the question. If a human debater is asked for a turn, it is the human
    debater's id."""
    name: str
    """Display name of the debater who asks the question."""
    question: str


def question_payload(kind: str, round_no: int, questions: Sequence[PersonQuestion]) -> JsonObject:
    """Return the payload of the LangGraph interrupt that asks a person questions."""
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
                {"type": "string", "minLength": 1, "description": "The reply to the first question."},
                {"type": "object", "properties": properties, "additionalProperties": False},
            ]
        },
        "action_requests": [
            {
                "name": kind,
                "args": {each["id"]: ""},
                "description": f"**{each['name']}**: {each['question']}",
            }
            for each in questions
        ],
        "review_configs": [{"action_name": kind, "allowed_decisions": ["respond", "edit"]}],
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
    """Ask people questions until the reply is valid, and return the answers by question id."""
    payload = question_payload(kind, round_no, questions)
    replies = yield Ask(payload)
    while problem := reply_error(questions, replies):
        replies = yield Ask({**payload, "problem": problem})
    return match_replies(questions, replies)


def reply_error(questions: Sequence[PersonQuestion], given: object) -> str:
    """Return the reason why a person's reply is invalid, or `""` if the reply is valid.

    A person passes on a question with `""` under its id.
    """
    if not questions:
        return "the debate is not waiting for a reply: remove the reply"
    plain, ids = _plain(given), ", ".join(question["id"] for question in questions)
    if isinstance(plain, Mapping):
        known = {key for question in questions for key in _keys(question)}
        if unknown := [str(key) for key in plain if str(key) not in known]:
            return f"{clip(unknown[0], MAX_KEY_CHARS)!r} is not the id of a question: use {ids}"
    replies = _replies(questions, plain).values()
    passes = isinstance(plain, Mapping) and any(reply is not None for reply in replies)
    if passes or any(replies):
        return ""
    return f'the reply is empty: reply {ids}, or give "" under an id to pass'


def _plain(given: object) -> object:
    """Return a reply's content without the wrapper that a client such as Agent Inbox adds."""
    if isinstance(given, BaseMessage):
        return given.text
    if isinstance(given, list | tuple) and len(given) == 1 and isinstance(given[0], Mapping):
        return _plain(given[0])
    if isinstance(given, Mapping):
        decisions = given.get("decisions")
        if isinstance(decisions, list) and decisions:
            return _joined([_plain(each) for each in decisions])
        if given.get("type") in ("response", "respond", "edit", "accept", "ignore", "approve", "reject"):
            inner = given.get("args", given.get("edited_action", given.get("message")))
            return inner.get("args", inner) if isinstance(inner, Mapping) else inner
        if given.keys() & {"role", "type"} and isinstance(given.get("content"), str):
            return given["content"]
    return given


def _joined(replies: list[object]) -> object:
    """Merge replies into one mapping if all of them are mappings, otherwise into a list."""
    if len(replies) == 1:
        return replies[0]
    if all(isinstance(each, Mapping) for each in replies):
        return {key: value for each in replies if isinstance(each, Mapping) for key, value in each.items()}
    return [next(iter(each.values()), "") if isinstance(each, Mapping) else each for each in replies]


def questions_in(payload: Any) -> list[PersonQuestion]:
    """Return the questions in the payload of an interrupt. `[]` for other values."""
    if isinstance(payload, Sequence) and not isinstance(payload, str):
        return [question for each in payload for question in questions_in(each)]
    return list(payload.get("questions", ())) if isinstance(payload, Mapping) else []


def match_replies(questions: Sequence[PersonQuestion], given: Any) -> dict[str, str]:
    """Return a person's reply to each question, keyed by question id. A missing reply is `""`.

    Args:
        questions: the questions of one interrupt.
        given: a text (the reply to the first question), a list in the order of the questions, or a mapping.
            A key of the mapping is a question id, the text of a question, or a debater's id or name. Under a
            debater, a text is the reply to the first of these questions. A list has the replies to all
            questions of that debater since the beginning.
    """
    return {key: reply or "" for key, reply in _replies(questions, given).items()}


def matches_any(questions: Sequence[PersonQuestion], given: Any) -> bool:
    """Return True if the prepared replies answer at least one of the questions."""
    return any(reply is not None for reply in _replies(questions, given).values())


def remaining_replies(questions: Sequence[PersonQuestion], given: Any) -> Any:
    """Return the prepared replies that are still available for later questions.

    Lists under a debater stay, because their items are selected by the question's number.
    """
    if not isinstance(given, Mapping):
        return {}
    used = {key for question in questions for key in _keys(question)}
    return {key: value for key, value in given.items() if str(key) not in used or not isinstance(value, str)}


def unused_replies(questions: Sequence[PersonQuestion], given: Any) -> list[str]:
    """Return a description of each prepared reply that answers no question."""
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


def _replies(questions: Sequence[PersonQuestion], given: Any) -> dict[str, str | None]:
    """Return the reply to each question, keyed by question id. A missing reply is `None`."""
    given = _plain(given)
    if not isinstance(given, Mapping):
        listed = chain(given if _is_list(given) else [given], repeat(None))
        return {question["id"]: _text(reply) for question, reply in zip(questions, listed, strict=False)}
    by_key = {str(key): value for key, value in given.items()}
    firsts = {question["debater"]: question["id"] for question in reversed(questions)}
    return {
        question["id"]: _reply(question, by_key, first=firsts[question["debater"]] == question["id"])
        for question in questions
    }


def _keys(question: PersonQuestion) -> tuple[str, ...]:
    return (question["id"], question["question"], question["debater"], question["name"])


def _number(question: PersonQuestion) -> int:
    return int(question["id"].rpartition(".")[2])


def _reply(question: PersonQuestion, given: Mapping[str, Any], *, first: bool) -> str | None:
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
    return clean_text(value if isinstance(value, str) else str(value)).strip()[:MAX_REPLY_CHARS]
