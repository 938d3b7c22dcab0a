"""What stands for an answer where no model is configured: the passages that bear on the question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from moot.nodes.prompts.rendering import display_name
from moot.nodes.text.plain import inert
from moot.nodes.views.passages import Splitting, place_of
from moot.state.entries import Entry, entry_id

PASSAGE = Splitting(long=48, passage=48)
"""Two or three sentences: a message of any length says more than what was asked."""
PASSAGES = 5
NO_MODEL = "No model is configured; this is what was said."
NOTHING = "No model is configured, and nothing was said that bears on the question."
CUT = "[…]"


class Extract(NamedTuple):
    """Passages in the order of the transcript."""

    text: str
    """Markdown, one list item a message."""
    ids: tuple[str, ...]


def extract_for(
    question: str, entries: Sequence[Entry], names: Mapping[str, str], asked_for: Sequence[int] = ()
) -> Extract:
    """Return the passages of `entries` that match a question best, of the speakers whom it names if of any.

    Where it asks for messages by their ids, whose `seq` are `asked_for`, the passages are theirs alone, the
    first ones where none matches.
    """
    from moot.nodes.memory.retrieval import EvidenceIndex, read_question, recall

    # How much a message matters says nothing of its passages.
    among = [entry for entry in entries if not asked_for or entry["seq"] in asked_for]
    pieces: list[Entry] = [{**piece, "importance": 0} for entry in among for piece in PASSAGE.pieces(entry)]
    index = EvidenceIndex(pieces, names=names)
    read = read_question(index, question)
    whose = {index.speakers[number] for number in read.speakers}
    others = {piece["seq"] for piece in pieces if whose and piece["speaker"] not in whose}
    room = sum(index.tokens)
    keys = recall(index, read.about, budget=room, exclude=others, top=PASSAGES, neighbours=0).seqs
    keys = keys or tuple(piece["seq"] for piece in pieces[: PASSAGES if asked_for else 0])
    by_key = {piece["seq"]: piece for piece in pieces}
    lines, ids = list[str](), list[str]()
    for seq, group in groupby(keys, key=lambda key: place_of(key).seq):
        chosen = list(group)
        who = inert(display_name(by_key[chosen[0]]["speaker"], names))
        lines.append(f"- [{entry_id(seq)}] {who}: {' '.join(_quoted(chosen, by_key))}")
        ids.append(entry_id(seq))
    return Extract("\n".join([NO_MODEL, "", *lines]) if lines else NOTHING, tuple(ids))


def _quoted(keys: Sequence[int], by_key: Mapping[int, Entry]) -> Iterator[str]:
    """Yield the passages of one message with a mark wherever something of it is left out."""
    after = keys[0] - place_of(keys[0]).part
    for key in keys:
        if key > after:
            yield CUT
        yield inert(by_key[key]["content"])
        after = key + 1
    if after in by_key:
        yield CUT
