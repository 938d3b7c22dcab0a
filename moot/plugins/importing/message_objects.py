"""Messages written as JSON objects, with their speakers, texts, tool calls and tool results."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise

from moot.importers import LeftOut, ParsedMessage
from moot.memory.tool_results import make_tool_use
from moot.state.errors import InputError

JsonDict = dict[str, object]
TOOL_SPEAKER = "tools"
"""Speaker id of imported tool results."""
SPEAKER_KEYS = (
    *("speaker", "speaker_name", "speakerName", "name", "author", "agentId", "agent", "agent_name"),
    *("agentName", "from", "sender", "sender_name", "sender_full_name", "creator", "user", "username", "who"),
    *("role", "source"),
)
"""Keys of a message's speaker. The first one with a value counts."""
CONTENT_KEYS = ("content", "text", "message", "utterance", "speech", "body", "value", "sentence", "parts")
TEXT_KEYS = (*CONTENT_KEYS, "description")
TIME_KEYS = (
    *("at", "minute", "time", "timestamp", "start", "start_time", "created_at", "createdAt", "create_time"),
    *("date", "ts", "created_utc", "timestamp_ms", "created_date"),
)
_NAME_KEYS = ("name", "nickname", "display_name", "displayName", "global_name", "real_name", "login")
_PERSON_KEYS = (*_NAME_KEYS, "username", "user_name", "full_name", "id", "role")
"""Keys of a name in an object that describes a person."""
_REPLY_KEYS = ("replies", "children", "comments")
"""Keys of the replies in a message of a thread."""
INSTRUCTIONS = frozenset({"system", "developer"})
_SHAREGPT_TOOLS = ("function_call", "observation")
_TOOL_ROLES = frozenset({"tool", "function", "observation"})
_LANGCHAIN_TYPES = frozenset({"human", "ai", "system", "tool", "function", "chat", "developer"})
_REASONING = frozenset({"reasoning", "thinking", "redacted_thinking", "thought", "thoughts"})
_FILES = frozenset({"inlineData", "fileData", "inline_data", "image", "document", "video", "data"})
_CALLS = frozenset({"tool_use", "tool_call", "tool-call", "function_call", "server_tool_use"})
_RESULTS = frozenset({"tool_result", "tool-result", "function_call_output", "function_response"})
_TEXTLESS = frozenset({"step-start", "step-finish", "cache_point", "token_budget"})


@dataclass
class _Parts:
    """Parts of a message's content, sorted by what they are."""

    texts: list[str] = field(default_factory=list)
    calls: list[tuple[str, str, object]] = field(default_factory=list)
    """Id, name and arguments of each tool call."""
    results: list[JsonDict] = field(default_factory=list)


def read_messages(
    items: Sequence[object], position: Callable[[int], str], left_out: LeftOut
) -> list[ParsedMessage]:
    """Read messages, tool calls and tool results from JSON objects.

    Args:
        items: The messages in OpenAI's, Anthropic's, Google's or LangChain's format, or any objects with a
            speaker and a text.
        position: Returns where the item with an index stands, such as `line 3`, for errors.
        left_out: Counter to which everything is added that is no message, call or result.

    Raises:
        InputError: An item is no message. The error names its position.
    """
    messages: list[ParsedMessage] = []
    calls_by_id: dict[str, tuple[str, object]] = {}
    for index, raw_item in _flat(_oldest_first(items)):
        item, where = unwrapped(raw_item), position(index)
        if not isinstance(item, dict):
            kind = type(item).__name__
            raise InputError(
                f"{where}: the message must be an object with speaker and content, not a value of type {kind}"
            )
        # Events of AutoGen and AG2 are tool calls, thoughts and memory queries.
        if str(item.get("type")).endswith("Event") or "uuid" in _inner(item):
            left_out["event"] += 1
            continue
        if item.get("system") is True:  # GitLab's notes about changes
            left_out["system message"] += 1
            continue
        if (role := _role(item)) in INSTRUCTIONS or role == "function_call":
            left_out["system message" if role in INSTRUCTIONS else "tool call"] += 1
            continue
        if _role(item) in _TOOL_ROLES:
            messages.append(_tool_result(item, where, calls_by_id, left_out))
            continue
        messages += _message(item, where, calls_by_id, left_out)
    return messages


def _oldest_first(items: Sequence[object]) -> list[tuple[int, object]]:
    """Return the items with their indices. Services list the newest message first, and this reverses them."""
    numbered = [*enumerate(items)]
    times = [readable_time(time_of(item)) if isinstance(item, dict) else "" for item in items]
    is_dated = all(re.match(r"\d{4}-\d{2}-\d{2}T", time) for time in times)
    is_reversed = is_dated and len(times) > 1 and all(after < before for before, after in pairwise(times))
    return numbered[::-1] if is_reversed else numbered


def _flat(items: Sequence[tuple[int, object]]) -> Iterator[tuple[int, object]]:
    """Yield the messages of a thread with their replies, in the order of the page."""
    pending = [*items][::-1]
    while pending:
        index, item = pending.pop()
        yield index, item
        pending += [(index, reply) for reply in replies_of(item)[::-1]]


