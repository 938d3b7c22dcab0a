"""What summarisers that ask a model share: requests within budget, checked answers, notes of the original.

Every message is seen by exactly one chunk, which a model condenses into a *note*. Notes are kept. A summary
is always made from the notes, never from an earlier summary: with a summariser that keeps each fact with
probability 0.9, one that rewrites its own output loses the 50 oldest facts within 200 turns.

Beside the prose stand key points found by rule that it leaves out: what a model forgets is not lost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from moot.nodes.calls import Flow, Hints, ModelCall, WireMessage
from moot.nodes.memory.summarizers.points import Point
from moot.nodes.memory.summarizers.points_layout import SummaryPoints, lay_out, render
from moot.nodes.memory.summarizers.rule_based import fold_points
from moot.nodes.memory.summarizers.summarizer import Draft, SummaryRequest
from moot.nodes.memory.summarizers.summary_checks import check_summary
from moot.nodes.prompts.fitting import fit_messages
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.material import problem_room
from moot.nodes.prompts.rendering import render_entry
from moot.nodes.prompts.request import make_call, voice_of
from moot.nodes.text.terms import numbers, term_set
from moot.nodes.text.tokens import batches, cut_middle, prompt_tokens
from moot.state.entries import Entry

CONDENSE = load_prompt("condense", "topic", "words")
MERGE = load_prompt("merge", "topic", "words")
MERGE_FOR = load_prompt("merge_for", "prompt", "topic", "words")

NOTES_A_MERGE = 16
"""A note may take this part of a merge's input: so many can be merged at once."""
LEAST_NOTE = 40
WORDS_A_TOKEN = 0.5
"""What is asked for in words. English has 0.75 a token; three summaries that keep figures and ids, as they
are asked to, had 0.50 to 0.60."""
PROSE_SHARE = 0.65
"""Share of the summary's tokens that the model's prose may take; key points take all that it leaves."""
TOLD, TOLD_WITH_ID = 0.7, 0.5
"""A point is told where the prose has this share of its terms and all of its numbers; the second is of the
lines that cite its message, which repeat less of it by chance."""
HEADING = "Key points:"


@dataclass(frozen=True)
class SpanNote:
    """What a model noted of a run of messages."""

    text: str
    first: int
    """`seq` of the first message behind it."""
    through: int
    """`seq` of the last one."""
    level: int = 0
    """0 where it was made from messages, else one more than that of the notes it was made from."""
    part: str = ""
    """Part of the debate that it belongs to, for summaries that follow the debate's own parts."""


def kept_notes(request: SummaryRequest) -> list[SpanNote]:
    """Return the notes behind the previous summary; what has other fields is another summariser's."""
    pool = request.previous.get("points") or {}
    found = pool.get("notes") if isinstance(pool, Mapping) else None
    rows = found if isinstance(found, list) else []
    fields = set(SpanNote.__annotations__)
    return [SpanNote(**row) for row in rows if isinstance(row, Mapping) and set(row) == fields]


def condense(
    request: SummaryRequest, chunks: Sequence[Sequence[Entry]], parts: Sequence[str] = ()
) -> Flow[list[SpanNote]]:
    """Condense chunks of messages into notes, all at the same time.

    Raises:
        SummaryFailed: an answer is unusable.
    """
    said, room = [_as_text(request, chunk) for chunk in chunks], note_room(request)
    calls = [_call(request, text, room, place, condenses=True) for place, text in enumerate(said)]
    texts = yield from _answers(request, calls, room)
    return [
        SpanNote(text, chunk[0]["seq"], chunk[-1]["seq"], part=part)
        for text, chunk, part in zip(texts, chunks, parts or [""] * len(chunks), strict=True)
    ]


def summarize_at_once(request: SummaryRequest, chunk: Sequence[Entry]) -> Flow[SpanNote]:
    """Summarise messages that fit one call; what comes of it is the first note.

    Raises:
        SummaryFailed: the answer is unusable.
    """
    room = int(request.max_tokens * PROSE_SHARE)
    (text,) = yield from _answers(request, [_call(request, _as_text(request, chunk), room)], room)
    return SpanNote(text, chunk[0]["seq"], chunk[-1]["seq"])


def merge(request: SummaryRequest, groups: Sequence[Sequence[SpanNote]], room: int) -> Flow[list[SpanNote]]:
    """Merge each group of notes into one of at most `room` tokens, all groups at the same time.

    A group that fits as it is stays as it was written: what is not rewritten loses nothing.

    Raises:
        SummaryFailed: an answer is unusable.
    """
    texts = ["\n".join(dict.fromkeys(note.text for note in group)) for group in groups]
    long = [index for index, text in enumerate(texts) if request.count(text) > room]
    if long:
        calls = [_call(request, texts[index], room, place) for place, index in enumerate(long)]
        answers = yield from _answers(request, calls, room, notes=True)
        for index, answer in zip(long, answers, strict=True):
            texts[index] = answer
    return [
        SpanNote(
            text, group[0].first, group[-1].through, 1 + max(note.level for note in group), group[-1].part
        )
        for group, text in zip(groups, texts, strict=True)
    ]


