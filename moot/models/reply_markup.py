"""Markup that models and chat templates leave in a reply: reasoning, wrappers of the answer, template tokens.

Servers should remove this markup, but many pass it on. `split_reply` parts a complete reply into its text and
its reasoning. `ReplyFilter` does the same while the reply streams in. Reasoning counts only at the start of a
reply: a message that writes about such a tag later is text, and so is everything in code.
"""

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple


class Markup(NamedTuple):
    """Markup of one kind of reasoning section, as regular expressions."""

    opening: str
    closing: str
    """End of the section. `{name}` stands for the tag's name in `opening`, its first group."""
    lone: str = ""
    """Closing that also counts without an opening, because the chat template has already written the opening
    into the prompt. Empty: no such closing."""
    must_close: bool = False
    """True if an opening without a closing is ordinary text."""


_THOUGHT = (
    r"think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad|analysis|monologue|cot|planning|step_by_step"
    r"|思考|推理"
)
# Models and prompts add words to these, as in <seed:think>, <inner_monologue> and <thought_process>.
_NAME = rf"(?:[a-z]{{1,12}}[:_-]?){{0,3}}(?:{_THOUGHT})(?:[:_-][a-z0-9]{{1,40}}){{0,4}}"
_BARS = r"[|｜]"
_PIPED = r"(?:thought|thinking|think|reasoning)"
_CHANNEL_END = r"<\|(?:end|call|return|eom)\|>|(?=<\|(?:start|channel)\|>)"

REASONING = (
    # DeepSeek, Qwen, GLM, Nemotron, MiniMax, EXAONE, Seed-OSS, LongCat, Hunyuan
    Markup(rf"<({_NAME})(?:\s[^<>]{{0,300}})?\s?/?>", r"</{name}\s?>", rf"</(?:{_NAME})\s?>"),
    # OpenThinker, Cohere, Apertus and others: <|begin_of_thought|>, <|START_THINKING|>, <|inner_prefix|>
    Markup(
        rf"<{_BARS}(?:(?:begin|start)_(?:of_)?{_PIPED}|{_PIPED}(?:_(?:start|begin))?|inner_prefix){_BARS}>",
        *2
        * (
            rf"<{_BARS}(?:end_(?:of_)?{_PIPED}|/{_PIPED}|{_PIPED}_end|inner_suffix){_BARS}>|</{_BARS}{_PIPED}{_BARS}>",
        ),
    ),
    Markup("◁think▷", "◁/think▷", "◁/think▷"),  # Kimi
    Markup(r"<\|open\|>think<\|sep\|>", *2 * (r"<\|close\|>think<\|sep\|>",)),  # Kimi K3
    Markup(
        r"(?-i:\[(THINK|THINKING|REASONING)\])", r"\[/{name}\]", r"(?-i:\[/(?:THINK|THINKING|REASONING)\])"
    ),
    Markup(r"<\|channel>(?:thought|analysis)?", *2 * (r"<channel\|>",)),  # Gemma
    Markup(r"\[unused16\]", *2 * (r"\[unused17\]",)),  # Pangu
    # gpt-oss (harmony), and its text after a server has dropped the special tokens
    Markup(
        r"(?:<\|start\|>)?(?:assistant)?\s?(?:<\|channel\|>\s?(?:analysis|commentary)|to=self)"
        r"[^<]{0,100}(?:<\|constrain\|>[^<]{0,40})?<\|message\|>",
        _CHANNEL_END,
        r"(?:<\|end\|>\s?)?<\|start\|>assistant\s?<\|channel\|>\s?final\s?<\|message\|>",
    ),
    Markup(r"(?-i:(?:assistant)?(?:analysis|commentary)(?=[^\W_]))", *2 * ("(?-i:assistant\\s?final)",)),
    # HyperCLOVA
    Markup(r"/think\n", r"<\|im_end\|>\s{0,4}<\|im_start\|>assistant"),
    # Granite, Apriel, `ollama run`, Open WebUI, fenced blocks
    Markup(r"Here(?: is|['’]s) my thought process:", r"Here(?: is|['’]s) my response:", must_close=True),
    Markup(r"Here are my reasoning steps:", *2 * (r"(?-i:\[BEGIN FINAL RESPONSE\])",), must_close=True),
    Markup(r"Thinking\.{3}\s", r"\.{3}done thinking\.", must_close=True),
    Markup(
        r"<details(?: type=\"reasoning\"[^<>]{0,300}>"
        r"|[^<>]{0,300}>\s{0,4}<summary>[^<>]{0,4}(?:think|thought|reason))",
        r"</details>",
        must_close=True,
    ),
    Markup(r"(?-i:\[(think|thinking|thought|reasoning)\])", r"\[/{name}\]", must_close=True),
    Markup(r"```(?:thinking|thoughts?|reasoning)\n", r"\n```", must_close=True),
)
"""Markup of reasoning, by what opens it. Sources: the reasoning parsers of vLLM, SGLang and llama.cpp, and
reports about servers that pass such text on."""

