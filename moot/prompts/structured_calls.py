"""Model calls whose replies follow a JSON schema, and the parts of their prompts."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from moot.calls.model_calls import Hints, ModelCall, Purpose, Reply, WireMessage
from moot.config import DebateConfig
from moot.prompts import request
from moot.prompts.templates import break_fence, system_message, truncate_fenced
from moot.prompts.truncation import KEEP, OPTIONAL, Block, render_entry, truncate_blocks
from moot.state.conversation import MemoryKind
from moot.state.entries import Entry, traits_of
from moot.text.naming import meant_name
from moot.text.plain_text import sanitize_line
from moot.text.tokens import TokenCounter, common_length


class ShownText(str):
    """Text of a prompt message, perhaps cut. Unused tokens of the prompt restore `full_text`."""

    __slots__ = ("full_text",)
    full_text: str

    def __new__(cls, text: str, full_text: str) -> "ShownText":  # noqa: D102
        instance = super().__new__(cls, text)
        instance.full_text = full_text
        return instance


def structured_call(
    purpose: Purpose,
    config: DebateConfig,
    system: str,
    said: Sequence[str],
    schema: type[BaseModel],
    count: TokenCounter,
    *,
    memory_kind: MemoryKind | Literal[""] = "",
    call_index: int = 0,
    debaters: Sequence[str] = (),
    about: Sequence[Entry] = (),
    least: int = 0,
    params: request.ModelParams | None = None,
    hints: Hints | None = None,
) -> ModelCall:
    """Create a model call whose reply must match a JSON schema.

    `said` are the user messages. If they exceed the budget, the oldest are dropped, but never the last.
    `about` are the entries whose ids the hints name, and `least` is the minimum of the reply's token limit.
    `debaters` are all by default, and `params` those of `blackboard`.
    """
    blocks = [Block("system", system_message(system, config.fence))]
    for number, text in enumerate(said, 1):
        message: WireMessage = {"role": "user", "content": str(text)}
        full: WireMessage = {
            **message,
            "content": text.full_text if isinstance(text, ShownText) else str(text),
        }
        priority = KEEP if number == len(said) else OPTIONAL
        blocks.append(Block("messages", message, priority, whole=full if full != message else None))
    budget = request.prompt_budget(config.memory.budget.total, schema, count)
    prompt = truncate_blocks(blocks, budget, count)
    call_hints: Hints = {"debaters": list(debaters) or list(config.names()), **(hints or {})}
    if about:
        call_hints["message_ids"] = [entry["id"] for entry in about]
    params = params or request.model_params(config, config.blackboard)
    reply_tokens = max(params.reply, least)
    return request.make_call(
        params,
        purpose,
        prompt,
        schema=schema,
        reply=reply_tokens,
        call_index=call_index,
        memory_kind=memory_kind,
        hints=call_hints,
    )


def structured_data(schema: type[BaseModel], reply: Reply | None) -> dict[str, Any] | None:
    """Return the data of a reply, or `None` if the call failed or the reply does not match the schema."""
    if reply is None or not reply.ok or reply.data is None:
        return None
    try:
        return schema.model_validate(reply.data).model_dump(mode="json")
    except ValidationError:
        return None


def debater_lines(config: DebateConfig, only: Sequence[str] = ()) -> str:
    """Return one line of text for each debater, with the debater's id, name, role and stance."""
    lines = "\n".join(
        f"- {d.id}: {sanitize_line(f'{d.name} ({d.description()})' if d.description() else d.name)}"
        for d in config.debaters
        if not only or d.id in only
    )
    return break_fence(lines, config.fence)


def add_person_messages(entries: Sequence[Entry], transcript: Sequence[Entry]) -> list[Entry]:
    """Add the messages that people sent between the given entries.

    The people are not debaters, but debaters rely on the facts in their messages. The result is in transcript
    order.
    """
    if not entries:
        return []
    seqs = [entry["seq"] for entry in entries]
    section = transcript[min(seqs) : max(seqs)]
    known_ids = {entry["id"] for entry in entries}
    other_entries = (entry for entry in section if entry["id"] not in known_ids)
    person_entries = [
        entry for entry in other_entries if traits_of(entry).by == "person" and traits_of(entry).argues
    ]
    return sorted([*entries, *person_entries], key=lambda entry: entry["seq"])


def shown_entries(
    entries: Sequence[Entry], config: DebateConfig, remaining: int, count: TokenCounter
) -> list[ShownText]:
    """Format entries as texts of at most `remaining` tokens together, the longest ones truncated."""
    full_texts = [render_entry(entry, config.names(), config.fence)["content"] for entry in entries]
    limits = common_length([count(text) for text in full_texts], remaining)
    return [
        ShownText(truncate_fenced(text, max(24, limit), count), text)
        for text, limit in zip(full_texts, limits, strict=True)
    ]


def match_debater(name: str, names: Mapping[str, str]) -> str:
    """Return the id of the debater that an id, a name or a short sentence means, or `""`."""
    return meant_name(name, {debater: (display_name,) for debater, display_name in names.items()})
