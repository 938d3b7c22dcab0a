"""What one message does in the debate: claims, evidence, concessions, questions, challenges, shifts.

Cue words sharpen the reading where the language is known; everything has a structural fallback (marks,
digits, names, targets, place in the message, TF-IDF salience), so a message in any script yields something.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Literal, NamedTuple, TypeVar

from typing_extensions import TypedDict

from moot.nodes.reading.cues import CueKind, CueWord, find_cues
from moot.nodes.reading.exhibits import EvidenceForm, Exhibit, find_evidence
from moot.nodes.reading.names import addresses_someone, debaters_among, mentions
from moot.nodes.text.likeness import salience
from moot.nodes.text.plain import clip, excerpt, inert, word_set
from moot.nodes.text.sentences import Sentence, split_sentences
from moot.nodes.text.terms import terms
from moot.state.entries import Entry, kind_of

MAX_SENTENCE = 280
"""Longest quoted sentence, in characters; a longer one is shortened around what was found in it."""
_MAX_FOUND = 8
_MAX_READ = 4000
_CLOSING_SENTENCES = 2  # a question this near the end of a message waits for an answer


class Finding(TypedDict):
    """Something found in a message, with the sentence that shows it."""

    message_id: str
    text: str
    """The sentence, verbatim but on one line, at most `MAX_SENTENCE` characters."""
    order: int
    """Index of the sentence in the message; one sentence may be several findings."""
    score: float
    """Salience of the sentence within its message, about 0–1.5."""


class EvidenceFinding(Finding):
    """A sentence that shows evidence."""

    form: EvidenceForm
    value: str


class QuestionFinding(Finding):
    """A question."""

    to: list[str]
    """Debaters who are asked; empty for the whole floor."""
    rhetorical: bool
    """Whether its speaker goes on without naming anybody to answer it."""


class ChallengeFinding(Finding):
    """A disagreement."""

    about: list[str]
    """Debaters who are contradicted; empty where that cannot be told."""
    strength: Literal["mild", "strong"]


class Accord(Finding):
    """A concession or an agreement."""

    about: list[str]
    """Debaters to whom it is made."""


class Facts(TypedDict):
    """Everything found in one message; JSON types only, each list in the order of the message and bounded."""

    message_id: str
    speaker: str
    mentions: list[str]
    claims: list[Finding]
    evidence: list[EvidenceFinding]
    concessions: list[Accord]
    questions: list[QuestionFinding]
    challenges: list[ChallengeFinding]
    agreements: list[Accord]
    positions: list[Finding]
    shifts: list[Finding]


class _Read(NamedTuple):
    """One sentence with all that was seen in it."""

    sentence: Sentence
    order: int
    terms: list[str]
    cues: dict[CueKind, CueWord]
    exhibits: list[Exhibit]
    mentions: list[str]
    question: bool
    score: float


_QUESTION = re.compile(
    r"(?:[?？؟⸮\u037e፧⁇⁈‽]|[吗嗎呢][。！]?|(?:です|ます|でしょう|だろう|ません|ました)か[。]?|까[.]?)[\"'”’»)\]」』）*_\s]*$|՞"
)
_ANAPHORIC = word_set("it it's that that's this these those they he she and so but or")
_T = TypeVar("_T", bound=Finding)


def extract(entry: Entry, names: Mapping[str, str]) -> Facts:
    """Read one message.

    Args:
        entry: The message; tool calls and results are read as plain text here (see `tool_results`).
        names: Display name by debater id; needed to tell who is addressed and contradicted.

    Returns:
        Facts with at least one finding wherever the message holds anything printable.
        Linear in the message's length; of a message beyond 4,000 sentences the first and last 2,000 are read.
    """
    read = _read(entry, names)
    mentioned = list(dict.fromkeys(chain.from_iterable(r.mentions for r in read)))
    context = _Context(entry["id"], debaters_among(entry["targets"], names, entry["speaker"]), mentioned)
    own = [r for r in read if r.sentence.kind != "quote"]
    stated = [r for r in own if not r.question]
    facts = Facts(
        message_id=entry["id"],
        speaker=entry["speaker"],
        mentions=mentioned,
        claims=_claims(stated, entry["id"]),
        evidence=_bounded(
            _evidence(r, entry["id"]) for r in read if r.exhibits or r.sentence.kind == "quote"
        ),
        concessions=_bounded(_accord(r, "concession", context) for r in stated if "concession" in r.cues),
        questions=_bounded(_question(r, context, len(read)) for r in own if r.question),
        challenges=_bounded(_challenge(r, context) for r in stated if _contradicts(r)),
        agreements=_bounded(_accord(r, "agreement", context) for r in stated if _agrees(r)),
        positions=_bounded(_finding(r, entry["id"], "position") for r in stated if _takes_position(r)),
        shifts=_bounded(_finding(r, entry["id"], "shift") for r in stated if "shift" in r.cues),
    )
    return _with_structure(facts, entry, context)


class _Context(NamedTuple):
    message_id: str
    targets: list[str]
    mentioned: list[str]


def _read(entry: Entry, names: Mapping[str, str]) -> Sequence[_Read]:
    return _read_text(entry["content"], entry["speaker"], tuple(names.items()))


@lru_cache(maxsize=256)  # a message is read for the blackboard, for the summary and for perspectives
def _read_text(text: str, speaker: str, named: tuple[tuple[str, str], ...]) -> Sequence[_Read]:
    names = dict(named)
    sentences = [s for s in split_sentences(text) if s.kind == "code" or inert(s.text[:400])]
    if len(sentences) > _MAX_READ:
        sentences = sentences[: _MAX_READ // 2] + sentences[-_MAX_READ // 2 :]
    if not sentences and inert(text):
        sentences = [Sentence(text.strip(), 0, "prose")]
    words = [terms(s.text) for s in sentences]
    scores = salience(words)
    last = len(sentences) - 1
    read = []
    for order, (sentence, found, score) in enumerate(zip(sentences, words, scores, strict=True)):
        prose = sentence.kind != "code"
        cues = {cue.kind: cue for cue in find_cues(sentence.text)} if prose else {}
        exhibits = find_evidence(sentence.text) if prose else []
        whom = mentions(sentence.text, names, speaker) if prose else []
        asks = prose and _QUESTION.search(sentence.text, max(0, len(sentence.text) - 40)) is not None
        placed = _placed(score, sentence, bool(cues.get("claim")), bool(exhibits), order in (0, last))
        read.append(_Read(sentence, order, found, cues, exhibits, whom, asks, placed))
    return tuple(read)


def _placed(score: float, sentence: Sentence, claims: bool, shows: bool, edge: bool) -> float:
    """Return the salience of a sentence corrected by what it is, shows and stands beside."""
    score += 0.25 * claims + 0.2 * shows + 0.1 * edge
    if sentence.text.split(maxsplit=1)[0].lower().replace("’", "'") in _ANAPHORIC:
        score *= 0.8
    return round(score * {"heading": 0.5, "code": 0.3}.get(sentence.kind, 1.0), 3)


def _finding(read: _Read, message_id: str, kind: CueKind | None = None, around: int = 0) -> Finding:
    if kind in read.cues:
        around = read.cues[kind].start
    return Finding(
        message_id=message_id,
        text=excerpt(read.sentence.text, MAX_SENTENCE, around),
        order=read.order,
        score=read.score,
    )


def _claims(stated: Sequence[_Read], message_id: str) -> list[Finding]:
    """Return the one to six most salient statements, in the order of the message."""
    full = [
        r for r in stated if len(r.terms) >= 3 and r.sentence.kind != "heading" and "courtesy" not in r.cues
    ]
    full = full or list(stated)
    best = sorted(full, key=lambda r: (-r.score, r.order))[: min(6, 1 + len(full) // 4)]
    return [_finding(r, message_id) for r in sorted(best, key=lambda r: r.order)]


def _evidence(read: _Read, message_id: str) -> EvidenceFinding:
    if read.exhibits:
        first = read.exhibits[0]
    else:
        first = Exhibit("quote", clip(inert(read.sentence.text[:400]), 120), 0)
    base = _finding(read, message_id, around=first.start)
    return EvidenceFinding(**base, form=first.form, value=first.value)


def _question(read: _Read, context: _Context, sentences: int) -> QuestionFinding:
    to = read.mentions or context.targets
    if not to and addresses_someone(read.sentence.text):
        to = context.mentioned[:1]
    # The end of a long question asks; its beginning only leads up to it.
    base = _finding(read, context.message_id, around=len(read.sentence.text) - MAX_SENTENCE // 2)
    goes_on = sentences - read.order > _CLOSING_SENTENCES
    return QuestionFinding(**base, to=to, rhetorical=goes_on and not read.mentions)


def _contradicts(read: _Read) -> bool:
    return "strong_challenge" in read.cues or "challenge" in read.cues


def _agrees(read: _Read) -> bool:
    return "agreement" in read.cues and not _contradicts(read) and "concession" not in read.cues


def _takes_position(read: _Read) -> bool:
    return "position" in read.cues and "courtesy" not in read.cues and len(read.terms) >= 3


def _challenge(read: _Read, context: _Context) -> ChallengeFinding:
    kind: CueKind = "strong_challenge" if "strong_challenge" in read.cues else "challenge"
    base = _finding(read, context.message_id, kind)
    return ChallengeFinding(
        **base, about=_whom(read, context), strength="strong" if kind == "strong_challenge" else "mild"
    )


def _accord(read: _Read, kind: CueKind, context: _Context) -> Accord:
    return Accord(**_finding(read, context.message_id, kind), about=_whom(read, context))


def _whom(read: _Read, context: _Context) -> list[str]:
    """Return whom a sentence is about: whom it names, else whom the message answers or names first."""
    return read.mentions or context.targets or context.mentioned[:1]


def _bounded(found: Iterable[_T]) -> list[_T]:
    """Return all that was found, or the first and last few."""
    everything = list(found)
    if len(everything) <= _MAX_FOUND:
        return everything
    return everything[: _MAX_FOUND // 2] + everything[-_MAX_FOUND // 2 :]


def _with_structure(facts: Facts, entry: Entry, context: _Context) -> Facts:
    """Add what the kind of the message says where its words did not."""
    best = max(facts["claims"], key=lambda claim: claim["score"], default=None)
    if best is None:
        return facts
    if entry["kind"] == "critique" and not facts["challenges"]:
        about = context.targets or context.mentioned[:1]
        facts["challenges"] = [ChallengeFinding(**best, about=about, strength="mild")]
    if kind_of(entry).proposes and not facts["positions"]:
        facts["positions"] = [best]
    return facts