_LEADS = (
    r"(?:<\|start\|>)?(?:assistant)?\s?(?:<\|channel\|>\s?final|to=user)[^<]{0,60}"
    r"(?:<\|constrain\|>[^<]{0,40})?<\|message\|>",  # harmony
    r"(?-i:assistantfinal)|<\|start\|>assistant(?:<\|message\|>)?",
    r"<\|begin_of_(?:solution|box)\|>|<\|START_(?:RESPONSE|TEXT)\|>|<\|open\|>(?:response|message)<\|sep\|>",
    r"<\|im_start\|>\s?assistant\s?\n|<\|start_header_id\|>\s?assistant\s?<\|end_header_id\|>",
    r"<\|start_of_role\|>assistant<\|end_of_role\|>|<start_of_turn>\s?model\s|<\|turn>model\s",
    rf"<{_BARS}(?:assistant|CHATBOT_TOKEN|begin_of_text|begin▁of▁sentence){_BARS}>|\[\|assistant\|\]|<bos>",
    r"<s>(?![^<]{0,4000}</s>\s{0,20}[^\s<])",  # not text that is struck through
    r"(?-i:(?:### )?Assistant:|### Response:|assistant\n\n)",
)
"""Template markup in front of an answer. It is removed at the start of a reply."""

_SPOKEN_OF = re.compile(r"[ \t]+(?-i:[a-z])")
"""What follows a tag that the text only speaks of, as in "<think> tags are removed"."""
_WRAPPERS = r"final(?:_answer|_response)?|answer|response|output|solution|reply"
_WRAPPER = re.compile(rf"<({_WRAPPERS})>(?![ \t]+(?-i:[a-z]))|(```)(?:markdown|md)\n", re.IGNORECASE)
"""Opening of a wrapper around the answer. It is removed if its closing ends the reply, or after reasoning."""

TEMPLATE_TOKENS = {
    "Kimi K3": r"<\|close\|>[a-z]{1,12}<\|sep\|>",
    "ChatML, Llama 3, Phi, GLM, Granite, Cohere, DeepSeek": rf"<{_BARS}\s?[^\s|｜<>]{{1,40}}\s?{_BARS}>",
    "cut by the token limit": rf"<{_BARS}[a-zA-Z_▁]{{2,40}}\Z",
    "Llama 2, Mistral": r"</?s>|\[/?INST\]|<</?SYS>>",
    "Gemma": r"</?(?:start|end)_of_turn>|<\|turn>|<turn\|>|<channel\|>",
    "EXAONE": r"\[\|[a-z]{1,20}\|\]",
    "MiniMax": r"\[e~\[|\]~b\]",
    "Kimi, Apriel": r"\[(?:EOS|EOT|END FINAL RESPONSE)\]",
    "InternLM, ChatGLM, TeleChat": r"<eo[apdms]>|<_(?:user|bot|end)>",
    "Nemotron": r"<(?:extra_id|SPECIAL)_[0-9]{1,4}>",
    "Baichuan, Pangu": r"[<\[](?:reserved_|unused)[0-9]{1,4}[>\]]",
    "Ling": r"<role>[A-Z]{1,12}</role>",
    "Alpaca": r"(?m:^)### (?:Instruction|Human|User):[ \t]*(?=\n)",
    "Seed-OSS, Command R": r"(?i:<(?:[a-z]{1,12}:)?(?:eos|bos|eot|pad|unk|sep)(?:_token)?>)",
    "others": r"<(?:endoftext|end_of_(?:text|utterance))>",
}
"""Special tokens of chat templates, by the families of models that use them."""

