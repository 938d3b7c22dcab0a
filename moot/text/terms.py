"""Terms of text in any script, the similarity of texts by their terms, and the question in a topic.

Latin words are lower-cased and lightly stemmed (Porter 2). Scripts without spaces between words give
overlapping pairs of characters, as Lucene's CJK analyser does.
"""

import re
import unicodedata
from functools import lru_cache
from importlib.resources import files
from typing import Literal, NamedTuple

from moot.text.plain_text import word_set

MAX_WORD = 40
"""Maximum length of a word in characters. Longer words, such as URLs and encoded data, are truncated."""

MAX_KEPT = 65_536
"""Maximum number of words whose search terms are cached."""

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u1100-\u11ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
)
"""Character ranges of Hangul and of scripts that do not separate words with spaces. Hangul attaches particles
to words."""

_ASCII_WORD = re.compile(r"[a-z0-9]+")
_SPELLED = re.compile(r"(?<![^\W_])(?:[^\W\d_][._]){2,}[^\W\d_]?(?![^\W_])")
_MAYBE_SPELLED = re.compile(r"[._][^\W\d_][._]")
_PRINTED = re.compile("[‘’“”„‚‹›«»–—…•·]")
"""Pattern for curly quotes, dashes and other typographic characters. Spaces replace them."""
# `re` treats vowel signs and accents as non-letters, but words in Hindi or Hebrew contain them.
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
    "\u0e31-\u0e4e\u0eb1-\u0ecd\u102b-\u103e\u17b4-\u17d3"
)
WORD = re.compile(rf"(?:[^\W_]|[{_MARKS}])+")
"""Pattern that matches a word in any script."""
_RUNS = re.compile(f"[{UNSPACED}]+|[^{UNSPACED}]+")
UNSPACED_CHARACTER = re.compile(f"[{UNSPACED}]")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
# New content stays below: 4,153 pairs of consecutive messages by one speaker, in 35 meetings and 3 televised
# debates, reach at most .42. Repeated questions in labelled excerpts have similarities from .5 to .9.
SIMILARITY_THRESHOLD = 0.7
"""Minimum similarity at which two texts count as the same statement."""


def word_table(name: str) -> frozenset[str]:
    """Return the words listed in a text file of this package. Comments start with `#`."""
    lines = (files("moot.text") / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines for word in line.partition("#")[0].split())


TITLES = word_table("titles")
"""Titles that may precede a person's name, such as "Dr"."""
STOP_WORDS = word_table("stop_words")
"""Words, such as articles, that carry too little meaning to be search terms."""
QUESTION_WORDS = word_table("question_words")
"""Words that phrase a question without describing its subject, such as "summarize" or "opinion"."""


@lru_cache(maxsize=MAX_KEPT)  # debates repeat words, and each message is tokenized several times
def _term(word: str) -> str:
    """Return the search term for a lower-case word, or `""` if it is a stop word."""
    word = word[:MAX_WORD]
    if word in STOP_WORDS:
        return ""
    if not (word[0].isalpha() and unicodedata.name(word[0], "").startswith("LATIN")):
        return word
    from snowballstemmer.english_stemmer import EnglishStemmer

    # A stemmer keeps the word as state, so each call creates its own for use in several threads.
    return str(EnglishStemmer().stemWord(word))


def words(text: str) -> list[str]:
    """Return the lower-case words of `text`. In scripts without spaces, each pair of characters is a word."""
    if _MAYBE_SPELLED.search(text):  # joins the letters of U.S., and of L_C_D_ in transcripts
        text = _SPELLED.sub(lambda match: re.sub(r"[._]", "", match[0]) + " ", text)
    plain = text if text.isascii() else _PRINTED.sub(" ", text)
    if plain.isascii():  # the simpler pattern gives the same result for ASCII and is faster
        return _ASCII_WORD.findall(plain.lower())
    word_list: list[str] = []
    for word in WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if word.isascii() or not UNSPACED_CHARACTER.search(word):
            word_list.append(word)
            continue
        for run in _RUNS.findall(word):
            pairs = [run[i : i + 2] for i in range(len(run) - 1)] if is_unspaced(run) else []
            word_list.extend(pairs or [run])
    return word_list


def spellings(text: str) -> list[str]:
    """Return the words of `text` in their original case. Words are also split between scripts."""
    return [run for word in WORD.findall(unicodedata.normalize("NFKC", text)) for run in _RUNS.findall(word)]


def is_unspaced(run: str) -> bool:
    """Return True if a text's script has no spaces between words."""
    return UNSPACED_CHARACTER.match(run) is not None


def terms(text: str) -> list[str]:
    """Return the search terms in `text`, in order and with repetitions."""
    return [*_terms(text)]


@lru_cache(maxsize=256)  # each message is tokenized for several purposes
def _terms(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(_term, words(text))))


