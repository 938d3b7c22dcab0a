"""`llm`: a model condenses messages into chunk summaries and writes the summary from all of them.

Every message belongs to exactly one chunk, and a model condenses each chunk into a chunk summary. A rolling
summary is always written from chunk summaries, never from an earlier rolling summary: a summarizer that keeps
each fact with probability 0.9 and rewrites its own output loses the 50 oldest facts within 200 turns.

Points found by rule follow the prose only if the prose lacks their numbers or their speaker.
"""

import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

from moot.calls.model_calls import INCOMPLETE, REPEATED, CallGenerator, ModelCall, Reply, WireMessage
from moot.memory.summarizers import summarizer
from moot.memory.summarizers.rule_based import SummaryPoints, first_seq, fold_points, layout_points, render
from moot.models.failures import REFUSALS
from moot.prompts import truncation
from moot.prompts.request import make_call, model_params
from moot.prompts.templates import fenced, load_prompt_template, system_message, truncate_fenced, unfenced
from moot.prompts.truncation import display_name, problem_token_limit, render_entry
from moot.state.entries import ENTRY_ID, Entry, traits_of
from moot.text.plain_text import break_template_tokens
from moot.text.terms import numbers, split_sentences, terms
from moot.text.tokens import TokenCounter, batches, prompt_tokens, truncate_middle

ECHO_SHARE = 0.8
"""Share of copied text at which a model's reply counts as a repetition of its input. Text is copied if it is
word for word the same."""
ECHO_CHARS = 150
"""Minimum number of characters in replies and inputs that are checked for repetition. A short reply may
repeat its input."""
_CHUNK = 40  # number of characters that are searched for as a whole

_MUCH, _VERY_MUCH = 12, 60  # distinct terms of an original for which a summary must share one term, or two
# minimum numbers of terms without a shared one, for another language and for another script
_TELLING, _TELLING_ELSEWHERE = 30, 9
_FIGURE = re.compile(r"(?<!\w)\d+(?:[.,]\d+)*(?!\w)")
_CITATIONS = re.compile(rf"\s?\[{ENTRY_ID.pattern}(?:, ?{ENTRY_ID.pattern})*\]")
_LONG_EXCUSE = 200  # an excuse within a longer text than this is part of a summary

