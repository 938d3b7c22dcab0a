"""Results of speech recognition: Whisper, Deepgram, AssemblyAI, Rev AI, Amazon, Google, Azure, Fireflies.

Some services return what each speaker says, others return single words with their speakers.
"""

from collections.abc import Iterable, Iterator, Sequence

from moot.importers import ParsedMessage, ParsedTranscript, Reader, Source
from moot.plugins.importing.message_objects import JsonDict, first_text, time_of
from moot.state.errors import InputError

_SPEAKER_KEYS = (
    *("speaker_name", "speakerName", "speaker", "speaker_label", "speakerLabel", "speakerTag"),
    *("speaker_id", "speakerId"),
)
_TEXT_KEYS = ("transcript", "text", "punctuated_word", "display", "word", "value", "content")
_LISTS = (
    *("utterances", "sentences", "audio_segments", "monologues", "paragraphs", "segments", "phrases"),
    *("recognizedPhrases", "transcript", "words", "items", "word_segments", "results", "tokens"),
)
"""Keys of lists of parts with speakers, from whole utterances to single words. The first one counts."""
_MAX_LEVELS = 8
"""Maximum depth of a list in a file. Deepgram's list of paragraphs has a depth of 7."""


def _read(source: Source) -> ParsedTranscript | None:
    value = source.json
    if isinstance(value, list) and value and all(map(_has_words, value)):  # Recall
        value = {"utterances": value}
    if not isinstance(value, dict):
        return None
    lists = dict[str, list[JsonDict]]()
    for key, parts in _part_lists(value, _MAX_LEVELS):
        # Google repeats all words, with their speakers, in its last result.
        if len(parts) > len(lists.get(key, ())) or not _tells_speakers(lists[key]):
            lists[key] = parts
    if not _tells_speakers(lists.get("items", ())):
        lists["items"] = _labelled(lists.get("items", ()), lists.get("segments", ()))
    best = next((key for key in _LISTS if _tells_speakers(lists.get(key, ()))), None)
    if best is None:
        if lists.keys() & {"segments", "words", "utterances"}:
            raise InputError(
                "line 1: the speech recognition did not tell the speakers apart: run it again with speaker "
                "labels (diarization)"
            )
        return None
    parts = lists[best]
    messages = _spoken_words(parts) if _is_words(parts) else [*map(_utterance, parts)]
    return ParsedTranscript([each for each in messages if each.speaker], _title(value), names=_names(value))


def _has_words(item: object) -> bool:
    return isinstance(item, dict) and bool(_speaker_of(item)) and isinstance(item.get("words"), list)


def _names(value: JsonDict) -> dict[str, str]:
    """Return the names that Rev AI lists for the numbers of the speakers."""
    people = value.get("speakers")
    rows = people if isinstance(people, list) else []
    return {
        first_text(row, ("id",)): name
        for row in rows
        if isinstance(row, dict) and (name := first_text(row, ("name",)))
    }


def _part_lists(value: object, levels: int) -> Iterator[tuple[str, list[JsonDict]]]:
    """Yield each list of parts with texts and times, and its key, from the outside in."""
    inner: Iterable[object] = ()
    if isinstance(value, dict):
        for key, each in value.items():
            if key in _LISTS and isinstance(each, list) and each and all(map(_is_part, each)):
                yield key, each
        inner = value.values()
    elif isinstance(value, list) and not all(map(_is_part, value)):
        inner = value
    for each in inner if levels else ():
        yield from _part_lists(each, levels - 1)


def _is_part(part: object) -> bool:
    if not isinstance(part, dict):
        return False
    timed = {*("start", "start_time", "startTime", "offset", "offsetMilliseconds", "ts", "elements")}
    timed |= {"startOffset", "start_ms", "sentences"}
    # Punctuation has no time in Amazon's list of words.
    return bool(part.keys() & timed) or _has_words(part) or str(part.get("type")) == "punctuation"