def replies_of(item: object) -> list[object]:
    """Return the replies in a message, or `[]`."""
    for key in _REPLY_KEYS if isinstance(item, dict) else ():
        replies = item.get(key) if isinstance(item, dict) else None
        replies = replies.get("nodes") if isinstance(replies, dict) else replies
        if isinstance(replies, list) and replies and all(map(is_message, replies)):
            return replies
    return []


def _inner(item: JsonDict) -> JsonDict:
    return content if isinstance(content := item.get("content"), dict) else {}


def _message(
    item: JsonDict, where: str, calls_by_id: dict[str, tuple[str, object]], left_out: LeftOut
) -> list[ParsedMessage]:
    name, parts, total = speaker_of(item), _Parts(), left_out.total()
    parts.calls += _tool_calls(item)
    if not name:
        raise InputError(f"{where}: the message has no speaker; add the key `speaker`")
    if not any(key in item for key in CONTENT_KEYS) and not parts.calls:
        raise InputError(f"{where}: the message from {name!r} has no content; add the key `content`")
    _collect(_content(item), where, parts, left_out)
    left_out["attachment"] += sum(
        len(files) for key in ("attachments", "files") if isinstance(files := item.get(key), list)
    )
    time, text = time_of(item), "\n".join(filter(None, parts.texts))
    has_more = parts.calls or parts.results or left_out.total() > total
    messages = [ParsedMessage(name, text, time)] if text.strip() or not has_more else []
    calls = []
    for call_id, tool, arguments in parts.calls:
        calls_by_id[call_id] = (tool, arguments)
        calls.append(ParsedMessage(name, f"{tool} {json.dumps(arguments)}", time, "tool_call", call_id))
    results = [_tool_result(result, where, calls_by_id, left_out) for result in parts.results]
    # A call with its result in the same message comes before the text about it.
    ids = {result.call_id for result in results}
    calls_with_results = [call for call in calls if call.call_id in ids]
    return [*calls_with_results, *results, *messages, *(call for call in calls if call.call_id not in ids)]


def unwrapped(item: object) -> object:
    """Return a message without the wrapping of LangChain's `dumpd` and `messages_to_dict`.

    A LangChain message without a role gets its type as its role.
    """
    if not isinstance(item, dict):
        return item
    if item.get("lc") == 1 and isinstance(kwargs := item.get("kwargs"), dict):
        name = item["id"][-1] if isinstance(item.get("id"), list) and item["id"] else ""
        item = {"type": str(name).removesuffix("Chunk").removesuffix("Message").casefold(), **kwargs}
    elif isinstance(data := item.get("data"), dict) and "content" in data and _langchain_type(item):
        item = {"type": item["type"], **data}
    elif item.get("type") == "text" and {"uuid", "sender", "content"} <= (inner := _inner(item)).keys():
        return inner  # AG2
    kind = _langchain_type(item)
    return {**item, "role": kind} if kind and not item.get("role") and "content" in item else item


def _langchain_type(item: JsonDict) -> str:
    kind = str(item.get("type") or "").removesuffix("MessageChunk").casefold()
    return kind if kind in _LANGCHAIN_TYPES else ""


def _role(item: JsonDict) -> str:
    role = "" if item.get("speaker") else str(item.get("role") or "")
    return role.casefold() or (str(item["from"]) if item.get("from") in _SHAREGPT_TOOLS else "")


def speaker_of(item: JsonDict) -> str:
    """Return the speaker of a message, or `""` if it has none."""
    for key in SPEAKER_KEYS:
        value = item.get(key)
        if name := first_text(value, _PERSON_KEYS) if isinstance(value, dict) else first_text(item, (key,)):
            return name
    return ""


def is_message(item: object) -> bool:
    """Return True if a JSON value is an object with a speaker and a text."""
    item = unwrapped(item)
    return isinstance(item, dict) and bool(speaker_of(item)) and any(key in item for key in CONTENT_KEYS)


def time_of(item: JsonDict) -> str:
    """Return the time of a message. Seconds since 1970 become a date."""
    return readable_time(next((item[key] for key in TIME_KEYS if item.get(key) not in (None, "")), ""))


_EARLIEST_S, _LATEST_S = 631_152_000, 4_102_444_800
"""Seconds from 1970 to 1990 and to 2100. A number outside is a position in a recording, not a date."""