_TOKEN = re.compile("|".join(TEMPLATE_TOKENS.values()))
_ROLES = "user|assistant|system|human|model|tool|developer|ipython|observation"
_BEHIND = re.compile(
    rf"\s*(?:\Z|(?:###? ?)?(?:{_ROLES})\s?(?:[\n:]|\Z|<|\[)|###? ?(?:Instruction|Input)|{_TOKEN.pattern})",
    re.IGNORECASE,
)
"""Pattern for the text after a token that ends a turn: no text, the header of a role, or another token."""
_ROLE_TOKEN = re.compile(
    rf"(?:<{_BARS}(?:user|system|human|observation){_BARS}>|\[INST\]|\[\|user\|\]|<role>|### )(?=\s?\n|\S)",
    re.IGNORECASE,
)
"""Token that is itself the header of another role's turn."""

_OPENING = re.compile(
    "|".join(
        [
            *(rf"(?P<r{index}>{each.opening})" for index, each in enumerate(REASONING)),
            rf"(?P<lead>{'|'.join(_LEADS)})",
        ]
    ),
    re.IGNORECASE,
)
_LONE = re.compile("|".join(dict.fromkeys(each.lone for each in REASONING if each.lone)), re.IGNORECASE)
_BLANK = re.compile(r"[\s\u200b\u2060\ufeff]*")
_HEADS = (
    *("<", "[", "◁think▷", "analysis", "commentary", "assistant", "to=self", "to=user", "/think\n"),
    *(f"here{verb} my thought process:" for verb in (" is", "'s", "’s")),
    *("here are my reasoning steps:", "thinking...", "```thinking\n", "```thoughts\n", "```reasoning\n"),
    *("```markdown\n", "```md\n", "### assistant:", "### response:"),
)
"""First characters of all openings. A stream that may still become one of them is held back."""
MAX_OPENING = 480
"""Number of characters after which the start of a stream is no opening any more. The longest opening is a tag
with 300 characters of attributes."""
_SENTENCE_END = ".!?。！？…"
_QUOTES = "`'\"“”‘’«»„(["


@dataclass(frozen=True)
class SplitText:
    """Text of a model reply, split into visible text and reasoning."""

    text: str
    reasoning: str
    has_template_tokens: bool = False
    """True if tokens of the chat template, and what followed them, were cut from the end of the text."""


MAX_SECTIONS = 20
"""Maximum number of reasoning sections in one reply that end with a closing without an opening."""


def split_reply(text: str, names: tuple[str, ...] = ()) -> SplitText:
    """Split a complete reply into its visible text and its reasoning.

    Text after an opening without a closing is reasoning. The run time is linear in the length of the reply.
    A label from `names` at the start of the text is removed.
    """
    reasoning, code = list[str](), CodeSpans(text)
    position = _skip_openings(text, 0, reasoning)
    for _ in range(MAX_SECTIONS):
        closing = _lone_closing(text, position, code)
        if closing is None:
            break
        reasoning.append(text[position : closing.start()])
        position = _skip_openings(text, closing.end(), reasoning)
    end = _end_of_turn(text, position, code)
    body = text[position:end].strip()
    if wrapper := _WRAPPER.match(body):
        closing_tag = _end_of_wrapper(wrapper)
        if body.lower().endswith(closing_tag):
            body = body[wrapper.end() : -len(closing_tag)].strip()
        elif reasoning and wrapper[1]:
            body = body[wrapper.end() :].strip()
    thoughts = "\n".join(filter(None, map(str.strip, reasoning)))
    return SplitText(without_label(body, names), thoughts, end < len(text))


def _skip_openings(text: str, position: int, reasoning: list[str]) -> int:
    """Return the position of the text after all reasoning sections and template markup."""
    while True:
        position = _skip_blank(text, position)
        opening = _OPENING.match(text, position)
        if opening is None:
            return position
        if opening["lead"] is not None:
            position = opening.end()
            continue
        markup, closing = _closing_of(opening)
        end = closing.search(text, opening.end())
        if end is None and (markup.must_close or _SPOKEN_OF.match(text, opening.end())):
            return position
        reasoning.append(text[opening.end() : end.start() if end else len(text)])
        position = end.end() if end else len(text)


def _end_of_wrapper(wrapper: re.Match[str]) -> str:
    return f"</{wrapper[1].lower()}>" if wrapper[1] else "\n```"


def _skip_blank(text: str, position: int) -> int:
    blank = _BLANK.match(text, position)
    return blank.end() if blank else position


