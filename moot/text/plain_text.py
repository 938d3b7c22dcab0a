"""Text on one line, excerpts, and harmless forms of control tokens that chat templates use."""

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate

_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# Invisible and direction-changing characters, except the two joiners that emoji and Persian need.
_INVISIBLE = re.compile(
    r"[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    r"\U000e0000-\U000e007f]+"
)
_LEADING_MARK = re.compile(r"(?:[#>|=~`]+|[-*+•](?=\s)|\d{1,3}[.)](?=\s)|-{2,}|\*{2,}|_{2,})\s*")
_HTML_HEADING = re.compile(r"<(?=/?\s{0,8}[hH][1-6])")
_MESSAGE_REFERENCE = re.compile(r"\[([^\[\]]{0,80}m\d{6,12}[^\[\]]{0,80})\]")


def word_set(words: str) -> frozenset[str]:
    """Split a space-separated string into a set of words."""
    return frozenset(words.split())


def plain_line(text: str) -> str:
    """Return `text` as one line without control characters or invisible characters."""
    if not (text.isascii() and text.isprintable()):  # fast path, because most texts are plain
        text = _INVISIBLE.sub("", _BREAKS.sub(" ", text))
    return " ".join(text.split())


@lru_cache(maxsize=8192)  # prompts repeat names and quotations in every turn
def sanitize_line(text: str) -> str:
    """Return `text` on one line, without Markdown, citations or chat-template control tokens.

    Emphasis and leading Markdown marks are removed. Control tokens get a middle dot. Brackets around a
    message id become parentheses, because Moot's own renderings cite in brackets.
    """
    line = plain_line(plain_line(text).replace("**", "").replace("```", ""))
    start = 0
    while mark := _LEADING_MARK.match(line, start):
        start = mark.end()
    line = _HTML_HEADING.sub("‹", line[start:])
    return break_template_tokens(_MESSAGE_REFERENCE.sub(r"(\1)", line).strip())


_REORDERING = re.compile(r"[\u2028-\u202e\u2066-\u2069]")  # U+2028 and U+2029 end a line in some readers


_DIRECTION_MARK = re.compile(r"[\u061c\u200e\u200f]")
_RIGHT_TO_LEFT = re.compile(
    r"[\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
)


def show_reordering(text: str, separator: str = "\n") -> str:
    """Replace characters that change the text direction or end a line with visible codes such as `⟨U+202E⟩`.

    Such characters can make a text appear in a different word order. The marks U+061C, U+200E and U+200F are
    kept in parts of the text with right-to-left letters, which need them. `separator` divides the parts.
    """
    if text.isascii():
        return text
    text = _REORDERING.sub(_code_point, text)
    if not _DIRECTION_MARK.search(text):
        return text
    return separator.join(
        part if _RIGHT_TO_LEFT.search(part) else _DIRECTION_MARK.sub(_code_point, part)
        for part in text.split(separator)
    )


def _code_point(match: re.Match[str]) -> str:
    return f"⟨U+{ord(match[0]):04X}⟩"


def clip(text: str, limit: int) -> str:
    """Truncate `text` to `limit` characters, and mark the cut with `…`."""
    if len(text) <= limit:
        return text
    if limit < 2:
        return "…"[:limit]
    head = text[: limit - 1]
    space = head.rfind(" ")
    if space > limit * 0.6:
        head = head[:space]
    return head.rstrip(" ,;:\u200c\u200d") + "…"


