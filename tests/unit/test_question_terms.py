"""Words of a question that no message contains."""

from __future__ import annotations

import pytest

from moot.asking.unsaid_words import unsaid_words
from moot.retrieval import EvidenceIndex, read_question
from moot.state.entries import make_entry

MESSAGES = [
    "停车场太贵，每年三百万。",
    "怀疑者认为城市应当禁止汽车。",
    "Die Kosten sind hoch. Parking costs 3 million.",
    "मुद्दा यह है।",
]
INDEX = EvidenceIndex(make_entry(seq, "ada", "speech", text) for seq, text in enumerate(MESSAGES, 1))
NAMES = {"ada": "Ada", "bo-li": "Bo Li", "cat": "Skeptiker"}


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("怀疑者对停车场说了什么？", []),
        ("企鹅怎么样？", ["企鹅"]),
        ("谁提到了火星基地？", ["火星基地"]),
        ("ペンギンは何を言いましたか", ["ペンギン"]),
        ("펭귄은 무엇입니까", []),
        ("Was sagte der Skeptiker über Kosten?", []),
        ("Was sagte Bo Li über Pinguine?", ["pinguine"]),
        ("¿Qué dijo Ada sobre los pingüinos?", ["pingüinos"]),
        ("Qu'est-ce que Bo pense des pingouins ?", ["pingouins"]),
        ("Что сказал Бо о пингвинах?", ["бо", "пингвинах"]),
        ("मुद्दा पेंगुइन", ["पेंगुइन"]),
        ("How many penguins did m000002 count?", ["penguins", "count"]),
        ("What did m000009 say?", ["m000009"]),
        ("Discuss opinions.", []),
    ],
)
def test_unsaid_words_are_content_words_that_no_message_contains(question: str, words: list[str]) -> None:
    assert list(unsaid_words(read_question(INDEX, question), NAMES, others=["m000002"])) == words