def _closing_of(opening: re.Match[str]) -> tuple[Markup, re.Pattern[str]]:
    index = next(position for position in range(len(REASONING)) if opening[f"r{position}"] is not None)
    has_name = "{name}" in REASONING[index].closing
    name = opening[opening.re.groupindex[f"r{index}"] + 1] if has_name else ""
    return REASONING[index], _closing_pattern(index, name.lower())


@lru_cache(maxsize=256)
def _closing_pattern(index: int, name: str) -> re.Pattern[str]:
    return re.compile(REASONING[index].closing.replace("{name}", re.escape(name)), re.IGNORECASE)


def _lone_closing(text: str, start: int, code: "CodeSpans") -> re.Match[str] | None:
    """Find a closing tag whose opening stands in the prompt.

    A tag that the text only speaks of stands in code, between quotation marks, in the middle of a sentence,
    or behind its opening.
    """
    for match in _LONE.finditer(text, start):
        window = text[max(start, match.start() - 200) : match.start()]
        before, after = window.rstrip(), text[match.end() : match.end() + 200]
        last, gap, next_char = before[-1:], window[len(before) :], after.lstrip()[:1]
        is_own_line = not last or ("\n" in gap and last != ":")
        if not is_own_line and (last in _QUOTES if not gap else last not in _SENTENCE_END):
            continue
        is_joined = after[:1] in (" ", "\t") and "\n" not in after[: len(after) - len(after.lstrip())]
        if next_char and (next_char in ".,;:!?)]`'’”»" or (is_joined and next_char.islower())):
            continue
        if match.start() in code:
            continue
        is_behind_opening = match[0][1] == "/" and _OPENING_TAG.search(text, start, match.start())
        return None if is_behind_opening else match
    return None


_OPENING_TAG = re.compile(rf"<(?:{_NAME})\s?>|\[THINK\]|◁think▷", re.IGNORECASE)


def _end_of_turn(text: str, start: int, code: "CodeSpans") -> int:
    """Return the position of the first token of a chat template that ends a turn, or the text's length."""
    struck = text.find("<s>", start)
    for token in _TOKEN.finditer(text, start):
        is_struck = token[0] == "</s>" and 0 <= struck < token.start()
        if not is_struck and _ends_turn(text, token) and token.start() not in code:
            return token.start()
    return len(text)


def _ends_turn(text: str, token: re.Match[str]) -> re.Match[str] | None:
    return _BEHIND.match(text, token.end()) or _ROLE_TOKEN.match(text, token.start())


class CodeSpans:
    """Positions of a Markdown text that stand in code: in fenced blocks or between backticks."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        blocks, opened = list[tuple[int, int]](), None
        for line in _FENCE_LINE.finditer(self._text):
            if opened is None:
                opened = line
            elif line[1][0] == opened[1][0] and len(line[1]) >= len(opened[1]) and not line[2].strip():
                blocks.append((opened.start(), line.end()))
                opened = None
        if opened is not None:
            blocks.append((opened.start(), len(self._text)))
        return sorted([*blocks, *_inline_code(self._text, blocks)])

    def __contains__(self, position: int) -> bool:
        """Return True if the position stands in code."""
        index = bisect_right(self._spans, (position, len(self._text))) - 1
        return index >= 0 and position < self._spans[index][1]


_FENCE_LINE = re.compile(r"^[ \t>]{0,8}(`{3,}+|~{3,}+)([^\n`]*)$", re.MULTILINE)


def _inline_code(text: str, blocks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans between equally long runs of backticks of one paragraph, outside of fenced blocks."""

    def is_fenced(position: int) -> bool:
        index = bisect_right(blocks, (position, len(text))) - 1
        return index >= 0 and position < blocks[index][1]

    runs = [run for run in re.finditer("`+", text) if not is_fenced(run.start())]
    breaks = [each.start() for each in re.finditer(r"\n[ \t]*\n", text)] if runs else []
    following, partners = dict[tuple[int, int], int](), [-1] * len(runs)
    for index in range(len(runs) - 1, -1, -1):
        key = (len(runs[index][0]), bisect_left(breaks, runs[index].start()))
        partners[index] = following.get(key, -1)
        following[key] = index
    spans, index = list[tuple[int, int]](), 0
    while index < len(runs):
        if partners[index] < 0:
            index += 1
            continue
        spans.append((runs[index].start(), runs[partners[index]].end()))
        index = partners[index] + 1
    return spans


