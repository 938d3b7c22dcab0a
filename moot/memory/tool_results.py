"""Tool results as evidence, with the subject of a call, its status and relevant passages.

The arguments of a call name its subject. Its status comes from the caller, or from the tool's own protocol: a
flag or an exit code, never words in a file or a web page.
"""

import csv
import json
import math
import re
from collections.abc import Mapping

from moot.state.entries import Entry, ToolUse
from moot.text.plain_text import clip, count_noun, sanitize_line
from moot.text.terms import split_sentences, term_set

MAX_RESULT_PASSAGES = 12
"""Maximum number of passages that a summary takes from one tool result."""
ABOUT_CHARS, PART_CHARS, READ_LINES = 80, 400, 2_000

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
_ERROR_LINE = re.compile(
    r"^[ \t]{0,8}(?:E {1,8})?(?:"  # pytest marks the lines of an exception
    r"(?:\S{1,300} ){0,2}(?:fatal )?(?:[Ee]rror|fatal|panic)(?:\[\w{1,12}\]| \w{1,12})?: "  # compilers, git
    r"|Error (?:executing|invoking|calling) tool\b"  # MCP servers
    r"|[\w.]{1,80}(?:Error|Exception)(?::|$)"  # Python, JavaScript, Java
    r"|(?:--- )?FAIL(?:ED)?(?:[:\s]|$)"  # pytest, go test, jest
    r"|npm (?:ERR!|error) |make(?:\[\d{1,3}\])?: \*\*\* "
    # shells
    r"|.{1,200}(?:(?:command not found|No such file or directory|Permission denied)$|Segmentation fault\b)"
    r").{0,2000}",
    re.MULTILINE,
)
"""Line with which programs report an error, one row for each kind of program. It is the status of a command
without an exit code, and the first line of a failed result."""
_SAYS_ERROR = re.compile(r"error: |Error: |Error (?:executing|invoking|calling) tool\b")
_EVIDENCE = re.compile(
    r"https?://\S{3}|\bwww\.\S{3}|\bdoi:|\barxiv:"  # links
    r"|\d[\d.,]{0,30}[\d%％٪‰]|[$€£¥₹₽] ?\d|\d [%％٪‰]|[零〇一二三四五六七八九十百千万萬亿億兆]{2}"  # numbers
    r"|\[\d{1,3}\]|《[^《》]{1,60}》"  # citations
    r"|“[^“”]{12,400}”|\"[^\"\n]{12,400}\"|«[^«»]{8,400}»|„[^„“]{8,400}“|「[^「」]{4,200}」|『[^『』]{2,200}』",
    re.IGNORECASE,
)
"""Links, numbers except single digits, citations and quotations. Each repetition is bounded, so that a search
takes linear time."""
MIN_OUTLINED_LINES = 20
"""Number of lines from which a summary states how many lines a tool result has."""
_PATH = re.compile(
    r"((?:[A-Za-z]:)?(?:\.{0,2}[/\\])?[\w@.-]{1,80}(?:[/\\][\w@.-]{1,80}){0,30}\.\w{1,10})(?=$|:)"  # a list
    r"|([\w@./-]{1,300})(?=:\d{1,7}(?:[:-]|$))"  # `grep -n` and `-c`, for files without an extension too
    r"|(\.{0,2}/\S{1,300})$"  # a path in a list, without an extension
)
_NUMBERED = re.compile(r"^ {0,8}\d{1,7}(?:: |\t|→|\| ?)")


def make_tool_use(name: str, arguments: object, result: str, *, failed: bool | None = None) -> ToolUse:
    """Return a record of a tool call.

    The record names the tool and the main argument, and says if the call failed. `arguments` are the model's
    arguments, as an object if they could be parsed. If `failed` is `None`, the status is read from the
    result.
    """
    fields = arguments if isinstance(arguments, Mapping) else {}
    matches = ((kind, fields[key]) for kind, keys in _ABOUT.items() for key in keys if fields.get(key))
    kind, subject = next(matches, ("", ""))
    has_failed = _says_failure(result, by_command=kind == "command") if failed is None else failed
    subject_text = (
        subject if isinstance(subject, str) else json.dumps(subject, ensure_ascii=False, default=str)
    )
    return {
        "name": name[:ABOUT_CHARS],
        "about": clip(sanitize_line(subject_text[:2000]), ABOUT_CHARS),
        "failed": has_failed,
    }


