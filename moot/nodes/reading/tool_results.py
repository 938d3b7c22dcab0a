"""Tool results by type of tool: what a later reader needs of them, and every detail of an error.

The tool's name decides the type where it is known; otherwise the look of the result does.
"""

import json
import re
from typing import Literal

from typing_extensions import TypedDict

from moot.nodes.text.plain import clip, excerpt, one_line

ToolType = Literal["file_read", "shell", "search", "file_created", "edit", "calculator", "default"]


class ToolFacts(TypedDict):
    """What one tool result says; JSON types only."""

    type: ToolType
    status: Literal["ok", "error"]
    facts: list[str]
    """Key facts, one line each, at most 160 characters each, at most eight."""
    errors: list[str]
    """Error details, at most twelve lines of at most 240 characters: exceptions, exit codes, places."""


_MAX_FACTS, _FACT_CHARS = 8, 160
_MAX_ERRORS, _ERROR_CHARS = 12, 240
_LONGEST_LINE = 2000

_TYPE_BY_NAME: tuple[tuple[ToolType, re.Pattern[str]], ...] = (
    ("edit", re.compile(r"edit|replace|patch|insert|rename|update|append", re.IGNORECASE)),
    ("file_created", re.compile(r"write|create|save|new_?file", re.IGNORECASE)),
    ("search", re.compile(r"search|grep|glob|find|retriev|query|lookup|browse|fetch|wiki", re.IGNORECASE)),
    ("shell", re.compile(r"shell|bash|command|exec|terminal|run|python|repl", re.IGNORECASE)),
    ("calculator", re.compile(r"calc|math|eval|arith", re.IGNORECASE)),
    ("file_read", re.compile(r"read|view|open|cat|load|show", re.IGNORECASE)),
)
_TYPE_BY_LOOK: tuple[tuple[ToolType, re.Pattern[str]], ...] = (
    (
        "edit",
        re.compile(
            r"^(?:@@ |--- a/|\+\+\+ b/)|has been (?:edited|updated)|(?:edited|patched|replaced) ", re.M | re.I
        ),
    ),
    (
        "file_created",
        re.compile(r"(?:created|wrote|written|saved) .{0,80}(?:file|to [/\w.~])|file created", re.IGNORECASE),
    ),
    (
        "shell",
        re.compile(
            r"exit(?:ed)?(?: with)?[ _-](?:code|status)|return[ _-]?code|^\$ |command not found", re.M | re.I
        ),
    ),
    (
        "search",
        re.compile(r"\b\d+ (?:results?|matches|hits)\b|no (?:results|matches)|^https?://", re.M | re.I),
    ),
    ("calculator", re.compile(r"\A\s*[-+\d.,eE()*/^ ]{1,200}(?:=\s*[-+\d.,eE ]{1,60})?\s*\Z")),
    (
        "file_read",
        re.compile(r"^\s{0,6}\d{1,6}(?:\t|→|: |\| )|^(?:import|from|def|class|#include|package) ", re.M),
    ),
)
# What makes a line one that tells about an error.
_ERROR_LINE = re.compile(
    r"\b\w{0,60}(?:Error|Exception|Warning)\b|\b(?:error|fatal|failed|failure|panic|traceback|denied|refused"
    r"|abort(?:ed)?|timed out|timeout|not found|no such|cannot|could not"
    r"|unable to|invalid|segmentation fault)\b"
    r"|错误|失败|エラー|失敗|오류|ошибк|erreur|fehler",
    re.IGNORECASE,
)
_EXIT_CODE = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?:[ _-](?:code|status))?|return[ _-]?code|status[ _]code)[\s:=()\"']{0,4}"
    r"(-?\d{1,5})\b",
    re.I,
)
_FAILURE = re.compile(
    r"^\s{0,8}(?:E\s+)?(?:[\w.]{0,80}(?:Error|Exception)\b|(?:error|fatal|panic|traceback)\b)"
    r"|command not found|no such file|permission denied|\b[1-9]\d{0,5} failed\b"
    r"|\"?(?:is_)?error\"?\s?:\s?(?:true|\"[^\"])",
    re.IGNORECASE | re.MULTILINE,
)
_PLACE = re.compile(
    r"(?:File \"[^\"]{1,300}\", line \d+|[\w./\\~-]{1,200}\.\w{1,8}:\d{1,7}|\bline \d{1,7}\b)"
)
_PATH = re.compile(
    r"(?:[A-Za-z]:\\|~?/|\.{1,2}/)?(?:[\w.@+-]{1,80}[/\\]){1,20}[\w.@+-]{1,120}|\b[\w-]{1,80}\.[a-z]\w{0,5}\b"
)
_DEFINITION = re.compile(
    r"^\W{0,8}\d{0,6}\W{0,4}(?:async )?(?:def|class|fn|func|function|struct|interface|#{1,3}) ?[\w ].{0,100}"
)
_LINK = re.compile(r"https?://[^\s<>\"')\]]{3,300}")
_COUNT = re.compile(
    r"\b(?:\d[\d,]{0,12}|no) (?:results?|matches|hits|lines?|files?|tests?|passed|failed|bytes)\b", re.I
)