_STRUCTURE = re.compile(
    r"(?:```\w*\s*)?(?:\{\s*[\"'}]|\[\s*[\"{]|<(?:!doctype|\?xml|html|head|body)\b)", re.I
)
_EXCUSE = re.compile(
    r"""[\W_]*+
    (?:(?:here\ (?:is|are)\b[^:\n]{0,40}|the\ )?
       (?:summary|notes?|zusammenfassung|résumé|resumen|摘要|总结)[^\w:：]*+[:：][\W_]*+)?
    (?:
      (?:(?:i'm|i\ am|we're|we\ are)\ )?(?:(?:really|very|so|truly|terribly)\ )?sorry\b
    | i\ apologi[sz]e\b | (?:my\ )?apologies\b | (?:unfortunately|regrettably)\W+(?:i|we)\b
    | as\ an?\ (?:ai|artificial\ intelligence|(?:large\ )?language\ model)\b
    | i(?:'m|\ am)\ (?:unable|not\ (?:able|allowed))\b
    | i\ (?:can't|cannot|can\ not|could\ not|couldn't|won't)\b
    | (?:\w+\ ?)?(?:error|exception)\b\s{0,2}[:(\d] | traceback\b
    | (?:http|status|code)\S*\s*[45]\d\d\b
    | [45]\d\d\W{1,3}(?:bad|internal|service|gateway|too\ many|unauthori[sz]ed|forbidden|not\ found|error)\b
    | (?:rate\ limit|quota)\S*\ (?:exceeded|reached|hit)\b | too\ many\ requests\b
    | internal\ server\ error\b | bad\ gateway\b | gateway\ time-?out\b
    | (?:the\ )?(?:service|server|model)\ (?:is\ )?(?:currently\ |temporarily\ )?(?:unavailable|overloaded)\b
    | (?:the\ )?(?:request|connection)\ (?:timed\ out|timeout|refused|reset|failed)\b
    | you(?:'ve|\ have)?\ exceeded\b | (?:invalid|incorrect|missing)\ api\ key\b
    | (?:很|非常|十分)?(?:抱歉|对不起|對不起|不好意思) | (?:大変|誠に)?申し訳 | すみません
    | (?:정말\ )?(?:죄송|미안)
    | es\ tut\ mir\ (?:sehr\ )?leid\b | leider\ (?:kann|bin|darf)\ ich\b | entschuldigung\b
    | (?:je\ suis\ )?(?:vraiment\ )?désolée?\b | malheureusement\W+je\b
    | lo\ siento\b | lamentablemente\b | mi\ dispiace\b | (?:me\ )?desculpe\b | lamento\b
    | извините\b | простите\b | к\ сожалению\W+я\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)


CUT_OFF = frozenset({"length", INCOMPLETE, REPEATED, *REFUSALS})
"""Finish reasons of a summary that is cut off, so that later messages are missing from it."""


def check_summary(
    reply: Reply, call: ModelCall, max_tokens: int, count: TokenCounter, *, notes: bool = False
) -> str:
    """Return the text of a model's reply if it is a usable summary.

    The text is cut to `max_tokens` tokens. `notes`: the input consists of chunk summaries, so repeating most
    of them is allowed.

    Raises:
        SummaryFailed: the reply failed, or is no summary.
    """
    if not reply.ok:
        raise summarizer.SummaryFailed(reply.error)
    if reply.finish_reason in CUT_OFF:
        raise summarizer.SummaryFailed(f"the model's summary was cut off ({reply.finish_reason})")
    text = reply.text.strip()
    instructions, source = (unfenced(call.messages[index]["content"]) for index in (0, -1))
    if not any(map(str.isalnum, text)):
        raise summarizer.SummaryFailed("the model's summary is empty")
    if _STRUCTURE.match(text):
        raise summarizer.SummaryFailed("the model replied with JSON or HTML instead of a summary")
    if _is_excuse(text, source):
        raise summarizer.SummaryFailed(
            "the model replied with an excuse or an error message instead of a summary"
        )
    if count(text) > 4 * max_tokens:
        raise summarizer.SummaryFailed("the model's summary is far longer than requested")
    if _is_echo(text, source, min_share=0.95 if notes or count(text) <= max_tokens else 0.5):
        raise summarizer.SummaryFailed("the model repeated its input")
    if _has_nothing_of(text, source):
        raise summarizer.SummaryFailed("the model's summary has no words in common with the messages")
    if _repeats(_bare_words(text), _bare_words(instructions)):
        raise summarizer.SummaryFailed("the model repeated its instructions")
    return truncate_middle(_mended(text, source), max_tokens, count)


def _mended(text: str, source: str) -> str:
    """Remove invented numbers and unknown message ids from a model's summary.

    A sentence with an invented number is removed as a whole. A number is invented if the source does not
    contain it.

    Numbers of one digit are not checked.

    Raises:
        SummaryFailed: most of the summary consists of such sentences.
    """
    known_ids = frozenset(ENTRY_ID.findall(source))
    text = _CITATIONS.sub(lambda match: _known_citations(match[0], known_ids), text)
    figures = frozenset(map(_digits, _FIGURE.findall(source)))
    pieces, end, dropped_chars = list[str](), 0, 0
    for sentence in split_sentences(text):
        sentence_figures = map(_digits, _FIGURE.findall(sentence.text))
        if any(len(each) > 1 and each not in figures for each in sentence_figures):
            pieces.append(text[end : sentence.start])
            end = sentence.start + len(sentence.text)
            dropped_chars += len(sentence.text)
    if 2 * dropped_chars > len(text):
        raise summarizer.SummaryFailed(
            "most of the model's summary has invented numbers, which appear in none of the messages"
        )
    return "".join([*pieces, text[end:]]).strip()


def _known_citations(bracket: str, known_ids: frozenset[str]) -> str:
    """Remove unknown message ids from a bracketed citation, and return `""` if no id is known."""
    ids = [key for key in ENTRY_ID.findall(bracket) if key in known_ids]
    return f"{bracket[: len(bracket) - len(bracket.lstrip())]}[{', '.join(ids)}]" if ids else ""


def _digits(number: str) -> str:
    """Remove digit separators from a number, because languages use different separators."""
    return number.replace(",", "").replace(".", "")


def _is_excuse(text: str, source: str) -> bool:
    """Return True if a text starts like an excuse or error message rather than a summary."""
    if not _EXCUSE.match(text.replace("’", "'")):
        return False
    if set(ENTRY_ID.findall(text)) & set(ENTRY_ID.findall(source)):
        return False
    text_terms = set(terms(text))
    return len(text) < _LONG_EXCUSE or 2 * len(text_terms & set(terms(source))) < len(text_terms)


def _is_echo(text: str, source: str, *, min_share: float) -> bool:
    """Return True if a text repeats at least `min_share` of its source or of its beginning."""
    text_words, source_words = _bare_words(text), _bare_words(source)
    if len(text_words) < ECHO_CHARS or len(source_words) < ECHO_CHARS:
        return False
    if source_words.startswith(text_words):
        return True
    return len(text_words) >= min_share * len(source_words) and _repeats(text_words, source_words)


def _bare_words(text: str) -> str:
    """Return the words of a text in lower case without punctuation, for comparing texts."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def _repeats(text: str, source: str) -> bool:
    """Return True if most of a text occurs word for word in `source`."""
    chunks = [text[start : start + _CHUNK] for start in range(0, len(text) - _CHUNK, _CHUNK)]
    return len(chunks) > 2 and sum(chunk in source for chunk in chunks) >= ECHO_SHARE * len(chunks)


def _has_nothing_of(text: str, source: str) -> bool:
    """Return True if a text lacks a source's terms. Even translations share names and ids."""
    text_terms, source_terms = frozenset(terms(text)), frozenset(terms(source))
    min_shared = (len(source_terms) >= _MUCH) + (len(source_terms) >= _VERY_MUCH)
    if len(text_terms & source_terms) >= min_shared:
        return False
    return len(text_terms) < (_TELLING if _script(text) == _script(source) else _TELLING_ELSEWHERE)


def _script(text: str) -> str:
    """Return the main writing system at the start of a text, such as `LATIN`."""
    letters = (unicodedata.name(letter, "?").split()[0] for letter in text[:2000] if letter.isalpha())
    return max(Counter(letters).items(), key=lambda item: (item[1], item[0]), default=("", 0))[0]


CONDENSE = load_prompt_template("condense", "topic", "words")
MERGE = load_prompt_template("merge", "topic", "words")
MERGE_FOR = load_prompt_template("merge_for", "prompt", "topic", "words")

SUMMARIES_PER_MERGE = 16
"""Maximum number of chunk summaries that one model call can merge. Each chunk summary may take
1/`SUMMARIES_PER_MERGE` of the merge's input."""
MIN_CHUNK_SUMMARY_TOKENS = 40
CATCH_UP_CALLS = 4
"""Maximum number of model calls with which one summary catches up on messages whose summary failed before. It
bounds what one turn can cost after a long outage."""
WORDS_PER_TOKEN = 0.5
"""Number of words per token that a model is asked to write. English has 0.75 words per token. Three summaries
that kept numbers and ids, as requested, had 0.50 to 0.60."""
PROSE_SHARE = 0.65
"""Share of the summary's tokens that is reserved for prose written by the model. Key points take the rest."""
_LABEL = re.compile(r"\b\d+[A-Z]{1,2}\.\d+\b")
"""Pattern that matches the label of a critique point in a council debate, such as 2A.3. The label does not
count as a number."""
KEY_POINTS = "Key points:"


@dataclass(frozen=True)
class ChunkSummary:
    """Summary of consecutive messages, written by a model."""

    text: str
    first: int
    """Sequence number (`seq`) of the first message that the chunk summary covers."""
    through: int
    """Sequence number (`seq`) of the last message that the chunk summary covers."""
    level: int = 0
    """Number of times that summaries were merged into this chunk summary. 0 means that it was made from
    messages."""
    part: str = ""
    """Name of the debate phase that this chunk summary covers. Only the `hierarchical` summarizer sets the
    name."""


def reusable_chunk_summaries(request: summarizer.SummaryRequest) -> list[ChunkSummary]:
    """Return the chunk summaries that the previous version stored for this method."""
    pool = request.previous.get("points") or {}
    notes = pool.get("notes") if isinstance(pool, Mapping) else None
    rows = notes if isinstance(notes, list) else []
    fields = set(ChunkSummary.__annotations__)
    return [ChunkSummary(**row) for row in rows if isinstance(row, Mapping) and set(row) == fields]


Split = Callable[[Sequence[Entry]], list[list[Entry]]]
"""Function that splits messages into the chunks that are summarized, each with one model call."""


def read_messages(
    request: summarizer.SummaryRequest, split: Split, *, by_phase: bool = False
) -> CallGenerator[tuple[list[ChunkSummary], int, str]]:
    """Return chunk summaries of all messages, the `seq` through which messages are given up, and an error.

    The chunk summaries are in order. The error is why new messages have no chunk summary, or `""`.

    Only new messages and those without a chunk summary are read. New messages are first. If a model can
    summarize any of them, messages whose summary failed before are read once more, at most `CATCH_UP_CALLS`
    chunks at a time. So a model that always fails is paid once for each message.

    Raises:
        SummaryFailed: no chunk summary of the new messages is usable.
    """
    notes, given_up, failure = reusable_chunk_summaries(request), _given_up_through(request), ""
    unread, first_new = _unread(request, notes), request.entries[0]["seq"]
    new = [entry for entry in unread if entry["seq"] >= first_new]
    late = split([entry for entry in unread if given_up < entry["seq"] < first_new])[:CATCH_UP_CALLS]
    chunks = split(new)
    if len(chunks) == 1 and not (notes or late or by_phase):
        return [(yield from summarize_at_once(request, chunks[0]))], given_up, failure
    if chunks:
        came, failure = yield from condense(request, chunks, by_phase=by_phase)
        notes += came
    if late:
        came = list[ChunkSummary]()
        try:
            came, _ = yield from condense(request, late, by_phase=by_phase)
        except summarizer.SummaryFailed as error:
            if not notes:
                raise
            logging.getLogger(__name__).info("older messages stay summarized by rule: %s", error)
        if len(came) < len(late):
            given_up = late[-1][-1]["seq"]
        notes += came
    return sorted(notes, key=lambda note: note.first), given_up, failure


def _given_up_through(request: summarizer.SummaryRequest) -> int:
    points = request.previous.get("points") or {}
    seq = points.get("given_up_through") if isinstance(points, Mapping) else None
    return seq if isinstance(seq, int) else -1


def _unread(request: summarizer.SummaryRequest, notes: Sequence[ChunkSummary]) -> list[Entry]:
    """Return the messages that no chunk summary covers, oldest first."""
    read = {seq for note in notes for seq in range(note.first, note.through + 1)}
    return [entry for entry in request.past if entry["seq"] not in read]


def draft_from_chunks(
    request: summarizer.SummaryRequest,
    split: Split,
    write: Callable[[list[ChunkSummary]], summarizer.SummaryGenerator],
    *,
    by_phase: bool = False,
) -> summarizer.SummaryGenerator:
    """Read the messages, and write the summary from their chunk summaries, which are kept if this fails.

    Raises:
        SummaryFailed: a reply is unusable.
    """
    notes, given_up, failure = yield from read_messages(request, split, by_phase=by_phase)
    try:
        draft = yield from write(notes)
    except summarizer.SummaryFailed as error:
        kept = {"notes": [asdict(note) for note in notes], "given_up_through": given_up}
        raise summarizer.SummaryFailed(str(error), kept) from error
    method = f"{draft.method}, some messages by rule" if _unread(request, notes) else draft.method
    points = {**draft.points, "given_up_through": given_up}
    return replace(draft, method=method, points=points, failure=failure)


def condense(
    request: summarizer.SummaryRequest, chunks: Sequence[Sequence[Entry]], *, by_phase: bool = False
) -> CallGenerator[tuple[list[ChunkSummary], str]]:
    """Summarize each chunk of messages with one model call, and make all calls in parallel.

    Return the usable summaries, and the errors of the others, or `""`. The other messages wait for a later
    summary.

    Raises:
        SummaryFailed: no reply is usable.
    """
    remaining = chunk_summary_token_limit(request)
    calls = [
        _call(request, messages_text(request, chunk), remaining, call_index, condenses=True)
        for call_index, chunk in enumerate(chunks)
    ]
    notes, errors = list[ChunkSummary](), list[str]()
    replies = yield calls
    for reply, call, chunk in zip(replies, calls, chunks, strict=True):
        try:
            text = check_summary(reply, call, remaining, request.count)
        except summarizer.SummaryFailed as error:
            errors.append(str(error))
            continue
        part = chunk[0]["phase"] or "debate" if by_phase else ""
        notes.append(ChunkSummary(text, chunk[0]["seq"], chunk[-1]["seq"], part=part))
    failure = "; ".join(dict.fromkeys(errors))
    if not notes:
        raise summarizer.SummaryFailed(failure)
    return notes, failure


def summarize_at_once(
    request: summarizer.SummaryRequest, chunk: Sequence[Entry]
) -> CallGenerator[ChunkSummary]:
    """Summarize messages that fit in one model call. The reply is also the first chunk summary.

    Raises:
        SummaryFailed: the reply is unusable.
    """
    remaining = int(request.max_tokens * PROSE_SHARE)
    (text,) = yield from _answers(
        request, [_call(request, messages_text(request, chunk), remaining)], remaining
    )
    return ChunkSummary(text, chunk[0]["seq"], chunk[-1]["seq"])


def merge(
    request: summarizer.SummaryRequest, groups: Sequence[Sequence[ChunkSummary]], max_tokens: int
) -> CallGenerator[list[ChunkSummary]]:
    """Merge each group of chunk summaries into one summary of at most `max_tokens` tokens.

    A group that fits is not rewritten, so it loses nothing.

    Raises:
        SummaryFailed: a reply is unusable.
    """
    texts = ["\n".join(dict.fromkeys(note.text for note in group)) for group in groups]
    long_indices = [index for index, text in enumerate(texts) if request.count(text) > max_tokens]
    if long_indices:
        fenced_texts = [fenced(texts[index], request.config.fence) for index in long_indices]
        calls = [_call(request, text, max_tokens, call_index) for call_index, text in enumerate(fenced_texts)]
        answers = yield from _answers(request, calls, max_tokens, notes=True)
        for index, answer in zip(long_indices, answers, strict=True):
            texts[index] = answer
    return [
        ChunkSummary(
            text, group[0].first, group[-1].through, 1 + max(note.level for note in group), group[-1].part
        )
        for group, text in zip(groups, texts, strict=True)
    ]


def merge_to_fit_one_call(
    request: summarizer.SummaryRequest, notes: list[ChunkSummary]
) -> CallGenerator[list[ChunkSummary]]:
    """Merge chunk summaries until they fit into one model call.

    If there are too many chunk summaries, the oldest ones of a level are merged.

    A fact is only rewritten again when the chunk summaries outgrow a whole prompt.
    """
    token_limit = input_token_limit(request)
    while len(notes) > 1 and sum(request.count(note.text) + 2 for note in notes) > token_limit:
        level = min(note.level for note in notes[:-1])
        start = next(index for index, note in enumerate(notes) if note.level == level)
        run = [note for note in notes[start : start + SUMMARIES_PER_MERGE // 2] if note.level == level]
        group = run if len(run) > 1 else notes[start : start + 2] if start + 1 < len(notes) else notes[-2:]
        first = notes.index(group[0])
        merged_notes = yield from merge(request, [group], 2 * chunk_summary_token_limit(request))
        notes = [*notes[:first], *merged_notes, *notes[first + len(group) :]]
    return notes


def write_summary(
    method: str,
    request: summarizer.SummaryRequest,
    notes: Sequence[ChunkSummary],
    source_notes: Sequence[ChunkSummary] = (),
) -> CallGenerator[summarizer.Draft]:
    """Write a debate's summary from the summaries of its chunks.

    The summary consists of prose and key points. `notes` are all chunk summaries, which are stored.
    `source_notes` are the ones to write from, if they differ.
    """
    (merged_note,) = yield from merge(request, [source_notes or notes], int(request.max_tokens * PROSE_SHARE))
    points, prose, names = fold_points(request), merged_note.text, request.config.names()
    remaining = request.max_tokens - request.count(f"{prose}\n\n{KEY_POINTS}\n") - 2
    missing = lacking_points(points, f"{request.topic} {prose}", names, current_seqs(request))
    layout = layout_points(missing, max_tokens=remaining, count=request.count, names=names)
    text = f"{prose}\n\n{KEY_POINTS}\n{render(layout, names)}" if remaining > 0 and layout["shown"] else prose
    return summarizer.Draft(
        text=truncate_middle(text, request.max_tokens, request.count),
        points={**points, "notes": [asdict(note) for note in notes]},
        method=method,
        temperature=model_params(request.config, request.config.memory).temperature,
    )


def lacking_points(
    points: SummaryPoints, prose: str, names: Mapping[str, str], current: Container[int] | None = None
) -> SummaryPoints:
    """Return the points that are clearly missing from a model's summary.

    A missing point has a number that the prose lacks, or is a tool's error message. The first point of a
    speaker whom the prose does not name is also missing. A point whose text was cut is left out. `current`
    has the `seq` of the messages that no later one replaces. `None`: all messages.
    """
    prose_numbers, folded_prose, added_speakers = numbers(prose), prose.casefold(), set[str]()
    missing = []
    for point in points["points"]:
        if (current is not None and first_seq(point) not in current) or point["text"].endswith("…"):
            continue
        speaker = point["speaker"]
        is_new = display_name(speaker, names).casefold() not in folded_prose and speaker not in added_speakers
        if is_new or point.get("error") or not numbers(_LABEL.sub("", point["text"])) <= prose_numbers:
            added_speakers.add(speaker)
            missing.append(point)
    return SummaryPoints(**{**points, "points": missing})


def current_seqs(request: summarizer.SummaryRequest) -> frozenset[int] | None:
    """Return the numbers of the messages that a summary for one debater treats as current.

    Current messages are the debater's latest proposal and the criticism after it. In any other kind of
    summary, all messages are current, and the result is `None`.
    """
    if request.kind != "perspective":
        return None
    last_seq = max((e["seq"] for e in request.past if traits_of(e).proposes), default=-1)
    return frozenset(e["seq"] for e in request.past if e["seq"] >= last_seq)


def chunks_of(request: summarizer.SummaryRequest, entries: Sequence[Entry]) -> list[list[Entry]]:
    """Split entries into groups that each fit in one call. A larger entry is a group of its own."""
    return batches(
        entries, lambda entry: request.count(messages_text(request, [entry])) + 1, input_token_limit(request)
    )


def chunk_summary_token_limit(request: summarizer.SummaryRequest) -> int:
    """Return the maximum number of tokens in a chunk summary."""
    return max(
        MIN_CHUNK_SUMMARY_TOKENS, min(request.max_tokens, input_token_limit(request) // SUMMARIES_PER_MERGE)
    )


def input_token_limit(request: summarizer.SummaryRequest) -> int:
    """Return the total budget of a summarization call without the instructions."""
    frames = [_call(request, "", 9_999, condenses=condenses) for condenses in (True, False)]
    frame = max(prompt_tokens(call.messages, request.count) for call in frames)
    return max(64, request.config.memory.budget.total - frame - 16)


def messages_text(request: summarizer.SummaryRequest, chunk: Sequence[Entry]) -> str:
    """Return the text of the messages, each labelled with the speaker's name and the message id."""
    names = request.config.names()
    return "\n".join(render_entry(entry, names, request.config.fence)["content"] for entry in chunk)


def _call(
    request: summarizer.SummaryRequest, text: str, remaining: int, index: int = 0, *, condenses: bool = False
) -> ModelCall:
    """Return a model call that summarizes messages or summaries in at most `remaining` tokens."""
    count, budget = request.count, request.config.memory.budget
    topic = fenced(truncate_middle(request.topic, problem_token_limit(budget), count), request.config.fence)
    words = str(max(20, int(remaining * WORDS_PER_TOKEN)))
    if condenses:
        system = CONDENSE.render(topic=topic, words=words)
    elif request.prompt:
        prompt = truncate_middle(break_template_tokens(request.prompt), budget.system // 2, count)
        system = MERGE_FOR.render(prompt=prompt, topic=topic, words=words)
    else:
        system = MERGE.render(topic=topic, words=words)

    return summary_call(request, system, text, max_tokens=remaining, call_index=index)


def summary_call(
    request: summarizer.SummaryRequest, system: str, text: str, *, max_tokens: int, call_index: int = 0
) -> ModelCall:
    """Return a model call that writes a summary, with `text` shortened to fit the prompt's token budget.

    The reply has at most `max_tokens` tokens, at least 16. Calls of a batch are counted from 0.
    """
    config, count, total = request.config, request.count, request.config.memory.budget.total
    frame: list[WireMessage] = [system_message(system, config.fence), {"role": "user", "content": ""}]
    text = truncate_fenced(text, max(1, total - prompt_tokens(frame, count)), count)
    content: WireMessage = {"role": "user", "content": text}
    head = truncation.Block("system", frame[0], truncation.KEEP)
    body = truncation.Block("messages", content, truncation.KEEP)
    prompt = truncation.truncate_blocks([head, body], total, count)
    params, reply = model_params(config, config.memory), max(16, max_tokens)
    return make_call(params, "summary", prompt, reply=reply, call_index=call_index, memory_kind=request.kind)


def _answers(
    request: summarizer.SummaryRequest, calls: Sequence[ModelCall], remaining: int, *, notes: bool = False
) -> CallGenerator[list[str]]:
    """Make model calls in parallel, check the replies, and return their texts."""
    replies = yield calls
    pairs = zip(replies, calls, strict=True)
    return [check_summary(reply, call, remaining, request.count, notes=notes) for reply, call in pairs]


class Llm(summarizer.Summarizer):
    """Summarizer that uses a model to write the summary."""

    name = "llm"

    def summarize(self, request: summarizer.SummaryRequest) -> summarizer.SummaryGenerator:
        """Summarize new messages in chunks, and write the debate's summary from all chunk summaries."""

        def write(notes: list[ChunkSummary]) -> summarizer.SummaryGenerator:
            fitting = yield from merge_to_fit_one_call(request, notes)
            return (yield from write_summary(self.name, request, fitting))

        return (yield from draft_from_chunks(request, partial(chunks_of, request), write))
