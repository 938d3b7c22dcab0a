"""How much of what answers a question is, word for word, in the view that `moot ask` makes for it.

Measured on QMSum (Zhong et al. 2021): meetings, questions, and the turns that answer them. Each meeting is
imported as `moot import` does, each question assembled as `moot ask` does; budgets are whole views by exact
count, instruction, summary, most recent messages and the question itself included.

    python -m benchmarks.fidelity --data FOLDER [--embeddings MODULE:FACTORY] [--quick]
"""

from __future__ import annotations

import importlib
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from benchmarks.qmsum import meeting_files, meetings_parser
from moot.graph.importing import parse_transcript
from moot.graph.importing.adopting import transcript_config, transcript_values
from moot.nodes.driving.environment import Environment, NodeContext
from moot.nodes.effects import drive_with
from moot.nodes.memory.retrieval import EvidenceIndex
from moot.nodes.record import record
from moot.nodes.summarize import summarize
from moot.nodes.text.terms import terms
from moot.nodes.views.question_view import ask_index, ask_view, entry_lines, recent_seqs
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState
from moot.state.reducers import fold_window

BUDGETS = (2_000, 4_000, 8_000)
TARGETS = {False: (0.58, 0.77, 0.90), True: (0.61, 0.80, 0.92)}
"""Share wanted at each budget, without and with embeddings."""
TARGET_MS = 10
NEIGHBOURS = 6

_DOMAINS = dict.fromkeys(("Be", "Bm", "Br"), "academic") | dict.fromkeys(("co", "ed"), "committee")

Ranking = Callable[["Meeting", str], Sequence[int]]


@dataclass(frozen=True)
class Meeting:
    """An imported transcript with its questions: each a text and the `seq` of the turns that answer it."""

    name: str
    state: ConversationState
    config: DebateConfig
    questions: list[tuple[str, list[int]]]
    index: EvidenceIndex
    """What `moot ask` looks in."""
    messages: EvidenceIndex
    """What the baselines rank: whole messages."""

    @property
    def domain(self) -> str:
        """`academic` (ICSI), `product` (AMI) or `committee` (parliaments)."""
        return _DOMAINS.get(self.name[:2], "product")


@dataclass(frozen=True)
class Row:
    """One question at one budget: share of the gold evidence's tokens in the view, by policy."""

    meeting: int
    domain: str
    budget: int
    shares: dict[str, float]
    seconds: float
    """Processor time that its view took."""


def load(path: Path, environment: Environment, embeddings: Any = None) -> Meeting:
    """Read a QMSum file and import its transcript."""
    data = json.loads(path.read_text(encoding="utf-8"))
    turns = [{"speaker": turn["speaker"], "content": turn["content"]} for turn in data["meeting_transcripts"]]
    state, config = imported(json.dumps(turns), environment)
    said = [number for number, turn in enumerate(turns) if turn["content"].strip()]
    seq_of = {number: seq for seq, number in enumerate(said, start=1)}
    if len(said) != len(state["full_transcript"]) - 1:
        raise ValueError(f"{path.name}: {len(said)} turns, but {len(state['full_transcript'])} entries")
    questions = [(q["query"], _gold(q, seq_of)) for q in data["specific_query_list"]]
    index = ask_index(environment.indexes, path.stem, state, config, embeddings)
    messages = environment.indexes.of(path.stem, "baselines", state["full_transcript"], config.names())
    return Meeting(path.stem, state, config, questions, index, messages)


def imported(transcript: str, environment: Environment) -> tuple[ConversationState, DebateConfig]:
    """Return the state of an imported transcript, noted on the blackboard and summarised."""
    parsed = parse_transcript(transcript, format="json")
    config = transcript_config(parsed)
    values = transcript_values(parsed, "A meeting", config, environment)
    state = cast(ConversationState, {**values, "messages": fold_window([], [values["messages"]])})
    context = NodeContext(environment)
    for body in (record, summarize):
        state = cast(ConversationState, {**state, **drive_with(body(state, context), lambda effect: None)})
    return state, config


def _gold(question: dict[str, Any], seq_of: dict[int, int]) -> list[int]:
    spans = [(int(first), int(last)) for first, last in question["relevant_text_span"]]
    turns = {turn for first, last in spans for turn in range(first, last + 1)}
    return sorted(seq_of[turn] for turn in turns if turn in seq_of)


def last_n(meeting: Meeting, question: str) -> Sequence[int]:
    """Rank by recency."""
    return range(len(meeting.state["full_transcript"]) - 1, 0, -1)


