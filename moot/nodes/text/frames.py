"""What stands in a message and looks like the prompt around it: quoted, so that nobody speaks for another.

A prompt is built of labels (`Bob [m000002]:`), headings (`# Summary of the debate …`) and the marks of
chat templates. Words of a debater, a person or a tool may hold the same shapes, by chance or on purpose; in a
prompt each such line stands behind `> `, as mail quotes a letter. Nothing is taken out of it.
"""

import re
import unicodedata
from functools import lru_cache

QUOTE = "> "

_SHAPES = re.compile(r"[#\[<:=-]|\bm\d")
"""What every frame has after folding; most messages' lines have none of it at their beginning."""

_LINE_ENDS = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_IGNORED = re.compile(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e01ef]"
)
"""Characters that show nothing (Unicode's Default_Ignorable_Code_Point, the common ones)."""

_LOOK_ALIKES = str.maketrans(
    "аеорсухіјѕһԁмтвнкАВЕКМНОРСТХІЈЅᗅΑΒΕΖΗΙΚΜΝΟΡΤΥΧαεικνορτυχɑıⅿ【〔〖⟦❲〚】〕〗⟧❳〛：∶ː꞉︓⁚♯＃⌗﹟‹›〈〉《》∙",
    "aeopcyxijshdmtbhkABEKMHOPCTXIJSAABEZHIKMNOPTYXaeikvoptuxaim[[[[[[]]]]]]::::::####<><><>.",
)
"""Letters and marks that look like a label's; NFKC has folded the full-width and styled forms before.

From Unicode's confusables.txt (UTS #39), those that a name, an id or a mark of ours can be written with.
"""

_ID_AND_COLON = r"""\[\s*\W{0,3}m\s*\d[\d\s]{4,}\W{0,3}\][\s*_`"')]*:"""
_FOLDED_LABEL = re.compile(
    rf"""^[\s>*_`"'(]*                                # however it is set off
    (?:[^\[\n]{{0,120}}?{_ID_AND_COLON}[\s*_`"')]*$   # a name with its id, alone in a line
    |(?:[^\s\[]{{1,40}}\s+){{0,2}}{_ID_AND_COLON})    # or a short one: more words are a sentence's""",
    re.VERBOSE,
)
_FOLDED_HEADING = re.compile(
    r"^\s{0,8}[>*\s]{0,8}#{1,6}(?:\s|\w)|^\s{0,8}(?:={3,}|-{3,})\s*$|^\s{0,8}<h[1-6]\b"
)
_FOLDED_TEMPLATE = re.compile(
    r"<\s*\|[^|>\n]{0,40}\|\s*>|\[/?\s*inst\s*\]|<<\s*/?\s*sys\s*>>|</?\s*s\s*>"
    r"|</?\s*(?:system|user|assistant|human|tool|instructions?)\s*>"
)
_MARKS = r"[\s>*_`\"'(\[#]*"
_SET_OFF = re.compile(_MARKS)
_END = r"[\s*_`\"')\]]*(?:\[[^\]\n]*\]|\([^)\n]*\))?[\s*_`]*:"
_LABEL_END = re.compile(_END)
_LETTERED = re.compile(
    rf"{_MARKS}(?:debater|speaker|participant|contributor|discussant)\s+[a-z]{{1,2}}{_END}"
)
_ROLES = ("system", "user", "assistant", "developer", "human", "ai", "instruction", "instructions", "tool")


def _fold(line: str) -> str:
    """Return a line as a reader sees it: styles, widths, invisible and look-alike characters made plain."""
    if line.isascii():
        return line
    plain = _IGNORED.sub("", unicodedata.normalize("NFKC", line)).translate(_LOOK_ALIKES)
    return "".join(char for char in unicodedata.normalize("NFD", plain) if not unicodedata.combining(char))


@lru_cache(maxsize=64)
def _label_names(names: frozenset[str]) -> tuple[frozenset[str], list[int]]:
    """Return what a line's label may say, a speaker's name or a role of a chat, and its lengths."""
    known = {" ".join(_fold(name).casefold().split()) for name in (*names, *_ROLES)} - {""}
    return frozenset(known), sorted(set(map(len, known)))


def _is_frame(line: str, names: frozenset[str]) -> bool:
    """Return whether a line looks like a label, a heading or a mark of a chat template."""
    folded = _fold(line)
    if not _SHAPES.search(folded):
        return False
    lower = folded.casefold()
    shapes = (_FOLDED_LABEL, _FOLDED_HEADING, _FOLDED_TEMPLATE)
    if any(shape.search(lower) for shape in shapes) or _LETTERED.match(lower):
        return True
    # A label with a known name is looked up: a pattern of thousands of names is slow.
    known, lengths = _label_names(names)
    plain = " ".join(lower.split())
    return any(
        plain[at : at + length] in known and _LABEL_END.match(plain, at + length)
        for at in range(_SET_OFF.match(plain).end() + 1)  # type: ignore[union-attr]  # it matches nothing, too
        for length in lengths
    )


@lru_cache(maxsize=4096)  # a window's messages are rendered every turn
def frames_quoted(text: str, names: frozenset[str]) -> str:
    """Return a message with every line quoted that looks like a part of the prompt around it.

    Returns:
        The same text where nothing in it looks so; else with `> ` before those lines. Quoting twice changes
        nothing more.
    """
    lines, ends = _LINE_ENDS.split(text), _LINE_ENDS.findall(text)
    kept = [QUOTE + line if not line.startswith(QUOTE) and _is_frame(line, names) else line for line in lines]
    return "".join(part + end for part, end in zip(kept, [*ends, ""], strict=True))
