"""Measure how much of the evidence for a question the prompt of `moot ask` contains.

Two kinds of transcripts are supported, one file each:

- QMSum (Zhong et al. 2021): meetings, questions, and the passages that answer them. The share is that of the
  evidence's tokens.
- LoCoMo (Maharana et al. 2024): conversations in dated sessions, questions, and the turns that answer them.
  The share is that of the turns. `recall` is the share among the best k turns by the scorer alone, and
  `memories` that among the memories of a debate turn.

Each file is imported like `moot import` does, and each prompt is assembled like `moot ask` does. Budgets
cover the whole prompt by exact count.

    python -m benchmarks.retrieval [--data FOLDER] [--json] [--quick] [--embeddings MODULE:FACTORY]
"""

from __future__ import annotations

import importlib
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from benchmarks.qmsum import meeting_files, meetings_parser
from moot.asking.select import ask_index, entry_lines, question_prompt
from moot.calls.effects import run_body_with
from moot.config import DebateConfig
from moot.debates.imported_debate import transcript_config, transcript_values
from moot.importers import parse_transcript
from moot.memory.cross_debate_memory import MemoryIndexes
from moot.memory.passages import place_of
from moot.nodes.extract import extract
from moot.nodes.summarize import summarize
from moot.prompts.debate_context import DebateContext
from moot.retrieval import EvidenceIndex, probabilities, read_question, retrieve
from moot.runtime.context import node_context
from moot.runtime.environment import Environment
from moot.state.conversation import ConversationState
from moot.state.reducers import fold_window
from moot.text.terms import terms

OURS, OVERALL = "moot ask", "overall"
RANKS, MEMORIES = (5, 50), 8
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
"""Names of LoCoMo's categories of questions. The evidence of an adversarial question is the turn that it
misattributes."""
TARGET_MS = 10
_DOMAINS = dict.fromkeys(("Be", "Bm", "Br"), "academic") | dict.fromkeys(("co", "ed"), "committee")
_TURN = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True)
class Kind:
    """Kind of transcripts: budgets, targets and baselines."""

    name: str
    budgets: tuple[int, ...]
    targets: tuple[float, ...]
    embedded_targets: tuple[float, ...]
    neighbours: int
    """Number of neighbours on each side that the baseline BM25 adds to a message."""


QMSUM = Kind("QMSum", (2_000, 4_000, 8_000), (0.593, 0.770, 0.900), (0.61, 0.80, 0.92), 6)
LOCOMO = Kind("LoCoMo", (1_000, 2_000, 4_000, 8_000), (0.76, 0.83, 0.89, 0.94), (0.82, 0.88, 0.92, 0.96), 1)
RECALL_TARGETS = {OVERALL: (0.61, 0.85), "multi-hop": (0.33, 0.68), "temporal": (0.66, 0.87)}
EMBEDDED_RECALL_TARGETS = {OVERALL: (0.70, 0.92), "multi-hop": (0.40, 0.75)}


@dataclass(frozen=True)
class Question:
    """Question with the `seq` of the turns that answer it."""

    text: str
    group: str
    """Category of the question, or domain of the meeting."""
    gold: list[int]


@dataclass(frozen=True)
class Transcript:
    """Imported transcript with its questions."""

    kind: Kind
    state: ConversationState
    config: DebateConfig
    questions: list[Question]
    index: EvidenceIndex
    """Index that `moot ask` uses."""
    messages: EvidenceIndex
    """Index of whole messages for the baselines."""


@dataclass(frozen=True)
class Row:
    """Result of one question."""

    transcript: int
    group: str
    prompt: dict[int, dict[str, float]]
    """Share of the evidence in the prompt, by budget and policy."""
    recall: dict[int, float]
    """Share of the evidence's turns among the best k turns, by k."""
    memories: float
    """Share of the evidence's turns among the memories of a debate turn."""
    seconds: dict[int, float] = field(default_factory=dict)
    """Processor time of the prompt in seconds, by budget."""


