"""Node `open`: authorizes the configuration, stores it in the state, and starts the transcript.

A new debate asks no model here. Every call of a debate comes after a checkpoint with which it can be resumed.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.types import Overwrite

from moot.asking.chat import answer_questions, can_continue, refuse_continuation
from moot.calls import effects
from moot.config import DebateConfig, model_settings
from moot.memory.cross_debate_memory import retrieve_earlier_positions
from moot.memory.tool_results import input_tool_use
from moot.memory.window import TranscriptWriter, window_message
from moot.people import assign_ids_operation, message_text, new_input_messages, new_input_text
from moot.prompts.templates import LOADED_TEMPLATES
from moot.protocols.registry import check_names, limit_reached
from moot.retrieval.indexes import embeddings_of
from moot.runtime.context import NodeContext
from moot.state.conversation import SCHEMA_VERSION
from moot.state.entries import Entry, clean_text, topic_text, traits_of, user_provided_in
from moot.state.errors import InputError
from moot.tools.registry import check_tools

log = logging.getLogger(__name__)
_CARRIED = ("phase", "round", "room", "importance", "model")
"""Optional fields that entries of an imported transcript keep."""


def open_debate(context: NodeContext) -> effects.NodeBody:
    """Start a new debate, or reopen a finished debate that received a new message."""
    state = context.state
    if state.get("config"):
        return (yield from _reopen(context))
    config = context.permissions.authorize()
    if (
        config.lacks_model()
        and "model" not in context.env.safe_capabilities
        and model_settings.OFFLINE not in context.env.models
    ):
        log.warning(
            "no model is set, so the offline model writes placeholder texts: set `model` or MOOT_MODEL"
        )
    check_names(config)
    config, documents = yield from _context(config, context)
    input_messages = new_input_messages(state)
    topic, is_input_message = _topic(context, input_messages)
    entries = _seed(context, topic, documents)
    if is_input_message and input_messages[0].id:
        entries[0]["message_id"] = input_messages[0].id
    fence = context.env.fence_for(topic, config.seed, json.dumps(config.to_json()))
    config = config.with_fence(fence)
    # A topic that came as a message is in the window already, so the two are linked. A continued
    # transcript enters the window whole: `summarize` covers what does not fit before `trim` removes it.
    window: list[Any] = [assign_ids_operation(entries[:1])] if is_input_message else []
    window += (window_message(entry, *context.origin) for entry in entries[is_input_message:])
    embeddings = embeddings_of(context.permissions, context.env.embeddings)
    cross_debate_memory = yield from retrieve_earlier_positions(config, topic, context.debate, embeddings)
    return {
        "topic": topic,
        "options": list(config.options),
        "cross_debate_memory": cross_debate_memory,
        "config": config.to_json(),
        "fence": fence,
        "full_transcript": Overwrite(entries),
        # A transcript with answers, such as that of a replay, is clarified: nobody is asked again.
        **({"clarifications": {"settled": True}} if any(e["kind"] == "answer" for e in entries) else {}),
        "user_provided": user_provided_in(entries),
        "messages": window,
        "status": "running",
        "turn_count": 0,
        "round": 0,
        "current_speaker": "",
        "schema_version": SCHEMA_VERSION,
        "prompt_sources": {
            name: {"path": prompt.path, "sha256": prompt.sha256}
            for name, prompt in sorted(LOADED_TEMPLATES.items())
        },
    }


def _reopen(context: NodeContext) -> effects.NodeBody:
    """Continue an existing debate, or answer a question about it.

    A new message is the reply that a waiting debate asked for. After the end, it is a question, which is
    answered, or a reason for one more round. A debate that has reached a limit takes no more rounds.
    """
    state, config = context.state, context.config
    step = state.get("step") or {}
    input_messages = new_input_messages(state)
    if state["status"] == "running" and step.get("entry_count") == len(state["full_transcript"]):
        is_waiting = step["kind"] == "clarify" or any(
            config.has_person(each["speaker"]) for each in step["turns"]
        )
        if is_waiting and any(message.type == "human" for message in input_messages):
            return {"status": "running", "step": {**step, "resumed": True}}
    if state["status"] == "running" or not input_messages:
        return {"status": "running"}
    question = new_input_text(state)
    if question and not can_continue(question, config):
        return (yield from answer_questions(context))
    if limit := limit_reached(state, config):
        return (yield from refuse_continuation(context, limit))
    turns = state["turn_count"] + len(config.turn_order())
    return {
        "config": {**state["config"], "turns": turns},
        "status": "running",
        "verdict": {},
        "solution": "",
        "answer": "",
    }


def _topic(context: NodeContext, input_messages: Sequence[BaseMessage]) -> tuple[str, bool]:
    """Return the debate's topic, taken from the input or from a person's message.

    Without a `topic`, a person's first message is the topic. A parent graph sends its whole conversation, so
    there the person's last message is.

    Raises:
        InputError: the input has no topic.
    """
    topic = topic_text(context.state.get("topic") or context.config.topic)
    if topic:
        return topic, False
    human_messages = [message for message in input_messages if message.type == "human"]
    topic_message = human_messages[-1 if context.nested else 0] if human_messages else None
    text = clean_text(message_text(topic_message)).strip() if topic_message else ""
    if not topic_message or not str(topic_message.text).strip():
        raise InputError("no topic is given: set `topic`, or give the topic in the first human message")
    return text, input_messages[0] is topic_message


def _context(
    config: DebateConfig, context: NodeContext
) -> effects.BackgroundTask[tuple[DebateConfig, Sequence[Mapping[str, str]]]]:
    """Load and check a debate's tools and context files.

    Return the configuration with the definitions of the tools of MCP servers, and the context files as
    documents.

    Raises:
        ConfigError: a tool or the context is unusable.
    """
    if not config.context_paths() and not any(debater.tools for debater in config.debaters):
        return config, ()

    def check() -> str:
        checked = check_tools(config, context.count, context.env.tools)
        full_config = config.model_copy(update={"mcp_servers": checked.mcp_servers})
        return json.dumps([checked.documents, full_config.to_json()["mcp_servers"]])

    key = json.dumps([config.context, config.fingerprint()])
    documents, servers = json.loads((yield effects.LocalWork([effects.LocalJob(key, check)]))[0])
    if servers:
        mcp_servers = {
            name: model_settings.McpServerConfig.model_validate(server) for name, server in servers.items()
        }
        config = config.model_copy(update={"mcp_servers": mcp_servers})
    return config, documents


def _seed(context: NodeContext, topic: str, documents: Sequence[Mapping[str, str]]) -> list[Entry]:
    """Return the first entries: the topic, the documents and imported messages.

    Raises:
        InputError: an imported entry has no speaker or no content.
    """
    state, now = context.state, context.env.clock()
    writer = TranscriptWriter(0, context.count, lambda: now)
    writer.write("user", "topic", topic)
    for document in (*documents, *(state.get("context_documents") or [])):
        text = f"{document.get('name', 'document')}\n\n{document.get('content', '')}"
        writer.write("user", "context", text)
    calls: dict[str, Entry] = {}
    for raw_entry in state.get("full_transcript") or []:
        if not traits_of(raw_entry).in_prompts:
            continue
        speaker, content = raw_entry.get("speaker"), raw_entry.get("content")
        if not isinstance(speaker, str) or not isinstance(content, str):
            place = f"full_transcript[{writer.seq}]"
            raise InputError(f"{place}: every entry must have the text fields `speaker` and `content`")
        kept_fields = {key: raw_entry[key] for key in _CARRIED if key in raw_entry}  # type: ignore[literal-required]  # keys of an entry
        kind = raw_entry.get("kind", "speech")
        if kind == "tool_result":
            kept_fields["targets"] = [
                calls[key]["id"] for key in raw_entry.get("targets") or () if key in calls
            ]
        entry = writer.write(speaker, kind, content, at=raw_entry.get("at") or now, **kept_fields)
        if raw_entry.get("at"):
            entry["dated"] = True
        if kind == "tool_call":
            calls[str(raw_entry.get("id", ""))] = entry
        if kind == "tool_result":
            entry["tool"] = input_tool_use(entry, raw_entry)
    return writer.entries