def bm25_neighbours(meeting: Meeting, question: str) -> Sequence[int]:
    """Rank by Okapi BM25 (k1 1.2, b 0.75), each message followed by its neighbours."""
    postings = meeting.messages.postings
    size, mean = len(postings), postings.words / max(1, len(postings))
    lengths = np.array(postings.lengths)
    score = np.zeros(size)
    for term in terms(question):
        positions, counts = postings.occurrences(term)
        idf = math.log1p((size - len(positions) + 0.5) / (len(positions) + 0.5))
        norm = 1.2 * (0.25 + 0.75 * lengths[positions] / mean)
        score[positions] += idf * counts * 2.2 / (counts + norm)
    steps = sorted(range(-NEIGHBOURS, NEIGHBOURS + 1), key=abs)
    ranked = (int(p) + step for p in np.argsort(-score, kind="stable") for step in steps)
    return [meeting.messages.seqs[p] for p in dict.fromkeys(ranked) if 0 <= p < size]


def filled(
    meeting: Meeting, ranking: Sequence[int], kept: Sequence[int], cost: Callable[[int], int], room: int
) -> set[int]:
    """Fill a view along a ranking, skipping what does not fit."""
    chosen, left = set(kept), room - sum(map(cost, kept))
    for seq in ranking:
        if (
            seq not in chosen
            and meeting.state["full_transcript"][seq]["tokens"] <= left
            and cost(seq) <= left
        ):
            chosen.add(seq)
            left -= cost(seq)
    return chosen


BASELINES: dict[str, Ranking] = {"last-N": last_n, "BM25 ± 6": bm25_neighbours}


def measure(number: int, meeting: Meeting, environment: Environment) -> Iterator[Row]:
    """Ask a meeting's questions under every budget."""
    count = environment.count_for()
    lines = entry_lines(meeting.state, meeting.config, count)
    for question, gold in meeting.questions:
        rankings = {name: rank(meeting, question) for name, rank in BASELINES.items()}
        for budget in BUDGETS:
            start = time.process_time()
            asked = ask_view(meeting.state, meeting.config, question, meeting.index, count, budget=budget)
            seconds = time.process_time() - start
            if asked.view.total_tokens > budget:
                raise AssertionError("a view is above its budget")
            kept, room = recent_seqs(meeting.state, lines, budget), asked.room
            views = {
                name: filled(meeting, ranking, kept, lines.cost, room) for name, ranking in rankings.items()
            }
            views["moot ask"] = set(asked.messages.whole)
            shares = {name: _share(meeting, gold, view) for name, view in views.items()}
            yield Row(number, meeting.domain, budget, shares, seconds)


def _share(meeting: Meeting, gold: list[int], view: set[int]) -> float:
    tokens = {seq: meeting.state["full_transcript"][seq]["tokens"] for seq in gold}
    return sum(tokens[seq] for seq in gold if seq in view) / sum(tokens.values()) if tokens else 1.0


def report(rows: list[Row], *, embedded: bool = False) -> Iterator[str]:
    """Render the tables: policies over all questions, ours by half and by domain, time."""
    yield f"{len(rows) // len(BUDGETS)} questions".ljust(28) + "".join(f"{b:>9,}" for b in BUDGETS)
    for policy in [*BASELINES, "moot ask"]:
        yield _line(policy, policy, rows)
    yield "  target".ljust(28) + "".join(f"{'≥ ' + format(t, '.2f'):>9}" for t in TARGETS[embedded])
    yield _line("  meetings with even number", "moot ask", [r for r in rows if r.meeting % 2 == 0])
    yield _line("  meetings with odd number", "moot ask", [r for r in rows if r.meeting % 2])
    for domain in sorted({row.domain for row in rows}):
        yield _line(f"  {domain}", "moot ask", [r for r in rows if r.domain == domain])
    yield f"ms of processor time a question (target < {TARGET_MS})"
    for label, share in (("  median", 0.5), ("  95 %", 0.95)):
        times = [np.quantile([r.seconds for r in rows if r.budget == b], share) * 1_000 for b in BUDGETS]
        yield f"{label:<28}" + "".join(f"{time:>9.1f}" for time in times)


def _line(label: str, policy: str, rows: list[Row]) -> str:
    means = [
        np.mean([r.shares[policy] for r in rows if r.budget == b]) if rows else math.nan for b in BUDGETS
    ]
    return f"{label:<28}" + "".join(f"{mean:>9.3f}" for mean in means)


def embeddings_from(name: str) -> Any:
    """Import `MODULE:FACTORY` and call it for an embedding model."""
    module, _, factory = name.partition(":")
    return getattr(importlib.import_module(module), factory)()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print its tables."""
    parser = meetings_parser("Share of the gold evidence that reaches the view.")
    parser.add_argument("--embeddings", metavar="MODULE:FACTORY", help="makes a LangChain embedding model")
    given = parser.parse_args(arguments)
    paths = meeting_files("fidelity", given)
    if not paths:
        return
    model = embeddings_from(given.embeddings) if given.embeddings else None
    rows: list[Row] = []
    for number, path in enumerate(paths):
        environment = Environment()
        meeting = load(path, environment, model)
        if meeting.index.vectors is not None:
            meeting.index.vectors.similarity("")  # embedding the transcript is indexing, not answering
        rows += measure(number, meeting, environment)
    print("\n".join(report(rows, embedded=model is not None)))


if __name__ == "__main__":
    main()