@lru_cache(maxsize=2048)  # the same points and messages are compared in every turn
def term_set(text: str) -> frozenset[str]:
    """Return the distinct search terms of `text`."""
    return frozenset(terms(text))


@lru_cache(maxsize=1)
def question_word_terms() -> frozenset[str]:
    """Return the search terms of all question words, such as "summarize" and "opinion"."""
    return frozenset(term for word in QUESTION_WORDS for term in terms(word))


def question_terms(text: str) -> list[str]:
    """Return a question's search terms without words such as "opinion" that only phrase it, unless all do."""
    every = terms(text)
    return [term for term in every if term not in question_word_terms()] or every


def without_question_words(text: str) -> str:
    """Return `text`, for an embedding model, without the words that only phrase a question."""
    kept = [word for word in text.split() if not question_word_terms().issuperset(terms(word) or [""])]
    return " ".join(kept) or text


def jaccard_similarity(first: str, second: str) -> float:
    """Return the Jaccard similarity (0 to 1) of two texts' terms. Without terms they must be equal."""
    ours, theirs = term_set(first), term_set(second)
    if not ours or not theirs:
        return float(first.casefold() == second.casefold())
    return len(ours & theirs) / len(ours | theirs)


@lru_cache(maxsize=4096)
def numbers(text: str) -> frozenset[str]:
    """Return the distinct numbers in a short text. Only numbers written in digits count."""
    return frozenset(_NUMBER.findall(text))


def same_statement(first: str, second: str) -> bool:
    """Return True if two short texts have similar words and the same numbers."""
    return numbers(first) == numbers(second) and jaccard_similarity(first, second) >= SIMILARITY_THRESHOLD


SentenceKind = Literal["prose", "bullet", "heading", "quote", "code"]


class Sentence(NamedTuple):
    """Sentence of a text, with its start position and kind."""

    text: str
    start: int
    kind: SentenceKind


class _TextBlock(NamedTuple):
    start: int
    end: int
    kind: SentenceKind
    last_line: int


_LINE = re.compile(r"[^\n\r\u2028\u2029]*(?:\r\n|[\n\r\u2028\u2029]|$)")
_FENCE = re.compile(r"[ \t]{0,12}(?P<fence>`{3,}|~{3,})")
_BULLET = re.compile(r"[ \t]{0,24}(?:[-*+•‣◦▪–]|\(?(?:\d{1,3}|[A-Za-z])[.)])[ \t]+(?=\S)|[ \t]{0,24}\|")
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}(?:[ \t]|$)")
_QUOTE = re.compile(r"[ \t]{0,3}>")

_CLOSERS = "\"'”’»)\\]」』】）》*_"
_STOPS = ".!?…؟۔।॥።፧։\u037e"
_END = re.compile(
    rf"(?<![{_STOPS}])(?P<spaced>[{_STOPS}]++)[{_CLOSERS}]*+(?=\s|$)|(?P<joined>[。！？｡．‼⁇⁈⁉]++)[{_CLOSERS}]*+"
)
_SHORT_LINE = 55
_ABBREVIATIONS = word_set(
    "mr mrs ms dr prof sr jr st sen rep gov gen col lt sgt hon rev pres vs etc al fig figs eq no nos vol "
    "ch sec pp ed eds est inc ltd co corp dept univ approx ca cf viz jan feb mar apr jun jul aug sep sept "
    "oct nov dec e.g i.e a.m p.m resp incl z.b d.h u.a bzw usw ggf nr bspw vgl hr fr evtl p.ej sra dra ud "
    "uds núm pág m mme mlle p.ex cf art av т.е т.д др г ул рис стр"
)
# After a dotted abbreviation or an initial, only one of these words starts a new sentence.
_STARTERS = word_set(
    "the a an this that these those it they he she we you i but and so there here in on if when as not no "
    "yes what why how who my our your his her their"
)


@lru_cache(maxsize=256)  # messages are split once when they are written and again when they are summarised
def split_sentences(text: str) -> tuple[Sentence, ...]:
    """Split `text` into non-empty sentences without changing any character.

    A fenced code block is one sentence of kind `code`, even if it is not closed. List items, headings, table
    rows and block quotes are separate sentences. Abbreviations, initials and decimals do not end a sentence.
    A short line without a full stop ends one if the next line starts like a sentence.
    """
    sentences: list[Sentence] = []
    for block in _blocks(text):
        start, ends = block.start, [block.end]
        if block.kind != "code":
            opening = _BULLET.match(text, start, block.end) if block.kind == "bullet" else None
            cased = any(map(str.isupper, text[start : block.end][:4000]))
            marks = _END.finditer(text, opening.end() if opening else start, block.end)
            within = [mark for mark in marks if mark["joined"] or _ends_sentence(text, mark, block, cased)]
            ends = [*(mark.end() for mark in within), block.end]
        for end in ends:
            body = text[start:end].lstrip()
            if body:
                sentences.append(Sentence(body.rstrip(), end - len(body), block.kind))
            start = end
    return tuple(sentences)


