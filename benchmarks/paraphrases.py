"""Measure how often Moot finds a short message that answers a question in other words.

    python -m benchmarks.paraphrases [--embeddings MODULE:FACTORY] [--json]

The data are 200 short messages of four speakers and 60 questions. One message answers each question. The
question and its message have no search term in common. A message counts as found if `moot ask` selects it
within 600 tokens, or if it is one of the eight memories in the prompt of a turn. By default, the embedding
model is that of the extra `moot[semantic]`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.retrieval import embeddings_from
from moot.retrieval import EvidenceIndex, MessageVectors, probabilities, read_question, retrieve
from moot.retrieval.selection import EVIDENCE_LABEL_TOKENS, select_evidence
from moot.retrieval.static_vectors import static_vectors
from moot.state.entries import make_entry
from moot.text.tokens import counter

DATA = Path(__file__).with_name("paraphrases.jsonl")
PROMPT_TOKENS, MEMORIES, FIRST = 600, 8, 5
TARGET = 40
"""Minimum number of messages found within 600 tokens with embeddings."""


class Case(NamedTuple):
    """Question, and the `seq` of the message that answers it."""

    question: str
    answer: int


def load(embeddings: Any = None) -> tuple[EvidenceIndex, list[Case]]:
    """Return the index of the messages, and the questions about them."""
    count, rows = counter(), [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    entries = [
        make_entry(seq, row["speaker"], "speech", row["text"], tokens=count(row["text"]))
        for seq, row in enumerate(rows, 1)
    ]
    vectors = None if embeddings is None else MessageVectors(embeddings)
    cases = [Case(row["question"], seq) for seq, row in enumerate(rows, 1) if "question" in row]
    return EvidenceIndex(entries, vectors=vectors), cases


def found(embeddings: Any = None) -> dict[str, int]:
    """Return the number of questions whose message is found, by the way of searching."""
    index, cases = load(embeddings)

    def in_prompt(question: str) -> Sequence[int]:
        costs = {seq: index.tokens_of(seq) + EVIDENCE_LABEL_TOKENS for seq in index.seqs}
        return select_evidence(index, question, budget=PROMPT_TOKENS, costs=costs).seqs

    def first(question: str) -> Iterator[int]:
        order = np.argsort(-probabilities(index, read_question(index, question)), kind="stable")
        return (index.seqs[position] for position in order[:FIRST])

    def as_memory(question: str) -> Sequence[int]:
        return retrieve(index, question, budget=PROMPT_TOKENS, neighbours=0, top=MEMORIES).seqs

    searches: dict[str, Callable[[str], Any]] = {
        f"within {PROMPT_TOKENS} tokens": in_prompt,
        f"among the first {FIRST}": first,
        f"among {MEMORIES} memories of a turn": as_memory,
    }
    return {
        name: sum(case.answer in search(case.question) for case in cases) for name, search in searches.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description="Messages that answer a question in other words.")
    parser.add_argument(
        "--embeddings", metavar="MODULE:FACTORY", help="function that makes a LangChain model"
    )
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    options = parser.parse_args(arguments)
    model = embeddings_from(options.embeddings) if options.embeddings else static_vectors()
    results = {"words": found()} | ({} if model is None else {"words and vectors": found(model)})
    if options.json:
        print(json.dumps(results, indent=2))
        return
    print("messages found, of 60".ljust(32) + "".join(f"{name:>20}" for name in results))
    for search in results["words"]:
        print(f"{search:<32}" + "".join(f"{each[search]:>20}" for each in results.values()))
    print("  target within 600 tokens".ljust(52) + f"{f'≥ {TARGET}':>20}")
    if model is None:
        print("word vectors: install moot[semantic], or give --embeddings")


if __name__ == "__main__":
    main()
