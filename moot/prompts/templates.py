"""Prompt templates, built-in roles, and fenced blocks that keep the text of others apart.

A template is a Markdown file with `{name}` placeholders, beside the code that uses it. Values are inserted
verbatim and never parsed as templates, so text of a debater stays data.

A prompt contains text of many authors: the topic, documents, messages, tool results and summaries. Each of
them stands between two lines that contain the debate's *fence*, a word of six letters:

    Bob [m000002]: <<kelvon
    The text of the message.
    kelvon>>

The fence is the same in all prompts of a debate (`DebateConfig.fence`). Where it occurs inside a block, a
middle dot breaks it, also in look-alike letters and with invisible characters in between. Control tokens of
chat templates are broken in the same way. Nothing is removed. Text on one line, such as a name or a claim,
needs no block: `sanitize_line` leaves it no line of its own.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from moot.calls.model_calls import WireMessage
from moot.config import DebaterConfig, slug
from moot.text.plain_text import MARK, break_template_tokens
from moot.text.tokens import TRUNCATION_MARK, TokenCounter, common_length, truncate_middle

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class PromptTemplate:
    """Prompt template with placeholders of the form `{name}`."""

    name: str
    template: str
    path: str = ""
    """Path of the template file in the package, such as `moot/prompts/rules.md`. Empty without a file."""

    @property
    def sha256(self) -> str:
        """Return the SHA-256 hash of the template text. Debates record it in `prompt_sources`."""
        return hashlib.sha256(self.template.encode()).hexdigest()

    def render(self, **values: str) -> str:
        """Return the template's text with the placeholders replaced by `values`.

        Blank lines of empty values are removed.

        Raises:
            KeyError: a placeholder has no value.
        """
        text = _PLACEHOLDER.sub(lambda match: values[match[1]], self.template)
        return re.sub(r"\n{3,}", "\n\n", text).strip() if "" in values.values() else text.strip()


LOADED_TEMPLATES: dict[str, PromptTemplate] = {}
"""All prompt templates that this process has loaded, keyed by template name."""


def make_prompt_template(name: str, template: str, *placeholders: str) -> PromptTemplate:
    """Create a prompt template. Placeholders other than the given ones are a `ValueError`."""
    used_placeholders = frozenset(_PLACEHOLDER.findall(template))
    if used_placeholders != frozenset(placeholders):
        raise ValueError(
            f"prompt {name!r} must have the placeholders {sorted(placeholders)}, but has "
            f"{sorted(used_placeholders)}"
        )
    return PromptTemplate(name, template)


def load_prompt_template(name: str, *placeholders: str, home: str | Path | None = None) -> PromptTemplate:
    """Load a prompt template from a Markdown file, and check its placeholders.

    Call it at import.

    `home` is the package or folder of the file; its name becomes a prefix of the prompt's name. `None`: the
    shared prompts of this package.

    Raises:
        ValueError: the file has other placeholders.
    """
    folder = home if isinstance(home, Path) else files(home or __package__)
    full_name = f"{folder.name}/{name}" if home else name
    template = (folder / f"{name}.md").read_text(encoding="utf-8")
    prompt_template = make_prompt_template(full_name, template, *placeholders)
    path = f"{(home if isinstance(home, str) else __package__).replace('.', '/')}/{name}.md"
    LOADED_TEMPLATES[full_name] = replace(
        prompt_template, path=str(folder / f"{name}.md") if home is folder else path
    )
    return LOADED_TEMPLATES[full_name]


SECTIONS = ("system", "propose", "critique", "refine", "summary", "clarify")
ROLES = ("architect", "data-modeling", "generalist", "performance", "security", "simplicity", "testing")
"""Names of all built-in debater roles."""

MEMBER = "member"
"""Role name for debaters without a built-in role. No configuration names this role."""

_ALIASES = {
    "kiss": "simplicity",
    "software-architect": "architect",
    "data-modeler": "data-modeling",
    "data-modeller": "data-modeling",
    "data-modelling": "data-modeling",
    "datamodeling": "data-modeling",
    "tester": "testing",
    "test-engineer": "testing",
    "performance-engineer": "performance",
    "security-engineer": "security",
}

ROLE_NAMES = frozenset({*ROLES, *_ALIASES})
"""All names of built-in roles, including aliases."""
_HEADING = re.compile(r"^## (\w+)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Role:
    """Role of a debater, such as `security`, with its prompt texts by the name of their section."""

    name: str
    sections: Mapping[str, str]

    def says(self, section: str) -> str:
        """Return the text of a section, or `""` if the role lacks it."""
        return self.sections.get(section, "")


@lru_cache(maxsize=1)
def shipped_roles() -> dict[str, Role]:
    """Return all built-in roles, keyed by role name."""
    return {name: _read_role(name) for name in ROLES}


@cache
def _read_role(name: str) -> Role:
    text = (files("moot.prompts") / "roles" / f"{name}.md").read_text(encoding="utf-8")
    parts = _HEADING.split(text)[1:]
    sections = zip(parts[::2], map(str.strip, parts[1::2]), strict=True)
    return Role(name, dict(sections))


def shipped_role(debater: DebaterConfig) -> Role | None:
    """Return a debater's built-in role, or `None` if there is none."""
    for role_name in (slug(debater.role), debater.id):
        name = _ALIASES.get(role_name, role_name)
        if name in shipped_roles():
            return shipped_roles()[name]
    return None


