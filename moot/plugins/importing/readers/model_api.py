"""Requests and responses of model APIs: OpenAI's Responses and Chat Completions, Gemini, AI Studio."""

import re

from moot.importers import LeftOut, ParsedTranscript, Reader, Source
from moot.plugins.importing.message_objects import JsonDict, read_messages

_EVENT = re.compile(r"reasoning|compaction|item_reference|mcp_\w{1,40}|\w{1,40}_call(?:_output)?")
"""Pattern for the types of items that are no messages in OpenAI's Responses API."""


def _read(source: Source) -> ParsedTranscript | None:
    value = source.json
    if isinstance(value, list):
        is_gemini = value and all(map(_is_gemini, value))
        is_input = all(map(_is_input, value)) and not all("role" in each for each in value)
        items: list[object] | None = value if is_gemini or is_input else None
    else:
        items = _items(value) if isinstance(value, dict) else None
    if items is None:
        return None
    left_out = LeftOut()
    if isinstance(value, dict) and (value.get("systemInstruction") or value.get("instructions")):
        left_out["system message"] += 1
    kept = [item for item in items if not _is_event(item, left_out)]
    messages = read_messages(kept, lambda index: f"message {index + 1}", left_out)
    return ParsedTranscript(messages, left_out=left_out)


def _items(value: JsonDict) -> list[object] | None:
    """Return the messages of a request, and then those of its response, or `None` for another form."""
    if isinstance(chunks := value.get("chunkedPrompt"), dict) and isinstance(chunks.get("chunks"), list):
        return [_chunk(chunk) for chunk in chunks["chunks"]]
    nested = [each for key in ("request", "body", "response") if isinstance(each := value.get(key), dict)]
    if nested and any(_items(each) is not None for each in nested):
        return [item for each in nested for item in _items(each) or _listed(each)]
    items: list[object] = []
    is_call = False
    for key in ("contents", "input", "history", "data"):
        if isinstance(parts := value.get(key), list) and parts and all(map(_is_input, parts)):
            is_call = True
            items += parts
    if isinstance(value.get("input"), str) and isinstance(value.get("output"), list):
        items.append({"role": "user", "content": value["input"]})
    choices, candidates, output = value.get("choices"), value.get("candidates"), value.get("output")
    if isinstance(choices, list) and choices and all(_holds(each, "message") for each in choices):
        items += [*_listed(value), choices[0]["message"]]
        is_call = True
    if isinstance(candidates, list) and candidates and all(_holds(each, "content") for each in candidates):
        items.append(candidates[0]["content"])
        is_call = True
    if isinstance(output, list) and output and all(map(_is_input, output)):
        items += output
        is_call = True
    return items if is_call else None


def _listed(value: JsonDict) -> list[object]:
    return messages if isinstance(messages := value.get("messages"), list) else []


def _chunk(chunk: object) -> object:
    """Return a message of AI Studio in Gemini's format."""
    if not isinstance(chunk, dict):
        return chunk
    role = str(chunk.get("role") or "user")
    if chunk.get("isThought") is True:
        return {"role": role, "parts": [{"thought": True}]}
    return {"role": role, "parts": [{"text": chunk["text"]} if "text" in chunk else {"inlineData": {}}]}


def _is_gemini(item: object) -> bool:
    """Return True for a message in Gemini's format, whose parts have no types."""
    if not isinstance(item, dict) or not isinstance(parts := item.get("parts"), list):
        return False
    return "role" in item and all(isinstance(part, str | dict) for part in parts)


def _is_input(item: object) -> bool:
    if not isinstance(item, dict):
        return False
    return "role" in item or bool(_EVENT.fullmatch(str(item.get("type"))))


def _is_event(item: object, left_out: LeftOut) -> bool:
    """Count an item of a Responses API that is no message, and return whether it is one."""
    kind = str(item.get("type")) if isinstance(item, dict) and "role" not in item else ""
    if not _EVENT.fullmatch(kind):
        return False
    noun = "tool result" if kind.endswith("_output") else "tool call" if kind.endswith("_call") else kind
    left_out["reasoning" if kind == "reasoning" else noun if "tool" in noun else "event"] += 1
    return True


def _holds(item: object, key: str) -> bool:
    return isinstance(item, dict) and isinstance(item.get(key), dict)


READER = Reader("model API", "json", _read)