def read_result(content: str, tool: str = "") -> ToolFacts:
    """Read one tool result.

    Returns:
        Its type, its status, its key facts and, whatever the type, the details of any error: exception type
        and message, exit code, paths and line numbers. Linear in the content's length.
    """
    fields = _fields(content)
    text = "\n".join(fields) if fields else content
    lines = [line[:_LONGEST_LINE] for line in text.splitlines() if line.strip()]
    kind = _type_of(text[:20_000], tool)
    code = _exit_code(lines)
    failed = code not in (None, 0) or any(_FAILURE.search(line) for line in _edges(lines, 400))
    if kind in ("file_read", "search") and code is None:
        failed = failed and _fails_outright(lines)
    return ToolFacts(
        type=kind,
        status="error" if failed else "ok",
        facts=_unique(_facts(kind, len(content), lines, code), _MAX_FACTS, _FACT_CHARS),
        errors=_unique(_errors(lines, code), _MAX_ERRORS, _ERROR_CHARS) if failed else [],
    )


def describe(result: ToolFacts) -> str:
    """Return a tool result as one line; of a failed one its errors come first."""
    name = result["type"].replace("_", " ")
    said = "; ".join([*result["errors"], *result["facts"]]) or "no output"
    return f"{name} {'failed' if result['status'] == 'error' else 'ok'}: {said}"


def _type_of(content: str, tool: str) -> ToolType:
    for kind, pattern in _TYPE_BY_NAME if tool else ():
        if pattern.search(tool):
            return kind
    for kind, pattern in _TYPE_BY_LOOK:
        if pattern.search(content):
            return kind
    return "default"


def _edges(lines: list[str], count: int) -> list[str]:
    """Return the first and last `count` lines: errors stand at an end, and a log may be long."""
    return lines if len(lines) <= 2 * count else lines[:count] + lines[-count:]


def _exit_code(lines: list[str]) -> int | None:
    for line in reversed(_edges(lines, 20)):
        if match := _EXIT_CODE.search(line):
            return int(match[1])
    return None


def _fails_outright(lines: list[str]) -> bool:
    """Whether the result *is* an error, and not a file or page that speaks of errors."""
    return bool(lines) and (len(lines) <= 3 or _FAILURE.match(lines[0]) is not None)


def _errors(lines: list[str], code: int | None) -> list[str]:
    """Return the lines that tell of an error: the last exception first, then codes, then places."""
    found = ((line, _ERROR_LINE.search(line)) for line in lines)
    telling = [excerpt(line, _ERROR_CHARS, match.start()) for line, match in found if match]
    places = [match.group() for line in lines if (match := _PLACE.search(line))]
    exit_code = [f"exit code {code}"] if code is not None else []
    return [*telling[-1:], *exit_code, *places[-3:][::-1], *telling[:4], *telling[-4:]]


def _facts(kind: ToolType, size: int, lines: list[str], code: int | None) -> list[str]:
    """Return candidates for key facts by the type of the tool, the most important first."""
    paths = [match.group() for line in lines[:200] for match in _PATH.finditer(line)]
    counts = [match.group() for line in _edges(lines, 40) for match in _COUNT.finditer(line)]
    extent = [f"{len(lines)} lines, {size} characters"] if lines else []
    if kind == "file_read":
        return [
            *paths[:1],
            *extent,
            *(m.group() for line in lines if (m := _DEFINITION.match(line))),
            *lines[:2],
        ]
    if kind == "shell":
        return [*([f"exit code {code}"] if code is not None else []), *counts, *lines[:2], *lines[-2:]]
    if kind == "search":
        links = [match.group() for line in lines for match in _LINK.finditer(line)]
        return [*counts[:1], *(links or paths)[:4], *lines[:3]]
    if kind in ("file_created", "edit"):
        changed = [
            line for line in lines if line.startswith(("@@", "+", "-")) and line[:3] not in ("+++", "---")
        ]
        return [*paths[:2], *counts[:2], *changed[:3], *lines[:1]]
    if kind == "calculator":
        return [" ".join(lines)]
    return [*lines[:4], *lines[-1:], *extent]


def _fields(content: str) -> list[str]:
    """Return the fields of a JSON object as `key: value` lines, `[]` where the content is none."""
    if not content.lstrip().startswith("{"):
        return []
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError):
        return []
    return [
        f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for key, value in parsed.items()
    ]


def _unique(found: list[str], count: int, limit: int) -> list[str]:
    """Return the first `count` distinct, non-empty items, each on one line of at most `limit` characters."""
    lines = dict.fromkeys(clip(one_line(item[:_LONGEST_LINE]), limit) for item in found)
    return [line for line in lines if line][:count]
