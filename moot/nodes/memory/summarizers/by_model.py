"""What summarisers that ask a model share: requests within budget, checked answers, notes of the original.

Every message is seen by exactly one chunk, which a model condenses into a *note*. Notes are kept. A summary
is always made from the notes, never from an earlier summary: with a summariser that keeps each fact with
probability 0.9, one that rewrites its own output loses the 50 oldest facts within 200 turns.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moot.nodes.calls import ModelCall, Reply, WireMessage
from moot.nodes.memory.summarizers.summarizer import SummaryRequest
from moot.nodes.memory.summarizers.summary_checks import checked
from moot.nodes.prompts.fitting import View
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.rendering import render_entry
from moot.nodes.prompts.request import make_call, voice_of
from moot.nodes.text.tokens import cut_middle, prompt_tokens
from moot.state.entries import Entry

CONDENSE = load_prompt("condense", "topic", "words")
MERGE = load_prompt("merge", "topic", "words")
MERGE_FOR = load_prompt("merge_for", "prompt", "topic", "words")

NOTES_A_MERGE = 16
"""A note may take this part of a merge's input: so many can be merged at once."""
LEAST_NOTE = 40


@dataclass(frozen=True)
class Note:
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

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return dict(self.__dict__)


def kept_notes(request: SummaryRequest) -> list[Note]:
    """Return the notes behind the previous summary."""
    return [Note(**note) for note in request.carried("notes", Note.__annotations__)]


def condensed(
    request: SummaryRequest, chunks: Sequence[Sequence[Entry]], parts: Sequence[str] = ()
) -> Generator[Sequence[ModelCall], list[Reply], list[Note]]:
    """Condense chunks of messages into notes, all at the same time.

    Raises:
        SummaryFailed: an answer is unusable.
    """
    room = note_room(request)
    calls = [_condense(request, chunk, room, index) for index, chunk in enumerate(chunks)]
    replies = yield calls
    notes = []
    for index, (chunk, call, reply) in enumerate(zip(chunks, calls, replies, strict=True)):
        text = checked(reply, call, room, request.count)
        part = parts[index] if parts else ""
        notes.append(Note(text, chunk[0]["seq"], chunk[-1]["seq"], part=part))
    return notes


def directly(
    request: SummaryRequest, chunk: Sequence[Entry], room: int
) -> Generator[Sequence[ModelCall], list[Reply], Note]:
    """Summarise messages that fit one call at once; what comes of it is the first note.

    Raises:
        SummaryFailed: the answer is unusable.
    """
    call = _merge(request, _as_text(request, chunk), room)
    (reply,) = yield [call]
    text = checked(reply, call, room, request.count)
    return Note(text, chunk[0]["seq"], chunk[-1]["seq"])


def merged(
    request: SummaryRequest, groups: Sequence[Sequence[Note]], room: int
) -> Generator[Sequence[ModelCall], list[Reply], list[Note]]:
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
    return [_united(group, text) for group, text in zip(groups, texts, strict=True)]


def _united(group: Sequence[Note], text: str) -> Note:
    level = 1 + max(note.level for note in group)
    return Note(text, group[0].first, group[-1].through, level, group[-1].part)


def within_one_call(
    request: SummaryRequest, notes: list[Note]
) -> Generator[Sequence[ModelCall], list[Reply], list[Note]]:
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


def chunks_of(request: SummaryRequest, entries: Sequence[Entry]) -> list[list[Entry]]:
    """Split entries into runs whose text fits one call; an oversize entry is a run of its own."""
    names, room = request.config.names(), input_room(request)
    chunks: list[list[Entry]] = []
    used = room + 1
    for entry in entries:
        cost = request.count(render_entry(entry, names)["content"]) + 1
        if used + cost > room:
            chunks.append([])
            used = 0
        chunks[-1].append(entry)
        used += cost
    return chunks


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
    system = CONDENSE.render(topic=_short_topic(request), words=str(_words(room)))
    return _call(request, system, _as_text(request, chunk), room, index)


def _as_text(request: SummaryRequest, chunk: Sequence[Entry]) -> str:
    names = request.config.names()
    return "\n".join(render_entry(entry, names)["content"] for entry in chunk)


def _merge(request: SummaryRequest, text: str, room: int, index: int = 0) -> ModelCall:
    values = {"topic": _short_topic(request), "words": str(_words(room))}
    if request.prompt:
        own = cut_middle(request.prompt, request.config.memory.budget.system // 2, request.count)
        return _call(request, MERGE_FOR.render(prompt=own, **values), text, room, index)
    return _call(request, MERGE.render(**values), text, room, index)


def _call(request: SummaryRequest, system: str, text: str, room: int, index: int) -> ModelCall:
    config, total = request.config, request.config.memory.budget.total
    frame: tuple[WireMessage, ...] = ({"role": "system", "content": system}, {"role": "user", "content": ""})
    left = total - prompt_tokens(frame, request.count)
    text = cut_middle(text, max(1, left), request.count)
    messages: tuple[WireMessage, ...] = (frame[0], {"role": "user", "content": text})
    view = View(messages, prompt_tokens(messages, request.count), total)
    voice, hints = voice_of(config, config.memory), {"topic": request.topic}
    return make_call(voice, "summary", view, reply=max(16, room), floor=index, hints=hints)


def _short_topic(request: SummaryRequest) -> str:
    return cut_middle(request.topic, request.config.memory.budget.system // 4, request.count)


def _words(tokens: int) -> int:
    return max(20, int(tokens * 0.6))


def with_notes(points: Mapping[str, Any], notes: Sequence[Note]) -> dict[str, Any]:
    """Return a summary's points with the notes behind its prose."""
    return {**points, "notes": [note.to_json() for note in notes]}