def excerpt(text: str, limit: int, around: int = 0) -> str:
    """Return a one-line excerpt of `text`, at most `limit` characters long."""
    start = max(0, around - limit // 4) if around > limit // 2 else 0
    line = plain_line(text[start : start + 2 * limit])
    if start == 0:
        return clip(line, limit)
    space = line.find(" ")
    if 0 <= space < limit // 6:
        line = line[space + 1 :]
    return "…" + clip(line, limit - 1)


def positions_ignoring_case(text: str, words: Iterable[str]) -> list[int]:
    """Return where each word first occurs in `text`, ignoring case, or -1. `ß` equals `ss`."""
    folded_text = text.casefold()
    positions = [folded_text.find(word.casefold()) for word in words]
    if len(folded_text) == len(text) or max(positions, default=-1) < 1:
        return positions
    folded_ends = list(accumulate(len(char.casefold()) for char in text))
    return [bisect_right(folded_ends, position) if position > 0 else position for position in positions]


def count_noun(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural, such as `1 round` or `1,200 turns`."""
    if number == 1:
        return f"1 {noun}"
    ending = "es" if noun.endswith(("ch", "s", "x")) else "s"
    return f"{number:,} {noun.removesuffix('y')}ies" if noun.endswith("ry") else f"{number:,} {noun}{ending}"


_MEDIA = {
    **dict.fromkeys(("image", "image_url", "input_image"), "image"),
    **dict.fromkeys(("audio", "input_audio"), "recording"),
    **dict.fromkeys(("file", "input_file", "media", "resource"), "file"),
    "video": "video",
}
"""Types of content blocks without text in LangChain's, providers' and MCP's messages, with a noun."""


def left_out_notice(content: object) -> str:
    """Return a notice about the images and files among content blocks, which are not text, or `""`."""
    blocks = content if isinstance(content, list) else []
    nouns = [_MEDIA.get(str(each.get("type")), "") for each in blocks if isinstance(each, dict)]
    counts = ", ".join(count_noun(nouns.count(noun), noun) for noun in dict.fromkeys(nouns) if noun)
    return f"[Left out, because debates read only text: {counts}]" if counts else ""


def quoted(texts: Iterable[str]) -> str:
    """Return the texts in quotation marks, separated by commas."""
    return ", ".join(f"“{text}”" for text in texts)


def all_done_reason(number: int, noun: str, done: str) -> str:
    """Return the reason why a completed debate ended, such as `all 3 rounds are done`."""
    if number == 1:
        return f"the one {noun} is {done}"
    if number == 2:
        return f"both {noun}s are {done}"
    return f"all {number} {noun}s are {done}"


MARK = "·"
"""Middle dot that Moot inserts into quoted text to disable unwanted markup."""

_TEMPLATE_WORDS = (
    "s|bos|eos|pad|unk|mask|sep|cls|eot|eod|eoh|eoa|sop|eop|think|thinking|reasoning"
    "|system|user|assistant|human|model|developer|tool|tools|instructions?|system-reminder"
    "|tool_calls?|tool_response|tool_result|function_calls?|function|invoke"
    "|(?:start|end)_?of_?[a-z_]{1,30}|_(?:user|bot|end)|turn[|]|channel[|]|(?:bos|eos|pad|unk|bot|eot|eop)_token"
    "|SPECIAL_[0-9]{1,4}|_(?:start|system|observation|think)|fim_[a-z]{1,10}|(?:file|commit|issue|jupyter)_[a-z_]{1,30}"
    "|repo_?name|filename|gh_stars|empty_output|(?:seed|minimax):[a-z_]{1,40}"
    "|image|audio|video|(?:reserved|unused|extra_id)_?[a-z_]{0,30}[0-9]{1,5}"
)
_TEMPLATE_NAMES = (
    "INST|SYS|SYSTEM_PROMPT|SYSTEM|MODEL_SETTINGS|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|CALL_ID"
    "|ARGS|EOT|IMG|IMG_BREAK|IMG_END|AUDIO|BEGIN_AUDIO|PREFIX|MIDDLE|SUFFIX|THINK|[gs]?MASK|CLS|SEP|PAD|UNK|BOS|EOS"
)
_TEMPLATE_TOKEN = re.compile(
    r"[<＜](?="
    r"\s?[|｜][^|｜<>＜＞\n]{0,80}[|｜]\s?[>＞]"  # <|im_start|>, <｜Assistant｜>
    r"|\s?[|｜][a-z_\"]{1,40}\s?[>＞]|[a-z_\"]{1,40}[|｜][>＞]"  # <|turn>, <turn|>
    rf"|\s?[/／]?\s?(?i:{_TEMPLATE_WORDS})\s?[>＞]"  # <start_of_turn>, </s>, <system-reminder>
    r"|[<＜]\s?[/／]?\s?(?i:SYS)\s?[>＞]{2}"  # <<SYS>>
    r"|<[a-z]{6}$)"  # a line that opens a block of Moot's own prompts
    r"|\[(?=e~\[)|\](?=~!?b[\]\[])|\](?=<\][a-z]{1,20}\[>)|\[(?=[|][a-z]{1,20}[|]\])"  # [e~[, [|endofturn|]
    rf"|[\[［](?=\s?[/／]?\s?(?:{_TEMPLATE_NAMES})\s?[\]］])",  # [INST], [/SYSTEM_PROMPT]
    re.MULTILINE,
)
"""Pattern that finds chat-template control tokens.

It matches the first character of each token. Some servers parse these tokens even inside messages. The
pattern covers the special tokens of Llama, Mistral, Gemma, Qwen, DeepSeek, Phi, Command R, GLM, InternLM,
EXAONE, Seed-OSS, Nemotron, MiniMax, TeleChat and StarCoder,
with full-width variants, because some tokenizers normalize them. The line that opens a block of quoted text
in Moot's prompts is one, too (see `moot.prompts.templates`)."""


@lru_cache(maxsize=4096)  # prompts repeat messages and names every turn
def break_template_tokens(text: str) -> str:
    """Insert a middle dot into each chat-template control token. A second call changes nothing."""
    return _TEMPLATE_TOKEN.sub(lambda match: match[0] + MARK, text)