def role_of(debater: DebaterConfig) -> Role:
    """Return a debater's built-in role, or `member` if there is none."""
    return shipped_role(debater) or _read_role(MEMBER)


FENCE_TOKENS = 9
"""Number of tokens to count for the two delimiter lines of a quoted block. The average is 8.3."""

QUOTED = load_prompt_template("quoted", "fence")

_OPEN = re.compile(r"(?:^| )<<([a-z]{6})$", re.MULTILINE)
_CLOSE = re.compile(r"\n([a-z]{6})>>")
_IGNORED = re.compile(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e01ef]"
)
"""Pattern that matches common invisible Unicode characters (Default_Ignorable_Code_Point)."""
_CONFUSABLES = (files("moot.text") / "confusables.txt").read_text(encoding="utf-8").splitlines()
_LOOK_ALIKES = {
    char: line[0] for line in _CONFUSABLES if line[1:2] == " " and line[0] != "#" for char in line[2:]
}
"""ASCII letters that the letters of other scripts resemble, as in Unicode's `confusables.txt` (UTS #39)."""
_LOOK_ALIKES |= {"п": "n", "π": "n", "α": "a", "ε": "e", "ց": "g", "Ԁ": "d"}
"""Letters that the table lacks but that resemble ASCII letters in common fonts."""
_LATIN = re.compile(r"LATIN (?:SMALL |CAPITAL )?LETTER (?:SMALL CAPITAL )?([A-Z])(?: WITH .+)?")
"""Names of Latin letters that are small capitals, or have a stroke or a hook. They do not decompose."""


class ContentPart(NamedTuple):
    """Part of a prompt message, either a block of quoted text or text written by Moot."""

    title: str
    """Title on the first line of the quoted block. Moot's own text has no title."""
    text: str
    fence: str
    """Word of six letters that marks the start and end of a quoted block. `""`: the part is Moot's text."""


def fenced(text: str, fence: str, title: str = "") -> str:
    """Return `text` as a block of quoted text enclosed in delimiters."""
    title, text = (break_fence(each, fence) for each in (title, break_template_tokens(text)))
    return _line(ContentPart(title, text, fence))


def fenced_section(text: str, fence: str) -> str:
    """Return a section as a quoted block, with its heading as the title."""
    title, _, body = text.partition("\n")
    return fenced(body, fence, title) if body else break_fence(text, fence)


