"""Model for benchmarks that composes varied messages from short sentences, by a hash of the prompt.

Each message quotes the message before it, so that a debate has references, repetitions and new words. Pass
`VariedMessages()` wherever Python takes a chat model.
"""

import hashlib
import json
from collections.abc import Sequence
from random import Random
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from moot.models.offline import LocalModel, smallest_instance

SUBJECTS = (
    *("the budget", "public trust", "the first year", "the staff", "the timetable", "the outer districts"),
    *("the small firms", "the night shift", "the old contracts", "the data", "the roads", "the neighbours"),
)
GOALS = ("a clear commitment", "restraint", "a staged trial", "early action", "a halt for now", "a pilot")
OPENINGS = (
    "I disagree with “{quote}”, because that leaves out {a}.",
    "“{quote}” overlooks the cost for {a}.",
    "I agree on this: “{quote}”.",
    "I concede one thing: “{quote}”.",
    "“{quote}” is no answer to my question about {a}.",
)
REASONS = (
    "What decides it for me is the effect on {a}, because a mistake there would be hard to undo.",
    "I would look at {a} before {b}.",
    "Without a plan for {a}, nobody can promise anything about {b}.",
    "We should ask who would pay for {a} and who would decide about {b}.",
    "A small trial would tell us more about {a} than another year of talk.",
    "Whatever we choose, {a} should not suffer for the sake of {b}.",
    "If we are wrong about {a}, we can change course; if we are wrong about {b}, we cannot.",
    "Doing nothing is a choice too, and it has a price for {a}: {number} % in {year}.",
    "The effect on {a} would come slowly, so we should judge it in {year} and not next week.",
    "Those who live with {a} should have the first word.",
    "I would trust a promise about {a} only if it came with a date, such as {year}.",
    "The price of waiting would fall on {a}, and the price of haste on {b}.",
)
ENDINGS = (
    "So I stay with {goal}.",
    "On balance I prefer {goal}.",
    "What would change your mind about {a}?",
    "Would you say the same about {b}?",
    "I have changed my mind on {a}.",
)
QUOTED_WORDS = 16


class VariedMessages(LocalModel):
    """Chat model with varied messages. Its structured replies are the smallest valid ones."""

    @property
    def _llm_type(self) -> str:
        return "varied-messages"

    def respond(self, messages: list[BaseMessage], **kwargs: Any) -> AIMessage:
        """Return a message, or JSON if a `json_schema` is given."""
        schema = kwargs.get("json_schema")
        text = message_text(messages, kwargs.get("seed") or 0)
        return AIMessage(json.dumps(smallest_instance(schema)) if schema else text)


def message_text(messages: Sequence[BaseMessage], seed: int = 0) -> str:
    """Return three to five sentences, the same for the same messages and seed."""
    hashed = hashlib.sha256(repr((seed, [message.text for message in messages])).encode("utf-8", "replace"))
    dice = Random(hashed.digest())  # varies the words
    quote = " ".join(_last_message(messages).split()[:QUOTED_WORDS]).strip(" .?“”")
    first = [dice.choice(OPENINGS)] if quote else []
    a, b = dice.sample(SUBJECTS, 2)
    return " ".join([*first, *dice.sample(REASONS, dice.randint(2, 3)), dice.choice(ENDINGS)]).format(
        a=a,
        b=b,
        goal=dice.choice(GOALS),
        quote=quote,
        number=dice.randint(2, 90),
        year=dice.randint(2027, 2060),
    )


def _last_message(messages: Sequence[BaseMessage]) -> str:
    """Return the first sentence without a quotation in the newest message of a debater."""
    for message in reversed(messages):
        if message.name:
            _, _, text = message.text.rpartition("]:\n")
            return next((each for each in text.split(". ") if "“" not in each), "")
    return ""