LABEL_NOTE = r"(?:[ \t]{0,3}[\(\[][^\n\)\]]{0,60}[\)\]]){0,2}"
"""Pattern of a note behind a name, such as `(platform engineer)` or `[m000003]`."""


ID_NOTE = r"(?:\[m[0-9]{6,9}\][ \t]{0,3})?"
"""Pattern of a message id before a name."""


@lru_cache(maxsize=256)
def _label_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    each = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    alternatives = rf"[>#\s]{{0,4}}{ID_NOTE}[*_\[\(]{{0,3}}(?:{each})[*_\]\)]{{0,3}}{LABEL_NOTE}[*_]{{0,3}}"
    # On a line of its own, a name needs markup to be a label.
    alone = rf"(?:#{{1,6}}[ \t]{{0,3}}|[*_]{{1,3}})(?:{each}){LABEL_NOTE}[*_]{{0,3}}[ \t]*\n"
    bracketed = rf"(?:<(?:{each})>|[*_]{{1,3}}\[(?:{each})\][*_]{{1,3}})\s+"
    return re.compile(
        rf"(?:{alternatives}[ \t]{{0,3}}[:：][*_]{{0,3}}\s*|{alone}\s*|{bracketed})", re.IGNORECASE
    )


def without_label(text: str, names: tuple[str, ...]) -> str:
    """Remove a speaker's own name from the start of a message, as in `**Ada (engineer):** Yes.`."""
    if not names:
        return text
    start = 0
    while label := _label_pattern(names).match(text, start):
        start = label.end()
    return text[start:] or text


class ReplyFilter:
    """Streaming filter that returns the visible text of a reply while the reply arrives.

    Text that may be markup is held back. `close` returns the result of `split_reply`, however the reply was
    cut into chunks. Sometimes streamed text turns out to be reasoning, as with a closing tag whose opening
    stands in the prompt. Then `retracts` becomes True, and the text replaces what was streamed.

    Args:
        names: labels of the speaker, as for `split_reply`.
        reasons_first: True if the model is known to begin with reasoning without an opening tag. Its text is
            held back until the closing tag.
    """

    def __init__(self, names: tuple[str, ...] = (), *, reasons_first: bool = False) -> None:
        self._names, self._holds = names, reasons_first
        self._pieces, self._sent = list[str](), list[str]()
        self._buffer = ""
        self._closing: re.Pattern[str] | None = None
        self._begun = self._done = self.retracts = False
        self._wrapper_end = ""
        self._lone_checks = 0

    def feed(self, piece: str) -> str:
        """Process a chunk of a stream, and return its visible text."""
        self._pieces.append(piece)
        if self._done:
            return ""
        self._buffer += piece
        text = self._next_text() if self._begin() else ""
        self._sent += [text] if text else []
        return text

    def close(self) -> SplitText:
        """End the stream, and return the whole reply, split."""
        return split_reply("".join(self._pieces), self._names)

    def rest(self, text: str) -> str:
        """Return the part of the final text that was not streamed, or all of it if it replaces the stream."""
        sent = "".join(self._sent)
        if text.startswith(sent):
            return text[len(sent) :]
        self.retracts = True
        return text

    def _begin(self) -> bool:
        """Move past the markup before the text. Return False if the text has not begun yet."""
        while not self._begun:
            if self._holds or self._closing is not None:
                end = (self._closing or _LONE).search(self._buffer)
                if end is None:
                    self._buffer = self._buffer[-MAX_OPENING:]
                    return False
                self._buffer, self._closing, self._holds = self._buffer[end.end() :], None, False
            self._buffer = self._buffer[_skip_blank(self._buffer, 0) :]
            if not self._buffer or self._may_open():
                return False
            opening = _OPENING.match(self._buffer) or _WRAPPER.match(self._buffer)
            if opening is None:
                self._buffer, self._begun = without_label(self._buffer, self._names), True
                break
            if opening.re is _WRAPPER:
                self._wrapper_end = _end_of_wrapper(opening)
            elif opening["lead"] is None:
                self._closing = _closing_of(opening)[1]
            self._buffer = self._buffer[opening.end() :]
        return True

    def _may_open(self) -> bool:
        """Return True if the buffer may still become an opening or the speaker's label."""
        folded = self._buffer.lower()
        if len(folded) > MAX_OPENING:
            return False
        if any(head.startswith(folded) or _is_undecided(self._buffer, head) for head in _HEADS):
            return True
        label = without_label(folded, self._names).lstrip("*_#[(> ")
        for name in map(str.lower, self._names):
            note = label[len(name) :]
            if name.startswith(label) or (label.startswith(name) and _OPEN_LABEL.fullmatch(note)):
                return True
        return False

    def _next_text(self) -> str:
        """Return the text in the buffer up to what may be markup, and keep the rest."""
        buffer, start, end = self._buffer, 0, len(self._buffer)
        while index := _MARK.search(buffer, start):
            token, lone = _TOKEN.match(buffer, index.start()), _LONE.match(buffer, index.start())
            behind = buffer[token.end() if token else index.end() :].strip()
            if token and (_ends_turn(buffer, token) or _may_be_role(behind)):
                end, self._done = index.start(), bool(behind) and not _may_be_role(behind)
                break
            if lone and not buffer[lone.end() :].strip():
                end = index.start()
                break
            if lone and self._is_reasoning():
                self.retracts, self._begun, self._sent = True, False, []
                self._buffer = buffer[lone.end() :]
                return self._next_text() if self._begin() else ""
            if (
                not token
                and not lone
                and len(buffer) - index.start() < MAX_MARK
                and _PART.fullmatch(buffer, index.start())
            ):
                end = index.start()
                break
            start = index.end()
        output = buffer[:end].rstrip()
        lengths = range(len(self._wrapper_end), 0, -1)
        pending = next((k for k in lengths if output.lower().endswith(self._wrapper_end[:k])), 0)
        end = len(output) - pending if pending else end
        text = buffer[:end].rstrip() if len(buffer) - end < MAX_OPENING else buffer[:end]
        self._buffer = buffer[len(text) :]
        if len(self._buffer) > MAX_OPENING:  # white space without an end
            text, self._buffer = buffer, ""
        return text

    def _is_reasoning(self) -> bool:
        """Return True if the reply so far is reasoning that ends with a closing tag without an opening."""
        self._lone_checks += 1
        if self._lone_checks > MAX_LONE_CHECKS:
            return False
        return not split_reply("".join(self._pieces), self._names).text.startswith("".join(self._sent) or " ")