def load(path: Path, environment: Environment, embeddings: Any = None) -> Transcript:
    """Read a file of QMSum or LoCoMo and import its transcript."""
    data = json.loads(path.read_text(encoding="utf-8"))
    kind = LOCOMO if "conversation" in data else QMSUM
    turns, numbered = _locomo(data) if kind is LOCOMO else _qmsum(data, path.stem)
    state, config = import_transcript(json.dumps(turns), environment)
    spoken = [number for number, turn in enumerate(turns) if turn["content"].strip()]
    if len(spoken) != len(state["full_transcript"]) - 1:
        raise ValueError(f"{path.name}: {len(spoken)} turns, but {len(state['full_transcript'])} entries")
    seq_of = {number: seq for seq, number in enumerate(spoken, start=1)}
    questions = [
        Question(text, group, sorted(seq_of[n] for n in gold if n in seq_of))
        for text, group, gold in numbered
    ]
    memories = MemoryIndexes(environment.indexes, path.stem, embeddings)
    index = ask_index(DebateContext(state, config, environment.token_counter_for()), memories)
    messages = environment.indexes.of(path.stem, "baselines", state["full_transcript"], config.names())
    return Transcript(kind, state, config, questions, index, messages)


Numbered = list[tuple[str, str, set[int]]]
"""Questions with their group and the numbers of the turns that answer them."""


def _qmsum(data: dict[str, Any], name: str) -> tuple[list[dict[str, str]], Numbered]:
    turns = [{"speaker": turn["speaker"], "content": turn["content"]} for turn in data["meeting_transcripts"]]
    domain, numbered = _DOMAINS.get(name[:2], "product"), Numbered()
    for each in data["specific_query_list"]:
        spans = [range(int(first), int(last) + 1) for first, last in each["relevant_text_span"]]
        numbered.append((each["query"], domain, {turn for span in spans for turn in span}))
    return turns, numbered


def _locomo(data: dict[str, Any]) -> tuple[list[dict[str, str]], Numbered]:
    """Return the turns with the dates of their sessions. An image is given by its caption."""
    turns, place = list[dict[str, str]](), dict[str, int]()
    conversation, session = data["conversation"], 1
    while (key := f"session_{session}") in conversation:
        for turn in conversation[key]:
            place[turn["dia_id"]] = len(turns)
            caption = f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            at = conversation[f"{key}_date_time"]
            turns.append({"speaker": turn["speaker"], "content": turn["text"] + caption, "at": at})
        session += 1
    numbered = Numbered()
    for each in data["qa"]:
        found = [f"D{int(s)}:{int(t)}" for ids in each["evidence"] for s, t in _TURN.findall(ids)]
        if gold := {place[name] for name in found if name in place}:
            numbered.append((each["question"], CATEGORIES[each["category"]], gold))
    return turns, numbered


def import_transcript(transcript: str, environment: Environment) -> tuple[ConversationState, DebateConfig]:
    """Return the state of an imported transcript with its summary."""
    parsed = parse_transcript(transcript, format="json")
    config = transcript_config(parsed)
    values = transcript_values(parsed, "A conversation", config, environment)
    state = cast(ConversationState, {**values, "messages": fold_window([], [values["messages"]])})
    for body in (extract, summarize):
        state = cast(
            ConversationState,
            {**state, **run_body_with(body(node_context(environment, state)), lambda effect: None)},
        )
    return state, config


def last_n(transcript: Transcript, question: str) -> Sequence[int]:
    """Rank messages by recency."""
    return range(len(transcript.state["full_transcript"]) - 1, 0, -1)


def bm25_neighbours(transcript: Transcript, question: str) -> Sequence[int]:
    """Rank messages by Okapi BM25 (k1 1.2, b 0.75), each followed by its neighbours."""
    postings = transcript.messages.postings
    size, mean = len(postings), postings.words / max(1, len(postings))
    lengths = np.array(postings.lengths)
    score = np.zeros(size)
    for term in terms(question):
        positions, counts = postings.occurrences(term)
        idf = math.log1p((size - len(positions) + 0.5) / (len(positions) + 0.5))
        norm = 1.2 * (0.25 + 0.75 * lengths[positions] / mean)
        score[positions] += idf * counts * 2.2 / (counts + norm)
    neighbours = transcript.kind.neighbours
    steps = sorted(range(-neighbours, neighbours + 1), key=abs)
    ranked = (int(p) + step for p in np.argsort(-score, kind="stable") for step in steps)
    return [transcript.messages.seqs[p] for p in dict.fromkeys(ranked) if 0 <= p < size]