def fenced_item(label: str, text: str, fence: str) -> str:
    """Format a message as a labelled paragraph of a quoted block with several messages."""
    return f"{fence} {break_fence(label, fence)}: {break_fence(break_template_tokens(text), fence)}\n"


def fenced_items(items: str, fence: str, title: str) -> str:
    """Enclose paragraphs from `fenced_item` in one block, which costs fewer tokens than several."""
    return _line(ContentPart(title, items.rstrip("\n"), fence))


def system_message(text: str, fence: str) -> WireMessage:
    """Return a system message with a text and an explanation of how quoted text is marked."""
    return {"role": "system", "content": f"{text}\n\n{QUOTED.render(fence=fence)}"}


@lru_cache(maxsize=4096)  # a window's messages are rendered every turn
def break_fence(text: str, fence: str) -> str:
    """Break up every `fence` delimiter in a text.

    Otherwise quoted text could end its own block. Upper case, look-alike letters, accents and invisible
    characters in between count as occurrences.
    """
    if text.isascii() and not _CONTROLS.search(text):
        if fence not in text.lower():  # a search that ignores case takes ten times as long
            return text
        return re.sub(re.escape(fence), lambda match: match[0][0] + MARK + match[0][1:], text, flags=re.I)
    if fence not in text.translate(_FOLDS):
        return text
    positions, letters = list[int](), list[str]()
    for position, char in enumerate(text):
        plain = _FOLDS[ord(char)]
        letters.append(plain)
        positions += [position] * len(plain)
    folded, cuts = "".join(letters), list[int]()
    index = folded.find(fence)
    while index >= 0:
        cuts.append(positions[index] + 1)
        index = folded.find(fence, index + 1)
    return MARK.join(text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True))


