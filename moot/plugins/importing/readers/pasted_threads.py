"""Threads pasted or exported as text from GitHub, Reddit and Discord."""

import re
from collections.abc import Mapping, Sequence

from moot.importers import LeftOut, ParsedMessage, ParsedTranscript, Reader, Source
from moot.state.errors import InputError

_COMMENTED = re.compile(
    r"\s*[@*]*(?P<name>[\w-]{1,39})(?:\[bot\])?\**\s+(?:commented|opened this \S{4,12})\b(?P<time>.{0,60})"
)
_BADGE = re.compile(
    r"(?:Author|Owner|Member|Contributor|Collaborator|Maintainer|More actions|edited|Edited|•|·)"
    r"|(?:Author|edited).{0,30}edits?"
)
_GH_FIELD = re.compile(r"(?P<key>[a-z]{4,12}):\t(?P<value>.*)")
_OLD_REDDIT = re.compile(
    r"\[[–-]\]\s?(?P<name>[\w-]{1,40})(?:\[[^\]\n]{1,5}\])?\s.{0,20}points?\s(?P<time>.{1,60}?)"
    r"\s*(?:\(\d+ children\))?"
)
_OLD_REDDIT_FOOTER = re.compile(
    r"(?:permalink|link)\s?(?:embed|save|source|parent|report|reply|give award|\s)*"
)
_REDDIT_NAME = re.compile(r"(?:u/)?(?P<name>[\w-]{1,40})")
_REDDIT_FOOTER = re.compile(
    r"Upvote|Downvote|Reply|Award|Share|Give Award|Top \d+% Commenter|OP|-?[\d.]+k?|…"
)
_AGO = re.compile(r"\S{1,12}(?: \S{1,12}){0,2} ago(?: •.*)?|\d{1,4}(?:m|h|d|w|mo|y|min|yr)\.?(?: ago)?")
_RULE = re.compile(r"={20,}")
_DISCORD_HEAD = re.compile(r"\[(?P<time>[^\]\n]{8,40})\] (?P<name>[^\n]{1,40}?)(?: \(pinned\))?")
_DISCORD_BLOCK = re.compile(r"\{(?:Attachments|Embed|Stickers|Reactions)\}")

Heads = Mapping[int, tuple[str, str, int]]
"""Name, time and number of head lines of each message, by the index of its first line."""


def _messages(lines: Sequence[str], heads: Heads, footer: re.Pattern[str] | None) -> list[ParsedMessage]:
    messages = []
    names = [f"@{name}" for name, _, _ in heads.values()]
    for (start, (name, time, length)), end in zip(heads.items(), [*list(heads)[1:], len(lines)], strict=True):
        text = [line.strip() for line in lines[start + length : end]]
        while text and (not text[-1] or text[-1] in names or (footer and footer.fullmatch(text[-1]))):
            text.pop()  # GitHub writes the name of a picture above the next head
        while text and (not text[0] or _BADGE.fullmatch(text[0])):
            text.pop(0)
        messages.append(ParsedMessage(name, "\n".join(text), time.strip(" ·•-")))
    return messages


def _read_github(source: Source) -> ParsedTranscript | None:
    fields = [index for index, line in enumerate(source.lines) if _GH_FIELD.fullmatch(line)]
    if len(fields) > 2 and source.lines.count("--") > 1:
        if fields[0] == 0 and (transcript := _read_gh(source)):
            return transcript
        raise InputError("line 1: the output of gh is damaged: it begins with fields such as `title:`")
    heads = {
        index: (match["name"], match["time"], 1)
        for index, line in enumerate(source.lines)
        if (match := _COMMENTED.match(line))
    }
    if len(heads) < 2 and not (heads and next(iter(heads)) == 0):
        return None
    topic = " ".join(line.strip("# ") for line in source.lines[: next(iter(heads))] if line.strip())
    return ParsedTranscript(_messages(source.lines, heads, None), topic)


def _read_gh(source: Source) -> ParsedTranscript | None:
    """Read the output of `gh issue view --comments`: fields, then a line of two hyphens, then the text."""
    messages, fields, topic, text, in_text = list[ParsedMessage](), dict[str, str](), "", list[str](), False
    for line in [*source.lines, "--"]:
        if line != "--":
            if in_text:
                text.append(line)
            elif match := _GH_FIELD.match(line):
                fields[match["key"]] = match["value"]
        elif not in_text:
            in_text = True
        else:
            messages.append(ParsedMessage(fields.get("author", ""), "\n".join(text), ""))
            topic, fields, text, in_text = topic or fields.get("title", ""), {}, [], False
    return ParsedTranscript(messages, topic) if messages and all(each.speaker for each in messages) else None


GITHUB = Reader("GitHub thread", "text", _read_github)


def _read_reddit(source: Source) -> ParsedTranscript | None:
    lines = source.lines
    old = {
        index: (match["name"], match["time"], 1)
        for index, line in enumerate(lines)
        if (match := _OLD_REDDIT.fullmatch(line.strip()))
    }
    if old:
        return ParsedTranscript(_messages(lines, old, _OLD_REDDIT_FOOTER))
    heads: dict[int, tuple[str, str, int]] = {}
    filled = [index for index, line in enumerate(lines) if line.strip()]
    for first, second, third in zip(filled, filled[1:], filled[2:], strict=False):
        name, dot, time = (lines[index].strip() for index in (first, second, third))
        match = None if _REDDIT_FOOTER.fullmatch(name) else _REDDIT_NAME.fullmatch(name)
        if dot in ("•", "·") and _AGO.fullmatch(time) and match:
            heads[first] = (match["name"], time, third - first + 1)
    return ParsedTranscript(_messages(lines, heads, _REDDIT_FOOTER)) if heads else None


REDDIT = Reader("Reddit thread", "text", _read_reddit)


def _read_discord(source: Source) -> ParsedTranscript | None:
    rules = [index for index, line in enumerate(source.lines) if _RULE.fullmatch(line)]
    if not rules:
        return None
    if len(rules) < 2 or rules[0] != 0:
        _refuse_damaged(source)
        return None
    body = source.lines[rules[1] + 1 : rules[2] if len(rules) > 2 else len(source.lines)]
    heads: dict[int, tuple[str, str, int]] = {
        index: (match["name"], match["time"], 1)
        for index, line in enumerate(body)
        if (match := _DISCORD_HEAD.fullmatch(line)) and (not index or not body[index - 1].strip())
    }
    if not heads:
        _refuse_damaged(source)
        return None
    left_out, messages = LeftOut(), list[ParsedMessage]()
    for message in _messages(body, heads, None):
        lines = message.content.split("\n")
        cut = next((index for index, line in enumerate(lines) if _DISCORD_BLOCK.fullmatch(line)), None)
        left_out["attachment or reaction"] += cut is not None
        messages.append(ParsedMessage(message.speaker, "\n".join(lines[:cut]), message.time))
    return ParsedTranscript(messages, left_out=left_out)


def _refuse_damaged(source: Source) -> None:
    """Raise an error if the text has the header or a message of a Discord export."""
    if any(line.startswith("Guild: ") or _DISCORD_HEAD.fullmatch(line) for line in source.lines):
        raise InputError("line 1: the Discord export is damaged: it begins with a line of equals signs")


DISCORD = Reader("Discord export", "text", _read_discord)
