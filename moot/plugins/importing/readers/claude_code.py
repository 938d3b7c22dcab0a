"""Session files of Claude Code: JSON Lines with one message or event a line."""

from moot.importers import LeftOut, ParsedTranscript, Reader, Source
from moot.plugins.importing.message_objects import JsonDict, read_messages


def _read(source: Source) -> ParsedTranscript | None:
    lines = source.json
    if not isinstance(lines, list) or not any(map(_is_message, lines)):
        return None
    if not all(isinstance(line, dict) and isinstance(line.get("type"), str) for line in lines):
        return None
    left_out, items, positions, topic = LeftOut(), list[JsonDict](), list[int](), ""
    for index, line in enumerate(lines):
        if line["type"] == "summary":
            topic = topic or str(line.get("summary") or "")
        elif not _is_message(line):
            left_out["event"] += 1
        elif line.get("isSidechain") is True:
            left_out["sub-agent message"] += 1
        elif line.get("isMeta") is True:
            left_out["system message"] += 1
        else:
            items.append({**line["message"], "timestamp": line.get("timestamp")})
            positions.append(index)
    messages = read_messages(items, lambda index: source.position(positions[index]), left_out)
    return ParsedTranscript(messages, topic, left_out=left_out)


def _is_message(line: object) -> bool:
    if not isinstance(line, dict) or line.get("type") not in ("user", "assistant"):
        return False
    message = line.get("message")
    return isinstance(message, dict) and "role" in message and ("sessionId" in line or "uuid" in line)


READER = Reader("Claude Code session", "json", _read)
