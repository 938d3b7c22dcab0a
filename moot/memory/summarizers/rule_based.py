"""`rule-based`: quoted sentences, added as messages leave the window, without a model.

The same messages always give the same summary. It is the fallback for a failed model summary, so it handles
any text and any budget.
"""

import heapq
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NotRequired, cast

from typing_extensions import TypedDict

from moot.memory.summarizers.summarizer import Draft, Summarizer, SummaryGenerator, SummaryRequest
from moot.memory.tool_results import passages, tool_use
from moot.prompts.truncation import display_name
from moot.state.entries import Entry, is_program_note, seq_of, traits_of
from moot.text.plain_text import clip, count_noun, sanitize_line
from moot.text.terms import split_sentences, term_set, terms
from moot.text.tokens import truncate_middle

MAX_POINT = 240
"""Maximum number of characters in the text of a summary point. A tool's error may be longer."""
MAX_SUMMARIZED_CHARS = 16_000
"""Maximum number of characters of a message that are read for summary points."""
MIN_TERMS = 3
"""Minimum number of content words that a sentence needs to become a summary point. Shorter sentences are
greetings or fragments."""

# Scores on the 35 meetings of `benchmarks/summaries.py`: .46 with 5 segments, .45 with 10 segments.
SEGMENTS = 5
"""Number of parts into which the transcript is divided for a summary. The parts are equally long, and each
gets the same share of the summary."""
_LINE_CHARS = 40
"""Assumed number of characters that a summary line adds to its point."""


class Point(TypedDict):
    """Sentence, as JSON data, that a rule-based summary may quote."""

    text: str
    """Text of the point, limited to `MAX_POINT` characters on one line. A tool's error may be longer."""
    speaker: str
    message_ids: list[str]
    """Ids of the messages that this summary point comes from. A point from a document's summary lists all
    message ids that the point names."""
    place: NotRequired[int]
    """Index of the summary point within its message, starting at 0."""
    error: NotRequired[bool]
    """True if this summary point is the error message of a tool."""


def extract_points(entry: Entry, terms: Mapping[str, int], error_chars: int = MAX_POINT) -> list[Point]:
    """Return the summary points of a message, one for each sentence.

    Sentences with too few content words are skipped. If none is left, return the whole text as one point.

    A tool result yields its relevant passages, judged by how often `terms` occur in the debate. A tool's
    error is one point of at most `error_chars` characters.
    """
    content = entry["content"][:MAX_SUMMARIZED_CHARS]
    if tool_result := tool_use(entry):
        sentences = passages(*tool_result, terms)
        if tool_result[0]["failed"]:
            text = truncate_middle(sentences[0], error_chars, len)
            return [Point(text=text, speaker=entry["speaker"], message_ids=[entry["id"]], error=True)]
    elif traits_of(entry).automatic:
        sentences = [content]
    else:
        sentences = [sentence.text for sentence in split_sentences(content)]
    texts = [clip(sanitize_line(sentence), MAX_POINT) for sentence in sentences]
    point_texts = [text for text in texts if len(term_set(text)) >= MIN_TERMS]
    full_text = clip(sanitize_line(content), MAX_POINT) or "".join(texts[:1])
    return [
        Point(text=text, speaker=entry["speaker"], message_ids=[entry["id"]], place=place)
        for place, text in enumerate(point_texts or [full_text])
        if text
    ]


def first_seq(point: Point) -> int:
    """Return the `seq` of the first message from which a summary point was taken."""
    return seq_of(point["message_ids"][0]) or 0


class Ranking(NamedTuple):
    """Candidate sentences for a summary, ranked from best to worst."""

    points: list[Point]
    quota: int
    """Number of points that the summary must include if they fit. They are the first of `points`. Such points
    are tool errors and one point for each speaker."""


