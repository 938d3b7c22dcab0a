"""What tools brought, as evidence: what a call was about, whether it failed, and what its result says.

What it was about stands in the call's arguments. Whether it failed, the caller knows, else the tool's own
protocol says: a flag or an exit code, never words in a file or on a page that was found.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Mapping

from moot.nodes.reading.exhibits import find_evidence
from moot.nodes.text.plain import clip, inert
from moot.nodes.text.sentences import split_sentences
from moot.nodes.text.terms import term_set
from moot.state.entries import Entry, ToolUse

MOST_PASSAGES = 12
"""Passages of one result that may come into a summary, those that bear most on what is debated."""
ABOUT_CHARS, PASSAGE_CHARS, READ_LINES = 80, 400, 2_000

_ABOUT: Mapping[str, tuple[str, ...]] = {
    "command": ("command", "cmd", "commands", "script", "code"),
    "path": ("path", "file_path", "filepath", "filename", "file", "uri", "target_file"),
    "query": ("query", "pattern", "q", "search_query", "regex", "url", "question", "expression", "input"),
}
_CODES = ("exit_code", "exitCode", "exit_status", "returncode", "return_code")
_EXIT = re.compile(
    r"\W{0,3}(?:(?:process|command|program) )?(?:(?:failed|finished|exited) with )?"
    r"(?:exit(?:ed)?(?: with)?[ _-](?:code|status)|exit|return[ _-]?code)(?: of)?\W{1,4}(-?\d{1,5})\W{0,14}"
    r"|<(?:returncode|exit_code)>(-?\d{1,5})</\w{4,10}>",
    re.IGNORECASE,
)
# How programs themselves say that they failed, where no exit code does: whole lines of fixed form.
_FAILED = re.compile(
    r"^(?:--- FAIL: |FAIL\t|npm (?:ERR!|error) |Traceback \(most recent call last\):"
    r"|.{0,40}\bSegmentation fault\b"
    r"|fatal: |error(?:\[\w{1,12}\])?: |panic: |make: \*\*\* "
    r"|(?:[\w./-]{1,80}: )?[\w./-]{1,80}: command not found"
    r"|[^\s:]{1,300}:\d{1,7}:(?:\d{1,5}:)? (?:fatal )?error: |[^\s(]{1,300}\(\d{1,7},\d{1,5}\): error TS\d"
    r"|=+ .{0,80}\b\d{1,6} (?:failed|error)|FAILED \S"
    r"|[\w./-]{1,80}: line \d{1,7}: \S{1,80}: command not found)",
    re.MULTILINE,
)
_SAYS_ERROR = re.compile(r"error: |Error: |Error (?:executing|invoking|calling) tool\b")
_NUMBERED = re.compile(r"^ {0,8}\d{1,7}(?:: |\t|→|\| ?)")


def use_of(name: str, arguments: object, result: str, *, failed: bool | None = None) -> ToolUse:
    """Return the record of a call: its tool, what it was about, and whether it failed.

    The arguments are as the model gave them, an object where it could. Where the caller does not know whether
    the call `failed`, the tool's own protocol says.
    """
    given = arguments if isinstance(arguments, Mapping) else {}
    found = ((sort, given[key]) for sort, keys in _ABOUT.items() for key in keys if given.get(key))
    sort, about = next(found, ("", ""))
    said = _says_failure(result, by_command=sort == "command") if failed is None else failed
    shown = about if isinstance(about, str) else json.dumps(about, ensure_ascii=False, default=str)
    return {"name": name[:ABOUT_CHARS], "about": clip(inert(shown[:2000]), ABOUT_CHARS), "failed": said}


def tool_use(entry: Entry) -> tuple[ToolUse, str] | None:
    """Return the record of a tool's result and its words, `None` for any other entry."""
    content = entry["content"]
    if use := entry.get("tool"):
        return use, content.removeprefix(f"{use['name']}: ")
    if entry["kind"] != "tool_result":
        return None
    name, colon, said = content.partition(": ") if entry["speaker"] == "tools" else ("", "", "")
    result = said if colon else content
    return use_of(name if colon else "", {}, result), result


