"""Messages that reached the window from outside: what people say from the floor."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from moot.nodes.memory.window import Scribe, window_message
from moot.nodes.people.amendments import amended_entry
from moot.nodes.reading.tool_results import use_of
from moot.nodes.text.tokens import TokenCounter
from moot.state.config import FLOOR_SPEAKERS, may_speak, slug
from moot.state.config.debate_config import frozen_config
from moot.state.config.debaters import PlannedInterjection
from moot.state.conversation import StateValues
from moot.state.entries import Entry, EntryKind, JsonObject, ToolUse, gifts_in
from moot.state.floor import Interjection
from moot.state.reducers import fold_window, is_foreign


def foreign_messages(state: StateValues) -> list[BaseMessage]:
    """Return the window's messages that have no entry yet, oldest first."""
    return [message for message in state.get("messages") or [] if is_foreign(message)]


def said_outside(state: StateValues) -> str:
    """Return what people have said from outside: an answer to what they were asked, or a question."""
    return "\n\n".join(str(each.text) for each in foreign_messages(state) if each.type == "human").strip()


def adopt_operation(entries: Sequence[Entry]) -> JsonObject:
    """Return the window operation that gives the oldest foreign messages these entries' ids and names."""
    return {
        "op": "adopt",
        "ids": [entry["id"] for entry in entries],
        "names": [entry["speaker"] for entry in entries],
    }


def planned_interjections(state: StateValues) -> Sequence[PlannedInterjection]:
    """Return those of the configuration whose moment has come and that were not taken up yet."""
    waiting = frozen_config(state).interjections[state.get("interjections_taken", 0) :]
    return [each for each in waiting if each.after <= state.get("turn_count", 0)]


def interjected(
    state: StateValues,
    said: Sequence[Interjection],
    planned: Sequence[PlannedInterjection],
    now: str,
    count: TokenCounter,
) -> list[Entry]:
    """Return the entries of what was said from the floor since the last step, numbered on.

    Args:
        state: the debate's; messages that came with the run's input are in its window.
        said: what was left on the floor's table; comes after those messages.
        planned: what the configuration wanted said by now; comes between the two.
        now: time of what bears none.
        count: token counter.
    """
    scribe = Scribe(len(state["full_transcript"]), count, lambda: now, round=state.get("round", 0))
    for message in foreign_messages(state):
        amended = amended_entry(message, state["full_transcript"])
        if amended:
            words = f"Amends [{amended['id']}], which stands as it was said; it is to say:\n{message.text}"
            scribe.write("user", "interjection", words, at=now, targets=[amended["id"]])
        else:
            entry = scribe.write(*_utterance(message), at=now)
            if isinstance(message, ToolMessage):
                entry["tool"] = _use(message, state)
    utterances = [(each.speaker, each.text, now) for each in planned]
    for speaker, content, at in [*utterances, *((each.speaker, each.content, each.at) for each in said)]:
        scribe.write(speaker, "interjection", content, at=at)
    return scribe.entries


def _utterance(message: BaseMessage) -> tuple[str, EntryKind, str]:
    """Return speaker, kind and words of a message from outside; a graph around this one sends all it has."""
    words = str(message.text)
    if isinstance(message, AIMessage):
        called = ", ".join(call["name"] for call in message.tool_calls)
        speaker = slug(message.name or "")
        known = speaker if may_speak(speaker) and speaker not in FLOOR_SPEAKERS else "assistant"
        return known, "interjection", words or f"(calls {called})"
    if isinstance(message, HumanMessage):
        return "user", "interjection", words
    return "user", "context", f"{message.name or message.type}\n\n{words}"


def _use(message: ToolMessage, state: StateValues) -> ToolUse:
    """Return the record of a result that came from a graph around this one, whose call came before it."""
    asked = (call for each in foreign_messages(state) for call in getattr(each, "tool_calls", ()))
    called = next((call for call in asked if call["id"] == message.tool_call_id), None)
    name = message.name or (called["name"] if called else message.type)
    failed = True if message.status == "error" else None
    return use_of(name, called["args"] if called else {}, str(message.text), failed=failed)


def taken_at_once(given: JsonObject, state: StateValues, now: str, count: TokenCounter) -> JsonObject:
    """Return an update from outside with entries made of its messages, for a node that is not `plan`.

    What is the answer to something that a person was asked must not be given to this.
    """
    items = given.get("messages")
    if not items:
        return given
    window = fold_window(state.get("messages") or [], [items])
    entries = interjected({**state, "messages": window}, (), (), now, count)
    messages = [*items, adopt_operation(entries)]
    return {**given, "full_transcript": entries, "gifts": gifts_in(entries), "messages": messages}


def taken_up(entries: Sequence[Entry], adopted: int) -> list[Any]:
    """Return the window's writes for interjections, of which the first `adopted` are in it already."""
    return [adopt_operation(entries[:adopted]), *(window_message(entry) for entry in entries[adopted:])]