def _tells_speakers(parts: Iterable[JsonDict]) -> bool:
    return any(_speaker_of(part) and _text_of(part) for part in parts)


def _labelled(words: Iterable[JsonDict], segments: Iterable[JsonDict]) -> list[JsonDict]:
    """Return words with the speakers of the segments in which they start, as Amazon relates them."""
    speakers: dict[object, object] = {}
    for segment in segments:
        inner = segment.get("items")
        for item in inner if isinstance(inner, list) else ():
            if isinstance(item, dict) and isinstance(item.get("start_time"), str):
                speakers[item["start_time"]] = item.get("speaker_label")
    starts = ((word, word.get("start_time")) for word in words)
    return [
        {**word, "speaker_label": speakers.get(start) if isinstance(start, str) else None}
        for word, start in starts
    ]


def _speaker_of(part: JsonDict) -> str:
    if name := first_text(part, _SPEAKER_KEYS):
        return name
    person = part.get("participant") or _best_alternative(part)
    return first_text(person, (*_SPEAKER_KEYS, "name", "id")) if isinstance(person, dict) else ""


def _best_alternative(part: JsonDict) -> JsonDict:
    for key in ("nBest", "alternatives"):
        if isinstance(best := part.get(key), list) and best and isinstance(best[0], dict):
            return best[0]
    return {}


def _is_words(parts: Sequence[JsonDict]) -> bool:
    kinds = ("word", "spacing")
    return any(
        part.keys() & {"word", "punctuated_word", "alternatives", "start_ms"} or part.get("type") in kinds
        for part in parts
    )


def _utterance(part: JsonDict) -> ParsedMessage:
    return ParsedMessage(_speaker_of(part), _text_of(part).strip(), _time_of(part))


def _time_of(part: JsonDict) -> str:
    elements = part.get("elements")
    first = elements[0] if isinstance(elements, list) and elements and isinstance(elements[0], dict) else {}
    return time_of(part) or first_text(part, ("startTime", "offset")) or first_text(first, ("ts",))


def _text_of(part: JsonDict) -> str:
    """Return the text of a part, which may be in its best alternative, its sentences or its elements."""
    if text := first_text(part, _TEXT_KEYS):
        return text
    for key, joint in (("sentences", " "), ("words", " "), ("elements", "")):
        if isinstance(inner := part.get(key), list):
            # Rev's elements include the spaces between words, which `first_text` would remove.
            return joint.join(
                str(each.get("value") or each.get("text") or "") for each in inner if isinstance(each, dict)
            )
    return first_text(_best_alternative(part), _TEXT_KEYS)


def _spoken_words(parts: Sequence[JsonDict]) -> list[ParsedMessage]:
    """Join single words to messages, one for each change of the speaker."""
    runs: list[tuple[str, str, list[str]]] = []
    raw_texts = [text if isinstance(text := part.get("text"), str) else "" for part in parts]
    joint = "" if any(text != text.strip() for text in raw_texts) else " "  # some texts include their spaces
    for part, raw in zip(parts, raw_texts, strict=True):
        speaker = _speaker_of(part) or (runs[-1][0] if runs else "")
        word = raw if raw and not joint else _text_of(part)
        if not runs or runs[-1][0] != speaker:
            runs.append((speaker, _time_of(part), []))
        words = runs[-1][2]
        if part.get("type") == "punctuation" and words:
            words[-1] += word
        elif word:
            words.append(word)
    return [ParsedMessage(speaker, joint.join(words).strip(), time) for speaker, time, words in runs]


def _title(value: JsonDict) -> str:
    """Return the title of a meeting, which may stand beside the list of sentences."""
    inner = value.get("data")
    transcript = inner.get("transcript") if isinstance(inner, dict) else None
    return next((first_text(each, ("title",)) for each in (transcript, value) if isinstance(each, dict)), "")


READER = Reader("speech recognition", "json", _read)
