"""The title of a debate, which lists and reports show."""

from moot.text.terms import split_sentences

_MARKS = "?？⁇⁈⁉؟"
LONG_TOPIC = 200
"""Number of characters above which a topic counts as too long to be displayed as the debate's question."""
_READ_CHARS = 4000
"""Number of characters at each end of a topic that are searched for a question."""


def is_long(topic: str) -> bool:
    """Return True if a topic has several lines or is too long to display as the debate's question."""
    return len(topic.strip()) > LONG_TOPIC or "\n" in topic.strip()


def title_of(topic: str, judges_wording: str = "") -> str:
    """Return the title of a debate as a single line.

    A short topic keeps the words of the person who wrote it. The judge's wording of the question, if there is
    one, stands for a long topic.
    """
    asked = " ".join(judges_wording.split())
    return asked if asked and is_long(topic) else question_in(topic)


def question_in(topic: str) -> str:
    """Return the question in a topic as a single line.

    The question is the first line if that line is a question, otherwise the last sentence of the topic that
    is a question. A topic without a question is represented by its first line.
    """
    first = " ".join(topic.strip().partition("\n")[0].split())
    ends = topic[:_READ_CHARS] + ("\n\n" + topic[-_READ_CHARS:] if len(topic) > _READ_CHARS else "")
    asked = [
        " ".join(sentence.text.split())
        for sentence in split_sentences(ends)
        if sentence.kind != "code" and sentence.text.rstrip("\"'”’»)*_ ").endswith(tuple(_MARKS))
    ]
    return first if not asked or first in asked else asked[-1]