def select_messages(
    transcript: Transcript, ranking: Sequence[int], cost: Callable[[int], int], remaining: int
) -> set[int]:
    """Fill a prompt in the order of a ranking, skipping messages that do not fit."""
    chosen, entries = set[int](), transcript.state["full_transcript"]
    for seq in ranking:
        if entries[seq]["tokens"] <= remaining and (tokens := cost(seq)) <= remaining:
            chosen.add(seq)
            remaining -= tokens
    return chosen


BASELINES: dict[str, Callable[[Transcript, str], Sequence[int]]] = {
    "last-N": last_n,
    "BM25 ± n": bm25_neighbours,
}
"""Policies that fill the tokens left for messages in another order."""


def measure(number: int, transcript: Transcript, environment: Environment) -> Iterator[Row]:
    """Ask all questions of a transcript under every budget."""
    count = environment.token_counter_for()
    index = transcript.index
    debate = DebateContext(transcript.state, transcript.config, count)
    lines = entry_lines(debate)
    for question in transcript.questions:
        rankings = {name: rank(transcript, question.text) for name, rank in BASELINES.items()}
        row = Row(number, question.group, {}, _recall(index, question), _memories(index, question))
        for budget in transcript.kind.budgets:
            start = time.process_time()
            asked = question_prompt(debate, question.text, index, budget=budget)
            row.seconds[budget] = time.process_time() - start
            if asked.prompt.total_tokens > budget:
                raise AssertionError("a prompt is above its budget")
            prompts = {
                name: select_messages(transcript, ranking, lines.cost, asked.remaining)
                for name, ranking in rankings.items()
            }
            prompts[OURS] = set(asked.messages.full_seqs)
            row.prompt[budget] = {
                name: _share(transcript, question.gold, seqs) for name, seqs in prompts.items()
            }
        yield row


def _recall(index: EvidenceIndex, question: Question) -> dict[int, float]:
    """Return the share of the evidence's turns among the best turns.

    A long turn has the rank of its best passage.
    """
    best = np.argsort(-probabilities(index, read_question(index, question.text)), kind="stable")
    ranked = list(dict.fromkeys(place_of(index.seqs[position]).seq for position in best))
    gold = question.gold
    return {k: len({*ranked[:k]}.intersection(gold)) / len(gold) if gold else 1.0 for k in RANKS}


def _memories(index: EvidenceIndex, question: Question) -> float:
    """Return the share of the evidence's turns among the memories of a debate turn."""
    memories = retrieve(index, question.text, budget=10**6, top=MEMORIES, neighbours=0).seqs
    gold = question.gold
    return len({place_of(seq).seq for seq in memories}.intersection(gold)) / len(gold) if gold else 1.0


