"""What summarisers share that keep sentences as they were said: candidates, and their layout under names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from typing_extensions import TypedDict

from moot.nodes.memory.summarizers.summarizer import SummaryRequest
from moot.nodes.prompts.rendering import display_name
from moot.nodes.text.likeness import salience
from moot.nodes.text.plain import clip, inert
from moot.nodes.text.sentences import split_sentences
from moot.nodes.text.terms import terms
from moot.state.entries import Entry, seq_of

SENTENCES = 2
"""Sentences of a message that may stand for it, the most salient ones."""
READ_CHARS = 8_000
"""Characters of a message that are looked at."""
TEXT_CHARS = 200
NAME_CHARS = 40


class Kept(TypedDict):
    """A sentence that is kept; JSON types only."""

    text: str
    speaker: str
    message_ids: list[str]
    """Messages that say it, oldest first."""
    weight: float
    """Sentences that it stands for."""


def candidates(entries: Iterable[Entry]) -> list[Kept]:
    """Return the most salient sentences of each message, in order."""
    return [
        Kept(text=text, speaker=entry["speaker"], message_ids=[entry["id"]], weight=1.0)
        for entry in entries
        for text in _salient(entry["content"][:READ_CHARS])
    ]


def _salient(content: str) -> list[str]:
    sentences = [sentence.text for sentence in split_sentences(content)] or [content]
    scores = salience([terms(sentence) for sentence in sentences])
    best = sorted(range(len(sentences)), key=lambda index: (-scores[index], index))[:SENTENCES]
    texts = (clip(inert(sentences[index]), TEXT_CHARS) for index in sorted(best))
    return [text for text in texts if text]


def laid_out(kept: Sequence[Kept], request: SummaryRequest) -> str:
    """Return as many of the first sentences as fit, in the order they were said, each with its speaker."""
    names = request.config.names()
    lines = {id(each): _line(each, names) for each in kept}
    chosen: list[Kept] = []
    left = request.max_tokens
    for each in kept:
        cost = request.count(lines[id(each)] + "\n")
        if cost <= left:
            chosen.append(each)
            left -= cost
    text = _joined(chosen, lines)
    while chosen and request.count(text) > request.max_tokens:  # lines may count a token more when joined
        text = _joined(chosen := chosen[:-1], lines)
    return text


def _joined(chosen: Sequence[Kept], lines: dict[int, str]) -> str:
    ordered = sorted(chosen, key=lambda each: (seq_of(each["message_ids"][0]) or 0, each["text"]))
    return "\n".join(lines[id(each)] for each in ordered)


def _line(each: Kept, names: Any) -> str:
    who = clip(inert(display_name(each["speaker"], names)), NAME_CHARS)
    ids = ", ".join(dict.fromkeys((each["message_ids"][0], each["message_ids"][-1])))
    return f"- {who}: {each['text']} [{ids}]"


def everybody_first(ranked: Sequence[Kept]) -> list[Kept]:
    """Return sentences with the best one of each speaker before all others: nobody vanishes."""
    first = {each["speaker"]: each for each in reversed(ranked)}
    heads = [each for each in ranked if first[each["speaker"]] is each]
    return [*heads, *(each for each in ranked if first[each["speaker"]] is not each)]
