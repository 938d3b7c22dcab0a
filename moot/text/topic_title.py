"""The question in a debate's topic, which lists and reports show as the debate's title."""

from moot.text.terms import split_sentences

_MARKS = "?？⁇⁈⁉؟"
_READ_CHARS = 4000
"""Number of characters at each end of a topic that are searched for a question."""


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