MAX_LONE_CHECKS = 8
"""Number of closing tags for which a stream is searched for the start of its reasoning. `close` decides."""
MAX_MARK = 48
"""Length of the longest template token or closing tag, in characters, with a margin."""
_MARK = re.compile(r"[<＜\[◁\]]|(?-i:assistant)")
_PART = re.compile(
    r"[<＜\[◁\]][^\s<>＞\]▷]{0,46}|<role>[A-Z]{0,12}(?:</?r?o?l?e?)?|\[[A-Z ]{0,20}|assistant\s?f?i?n?a?"
)
_NOTE_PART = r"[ \t]{0,3}[\(\[][^\n\)\]]{0,60}"
_OPEN_LABEL = re.compile(
    rf"[*_\]\)]{{0,3}}(?:{LABEL_NOTE}[*_]{{0,3}}[ \t]{{0,3}}(?:[:：][*_\s]*)?|{_NOTE_PART})\s*"
)
"""Start of what follows a name in a label."""


def _is_undecided(buffer: str, head: str) -> bool:
    """Return True if more text decides whether a buffer that begins with `head` is an opening."""
    if not buffer.lower().startswith(head):
        return False
    opening = _OPENING.match(buffer) or _WRAPPER.match(buffer)
    if opening is not None:
        return not buffer[opening.end() :].strip() if opening.re is _WRAPPER else opening.end() == len(buffer)
    rest = buffer[len(head) :]
    if head[0] == "<" and buffer[1:2].lower() in ("|", "｜", "s", "d"):  # headers of two or three tokens
        return len(buffer) < 120 and "\n\n" not in buffer
    if head[0] in "<[◁":
        return not re.search(r"[>\]▷]\s*\S", rest) and "\n\n" not in rest
    return not rest.strip("\n") or (
        rest.startswith(("<", " <", "f", "a", "c")) and ">" not in rest and len(rest) < 40
    )


def _may_be_role(text: str) -> bool:
    """Return True if a text may become the header of a role or another token of a template."""
    word = text.lower()
    return any(role.startswith(word) for role in (*_ROLES.split("|"), "###")) or bool(_PART.fullmatch(word))
