"""Sentences in any script: prose split at its full stops, list items and table rows apart, code whole.

One pass over the lines finds blocks, one pass over each block finds sentence ends: time is linear in the
text, whatever it holds.
"""

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from moot.nodes.text.plain import word_set
from moot.nodes.text.terms import terms

SentenceKind = Literal["prose", "bullet", "heading", "quote", "code"]


class Sentence(NamedTuple):
    """One sentence, verbatim from the text: `text[start:start + len(sentence.text)] == sentence.text`."""

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
_END = re.compile(
    rf"(?P<spaced>[.!?…؟۔।॥።፧։\u037e]+)[{_CLOSERS}]*(?=\s|$)|(?P<joined>[。！？｡．‼⁇⁈⁉]+)[{_CLOSERS}]*"
)
_SHORT_LINE = 55
_ABBREVIATIONS = word_set(
    "mr mrs ms dr prof sr jr st sen rep gov gen col lt sgt hon rev pres vs etc al fig figs eq no nos vol "
    "ch sec pp ed eds est inc ltd co corp dept univ approx ca cf viz jan feb mar apr jun jul aug sep sept "
    "oct nov dec e.g i.e a.m p.m resp incl z.b d.h u.a bzw usw ggf nr bspw vgl hr fr evtl p.ej sra dra ud "
    "uds núm pág m mme mlle p.ex cf art av т.е т.д др г ул рис стр"
)
# After a dotted abbreviation or an initial, only such a word shows that a new sentence begins.
_STARTERS = word_set(
    "the a an this that these those it they he she we you i but and so there here in on if when as not no "
    "yes what why how who my our your his her their"
)


@lru_cache(maxsize=256)  # as a message is born, and for several purposes as it leaves the window
def split_sentences(text: str) -> tuple[Sentence, ...]:
    """Split `text` into its sentences, in order, verbatim, none empty.

    A fenced code block is one sentence of kind `code`, closed or not. List items, headings, table rows and
    block quotes never run into their neighbours. Abbreviations, initials and decimals do not end a sentence;
    a short line without a full stop does where the next line begins like a sentence.
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


# A message is a candidate turn after turn: to split it anew each time took half of a turn's time.
@lru_cache(maxsize=1024)
def sentence_terms(text: str) -> tuple[tuple[int, frozenset[str]], ...]:
    """Return where each sentence of `text` begins, and its distinct terms."""
    return tuple((sentence.start, frozenset(terms(sentence.text))) for sentence in split_sentences(text))


def _blocks(text: str) -> list[_TextBlock]:
    """Return spans of one kind each; the lines of a paragraph, a list item or a fence make one block."""
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
    """Return the kind of a line (`None` when blank) and the fence that is open after it, `""` for none."""
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
    """Whether the prose line at `start` begins anew instead of continuing `block`."""
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
