"""`open`: validates, freezes the configuration into the state and seeds the transcript."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.types import Overwrite

from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import Body, Errand, Job, Work
from moot.nodes.memory.earlier import recollections_of
from moot.nodes.memory.window import Scribe, window_message
from moot.nodes.people.interjections import adopt_operation, foreign_messages, said_outside
from moot.nodes.prompts.library import LOADED
from moot.nodes.protocols.protocol_table import protocol_named
from moot.nodes.tools.context_documents import check_tools
from moot.nodes.views.afterwards import answer_floor, goes_on
from moot.nodes.views.rolling import leaves_window
from moot.state.config import DebateConfig
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import SCHEMA_VERSION, ConversationState
from moot.state.entries import Entry, clean_text, gifts_in, kind_of, topic_text
from moot.state.errors import InputError

_CARRIED = ("phase", "round", "room", "importance", "model")
"""What an entry of a transcript that is continued keeps beside its words."""


def open_debate(state: ConversationState, context: NodeContext) -> Body:
    """Freeze and seed a new debate; let a new message from the floor reopen a finished one."""
    if state.get("config"):
        return (yield from _reopen(state, context))
    config = context.claim.admit()
    protocol_named(config.protocol).check(config)
    documents = yield from _context(config, context)
    asked = foreign_messages(state)
    topic, given_as_message = _topic(state, config, asked, nested=context.nested)
    entries = _seed(state, topic, documents, context, config)
    # A topic that came as a message stands in the window already, and is adopted.
    dropped = leaves_window(entries, topic, config, context.env.count_for(config))
    window: list[Any] = [adopt_operation(entries[:1])] if given_as_message else []
    window += [{"op": "drop_through", "seq": dropped}] if dropped >= 0 else []
    window += map(window_message, entries[max(dropped + 1, given_as_message) :])
    recollections = yield from recollections_of(config, topic, context.debate)
    return {
        "topic": topic,
        "recollections": recollections,
        "config": config.to_json(),
        "full_transcript": Overwrite(entries),
        "gifts": gifts_in(entries),
        "messages": window,
        "status": "running",
        "turn_count": 0,
        "round": 0,
        "current_speaker": "",
        "schema_version": SCHEMA_VERSION,
        "prompt_sources": {name: prompt.sha256 for name, prompt in sorted(LOADED.items())},
    }


def _reopen(state: ConversationState, context: NodeContext) -> Body:
    """Take a message as the answer that a debate waits for; after the end answer it, or give a round more."""
    config, step = frozen_config(state), state.get("step") or {}
    said = foreign_messages(state)
    if state["status"] == "running" and step.get("after") == len(state["full_transcript"]):
        asks = step["kind"] == "clarify" or any(config.has_person(each["speaker"]) for each in step["floors"])
        if asks and any(message.type == "human" for message in said):
            return {"status": "running", "step": {**step, "again": True}}
    if state["status"] == "running" or not said:
        return {"status": "running"}
    question = said_outside(state)
    if question and not goes_on(question, config):
        return (yield from answer_floor(state, context))
    more = state["turn_count"] + len(config.turn_order())
    return {
        "config": {**state["config"], "turns": more},
        "status": "running",
        "verdict": {},
        "solution": "",
    }


def _topic(
    state: ConversationState, config: DebateConfig, asked: Sequence[BaseMessage], *, nested: bool
) -> tuple[str, bool]:
    """Return the topic and whether the first message of all is it.

    A person's first message is; where a graph around this one sends its whole conversation, their last.

    Raises:
        InputError: nobody said what is to be argued.
    """
    given = topic_text(state.get("topic") or config.topic)
    if given:
        return given, False
    people = [message for message in asked if message.type == "human"]
    asking = people[-1 if nested else 0] if people else None
    said = clean_text(asking.text).strip() if asking else ""
    if not said:
        raise InputError("no topic: give `topic`, or a first human message that says what is to be argued")
    return said, asked[0] is asking


def _context(config: DebateConfig, context: NodeContext) -> Errand[Sequence[Mapping[str, str]]]:
    """Check tools and context, and return the configured context file as a document.

    Raises:
        ConfigError: they cannot be used.
    """
    if config.context is None and not any(debater.tools for debater in config.debaters):
        return ()
    count = context.env.count_for(config)
    job = Job(config.context or "", lambda: json.dumps(check_tools(config, count)))
    document = json.loads((yield Work([job]))[0])
    return (document,) if document else ()


def _seed(
    state: ConversationState,
    topic: str,
    documents: Sequence[Mapping[str, str]],
    context: NodeContext,
    config: DebateConfig,
) -> list[Entry]:
    """Return the topic, the context documents and the transcript to continue as entries.

    Raises:
        InputError: an entry to continue has no speaker or no content.
    """
    now = context.env.clock()
    scribe = Scribe(0, context.env.count_for(config), lambda: now)
    scribe.write("user", "topic", topic)
    for document in (*documents, *(state.get("context_documents") or [])):
        said = f"{document.get('name', 'document')}\n\n{document.get('content', '')}"
        scribe.write("user", "context", said)
    for given in state.get("full_transcript") or []:
        if not kind_of(given).shown:
            continue
        speaker, content = given.get("speaker"), given.get("content")
        if not isinstance(speaker, str) or not isinstance(content, str):
            place = f"full_transcript[{scribe.seq}]"
            raise InputError(f"{place}: every entry needs `speaker` and `content`, both text")
        kept = {key: given[key] for key in _CARRIED if key in given}  # type: ignore[literal-required]  # keys of an entry
        scribe.write(speaker, given.get("kind", "speech"), content, at=given.get("at") or now, **kept)
    return scribe.entries