def readable_time(value: object) -> str:
    """Return a time as text. Seconds or milliseconds since 1970 become a date in ISO 8601 format."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    with suppress(ValueError, OverflowError):
        seconds = float(value)
        seconds = seconds / 1000 if seconds > _LATEST_S else seconds
        if _EARLIEST_S < seconds < _LATEST_S:
            return datetime.fromtimestamp(int(seconds), UTC).isoformat()
    return str(value).strip()


def conversations_of(value: object, is_conversation: Callable[[object], bool]) -> list[JsonDict]:
    """Return the conversations of an export: a list of them, or one. Return `[]` for any other value."""
    values = value if isinstance(value, list) else [value]
    conversations = [each for each in values if isinstance(each, dict) and is_conversation(each)]
    return conversations if len(conversations) == len(values) else []


def first_text(item: Mapping[str, object], keys: Iterable[str]) -> str:
    """Return the first text or number that is not empty under these keys, or `""`."""
    values = (item.get(key) for key in keys)
    texts = (str(v).strip() for v in values if isinstance(v, str | int | float) and not isinstance(v, bool))
    return next((text for text in texts if text), "")


def _tool_calls(item: JsonDict) -> list[tuple[str, str, object]]:
    """Return the id, name and arguments of each tool call in OpenAI's, LangChain's or inspect_ai's format."""
    calls: list[tuple[str, str, object]] = []
    raw_calls = item.get("tool_calls")
    for call in raw_calls if isinstance(raw_calls, list) else []:
        if not isinstance(call, dict):
            continue
        function = call.get("function")
        values = function if isinstance(function, dict) else {"name": function, **call}
        if isinstance(values.get("name"), str):
            arguments = values.get("arguments") or values.get("args") or {}
            calls.append((str(call.get("id", "")), str(values["name"]), _parsed(arguments)))
    return calls


def _parsed(arguments: object) -> object:
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):  # arguments that are not JSON stay text
            return json.loads(arguments)
    return arguments


def _tool_result(
    item: JsonDict, where: str, calls_by_id: Mapping[str, tuple[str, object]], left_out: LeftOut
) -> ParsedMessage:
    call_id = first_text(item, ("tool_call_id", "tool_use_id", "toolUseId", "toolCallId", "call_id"))
    tool, arguments = calls_by_id.get(call_id, (first_text(item, ("name", "function", "toolName")), {}))
    text = text_of(_content(item), where, left_out)
    failed = True if item.get("status") == "error" or item.get("is_error") is True else None
    tool_use = make_tool_use(tool, arguments, text, failed=failed)
    return ParsedMessage(
        TOOL_SPEAKER, f"{tool}: {text}" if tool else text, time_of(item), "tool_result", call_id, tool_use
    )


def _content(item: Mapping[str, object]) -> object:
    """Return the content of a message object, or `None` if it has no content."""
    return next((item[key] for key in (*TEXT_KEYS, "output", "refusal") if item.get(key) is not None), None)


def text_of(value: object, where: str, left_out: LeftOut) -> str:
    """Convert the content of a message to text. Reasoning, images and other files are left out.

    Raises:
        InputError: The content has another type. The message starts with `where`.
    """
    parts = _Parts()
    _collect(value, where, parts, left_out)
    return "\n".join(filter(None, parts.texts))


def _collect(value: object, where: str, parts: _Parts, left_out: LeftOut) -> None:
    """Add the texts, tool calls and tool results in a message's content to `parts`."""
    if value is None or isinstance(value, str):
        parts.texts.append(value or "")
    elif isinstance(value, list):
        for each in value:
            _collect(each, where, parts, left_out)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        parts.texts.append(str(value))
    elif isinstance(value, dict) and (kind := _part_kind(value)) != "unknown":
        if kind == "text":
            _collect(_content(value), where, parts, left_out)
        elif kind == "call":
            parts.calls.append(_call_of(value))
        elif kind == "result":
            parts.results.append(inner if isinstance(inner := value.get("toolResult"), dict) else value)
        elif kind:
            left_out[kind] += 1
    else:
        raise InputError(
            f"{where}: the content of the message must be text, not {json.dumps(value)[:60]}; put quotes "
            "around it"
        )


def _part_kind(part: JsonDict) -> str:
    """Return what a part of a message's content is.

    Return `text`, `call`, `result`, the noun of what is left out, `""` for a mark without content, or
    `unknown`.
    """
    kind = str(part.get("type") or part.get("content_type") or "").casefold()
    if kind in _REASONING or part.get("thought") is True or "reasoningContent" in part:
        return "reasoning"
    if kind in _CALLS or part.keys() & {"functionCall", "toolUse"}:
        return "call"
    if kind in _RESULTS or part.keys() & {"functionResponse", "toolResult"}:
        return "tool result" if "functionResponse" in part else "result"
    if kind in _TEXTLESS:
        return ""
    if kind.startswith("tool-"):  # Vercel's tool part holds the call and its result
        return "tool call"
    if _content(part) is not None:
        return "text"
    return "attachment" if kind or part.keys() & _FILES else "unknown"


def _call_of(part: JsonDict) -> tuple[str, str, object]:
    inner = part.get("functionCall") or part.get("toolUse")
    call: JsonDict = inner if isinstance(inner, dict) else part
    name = first_text(call, ("name", "toolName"))
    arguments: object = next((call[key] for key in ("input", "arguments", "args") if call.get(key)), {})
    call_id = first_text(part, ("call_id", "id", "toolCallId")) or first_text(call, ("toolUseId",))
    return call_id, name, _parsed(arguments)