# Cached because retrieval splits the same messages every turn, which took half of a turn's time.
@lru_cache(maxsize=1024)
def sentence_terms(text: str) -> tuple[tuple[int, frozenset[str]], ...]:
    """Return the start offset and the distinct search terms of each sentence in `text`."""
    return tuple((sentence.start, frozenset(terms(sentence.text))) for sentence in split_sentences(text))


def _blocks(text: str) -> list[_TextBlock]:
    """Split `text` into blocks: the lines of a paragraph, a list item or a fence."""
    blocks: list[_TextBlock] = []
    is_open, fence = False, ""
    for line in _LINE.finditer(text):
        inside = fence
        kind, fence = _kind_of(line.group(), fence)
        if inside or (is_open and kind == "prose" and not _breaks(text, blocks[-1], line.start())):
            blocks[-1] = blocks[-1]._replace(end=line.end(), last_line=line.start())
        elif kind:
            blocks.append(_TextBlock(line.start(), line.end(), kind, line.start()))
        is_open = kind is not None
    return blocks


def _kind_of(line: str, fence: str) -> tuple[SentenceKind | None, str]:
    """Return a line's kind, `None` if it is empty, and the open code block's marker, or `""`."""
    mark = _FENCE.match(line)
    if fence:
        closes = mark is not None and mark["fence"].startswith(fence) and not line[mark.end() :].strip()
        return "code", "" if closes else fence
    if mark:
        return "code", mark["fence"]
    if not line or line.isspace():
        return None, ""
    if _HEADING.match(line):
        return "heading", ""
    if _QUOTE.match(line):
        return "quote", ""
    return ("bullet" if _BULLET.match(line) else "prose"), ""


def _breaks(text: str, block: _TextBlock, start: int) -> bool:
    """Return True if a line of prose starts a new block."""
    if block.kind not in ("prose", "bullet"):
        return True
    first = text[start : start + 40].lstrip()[:1]
    short = block.end - block.last_line < _SHORT_LINE
    return short and block.kind == "prose" and first.isalnum() and not first.islower()


def _ends_sentence(text: str, mark: re.Match[str], block: _TextBlock, cased: bool) -> bool:
    following = text[mark.end() : min(mark.end() + 24, block.end)].split(maxsplit=1)
    if not following:
        return True
    follower = following[0].lstrip("\"'“‘«(*_")
    if cased and follower[:1].islower():
        return False
    if mark["spaced"] != ".":
        return True
    before = text[max(block.start, mark.start() - 24) : mark.start()].split()
    word = before[-1].lstrip("\"'“‘«(*_").lower() if before else ""
    if word in _ABBREVIATIONS:
        return False
    if (len(word) == 1 and word.isalpha() and word != "i") or (
        "." in word and word.replace(".", "").isalpha()
    ):
        return follower.lower().rstrip(".,") in _STARTERS
    return True


_QUESTION_MARKS = "?？⁇⁈⁉؟"
LONG_TOPIC = 200
"""Number of characters above which a topic is too long to display as the debate's question."""
_READ_CHARS = 4000
"""Number of characters at each end of a topic in which Moot looks for a question."""


def is_long(topic: str) -> bool:
    """Return True if a topic has several lines or is too long to display as the debate's question."""
    return len(topic.strip()) > LONG_TOPIC or "\n" in topic.strip()


def title_of(topic: str, judges_wording: str = "") -> str:
    """Return the title of a debate as a single line.

    A short topic keeps the words of the person who wrote it. The judge's wording of the question, if there is
    one, stands for a long topic.
    """
    question = " ".join(judges_wording.split())
    return question if question and is_long(topic) else question_in(topic)


def questions_in(text: str) -> list[str]:
    """Return the sentences of `text` that end with a question mark."""
    return [
        sentence.text
        for sentence in split_sentences(text)
        if sentence.kind != "code" and sentence.text.rstrip("\"'”’»)*_ ").endswith(tuple(_QUESTION_MARKS))
    ]


def question_in(topic: str) -> str:
    """Return the question in a topic as a single line.

    The question is the first line if that line is a question, otherwise the last sentence of the topic that
    is a question. A topic without a question is represented by its first line.
    """
    first_line = " ".join(topic.strip().partition("\n")[0].split())
    ends = topic[:_READ_CHARS] + ("\n\n" + topic[-_READ_CHARS:] if len(topic) > _READ_CHARS else "")
    questions = [" ".join(question.split()) for question in questions_in(ends)]
    return first_line if not questions or first_line in questions else questions[-1]