def break_fences_in(data: Any, fence: str) -> Any:
    """Return JSON data, such as the definition of a tool, with the fence broken in every key and text."""
    if isinstance(data, Mapping):
        return {break_fence(key, fence): break_fences_in(value, fence) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [break_fences_in(each, fence) for each in data]
    return break_fence(data, fence) if isinstance(data, str) else data


class _Folds(dict[int, str]):
    """Table that maps each character to the lower-case letters that it resembles.

    The table is used with `str.translate`, and grows with the characters that texts contain. Invisible
    characters map to `""`.
    """

    def __missing__(self, code: int) -> str:
        folded = self[code] = _fold(chr(code))
        return folded


_FOLDS = _Folds()
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_UNSEEN = frozenset(("Cc", "Cf", "Zl", "Zp"))
"""Unicode categories of invisible characters (control, format, line and paragraph separator)."""
_BLANK = "\u2800\ufffc"
"""Characters that count as printable but look blank in most or all fonts."""


def _fold(char: str) -> str:
    """Return the lower-case letters that a character resembles, or `""` for an invisible character."""
    if char not in "\t\n\r" and (unicodedata.category(char) in _UNSEEN or char in _BLANK):
        return ""
    plain = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", _IGNORED.sub("", char)))
    return "".join(_letter(each) for each in plain if not unicodedata.combining(each))


def _letter(char: str) -> str:
    """Return the lower-case ASCII letter that a character resembles, or its lower-case form."""
    if char.isascii():
        return char.lower()
    # The capital form comes last: a lower-case nu resembles v, and a capital one N.
    forms = (_LOOK_ALIKES.get(form) for form in (char, char.casefold(), char.upper()))
    latin = _LATIN.fullmatch(unicodedata.name(char, ""))
    return next(filter(None, forms), latin[1].lower() if latin else char.casefold())


def prompt_parts(content: str) -> Iterator[ContentPart]:
    """Split a prompt message into quoted blocks and other text, and yield these parts in order.

    The first fence line outside of a block was always written by the program, so it names the block's fence.
    A line that looks like the opening of a block is plain text if no later line closes the block.
    """
    # Without this table, each opening without an end would search the rest of the text.
    last_closings = {match[1]: match.start() for match in _CLOSE.finditer(content)}
    start = 0
    for opening in _OPEN.finditer(content):
        if opening.start() < start or last_closings.get(opening[1], -1) < opening.end():
            continue
        line = max(start, content.rfind("\n", start, opening.start() + 1) + 1)
        if line > start:
            yield ContentPart("", content[start:line], "")
        closing = f"\n{opening[1]}>>"
        end = content.find(closing, opening.end())
        yield ContentPart(content[line : opening.start()], content[opening.end() + 1 : end], opening[1])
        start = end + len(closing)
    if start < len(content):
        yield ContentPart("", content[start:], "")


def fence_of(messages: Iterable[WireMessage]) -> str:
    """Return the fence of a prompt, or `""` if the prompt has no quoted block."""
    return next((opening[1] for each in messages if (opening := _OPEN.search(each["content"]))), "")


def without_frame(text: str, fence: str) -> str:
    """Remove delimiters that a model copied from its prompt. A title on the first line goes, too."""
    if not fence or fence not in text:
        return text
    body = re.sub(rf"\A(?:[^\n]{{0,200}} )?<<{fence}(?:\n|\Z)", "", text.strip())
    return re.sub(rf"[ \t]{{0,8}}<<{fence}\b|\b{fence}>>(?:[ \t]{{0,8}}\n)?", "", body).strip()


def unfenced(content: str) -> str:
    """Return a prompt message as readable text without delimiters."""
    return "".join("\n".join(filter(None, part[:2])) for part in prompt_parts(content))


def truncate_fenced(content: str, max_tokens: int, count: TokenCounter) -> str:
    """Shorten a prompt message by cutting out the middle of its quoted text.

    The result has at most `max_tokens` tokens. The lines that open and close a block stay. If they do not fit
    with the program's own text, the blocks are left out, and the rest is cut.
    """
    if count(content) <= max_tokens:
        return content
    parts = list(prompt_parts(content))
    if not any(part.fence for part in parts):
        return truncate_middle(content, max_tokens, count)
    costs = [count(part.text) if part.fence else 0 for part in parts]
    remaining = max_tokens - count(
        "".join(map(_line, [part._replace(text="") if part.fence else part for part in parts]))
    )
    while remaining >= sum(map(bool, costs)):
        limits = common_length(costs, remaining)
        shortened_parts = [
            part._replace(text=truncate_middle(part.text, max(1, limit), count)) if part.fence else part
            for part, limit in zip(parts, limits, strict=True)
        ]
        text = "".join(map(_line, shortened_parts))
        if (excess := count(text) - max_tokens) <= 0:
            return text
        remaining -= excess
    bare_text = "".join(TRUNCATION_MARK if part.fence else part.text for part in parts)
    return truncate_middle(bare_text.strip(), max_tokens, count)


def omitted_part(full_content: str, short_content: str) -> str:
    """Return what `short_content` cuts out of the quoted text of a prompt message, as a quoted block.

    Return `""` if the messages do not consist of one quoted block each.
    """
    parts = [*prompt_parts(full_content), *prompt_parts(short_content)]
    if len(parts) != 2 or not all(part.fence for part in parts):
        return ""
    start = _common_start(*(part.text for part in parts))
    rest, end = parts[0].text[start:], _common_start(*(part.text[::-1] for part in parts))
    title = f"{parts[0].title} (the part that is cut out above)"
    return _line(parts[0]._replace(title=title, text=rest[: max(1, len(rest) - end)]))


def _common_start(text: str, other_text: str) -> int:
    pairs = zip(text, other_text, strict=False)
    return next(
        (n for n, (char, other) in enumerate(pairs) if char != other), min(len(text), len(other_text))
    )


def _line(part: ContentPart) -> str:
    """Return a part of a prompt message as text, a quoted block with its delimiters."""
    if not part.fence:
        return part.text
    opening = f"{part.title} <<{part.fence}" if part.title else f"<<{part.fence}"
    return f"{opening}\n{part.text}\n{part.fence}>>"
