"""The built-in model: no network, no key, the same words for the same seed and prompt."""

import hashlib
import json
from collections.abc import Sequence
from random import Random
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata

from moot.nodes.calls import Hints
from moot.nodes.models.local import LocalModel
from moot.nodes.models.neutral import TEXT, fill
from moot.nodes.models.speeches import CLARIFY, Speech, compose
from moot.nodes.text.sentences import split_sentences
from moot.state.config import OFFLINE
from moot.state.entries import JsonObject

CHARS_PER_TOKEN = 4
"""For usage where the caller did not count: counting a long prompt would be most of the work."""
TOPIC_CHARS = 400


class OfflineModel(LocalModel):
    """Argues from the topic's own noun phrases, without knowing anything, and judges nothing.

    Deterministic in (seed, prompt), linear in the prompt's length. It goes by the call's hints; of the prompt
    it reads the last message alone, as the topic where there are no hints, and as what is to be summarised.
    A structured answer is a placeholder that says so, but for what `Hints.fields` tells.
    """

    @property
    def _llm_type(self) -> str:
        return OFFLINE

    def respond(self, messages: list[BaseMessage], **kwargs: Any) -> AIMessage:
        """Return the answer to a prompt: text, a tool's call, or JSON where a `json_schema` is given."""
        hints = cast(Hints, kwargs.get("hints") or {})
        schema = kwargs.get("json_schema")
        dice = _dice(messages, hints, kwargs.get("seed") or 0)
        last = messages[-1].text if messages else ""
        topic = hints.get("topic") or next(filter(None, map(str.strip, last.splitlines())), "the question")
        topic = " ".join(topic[:TOPIC_CHARS].split())
        called = None if schema else _tool_call(messages, kwargs.get("tools") or (), topic)
        if schema is not None:
            asks = hints.get("phase") == "clarify"
            text = f"{TEXT} {Speech(hints, topic, dice).draw(CLARIFY)}" if asks else TEXT
            answer = json.dumps(fill(schema, hints.get("fields", {}), text), ensure_ascii=False)
        elif called is not None:
            answer = ""
        elif hints.get("phase") in ("summary", "perspective"):
            answer = _shorten(extract(last) or f"On “{topic}”: nothing yet.", kwargs.get("max_tokens"))
        else:
            answer = _shorten(compose(hints, topic, dice), kwargs.get("max_tokens"))
        counted = kwargs.get("prompt_tokens")
        sent = counted or sum(len(message.content) for message in messages) // CHARS_PER_TOKEN
        given = max(1, len(answer or str(called)) // CHARS_PER_TOKEN)
        usage = UsageMetadata(input_tokens=sent, output_tokens=given, total_tokens=sent + given)
        return AIMessage(answer, tool_calls=[called] if called else [], usage_metadata=usage)


def extract(text: str) -> str:
    """Return a text as a list: its own points, and the first sentence under each line that ends in `:`."""
    points: list[str] = []
    heading = ""
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.endswith(":"):
            heading = line
        elif line.startswith("- "):
            points.append(line)
        elif heading or not points:
            points.append(f"- {heading} {split_sentences(line)[0].text}".replace("  ", " "))
            heading = ""
    return "\n".join(points)


def _dice(messages: Sequence[BaseMessage], hints: Hints, seed: int) -> Random:
    """Return dice that depend on the seed, the prompt and who speaks to what end alone."""
    hashed = hashlib.sha256(repr((seed, hints.get("phase"), hints.get("speaker"))).encode())
    for message in messages:
        said = message.content if isinstance(message.content, str) else message.text
        shown = f"\x1e{message.type}\x1f{message.name or ''}\x1f{said}"
        hashed.update(shown.encode("utf-8", "replace"))
    return Random(hashed.digest())  # noqa: S311  # a choice of words


def _tool_call(messages: Sequence[BaseMessage], tools: Sequence[JsonObject], topic: str) -> Any:
    """Return the one call made before speaking, `None` where one was made or nothing offered can be used."""
    arguments = {
        "search": {"query": topic[:100]},
        "search_debate": {"query": topic[:100]},
        "list_files": {},
        "calculator": {"expression": "12 * 0.25"},
    }
    offered = [tool["function"]["name"] for tool in tools if tool["function"]["name"] in arguments]
    if not offered or any(isinstance(message, ToolMessage) for message in messages):
        return None
    return {"id": "call_1", "name": offered[0], "args": arguments[offered[0]], "type": "tool_call"}


def _shorten(text: str, max_tokens: int | None) -> str:
    """Shorten a text to a limit, at the end of a sentence or at least of a word."""
    if max_tokens is None:
        return text
    # A word of English costs less than a token and a half; other scripts cost up to two tokens a character.
    wide = 0 if text.isascii() else sum(char > "\u024f" for char in text)
    chars = max_tokens * 3 if 10 * wide < len(text) else max_tokens // 2
    if len(text) <= chars:
        return text
    cut = text[: max(chars, 1)]
    stop = max(cut.rfind(mark) for mark in (". ", "? ", ".\n", "?\n"))
    return cut[: stop + 1] if stop > len(cut) // 3 else cut.rsplit(" ", 1)[0]
