"""Tool calls and their results as messages of a prompt."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from moot.calls.effects import Reply, WireMessage
from moot.prompts.fences import break_fence, fenced, truncate_fenced
from moot.text.plain_text import break_template_tokens, sanitize_line
from moot.text.tokens import TokenCounter, message_tokens, truncate_middle

RESULT_TOKENS = 1000
"""Maximum number of tokens in a tool result. It applies to prompts and to the transcript."""
REPLY_TEXT_TOKENS = 200
"""Maximum number of tokens in the text that accompanies a tool call."""
CALL_TOKENS = 12
"""Maximum number of tokens in a tool call, excluding its arguments."""
LEFT_OUT = "(omitted to save tokens; call the tool again if you need it)"
"""Text that replaces the results of older tool calls in a prompt."""


@dataclass(frozen=True)
class ToolCall:
    """A model's tool call, together with the tool's result."""

    id: str
    """Id of the tool call, such as `call_3`. Calls are numbered within their turn. Ids from providers need
    not be unique."""
    name: str
    arguments: str
    """Arguments of the tool call as JSON text."""
    result: str


@dataclass(frozen=True)
class ToolExchange:
    """Model reply that contains tool calls, together with the results of the calls."""

    reply: Reply
    calls: tuple[ToolCall, ...]


def exchange_messages(
    exchanges: Sequence[ToolExchange], remaining: int, fence: str, count: TokenCounter
) -> list[WireMessage]:
    """Convert tool calls and results to chat messages within a token limit.

    The newest exchanges keep their results. Older ones lose their results first, and are then dropped.
    """
    kept: list[list[WireMessage]] = []
    for exchange in reversed(exchanges):
        for full in (True, False):
            messages = _messages(exchange, fence, count, full=full)
            cost = wire_tokens(messages, count)
            if cost <= remaining:
                break
        else:
            break
        remaining -= cost
        kept.append(messages)
    return [message for messages in reversed(kept) for message in messages]


def exchange_report(
    exchanges: Sequence[ToolExchange], remaining: int, fence: str, count: TokenCounter
) -> WireMessage:
    """Convert tool calls and their results to one user message for a request without tools."""
    parts = [
        _result(call, fence, count, f"## {call.name} {break_fence(sanitize_line(call.arguments), fence)}")
        for exchange in exchanges
        for call in exchange.calls
    ]
    frame: WireMessage = {
        "role": "user",
        "content": "# Results of your tool calls\n\nDo not call tools again. Write your message now.",
    }
    left = max(1, remaining - message_tokens(frame, count) - 4)
    return {**frame, "content": f"{frame['content']}\n\n{truncate_fenced(chr(10).join(parts), left, count)}"}


def wire_tokens(messages: Sequence[WireMessage], count: TokenCounter) -> int:
    """Return the number of tokens in chat messages, including tool calls."""
    return sum(
        message_tokens(message, count)
        + sum(CALL_TOKENS + count(json.dumps(call["function"])) for call in message.get("tool_calls", ()))
        for message in messages
    )


def _messages(exchange: ToolExchange, fence: str, count: TokenCounter, *, full: bool) -> list[WireMessage]:
    reply: WireMessage = {
        "role": "assistant",
        "content": break_template_tokens(
            truncate_middle(exchange.reply.text, REPLY_TEXT_TOKENS if full else 1, count)
        ),
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": break_template_tokens(call.arguments)},
            }
            for call in exchange.calls
        ],
    }
    results: list[WireMessage] = [
        {
            "role": "tool",
            "content": fenced(truncate_middle(call.result, RESULT_TOKENS, count), fence)
            if full
            else LEFT_OUT,
            "tool_call_id": call.id,
        }
        for call in exchange.calls
    ]
    return [reply, *results]


def _result(call: ToolCall, fence: str, count: TokenCounter, title: str = "") -> str:
    return fenced(truncate_middle(call.result, RESULT_TOKENS, count), fence, title)