def tool_use(entry: Entry) -> tuple[ToolUse, str] | None:
    """Return the call record and the text of a tool result, `None` for another entry."""
    content = entry["content"]
    if use := entry.get("tool"):
        return use, content.removeprefix(f"{use['name']}: ")
    if entry["kind"] != "tool_result":
        return None
    name, colon, text = content.partition(": ") if entry["speaker"] == "tools" else ("", "", "")
    result = text if colon else content
    return make_tool_use(name if colon else "", {}, result), result


def input_tool_use(entry: Entry, raw_entry: Mapping[str, object]) -> ToolUse:
    """Return the tool-call record for a tool result imported from another system.

    Args:
        entry: the result as an entry.
        raw_entry: the result as it was passed. A record under `tool`, or `"status": "error"`, comes first.
    """
    tool_result = tool_use(entry)
    name, result = (tool_result[0]["name"], tool_result[1]) if tool_result else ("", entry["content"])
    record = raw_entry.get("tool")
    record = record if isinstance(record, Mapping) else {}
    name = str(record.get("name") or name or entry["speaker"])
    failed = record.get("failed")
    if not isinstance(failed, bool):
        failed = True if raw_entry.get("status") == "error" else None
    use = make_tool_use(name, {}, result, failed=failed)
    return {**use, "about": str(record["about"])[:ABOUT_CHARS]} if record.get("about") else use


def passages(use: ToolUse, result: str, terms: Mapping[str, int]) -> list[str]:
    """Return the relevant passages of a tool result.

    If the tool failed, return the whole text as one passage that starts with the error. `terms` counts the
    terms of the debate, which decide what is relevant.
    """
    label = " ".join(filter(None, (use["name"], use["about"]))) or "tool"
    data, output = _unwrap(result)
    if use["failed"]:
        error = _ERROR_LINE.search(output)
        text = f"{error[0]}\n{output[: error.start()]}{output[error.end() :]}" if error else output
        return [sanitize_line(f"{label} failed: {text}")]
    candidates = [clip(sanitize_line(text), PART_CHARS) for text in _parts(data, output) if text.strip()]
    outline = _outline(output)
    scores = [
        sum(math.log1p(terms.get(term, 0)) for term in term_set(text)) + shows_evidence(text)
        for text in candidates
    ]
    ranking = sorted(range(len(candidates)), key=lambda index: (-scores[index], index))
    ranking = ranking[: MAX_RESULT_PASSAGES - len(outline)]
    shown_indices = [index for index in sorted(ranking) if scores[index]] or sorted(ranking[:3])
    parts = [*outline, *(candidates[index] for index in shown_indices)]
    return [f"{label}: {part}" for part in parts] or [f"{label}: no output"]


def _outline(text: str) -> list[str]:
    """Return the number of files of a search or listing, or of lines of a long tool result."""
    lines = [line.strip()[:400] for line in text.splitlines()[:READ_LINES] if line.strip()]
    matches = [match for line in lines if (match := _PATH.match(line))]
    files = {match[1] or match[2] or match[3] for match in matches}
    if len(matches) > 1 and 2 * len(matches) > len(lines):
        return [count_noun(len(files), "file")]
    return [f"{len(lines)} lines"] if len(lines) >= MIN_OUTLINED_LINES else []


def shows_evidence(passage: str) -> bool:
    """Return True if a passage contains a number, a source, a link or a quotation."""
    return bool(_EVIDENCE.search(passage))


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
    return bool(_SAYS_ERROR.match(result.lstrip()) or (by_command and _ERROR_LINE.search(result)))


def _json(text: str) -> object:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _unwrap(result: str) -> tuple[object, str]:
    """Return a result's JSON data or `None`, and its text, without an MCP server's wrapper."""
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
    """Split a tool result into lines, sentences, or table rows with column names."""
    if isinstance(data, list):
        return [_plain(item) for item in data[:READ_LINES]]
    lines = text.splitlines()[:READ_LINES]
    numbered = [line for line in lines if _NUMBERED.match(line)]
    if len(numbered) * 2 > len(lines):
        lines = [_NUMBERED.sub("", line, count=1) for line in numbered]
    if rows := _rows(lines):
        return rows
    if len(lines) > 1 and all(len(line) < 2 * PART_CHARS for line in lines):
        return lines
    return [sentence.text for sentence in split_sentences("\n".join(lines))]


def _rows(lines: list[str]) -> list[str]:
    """Parse lines as table rows with named values, or return `[]` if they form no table."""
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
