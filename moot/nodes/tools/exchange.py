"""Tool calls and their results: as part of a prompt, and as entries of the transcript."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from moot.nodes.calls import Reply, WireMessage
from moot.nodes.text.tokens import TokenCounter, cut_middle, message_tokens

RESULT_TOKENS = 1000
"""Most of a result that a prompt or the transcript shows."""
SAID_TOKENS = 200
"""Most of what a model says beside a tool call."""
CALL_TOKENS = 12
"""Frame of one call in an assistant's message: id, type and names, rounded up."""
LEFT_OUT = "(left out for want of room; call again if it is needed)"


@dataclass(frozen=True)
class ToolCall:
    """One call of a tool with its result."""

    id: str
    """`call_3`: counts the calls of a floor; a provider's own ids need not be unique."""
    name: str
    arguments: str
    """JSON."""
    result: str


@dataclass(frozen=True)
class Exchange:
    """One reply that called tools, and what came of it."""

    reply: Reply
    calls: tuple[ToolCall, ...]


def exchange_messages(exchanges: Sequence[Exchange], room: int, count: TokenCounter) -> list[WireMessage]:
    """Return exchanges as the messages that follow a prompt, within `room` tokens.

    The newest keep their results; older ones lose them first, then go altogether.
    """
    kept: list[list[WireMessage]] = []
    for exchange in reversed(exchanges):
        for full in (True, False):
            messages = _messages(exchange, count, full=full)
            cost = wire_tokens(messages, count)
            if cost <= room:
                break
        else:
            break
        room -= cost
        kept.append(messages)
    return [message for messages in reversed(kept) for message in messages]


def exchange_report(exchanges: Sequence[Exchange], room: int, count: TokenCounter) -> WireMessage:
    """Return exchanges as one message in words, for a last request that offers no tools."""
    parts = [
        f"## {call.name} {call.arguments}\n{cut_middle(call.result, RESULT_TOKENS, count)}"
        for exchange in exchanges
        for call in exchange.calls
    ]
    frame: WireMessage = {
        "role": "user",
        "content": "# What your tools returned\n\nNo more calls: speak now.",
    }
    left = max(1, room - message_tokens(frame, count) - 4)
    return {**frame, "content": f"{frame['content']}\n\n{cut_middle(chr(10).join(parts), left, count)}"}


def wire_tokens(messages: Sequence[WireMessage], count: TokenCounter) -> int:
    """Return what messages cost, tool calls included."""
    return sum(
        message_tokens(message, count)
        + sum(CALL_TOKENS + count(json.dumps(call["function"])) for call in message.get("tool_calls", ()))
        for message in messages
    )


def _messages(exchange: Exchange, count: TokenCounter, *, full: bool) -> list[WireMessage]:
    said: WireMessage = {
        "role": "assistant",
        "content": cut_middle(exchange.reply.text, SAID_TOKENS if full else 1, count),
        "tool_calls": [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in exchange.calls
        ],
    }
    results: list[WireMessage] = [
        {
            "role": "tool",
            "content": cut_middle(call.result, RESULT_TOKENS, count) if full else LEFT_OUT,
            "tool_call_id": call.id,
        }
        for call in exchange.calls
    ]
    return [said, *results]
