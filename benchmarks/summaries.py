"""Measure how many terms of later answers a rule-based summary contains.

    python -m benchmarks.summaries --data FOLDER [--json] [--quick]

The benchmark uses QMSum (Zhong et al. 2021), with a summary of 967 tokens for each meeting. The terms are the
distinct content terms, stemmed and without stop words, of the answers to the specific questions. Message ids
and names of speakers take tokens of our summary. The baselines contain only sentences.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.qmsum import meeting_files, meetings_parser
from moot.config import slug
from moot.config.memory_config import MemoryConfig
from moot.memory.summarizers.drafting import FRAME_TOKENS
from moot.memory.summarizers.rule_based import SummaryPoints, fold
from moot.state.entries import Entry, make_entry, seq_of
from moot.text.terms import split_sentences, terms
from moot.text.tokens import TokenCounter, counter

SUMMARY_TOKENS = MemoryConfig().budget.summary - FRAME_TOKENS
MESSAGES_PER_STEP = MemoryConfig().summarize_every
OURS, IN_STEPS = "rule-based", f"rule-based, every {MESSAGES_PER_STEP}"
TARGET, TARGET_FIFTH = 0.40, 0.12
PAGERANK_DAMPING, PAGERANK_ITERATIONS = 0.85, 40
"""Damping factor and iterations of PageRank, as in Mihalcea and Tarau (2004) and Erkan and Radev (2004)."""
LEXRANK_THRESHOLD = 0.1
"""Similarity threshold of LexRank."""

Order = Callable[["Meeting"], Sequence[int]]


@dataclass(frozen=True)
class Meeting:
    """Meeting as entries, with its sentences and the terms of the answers to its specific questions."""

    entries: list[Entry]
    names: dict[str, str]
    sentences: list[str]
    terms: list[list[str]]
    """Terms of each sentence."""
    wanted: set[str]

    @classmethod
    def read(cls, path: Path) -> Meeting:
        """Read a QMSum file."""
        data = json.loads(path.read_text(encoding="utf-8"))
        messages = [(turn["speaker"], turn["content"]) for turn in data["meeting_transcripts"]]
        messages = [(who, text) for who, text in messages if text.strip()]
        entries = [make_entry(seq, slug(who), "speech", text) for seq, (who, text) in enumerate(messages, 1)]
        sentences = [each.text for _, text in messages for each in split_sentences(text)]
        answers = " ".join(query["answer"] for query in data["specific_query_list"])
        names = {slug(who): who for who, _ in messages}
        return cls(entries, names, sentences, [terms(each) for each in sentences], set(terms(answers)))


def random_order(meeting: Meeting) -> list[int]:
    """Return sentences in random order with a fixed seed."""
    order = list(range(len(meeting.sentences)))
    random.Random(1).shuffle(order)  # a baseline, not a secret
    return order


def by_length(meeting: Meeting) -> list[int]:
    """Return sentences by length in characters, the longest first."""
    return sorted(range(len(meeting.sentences)), key=lambda number: -len(meeting.sentences[number]))


def by_textrank(meeting: Meeting) -> list[int]:
    """Return sentences by PageRank over shared terms, weighted by the logarithms of their lengths."""
    counts = _counts(meeting) > 0
    lengths = np.log(np.maximum(counts.sum(1), 2)).astype(np.float32)
    shared = counts.astype(np.float32) @ counts.T.astype(np.float32)
    return _by_pagerank(shared / (lengths[:, None] + lengths[None, :]))


def by_lexrank(meeting: Meeting) -> list[int]:
    """Return sentences by PageRank over the cosine similarity of their TF-IDF vectors."""
    counts = _counts(meeting)
    weighted = counts * np.log(len(counts) / np.maximum((counts > 0).sum(0), 1))
    weighted /= np.maximum(np.linalg.norm(weighted, axis=1, keepdims=True), 1e-9)
    return _by_pagerank((weighted @ weighted.T > LEXRANK_THRESHOLD).astype(np.float32))


def _counts(meeting: Meeting) -> Any:
    column = {term: at for at, term in enumerate(dict.fromkeys(t for each in meeting.terms for t in each))}
    counts = np.zeros((len(meeting.terms), len(column)), dtype=np.float32)
    for row, each in enumerate(meeting.terms):
        for term in each:
            counts[row, column[term]] += 1
    return counts


def _by_pagerank(links: Any) -> list[int]:
    np.fill_diagonal(links, 0)
    links /= np.maximum(links.sum(1, keepdims=True), 1e-9)
    rank = np.full(len(links), 1 / len(links), dtype=np.float32)
    for _ in range(PAGERANK_ITERATIONS):
        rank = (1 - PAGERANK_DAMPING) / len(links) + PAGERANK_DAMPING * (rank @ links)
    return [int(number) for number in np.argsort(-rank, kind="stable")]


BASELINES: Mapping[str, Order] = {
    "longest sentences": by_length,
    "lead": lambda meeting: range(len(meeting.sentences)),
    "random": random_order,
    "TextRank": by_textrank,
    "LexRank": by_lexrank,
}


def first_sentences(meeting: Meeting, order: Sequence[int], count: TokenCounter) -> str:
    """Return the first sentences of an order that fit, one per line, in the order of the meeting."""
    chosen, left = list[int](), SUMMARY_TOKENS
    for number in order:
        if (cost := count(meeting.sentences[number] + "\n")) > left:
            break
        chosen.append(number)
        left -= cost
    return "\n".join(meeting.sentences[number] for number in sorted(chosen))


def fold_in_steps(meeting: Meeting, every: int, count: TokenCounter) -> SummaryPoints:
    """Return the rule-based summary after adding a fixed number of messages at a time."""
    summary = None
    for start in range(0, len(meeting.entries), every):
        batch = meeting.entries[start : start + every]
        summary = fold(summary, batch, max_tokens=SUMMARY_TOKENS, count=count, names=meeting.names)
    if summary is None:
        raise ValueError("the meeting has no messages")
    return summary


def share(meeting: Meeting, text: str) -> float:
    """Return the share of the wanted terms that a text holds."""
    return len(meeting.wanted & set(terms(text))) / max(1, len(meeting.wanted))


def measure(meetings: Sequence[Meeting]) -> tuple[dict[str, float], list[float]]:
    """Return the mean share by method, and our share of points by fifth of a meeting."""
    count = counter()
    shares: dict[str, list[float]] = {}
    fifths = [0] * 5
    for meeting in meetings:
        for name, every in ((OURS, len(meeting.entries)), (IN_STEPS, MESSAGES_PER_STEP)):
            summary = fold_in_steps(meeting, every, count)
            points = summary["points"][: summary["shown"]]
            shares.setdefault(name, []).append(share(meeting, "\n".join(each["text"] for each in points)))
        for point in points:
            fifths[((seq_of(point["message_ids"][0]) or 1) - 1) * 5 // len(meeting.entries)] += 1
        for name, order in BASELINES.items():
            text = first_sentences(meeting, order(meeting), count)
            shares.setdefault(name, []).append(share(meeting, text))
    means = {name: round(sum(each) / len(each), 3) for name, each in shares.items()}
    return means, [each / max(1, sum(fifths)) for each in fifths]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print its table."""
    parser = meetings_parser("Share of the terms of later answers in rule-based summaries.")
    parser.add_argument("--json", action="store_true", help="print the shares by method as JSON")
    options = parser.parse_args(arguments)
    paths = meeting_files("summaries", options)
    if not paths:
        return
    means, fifths = measure([Meeting.read(path) for path in paths])
    if options.json:
        print(json.dumps(means))
        return
    print(f"summaries: {len(paths)} meetings, {SUMMARY_TOKENS} tokens each: share of the answers' terms")
    for name, mean in sorted(means.items(), key=lambda item: -item[1]):
        print(f"  {name:<24} {mean:.3f}" + (f"   (target ≥ {TARGET:.2f})" if name == IN_STEPS else ""))
    spread = ", ".join(format(each, ".0%") for each in fifths)
    print(f"  points of {IN_STEPS}, by fifths of the meeting: {spread} (target ≥ {TARGET_FIFTH:.0%} each)")


if __name__ == "__main__":
    main()