def _share(transcript: Transcript, gold: list[int], prompt: set[int]) -> float:
    by_token, entries = transcript.kind is QMSUM, transcript.state["full_transcript"]
    worth = {seq: entries[seq]["tokens"] if by_token else 1 for seq in gold}
    return sum(worth[seq] for seq in gold if seq in prompt) / sum(worth.values()) if worth else 1.0


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the mean shares, from 0 to 1: in prompts by budget, among the best turns, and in memories."""
    groups = [OVERALL, *sorted({row.group for row in rows})]

    def means(shares: Sequence[float]) -> dict[str, float]:
        return {
            group: round(
                float(
                    np.mean([x for x, row in zip(shares, rows, strict=True) if group in (OVERALL, row.group)])
                ),
                4,
            )
            for group in groups
        }

    budgets = rows[0].prompt if rows else ()
    return {
        "prompt": {str(budget): means([row.prompt[budget][OURS] for row in rows]) for budget in budgets},
        "recall": {str(rank): means([row.recall[rank] for row in rows]) for rank in RANKS},
        "memories": means([row.memories for row in rows]),
    }


def report(rows: Sequence[Row], kind: Kind, *, embedded: bool = False) -> Iterator[str]:
    """Yield the tables: all policies; ours by transcript and by group; recall by rank; and the time."""
    yield f"{len(rows)} questions".ljust(28) + "".join(f"{b:>9,}" for b in kind.budgets)
    for policy in [*BASELINES, OURS]:
        yield _line(
            policy.replace("n", str(kind.neighbours)) if "±" in policy else policy, policy, rows, kind
        )
    targets = kind.embedded_targets if embedded else kind.targets
    yield "  target".ljust(28) + "".join(f"{f'≥ {target}':>9}" for target in targets)
    each = [[r for r in rows if r.transcript == n] for n in sorted({row.transcript for row in rows})]
    for label, pick in (("  lowest transcript", min), ("  highest transcript", max)):
        shares = [pick(np.mean([r.prompt[b][OURS] for r in own]) for own in each) for b in kind.budgets]
        yield label.ljust(28) + "".join(f"{share:>9.3f}" for share in shares)
    for group in sorted({row.group for row in rows}):
        yield _line(f"  {group}", OURS, [r for r in rows if r.group == group], kind)
    recall_targets = EMBEDDED_RECALL_TARGETS if embedded else RECALL_TARGETS
    yield "evidence among the best turns".ljust(28) + "".join(f"{f'R@{k}':>9}" for k in RANKS)
    for group in [OVERALL, *sorted({row.group for row in rows})]:
        own = [np.mean([r.recall[k] for r in rows if group in (OVERALL, r.group)]) for k in RANKS]
        goal = recall_targets.get(group) if kind is LOCOMO else None
        note = f"   (target ≥ {goal[0]} / {goal[1]})" if goal else ""
        yield f"  {group:<26}" + "".join(f"{share:>9.3f}" for share in own) + note
    memories = float(np.mean([r.memories for r in rows]))
    yield f"  among {MEMORIES} memories of a turn".ljust(28) + f"{memories:>9.3f}"
    yield f"ms of processor time per question (target ≤ {TARGET_MS})"
    for label, share in (("  median", 0.5), ("  95 %", 0.95)):
        times = [np.quantile([r.seconds[b] for r in rows], share) * 1_000 for b in kind.budgets]
        yield f"{label:<28}" + "".join(f"{time:>9.1f}" for time in times)


def _line(label: str, policy: str, rows: Sequence[Row], kind: Kind) -> str:
    means = [np.mean([r.prompt[b][policy] for r in rows]) if rows else math.nan for b in kind.budgets]
    return f"{label:<28}" + "".join(f"{mean:>9.3f}" for mean in means)


def embeddings_from(name: str) -> Any:
    """Import `MODULE:FACTORY` and call it to make an embedding model."""
    module, _, factory = name.partition(":")
    return getattr(importlib.import_module(module), factory)()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print its tables."""
    parser = meetings_parser("Share of the evidence for a question that its prompt holds.")
    parser.add_argument("--json", action="store_true", help="print the shares, from 0 to 1, as JSON")
    parser.add_argument(
        "--embeddings", metavar="MODULE:FACTORY", help="function that makes a LangChain embedding model"
    )
    options = parser.parse_args(arguments)
    paths = meeting_files("retrieval", options)
    if not paths:
        return
    model = embeddings_from(options.embeddings) if options.embeddings else None
    rows, kind = list[Row](), QMSUM
    for number, path in enumerate(paths):
        environment = Environment()
        transcript = load(path, environment, model)
        kind = transcript.kind
        if transcript.index.vectors is not None:
            transcript.index.vectors.similarity("")  # embeds the transcript before the measurement
        rows += measure(number, transcript, environment)
    text = (
        json.dumps(figures(rows), indent=2)
        if options.json
        else "\n".join(report(rows, kind, embedded=model is not None))
    )
    print(text)


if __name__ == "__main__":
    main()