def passages(use: ToolUse, result: str, terms: Mapping[str, int]) -> list[str]:
    """Return what a result says: of a failed call everything, else the passages that bear on the debate.

    How often each term has been said in the debate, `terms` tells.
    """
    label = " ".join(filter(None, (use["name"], use["about"]))) or "tool"
    data, said = _unwrap(result)
    if use["failed"]:
        return [inert(f"{label} failed: {said}")]
    found = [clip(inert(text), PASSAGE_CHARS) for text in _parts(data, said) if text.strip()]
    worth = [
        sum(math.log1p(terms.get(term, 0)) for term in term_set(text)) + bool(find_evidence(text))
        for text in found
    ]
    ranked = sorted(range(len(found)), key=lambda at: (-worth[at], at))[:MOST_PASSAGES]
    shown = [at for at in sorted(ranked) if worth[at]] or sorted(ranked[:3])
    return [f"{label}: {found[at]}" for at in shown] or [f"{label}: no output"]


def _says_failure(result: str, *, by_command: bool) -> bool:
    data = _json(result)
    if isinstance(data, Mapping):
        return (
            any(isinstance(data.get(key), int) and data[key] for key in _CODES)
            or any(data.get(key) for key in ("isError", "is_error", "error"))
            or any(data.get(key) is False for key in ("success", "ok"))
            or str(data.get("status", "")).lower() in ("error", "failed", "failure")
        )
    lines = [line.strip() for line in result.splitlines() if line.strip()]
    for line in (*lines[:1], *lines[:-4:-1]) if by_command or len(lines) < 3 else ():
        if code := _EXIT.fullmatch(line[:200]):
            return int(code[1] or code[2]) != 0
    return bool(_SAYS_ERROR.match(result.lstrip()) or (by_command and _FAILED.search(result)))


def _json(text: str) -> object:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _unwrap(result: str) -> tuple[object, str]:
    """Return what a result holds as data, `None` for none, and as text, without the frames of MCP."""
    data = _json(result)
    blocks = data.get("content") if isinstance(data, Mapping) and "content" in data else data
    if isinstance(blocks, list) and blocks and all(isinstance(b, Mapping) and b.get("type") for b in blocks):
        text = "\n".join(str(block.get("text", "")) for block in blocks)
        return _json(text), text
    if isinstance(data, Mapping) and isinstance(data.get("results"), list):
        return data["results"], result
    if isinstance(data, Mapping):
        text = "\n".join(f"{key}: {_plain(value)}" for key, value in data.items() if value not in (None, ""))
        return None, text
    return data, result


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_plain(each)}" for key, each in value.items() if each not in (None, ""))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _parts(data: object, text: str) -> list[str]:
    """Return what may be shown by itself: rows with their columns' names, lines found, sentences."""
    if isinstance(data, list):
        return [_plain(item) for item in data[:READ_LINES]]
    lines = text.splitlines()[:READ_LINES]
    numbered = [line for line in lines if _NUMBERED.match(line)]
    if len(numbered) * 2 > len(lines):
        lines = [_NUMBERED.sub("", line, count=1) for line in numbered]
    if rows := _rows(lines):
        return rows
    if len(lines) > 1 and all(len(line) < 2 * PASSAGE_CHARS for line in lines):
        return lines
    return [sentence.text for sentence in split_sentences("\n".join(lines))]


def _rows(lines: list[str]) -> list[str]:
    """Return a table's rows, each value after its column's name; `[]` where the lines are no table."""
    for mark in "\t", ";", ",", "|":
        if len(lines) < 2 or mark not in lines[0] or lines[0].rstrip().endswith((".", ":", "{")):
            continue
        rows = [row for row in csv.reader(lines, delimiter=mark) if row]
        if len(rows) > 1 and len({len(row) for row in rows}) == 1:
            head, *body = rows
            return [
                ", ".join(f"{name.strip()}: {value.strip()}" for name, value in zip(head, row, strict=True))
                for row in body
            ]
    return []