def fit_one_call(request: SummaryRequest, notes: list[SpanNote]) -> Flow[list[SpanNote]]:
    """Return notes that one merge can read: where they are too many, the oldest of a level are united.

    A fact passes through one more rewriting only each time that the notes outgrow a whole prompt.
    """
    fits = input_room(request)
    while len(notes) > 1 and sum(request.count(note.text) + 2 for note in notes) > fits:
        level = min(note.level for note in notes[:-1])
        start = next(index for index, note in enumerate(notes) if note.level == level)
        run = [note for note in notes[start : start + NOTES_A_MERGE // 2] if note.level == level]
        group = run if len(run) > 1 else notes[start : start + 2] if start + 1 < len(notes) else notes[-2:]
        first = notes.index(group[0])
        united = yield from merge(request, [group], 2 * note_room(request))
        notes = [*notes[:first], *united, *notes[first + len(group) :]]
    return notes


def write_summary(
    method: str, request: SummaryRequest, notes: Sequence[SpanNote], shown: Sequence[SpanNote] = ()
) -> Flow[Draft]:
    """Write the summary from notes: prose, the key points beside it, and all that the next version needs.

    All notes are carried on; `shown` are the same ones as the summary is to show them.
    """
    (whole,) = yield from merge(request, [shown or notes], int(request.max_tokens * PROSE_SHARE))
    points, prose, names = fold_points(request), whole.text, request.config.names()
    left = request.max_tokens - request.count(f"{prose}\n\n{HEADING}\n") - 2
    missing = untold_points(points, f"{request.topic} {prose}")
    key_points = render(lay_out(missing, max_tokens=left, count=request.count, names=names), names)
    text = f"{prose}\n\n{HEADING}\n{key_points}" if left > 0 and key_points else prose
    return Draft(
        text=cut_middle(text, request.max_tokens, request.count),
        points={**points, "notes": [asdict(note) for note in notes]},
        method=method,
        temperature=voice_of(request.config, request.config.memory).temperature,
    )


def untold_points(points: SummaryPoints, prose: str) -> SummaryPoints:
    """Return the points that prose leaves out."""
    terms, told = term_set(prose), numbers(prose)

    def is_told(point: Point) -> bool:
        own, key = term_set(point["text"]), point["message_ids"][0]
        cited = term_set(" ".join(line for line in prose.splitlines() if key in line))
        here, near = len(own & terms) >= TOLD * len(own), len(own & cited) >= TOLD_WITH_ID * len(own)
        return told >= numbers(point["text"]) and (here or near)

    missing = [point for point in points["points"] if not is_told(point)]
    return SummaryPoints(**{**points, "points": missing})


def chunks_of(request: SummaryRequest, entries: Sequence[Entry]) -> list[list[Entry]]:
    """Split entries into runs whose text fits one call; an oversize entry is a run of its own."""
    return batches(entries, lambda entry: request.count(_as_text(request, [entry])) + 1, input_room(request))


def note_room(request: SummaryRequest) -> int:
    """Return the tokens that one note may have."""
    return max(LEAST_NOTE, min(request.max_tokens, input_room(request) // NOTES_A_MERGE))


def input_room(request: SummaryRequest) -> int:
    """Return the tokens that the text of one call may have, its frame taken off the whole budget."""
    frames = [_call(request, "", 9_999, condenses=condenses) for condenses in (True, False)]
    frame = max(prompt_tokens(call.messages, request.count) for call in frames)
    return max(64, request.config.memory.budget.total - frame - 16)


def _as_text(request: SummaryRequest, chunk: Sequence[Entry]) -> str:
    names = request.config.names()
    return "\n".join(render_entry(entry, names)["content"] for entry in chunk)


def _call(
    request: SummaryRequest, text: str, room: int, index: int = 0, *, condenses: bool = False
) -> ModelCall:
    """Return the call that condenses messages, or merges notes, to about `room` tokens, within the budget."""
    config, count, budget = request.config, request.count, request.config.memory.budget
    topic = cut_middle(request.topic, problem_room(budget), count)
    words = str(max(20, int(room * WORDS_A_TOKEN)))
    if condenses:
        system = CONDENSE.render(topic=topic, words=words)
    elif request.prompt:
        own = cut_middle(request.prompt, budget.system // 2, count)
        system = MERGE_FOR.render(prompt=own, topic=topic, words=words)
    else:
        system = MERGE.render(topic=topic, words=words)

    frame: list[WireMessage] = [{"role": "system", "content": system}, {"role": "user", "content": ""}]
    text = cut_middle(text, max(1, budget.total - prompt_tokens(frame, count)), count)
    view = fit_messages([frame[0], {"role": "user", "content": text}], budget.total, count)
    voice, room = voice_of(config, config.memory), max(16, room)
    hints: Hints = {"topic": request.topic}
    return make_call(voice, "summary", view, reply=room, floor=index, makes=request.kind, hints=hints)


def _answers(
    request: SummaryRequest, calls: Sequence[ModelCall], room: int, *, notes: bool = False
) -> Flow[list[str]]:
    """Make calls at the same time and return the texts, each a summary of what its call gave."""
    replies = yield calls
    pairs = zip(replies, calls, strict=True)
    return [check_summary(reply, call, room, request.count, notes=notes) for reply, call in pairs]
