"""What summarisers that ask a model share: requests within budget, checked answers, notes of the original.

Every message is seen by exactly one chunk, which a model condenses into a *note*. Notes are kept. A summary
is always made from the notes, never from an earlier summary: with a summariser that keeps each fact with
probability 0.9, one that rewrites its own output loses the 50 oldest facts within 200 turns.

Beside the prose stand key points found by rule that it leaves out: what a model forgets is not lost.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from moot.nodes.calls import Flow, Hints, ModelCall, WireMessage
from moot.nodes.memory.summarizers.points import Point
from moot.nodes.memory.summarizers.points_layout import SummaryPoints, lay_out, render
from moot.nodes.memory.summarizers.rule_based import folded_points
from moot.nodes.memory.summarizers.summarizer import Draft, SummaryRequest
from moot.nodes.memory.summarizers.summary_checks import checked
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
    """Return the notes behind the previous summary."""
    return [SpanNote(**note) for note in request.carried("notes", SpanNote.__annotations__)]


def condensed(
    request: SummaryRequest, chunks: Sequence[Sequence[Entry]], parts: Sequence[str] = ()
) -> Flow[list[SpanNote]]:
    """Condense chunks of messages into notes, all at the same time.

    Raises:
        SummaryFailed: an answer is unusable.
    """
    room = note_room(request)
    calls = [_condense(request, chunk, room, index) for index, chunk in enumerate(chunks)]
    replies = yield calls
    texts = [checked(reply, call, room, request.count) for reply, call in zip(replies, calls, strict=True)]
    return [
        SpanNote(text, chunk[0]["seq"], chunk[-1]["seq"], part=part)
        for text, chunk, part in zip(texts, chunks, parts or [""] * len(chunks), strict=True)
    ]


def directly(request: SummaryRequest, chunk: Sequence[Entry]) -> Flow[SpanNote]:
    """Summarise messages that fit one call at once; what comes of it is the first note.

    Raises:
        SummaryFailed: the answer is unusable.
    """
    room = prose_room(request)
    call = _merge(request, _as_text(request, chunk), room)
    (reply,) = yield [call]
    return SpanNote(checked(reply, call, room, request.count), chunk[0]["seq"], chunk[-1]["seq"])


def merged(request: SummaryRequest, groups: Sequence[Sequence[SpanNote]], room: int) -> Flow[list[SpanNote]]:
    """Merge each group of notes into one of at most `room` tokens, all groups at the same time.

    A group that fits as it is stays as it was written: what is not rewritten loses nothing.

    Raises:
        SummaryFailed: an answer is unusable.
    """
    texts = ["\n".join(dict.fromkeys(note.text for note in group)) for group in groups]
    long = [index for index, text in enumerate(texts) if request.count(text) > room]
    if long:
        calls = [_merge(request, texts[index], room, place) for place, index in enumerate(long)]
        replies = yield calls
        for index, call, reply in zip(long, calls, replies, strict=True):
            texts[index] = checked(reply, call, room, request.count, notes=True)
    return [
        SpanNote(
            text, group[0].first, group[-1].through, 1 + max(note.level for note in group), group[-1].part
        )
        for group, text in zip(groups, texts, strict=True)
    ]


def within_one_call(request: SummaryRequest, notes: list[SpanNote]) -> Flow[list[SpanNote]]:
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
        united = yield from merged(request, [group], 2 * note_room(request))
        notes = [*notes[:first], *united, *notes[first + len(group) :]]
    return notes


def written(
    method: str, request: SummaryRequest, notes: Sequence[SpanNote], shown: Sequence[SpanNote] = ()
) -> Flow[Draft]:
    """Write the summary from notes: prose, the key points beside it, and all that the next version needs.

    Args:
        method: the summariser's name.
        request: what is summarised.
        notes: to be carried on.
        shown: the same notes as the summary is to show them, where that is another way.
    """
    (whole,) = yield from merged(request, [shown or notes], prose_room(request))
    points, prose = folded_points(request), whole.text
    left = request.max_tokens - request.count(f"{prose}\n\n{HEADING}\n") - 2
    names = request.config.names()
    laid = lay_out(
        _untold(points, f"{request.topic} {prose}"), max_tokens=left, count=request.count, names=names
    )
    key_points = render(laid, names) if left > 0 else ""
    text = f"{prose}\n\n{HEADING}\n{key_points}" if key_points else prose
    return Draft(
        text=cut_middle(text, request.max_tokens, request.count),
        points={**points, "notes": [asdict(note) for note in notes]},
        method=method,
        temperature=voice_of(request.config, request.config.memory).temperature,
    )


def _untold(points: SummaryPoints, prose: str) -> SummaryPoints:
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
    names = request.config.names()

    def shown(entry: Entry) -> int:
        return request.count(render_entry(entry, names)["content"]) + 1

    return batches(entries, shown, input_room(request))


def prose_room(request: SummaryRequest) -> int:
    """Return the tokens that the prose of a summary may have."""
    return int(request.max_tokens * PROSE_SHARE)


def note_room(request: SummaryRequest) -> int:
    """Return the tokens that one note may have."""
    return max(LEAST_NOTE, min(request.max_tokens, input_room(request) // NOTES_A_MERGE))


def input_room(request: SummaryRequest) -> int:
    """Return the tokens that the text of one call may have, its frame taken off the whole budget."""
    frame = max(
        prompt_tokens(call.messages, request.count)
        for call in (_merge(request, "", 9_999), _condense(request, [], 9_999))
    )
    return max(64, request.config.memory.budget.total - frame - 16)


def _condense(request: SummaryRequest, chunk: Sequence[Entry], room: int, index: int = 0) -> ModelCall:
    system = CONDENSE.render(topic=_short_topic(request), words=_words(room))
    return _call(request, system, _as_text(request, chunk), room, index)


def _as_text(request: SummaryRequest, chunk: Sequence[Entry]) -> str:
    names = request.config.names()
    return "\n".join(render_entry(entry, names)["content"] for entry in chunk)


def _merge(request: SummaryRequest, text: str, room: int, index: int = 0) -> ModelCall:
    values = {"topic": _short_topic(request), "words": _words(room)}
    if request.prompt:
        own = cut_middle(request.prompt, request.config.memory.budget.system // 2, request.count)
        return _call(request, MERGE_FOR.render(prompt=own, **values), text, room, index)
    return _call(request, MERGE.render(**values), text, room, index)


def _call(request: SummaryRequest, system: str, text: str, room: int, index: int) -> ModelCall:
    config, total = request.config, request.config.memory.budget.total
    frame: list[WireMessage] = [{"role": "system", "content": system}, {"role": "user", "content": ""}]
    left = total - prompt_tokens(frame, request.count)
    text = cut_middle(text, max(1, left), request.count)
    view = fit_messages([frame[0], {"role": "user", "content": text}], total, request.count)
    voice, room = voice_of(config, config.memory), max(16, room)
    hints: Hints = {"topic": request.topic}
    return make_call(voice, "summary", view, reply=room, floor=index, makes=request.kind, hints=hints)


def _short_topic(request: SummaryRequest) -> str:
    return cut_middle(request.topic, problem_room(request.config.memory.budget), request.count)


def _words(tokens: int) -> str:
    return str(max(20, int(tokens * WORDS_A_TOKEN)))