def rank(
    points: Sequence[Point],
    message_counts: Mapping[str, int],
    terms: Mapping[str, int],
    through: int,
    error_chars: int = 0,
) -> Ranking:
    """Rank the sentences that a summary may quote.

    The newest tool errors come first, up to `error_chars`, then the best point of each speaker, the most
    frequent speakers first. The other points follow. The segment with the least text so far gives the next
    point: the one that covers the most content per character, by the counts in `terms`. Points that add
    nothing come last; repetitions of one speaker are dropped. The order is deterministic.
    """
    distinct = _distinct(points)
    seqs, candidates = [seq for seq, _ in distinct.values()], [point for _, point in distinct.values()]
    contents = [content for _, content in distinct]
    # Use whole numbers, because the sum over a set must not depend on its order.
    weights = {term: round(1000 * math.log1p(terms.get(term, 1))) for term in set[str]().union(*contents)}
    costs = [len(point["text"]) + _LINE_CHARS for point in candidates]
    start = seqs[0] if seqs else 0
    segments = [min(SEGMENTS - 1, (seq - start) * SEGMENTS // max(1, through + 1 - start)) for seq in seqs]
    covered_terms, segment_chars, chosen_indices = set[str](), [0] * SEGMENTS, list[int]()

    def worth(index: int) -> float:
        return sum(map(weights.__getitem__, contents[index] - covered_terms)) / costs[index]

    def take(index: int) -> None:
        chosen_indices.append(index)
        covered_terms.update(contents[index])
        segment_chars[segments[index]] += costs[index]

    # Points with reserved space are the newest errors that fit, then the best point of each other speaker.
    for index in reversed(range(len(candidates))):
        if candidates[index].get("error") and costs[index] <= error_chars:
            error_chars -= costs[index]
            take(index)
    quoted_speakers = {candidates[index]["speaker"] for index in chosen_indices}
    indices: dict[str, list[int]] = defaultdict(list)
    for index, point in enumerate(candidates):
        indices[point["speaker"]].append(index)
    for speaker in sorted(
        indices.keys() - quoted_speakers, key=lambda speaker: (-message_counts.get(speaker, 0), speaker)
    ):
        take(max(indices[speaker], key=lambda index: (worth(index), -index)))

    quota, reserved_indices = len(chosen_indices), set(chosen_indices)
    # The value of a point only falls as others are chosen, so only the top of the heap is computed again.
    queue = sorted(
        (-worth(index), index) for index in range(len(candidates)) if index not in reserved_indices
    )
    heaps = [[each for each in queue if segments[each[1]] == segment] for segment in range(SEGMENTS)]
    while open_segments := [segment for segment in range(SEGMENTS) if heaps[segment]]:
        heap = heaps[min(open_segments, key=lambda segment: (segment_chars[segment], segment))]
        while (value := -worth(heap[0][1])) > heap[0][0]:
            heapq.heapreplace(heap, (value, heap[0][1]))
        if not value:
            heap.clear()
            continue
        take(heapq.heappop(heap)[1])
    rest = sorted(set(range(len(candidates))) - set(chosen_indices), reverse=True)
    return Ranking([candidates[index] for index in [*chosen_indices, *rest]], quota)


def _distinct(points: Sequence[Point]) -> dict[tuple[str, frozenset[str]], tuple[int, Point]]:
    """Return points with their `seq` by speaker and terms, in transcript order."""
    distinct: dict[tuple[str, frozenset[str]], tuple[int, Point]] = {}
    keyed = ((first_seq(point), point["speaker"], point["text"], point) for point in points)
    for seq, speaker, text, point in sorted(keyed, key=lambda key: key[:3]):
        distinct.setdefault((speaker, term_set(text) or frozenset([text])), (seq, point))
    return distinct


class SummaryPoints(TypedDict):
    """Content of a rule-based summary, with all points that the summary may quote.

    The data are JSON-compatible. The pool of points is larger than the text, so a summary that was shortened
    for one step can grow again at the next.
    """

    points: list[Point]
    """Points that the summary may quote, best first. The budget limits their number."""
    shown: int
    """Number of points that the summary's text shows, counted from the start of `points`."""
    text_chars: int
    """Maximum number of characters in a point, as shown in the summary's text."""
    name_chars: int
    """Maximum number of characters of a speaker's name in the summary's text."""
    notice: str
    """Line about speakers who are not quoted. If no point fits, the line replaces all points. Empty
    otherwise."""
    messages: int
    """Number of messages that the summary covers."""
    speakers: dict[str, int]
    """Number of messages by each speaker, keyed by speaker id. Only the first 256 speakers are counted."""
    terms: dict[str, int]
    """Number of occurrences of the most frequent terms in the messages, keyed by term."""
    covers_through_seq: int
    """Sequence number (`seq`) of the last message that the summary covers, or -1 if it covers none."""


Fits = Callable[[SummaryPoints], bool]

NOTICE_BELOW = 50
"""Token budget below which a summary shows all of its points or only a notice."""
TOKENS_PER_SPEAKER = 60
"""Number of tokens needed per speaker so that a summary can quote every speaker."""
ERROR_SHARE = 0.33
"""Maximum share of a summary's tokens for the error messages of tools."""
CHARS_PER_TOKEN = 3
"""Assumed number of characters per token."""
_FILL_TRIES = 8
_MIN_LINE = 10  # tokens of the shortest line, with mark, a word or two, and message id

_DETAILS = ((40, 240), (40, 160), (32, 100), (24, 60), (16, 30), (8, 12), (6, 4))
"""Maximum lengths of a speaker's name and of a point's text, in characters. The pairs are tried in turn until
the summary fits in its token budget."""
_LEGIBLE = _DETAILS[:4]  # with less space, fewer speakers are quoted and the others are only named
_NAMES_IN_NOTICE, _NAME_CHARS_IN_NOTICE = 40, 24


def layout_points(
    summary: SummaryPoints, *, max_tokens: int, count: Callable[[str], int], names: Mapping[str, str]
) -> SummaryPoints:
    """Return a copy of `summary` that shows as many points as fit in `max_tokens`.

    Texts are shortened before a speaker loses its point. The result was rendered and counted, so its length
    is exact.
    """
    through, error_chars = summary["covers_through_seq"], int(max_tokens * ERROR_SHARE * CHARS_PER_TOKEN)
    ranking = rank(summary["points"], summary["speakers"], summary["terms"], through, error_chars)
    layout = SummaryPoints(**{**summary, "points": ranking.points, "shown": 0, "notice": ""})
    if max_tokens <= 0 or not ranking.points:
        return layout

    def fits(candidate: SummaryPoints, limit: float = max_tokens) -> bool:
        return count(render(candidate, names)) <= limit

    def name_list(speakers: Iterable[str]) -> str:
        return ", ".join(_labels(list(speakers)[:_NAMES_IN_NOTICE], names, _NAME_CHARS_IN_NOTICE).values())

    if max_tokens < NOTICE_BELOW and len(ranking.points) >= layout["messages"]:
        name, text, points = *_DETAILS[0], len(ranking.points)
        full_layout = SummaryPoints(**{**layout, "shown": points, "name_chars": name, "text_chars": text})
        if fits(full_layout):
            return full_layout
    if max_tokens >= NOTICE_BELOW:
        details = _DETAILS if max_tokens >= TOKENS_PER_SPEAKER * ranking.quota else _LEGIBLE
        candidates = [
            SummaryPoints(**{**layout, "shown": ranking.quota, "name_chars": name, "text_chars": text})
            for name, text in details
        ]
        best = next((each for each in candidates if fits(each)), None)
        if best:
            return _fill(best, fits, ranking.quota + max_tokens // _MIN_LINE)

        def naming(candidate: SummaryPoints) -> SummaryPoints:
            """Return a copy of `candidate` with a notice about speakers who are not quoted."""
            quoted_speakers = {point["speaker"] for point in candidate["points"][: candidate["shown"]]}
            other_names = name_list(
                speaker for speaker in candidate["speakers"] if speaker not in quoted_speakers
            )
            notice = (
                clip(f"Also spoke: {other_names}.", max_tokens * CHARS_PER_TOKEN // 3) if other_names else ""
            )
            return SummaryPoints(**{**candidate, "notice": notice})

        subset = _most(candidates[-1], ranking.quota, lambda candidate: fits(naming(candidate)))
        if subset["shown"]:
            return naming(subset)
    messages = count_noun(layout["messages"], "message")
    speaker_names = name_list(layout["speakers"])
    return _with_notice(
        layout, f"Earlier: {messages} by {speaker_names}; omitted because of the token limit.", fits
    )


def _most(summary: SummaryPoints, high: int, fits: Fits) -> SummaryPoints:
    """Return a summary that shows as many points as fit, but at most `high` points."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        if fits(SummaryPoints(**{**summary, "shown": middle})):
            low = middle
        else:
            high = middle - 1
    return SummaryPoints(**{**summary, "shown": low})


def _fill(summary: SummaryPoints, fits: Fits, max_points: int) -> SummaryPoints:
    """Return a summary that shows further points, as far as tokens remain."""
    largest = _most(summary, min(max_points, len(summary["points"])), fits)
    filled = largest if largest["shown"] >= summary["shown"] and fits(largest) else summary
    for index in range(filled["shown"] + 1, min(filled["shown"] + 1 + _FILL_TRIES, len(summary["points"]))):
        points, shown_count = filled["points"], filled["shown"]
        new_points = [*points[:shown_count], points[index], *points[shown_count:index], *points[index + 1 :]]
        candidate = SummaryPoints(**{**filled, "points": new_points, "shown": shown_count + 1})
        filled = candidate if fits(candidate) else filled
    return filled


def _with_notice(summary: SummaryPoints, text: str, fits: Fits) -> SummaryPoints:
    """Return a summary with a notice, shortened to fit the token budget."""
    chars = len(text)
    while chars > 0:  # in steps of a twelfth, because a shorter text does not always have fewer tokens
        candidate = SummaryPoints(**{**summary, "notice": clip(text, chars)})
        if fits(candidate):
            return candidate
        chars -= max(1, chars // 12)
    return summary


def render(points: SummaryPoints, names: Mapping[str, str]) -> str:
    """Return the text of the summary, listing points under each speaker's name."""
    if not points:
        return ""
    groups: dict[str, list[Point]] = defaultdict(list)
    for point in points["points"][: points["shown"]]:
        groups[point["speaker"]].append(point)
    order = sorted(groups, key=lambda speaker: (min(map(first_seq, groups[speaker])), speaker))
    labels = _labels(order, names, points["name_chars"])
    lines: list[str] = []
    for speaker in order:
        lines.append(f"{labels[speaker]}:")
        for point in sorted(groups[speaker], key=lambda point: (first_seq(point), point.get("place", 0))):
            ids = ", ".join(dict.fromkeys((point["message_ids"][0], point["message_ids"][-1])))
            text = point["text"] if point.get("error") else clip(point["text"], points["text_chars"])
            lines.append(f"- {text} [{ids}]")
    if points["notice"]:
        lines.append(points["notice"])
    return "\n".join(lines)


def _labels(speakers: Sequence[str], names: Mapping[str, str], chars: int) -> dict[str, str]:
    """Return a unique and safe display name for each speaker."""
    labels: dict[str, str] = {}
    used_labels: set[str] = set()
    for speaker in speakers:
        name = clip(
            sanitize_line(display_name(speaker, names)[:200]) or sanitize_line(speaker[:200]) or "?", chars
        )
        label = next(
            each for n in itertools.count(1) if (each := name if n == 1 else f"{name} {n}") not in used_labels
        )
        used_labels.add(label)
        labels[speaker] = label
    return labels


MAX_SPEAKERS = 256
TOP_TERMS = 1_000
"""Maximum number of terms whose counts are stored. The most frequent terms are kept."""
_POOL_FLOOR, _POOL_CEILING = 48, 600
_TOKENS_PER_POINT = 4  # the pool holds five to six times as many points as the budget allows in the text
ERROR_TOKENS = 300
"""Number of tokens above which a summary shortens a tool's error message. All errors together take
at most a third of a summary."""
_BATCH = 32  # number of messages between two prunings, which limits the pool during a long import


class RuleBased(Summarizer):
    """Summarizer without a model, which quotes the sentences that together cover the most content."""

    name = "rule-based"
    asks_model = False

    def summarize(self, request: SummaryRequest) -> SummaryGenerator:
        """Return a draft of the summary without calling a model."""
        yield from ()
        points = fold_points(request)
        return Draft(render(points, request.config.names()), cast(dict[str, Any], points), self.name)


def fold_points(request: SummaryRequest) -> SummaryPoints:
    """Merge the points of the previous summary with points from new messages.

    Without stored points, read all messages.

    A summary from a document holds only the points that it showed. If the stored points do not cover the
    whole summary, as after another package's summarizer, all messages are read again.
    """
    pool = request.previous.get("points") or {}
    covered_through = int(request.previous.get("covers_through_seq", -1))
    previous: Any = None
    if not isinstance(pool, Mapping):
        previous = {
            **empty(),
            "points": list(pool),
            "messages": int(request.previous.get("messages", len(pool))),
            "speakers": {str(point["speaker"]): 1 for point in pool},
            "covers_through_seq": covered_through,
        }
    elif pool.get("covers_through_seq") == covered_through:
        previous = {**empty(), **pool}
    return fold(
        previous,
        request.past if previous is None else request.entries,
        max_tokens=request.max_tokens,
        count=request.count,
        names=request.config.names(),
        error_tokens=ERROR_TOKENS,
        shown_ids=request.shown,
    )


def empty() -> SummaryPoints:
    """Return a rule-based summary that contains no points yet."""
    return SummaryPoints(
        points=[],
        shown=0,
        text_chars=0,
        name_chars=0,
        notice="",
        messages=0,
        speakers={},
        terms={},
        covers_through_seq=-1,
    )


def fold(
    previous: SummaryPoints | None,
    entries: Sequence[Entry],
    *,
    max_tokens: int,
    count: Callable[[str], int],
    names: Mapping[str, str],
    error_tokens: int = 0,
    shown_ids: Container[str] = (),
) -> SummaryPoints:
    """Add points from `entries` to the `previous` summary, up to `max_tokens` in total.

    `entries` are the messages that left the window, in order; over all calls each message appears exactly
    once. About `error_tokens` tokens of each tool error are kept whole. Messages whose ids are in `shown_ids`
    are counted, but not quoted, because every prompt shows them. A note by the program yields no point.
    `render` needs the same `names`; its text is empty or within `max_tokens`. With 60 tokens a speaker or
    more, every speaker with a quoted message has a point. The time is linear in the new messages and the
    stored points.
    """
    base = previous or empty()
    pool = [point for point in base["points"] if not all(key in shown_ids for key in point["message_ids"])]
    message_counts, through = Counter(base["speakers"]), base["covers_through_seq"]
    term_counts = Counter(base["terms"])
    max_points = max(_POOL_FLOOR, min(_POOL_CEILING, max_tokens // _TOKENS_PER_POINT))
    for start in range(0, len(entries), _BATCH):
        for entry in entries[start : start + _BATCH]:
            through = max(through, entry["seq"])
            if is_program_note(entry):
                continue
            if entry["speaker"] in message_counts or len(message_counts) < MAX_SPEAKERS:
                message_counts[entry["speaker"]] += 1
            if not traits_of(entry).automatic:
                term_counts.update(terms(entry["content"]))
            if entry["id"] in shown_ids:
                continue
            pool += extract_points(entry, term_counts, max(MAX_POINT, error_tokens * CHARS_PER_TOKEN))
        if len(pool) > 2 * max_points + _BATCH:
            ranking = rank(pool, message_counts, term_counts, through, 2 * error_tokens * CHARS_PER_TOKEN)
            pool = ranking.points[:max_points]
    summary = SummaryPoints(
        **{
            **empty(),
            "points": pool,
            "messages": base["messages"] + len(entries),
            "speakers": dict(message_counts),
            "terms": dict(sorted(term_counts.items(), key=lambda item: (-item[1], item[0]))[:TOP_TERMS]),
            "covers_through_seq": through,
        }
    )
    layout = layout_points(summary, max_tokens=max_tokens, count=count, names=names)
    if not layout["points"] and layout["messages"] and shown_ids:
        text = f"Earlier: {count_noun(layout['messages'], 'message')}, shown above."
        layout = _with_notice(layout, text, lambda each: count(render(each, names)) <= max_tokens)
    return SummaryPoints(**{**layout, "points": layout["points"][: max(max_points, layout["shown"])]})
