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
from moot.text.plain_text import clip, sanitize_line
from moot.text.terms import split_sentences, term_set

MAX_PASSAGES = 12
"""Maximum number of passages that a summary takes from one tool result."""
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
# Whole lines with which programs report an error if there is no exit code.
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
# Patterns of evidence. Each repetition is bounded or unambiguous, so that each search takes linear time.
_EVIDENCE = (
    # links
    re.compile(
        r"(?:https?://|www\.)[^\s<>\"'()\[\]「」（）]{3,400}|\bdoi:\s?10\.\d{4,9}/\S{1,100}"
        r"|\barxiv:\s?\d{4}\.\d{4,5}",
        re.IGNORECASE,
    ),
    # citations
    re.compile(
        r"\[\d{1,3}(?:[,–-] ?\d{1,3}){0,8}\]|\([^()\d\n]{2,80}(?:19|20)\d\d[a-z]?\)"
        r"|\b[^\W\d_]{2,30}(?: et al\.?)? \((?:19|20)\d\d[a-z]?\)|《[^《》]{1,60}》"
        r"|\b(?:[Aa]ccording to|[Ll]aut|[Ss]elon|[Ss]egún|[Сс]огласно) [^,.;:!?\n]{3,80}"
    ),
    # quotations
    re.compile(
        r"“[^“”]{12,400}”|\"[^\"\n]{12,400}\"|«[^«»]{8,400}»|„[^„“]{8,400}“|「[^「」]{4,200}」|『[^『』]{2,200}』"
        r"|<quote>[^<]{4,400}</quote>"
    ),
    # percentages
    re.compile(
        r"\d[\d.,]{0,20} ?(?:[%％٪‰]|per ?cent\b|percentage point|Prozent|pour ?cent|por ciento|процент)"
        r"|百分之[\d零〇一二三四五六七八九十百点.]{1,12}|\d{1,3} ?パーセント"
    ),
    # numbers, except single digits
    re.compile(
        r"[$€£¥₹₽] ?\d[\d.,]{0,30}(?: ?(?:thousand|million|billion|trillion|bn|[mk]\b))?"
        r"|\d[\d.,]{0,30}\d(?: ?(?:thousand|million|billion|trillion|Millionen|Milliarden|millones|миллион))?"
        r"|\d ?(?:thousand|million|billion|trillion|times|万|萬|亿|億|倍|만|억)"
        r"|[零〇一二三四五六七八九十百千万萬亿億兆]{3,20}"
    ),
)
MIN_OUTLINED_LINES = 20
"""Number of lines from which a summary shows a tool result as an outline. A shorter result is outlined only
if it has exports."""
_IMPORT = re.compile(
    r"^(?:from|import)[ \t]{1,4}([A-Za-z_][\w.]{0,80})(?=[ \t]{0,4}(?:$|import\b|as\b|,))"
    r"|^import\b[^'\"\n]{0,200}['\"]([^'\"\n]{1,100})['\"]",
    re.MULTILINE,
)
_EXPORT = re.compile(
    r"^export[ \t]{1,4}(?:default[ \t]{1,4})?(?:async[ \t]{1,4})?"
    r"(?:const|let|var|function|class|interface|type|enum)\b\*?[ \t]{1,4}(\w{1,80})",
    re.MULTILINE,
)
_PATH = re.compile(r"(?:\./)?[\w@.-]{1,80}(?:/[\w@.-]{1,80}){0,30}\.\w{1,10}")
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
    """Return the call record and the text of a tool result.

    Return `None` if the entry is not a tool result.
    """
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
    """Return the relevant passages of a tool result, or the whole text if the tool failed.

    `terms` counts the terms of the debate, which decide what is relevant.
    """
    label = " ".join(filter(None, (use["name"], use["about"]))) or "tool"
    data, output = _unwrap(result)
    if use["failed"]:
        return [sanitize_line(f"{label} failed: {output}")]
    candidates = [clip(sanitize_line(text), PASSAGE_CHARS) for text in _parts(data, output) if text.strip()]
    outline = _outline(output)
    scores = [
        sum(math.log1p(terms.get(term, 0)) for term in term_set(text)) + shows_evidence(text)
        for text in candidates
    ]
    ranking = sorted(range(len(candidates)), key=lambda index: (-scores[index], index))
    ranking = ranking[: MAX_PASSAGES - len(outline)]
    shown_indices = [index for index in sorted(ranking) if scores[index]] or sorted(ranking[:3])
    parts = [*outline, *(candidates[index] for index in shown_indices)]
    return [f"{label}: {part}" for part in parts] or [f"{label}: no output"]


def _outline(text: str) -> list[str]:
    """Return an outline of a long tool result, or `[]` if the result is short.

    The outline gives the number of lines or files and the names of imports and exports.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    code = "\n".join(_NUMBERED.sub("", line, count=1) for line in lines[:READ_LINES])
    imports = [first or second for first, second in _IMPORT.findall(code)]
    exports = _EXPORT.findall(code)
    if len(lines) < MIN_OUTLINED_LINES and not exports:
        return []
    paths = sum(bool(_PATH.fullmatch(line.strip()[:300])) for line in lines[:READ_LINES])
    outline = [f"{len(lines)} {'files' if 2 * paths > len(lines) else 'lines'}"]
    for title, names in (("imports", imports), ("exports", exports)):
        if names:
            outline.append(f"{title} {', '.join(dict.fromkeys(names))}")
    return [clip("; ".join(outline), PASSAGE_CHARS)]


def shows_evidence(passage: str) -> bool:
    """Return True if a passage contains a number, a source, a link or a quotation."""
    return any(pattern.search(passage) for pattern in _EVIDENCE)


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
    """Return the JSON data and the text of a tool result.

    The wrapper of an MCP server is removed. The data may be `None`.
    """
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
    """Split a tool result into lines, sentences or table rows.

    A table row contains the column names.
    """
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
