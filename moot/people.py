"""People in a debate: their messages, amendments of messages, and questions that debaters ask them.

The transcript is append-only, so a changed message becomes a new message that amends the old one.

A question reaches a person as the payload of an interrupt:
`{"kind", "round", "questions": [{"id", "debater", "name", "question"}, …]}`, grouped by
debater. `kind` is `clarifications` (a debater asks) or `turn` (it is the turn of a person who debates). A
question's id is the debater's id with a running number, such as `architect.2`. It is the same in every run.
`response_schema` is a JSON Schema of the replies. `problem` says why a reply was refused. `action_request`,
`config` and `description` are for Agent Inbox. `action_requests`, with one action for each question, and
`review_configs` are for clients that know the human-in-the-loop middleware of LangChain 1.
"""

from collections.abc import Generator, Mapping, Sequence
from itertools import accumulate, chain, repeat
from typing import Any, cast
from uuid import uuid4

from langchain_core import messages as chat_messages
from typing_extensions import TypedDict

from moot.calls.effects import Ask, Effect
from moot.config import INTERJECTION_SPEAKERS, can_interject, participants, section, slug
from moot.memory.tool_results import make_tool_use
from moot.memory.window import TranscriptWriter, window_message
from moot.prompts.debate_context import DebateContext
from moot.state import entries as entry_types
from moot.state.conversation import ConversationState, InboxMessage, StateValues
from moot.state.errors import InputError, advise
from moot.state.reducers import fold_window, is_new_input
from moot.text.plain_text import clip, count_noun, left_out_notice

AMENDS = "amends"
"""Key for the id of the transcript entry that a message changes. It is a key of the message's
`additional_kwargs`."""
MAX_MESSAGE_CHARS = 100_000
"""Maximum number of characters in a person's message to a debate."""
CHECKED_CHANNELS = frozenset({"messages", "full_transcript", "pinned"})
"""Names of the state channels whose values are validated when a client updates them."""


def check_length(text: str) -> None:
    """Raise an `InputError` if a message to a debate is too long."""
    if len(text) > MAX_MESSAGE_CHARS:
        raise InputError(
            f"the message has {len(text):,} characters: shorten it to at most {MAX_MESSAGE_CHARS:,}"
        )


def new_input_messages(state: StateValues) -> list[chat_messages.BaseMessage]:
    """Return the messages in the `messages` channel that are not yet in the transcript."""
    return [message for message in state.get("messages") or [] if is_new_input(message)]


def message_text(message: chat_messages.BaseMessage) -> str:
    """Return a message's text, with a notice about the images and files that prompts do not contain."""
    return "\n\n".join(filter(None, (str(message.text), left_out_notice(message.content))))


def new_input_text(state: StateValues) -> str:
    """Return the text of people's new messages, separated by blank lines."""
    human_messages = [each for each in new_input_messages(state) if each.type == "human"]
    return "\n\n".join(map(message_text, human_messages)).strip()


def assign_ids_operation(entries: Sequence[entry_types.Entry]) -> entry_types.JsonObject:
    """Return an operation that gives new messages in `messages` their transcript ids."""
    return {
        "op": "assign_ids",
        "ids": [entry["id"] for entry in entries],
        "names": [entry["speaker"] for entry in entries],
    }


def planned_interjections(debate: DebateContext) -> Sequence[participants.PlannedInterjection]:
    """Return the configured interjections that are due and not in the transcript already."""
    state = debate.state
    interjections = debate.config.interjections[state.get("planned_interjections_used", 0) :]
    return [each for each in interjections if each.after <= state.get("turn_count", 0)]


def interjection_entries(
    debate: DebateContext,
    inbox: Sequence[InboxMessage],
    planned: Sequence[participants.PlannedInterjection],
    now: str,
) -> list[entry_types.Entry]:
    """Return transcript entries for new interjections.

    Interjections are messages that people add to the debate.
    Messages of the run's input come first, then those in `planned`, then the `inbox`.
    """
    state = debate.state
    following, round_no = len(state["full_transcript"]), state.get("round", 0)
    writer = TranscriptWriter(following, debate.count, lambda: now, round=round_no)
    for message in new_input_messages(state):
        if amended_entries := entry_types.entries_of(
            [str(message.additional_kwargs.get(AMENDS, ""))], state["full_transcript"]
        ):
            amended_id = amended_entries[0]["id"]
            text = f"Amendment of [{amended_id}]. The new text is:\n{message.text}"
            writer.write("user", "interjection", text, at=now, targets=[amended_id], message_id=message.id)
        else:
            entry = writer.write(*_message_fields(message), at=now, message_id=message.id)
            if isinstance(message, chat_messages.ToolMessage):
                entry["tool"] = _use(message, state)
    messages = [(each.speaker, each.text, now) for each in planned]
    for speaker, content, time in [
        *messages,
        *((each.speaker, each.content, each.sent_at) for each in inbox),
    ]:
        writer.write(speaker, "interjection", content, at=time)
    return writer.entries


def _message_fields(message: chat_messages.BaseMessage) -> tuple[str, entry_types.EntryKind, str]:
    """Return an input message's speaker, kind and text. A parent graph may pass any type."""
    text = message_text(message)
    if isinstance(message, chat_messages.AIMessage):
        tool_names = ", ".join(call["name"] for call in message.tool_calls)
        speaker = slug(message.name or "")
        entry_speaker = (
            speaker if can_interject(speaker) and speaker not in INTERJECTION_SPEAKERS else "assistant"
        )
        return entry_speaker, "interjection", text or f"(calls {tool_names})"
    if isinstance(message, chat_messages.HumanMessage):
        return "user", "interjection", text
    return "user", "context", f"{message.name or message.type}\n\n{text}"


def _use(message: chat_messages.ToolMessage, state: StateValues) -> entry_types.ToolUse:
    """Return a record of the tool call that a `ToolMessage` answers."""
    calls = (call for each in new_input_messages(state) for call in getattr(each, "tool_calls", ()))
    call = next((call for call in calls if call["id"] == message.tool_call_id), None)
    name = message.name or (call["name"] if call else message.type)
    failed = True if message.status == "error" else None
    return make_tool_use(name, call["args"] if call else {}, message_text(message), failed=failed)


def interjections_update(
    entries: list[entry_types.Entry], assigned: int, *origin: str
) -> entry_types.JsonObject:
    """Return a state update that adds interjections to the debate's transcript and to `messages`.

    The first `assigned` entries are in the window already and are only linked to their messages. `origin` are
    the ids of the debate and the checkpoint.
    """
    added = (window_message(entry, *origin) for entry in entries[assigned:])
    return {
        "full_transcript": entries,
        "user_provided": entry_types.user_provided_in(entries),
        "messages": [assign_ids_operation(entries[:assigned]), *added],
    }


def ingest_messages(
    client_update: entry_types.JsonObject, debate: DebateContext, now: str
) -> entry_types.JsonObject:
    """Return a client's update with an entry for each message, which must be no reply to a question."""
    items = client_update.get("messages")
    if not items:
        return client_update
    former: list[chat_messages.BaseMessage] = list(debate.state.get("messages") or [])
    state = cast(ConversationState, {**debate.state, "messages": fold_window(former, [items])})
    entries = interjection_entries(debate.with_state(state), (), (), now)
    update = interjections_update(entries, len(entries))
    return {**client_update, **update, "messages": [*items, *update["messages"]]}


def with_message_ids(client_update: StateValues) -> entry_types.JsonObject:
    """Return a copy of a state update in which every message has an id.

    Clients recognize a message by its id, so the id must not change when the message gets a transcript entry.
    """
    if not client_update.get("messages"):
        return dict(client_update)
    items = client_update["messages"]
    messages: list[object] = []
    for item in items if isinstance(items, list) else [items]:
        if isinstance(item, Mapping) and "op" in item:
            messages.append(item)
            continue
        (message,) = chat_messages.convert_to_messages([item])
        messages.append(message if message.id else message.model_copy(update={"id": str(uuid4())}))
    return {**client_update, "messages": messages}


def normalize_update(client_update: Mapping[str, Any], state: StateValues) -> entry_types.JsonObject:
    """Validate a client's state update, and turn edited messages into amendments.

    An amendment is a new message that replaces the text of an entry in the next step. An unchanged text is
    dropped. A new message whose id looks like an entry's gets a random id. Other ids stay.

    Raises:
        InputError: the update removes or adds entries, or pins a message that does not exist.
    """
    update = dict(client_update)
    if not state.get("config"):
        return update
    transcript: list[entry_types.Entry] = state["full_transcript"]
    texts_by_id = {message.id: str(message.text) for message in state.get("messages") or []}
    items = update.get("messages", [])
    messages: list[object] = []
    sent: list[str] = []
    for item in items if isinstance(items, list) else [items]:
        if isinstance(item, Mapping) and "op" in item:
            messages.append(item)
        else:
            (message,) = chat_messages.convert_to_messages([item])
            entry = entry_types.entry_with_message(message.id or "", transcript)
            messages += _check_message(message, entry, texts_by_id)
            sent += [str(message.id)] if message.id in texts_by_id else []
    window = [str(key) for key in texts_by_id]
    between = window[window.index(sent[0]) : window.index(sent[-1])] if sent else []
    if missing := [key for key in between if key not in sent]:
        raise _not_removable(missing[0])
    if isinstance(entries := update.get("full_transcript"), list):
        del update["full_transcript"]
        amended = [_check_entry(entry, transcript) for entry in entries if not is_omission(entry)]
        messages += [message for each in amended for message in each]
        if not all(amended):  # an unchanged entry means that the whole transcript was sent
            sent_ids = {str(entry.get("id")) for entry in entries}
            omitted = max((int(entry["omitted"]) for entry in entries if is_omission(entry)), default=0)
            if missing := [entry["id"] for entry in transcript[omitted:] if entry["id"] not in sent_ids]:
                raise _not_removable(missing[0])
    if messages or "messages" in update:
        update["messages"] = messages
    if isinstance(update.get("pinned"), list):
        update["pinned"] = list(dict.fromkeys(pinnable_id(key, transcript) for key in update["pinned"]))
    return update


def _check_message(
    message: chat_messages.BaseMessage, entry: entry_types.Entry | None, texts_by_id: Mapping[str | None, str]
) -> list[chat_messages.BaseMessage]:
    """Check a client's message, and return what to store instead. `entry` is its entry, if any."""
    if isinstance(message, chat_messages.RemoveMessage):
        if message.id in texts_by_id and entry is None:
            return [message]
        raise _not_removable(message.id)
    if entry is not None:
        return _amendments(entry, str(message.text), texts_by_id.get(message.id))
    check_length(str(message.text))
    # An id of the form of an entry's would count as an entry's.
    is_entry_id = entry_types.seq_of(message.id or "") is not None
    return [message.model_copy(update={"id": str(uuid4())}) if is_entry_id else message]


def _check_entry(raw_entry: object, transcript: list[entry_types.Entry]) -> list[chat_messages.BaseMessage]:
    entry = raw_entry if isinstance(raw_entry, Mapping) else {}
    matches = entry_types.entries_of([str(entry.get("id", ""))], transcript)
    if not matches or not isinstance(entry.get("content"), str):
        raise InputError(
            "full_transcript: entries cannot be added after the debate has started: add to `messages` instead"
        )
    if changed := [key for key in entry if key != "content" and entry[key] != matches[0].get(key)]:
        raise InputError(
            f"full_transcript.{entry['id']}.{changed[0]}: only the `content` of an entry can be changed"
        )
    return _amendments(matches[0], entry["content"])


def _not_removable(message_id: str | None) -> InputError:
    return InputError(
        f"{message_id!r} cannot be removed, because the transcript is append-only. To continue without "
        "it, fork the debate at an earlier message"
    )


MAX_HISTORY_CHARS = 20_000
"""Largest number of characters in the newest entries that an earlier step of a history shows. Chat clients
fetch ten steps at once, and a long transcript has a megabyte."""


def brief_transcript(transcript: Sequence[entry_types.Entry]) -> list[entry_types.JsonMapping]:
    """Return the newest entries of a transcript, after an item that counts the omitted ones."""
    chars = accumulate(len(entry["content"]) for entry in reversed(transcript))
    newest = max(1, sum(total <= MAX_HISTORY_CHARS for total in chars))
    if not (omitted := len(transcript) - newest):
        return [*transcript]
    text = f"{count_noun(omitted, 'earlier entry')}: open this step to read its whole state"
    return [{"omitted": omitted, "id": "", "content": text}, *transcript[omitted:]]


def is_omission(entry: object) -> bool:
    """Return True for the item of `brief_transcript` that counts the omitted entries."""
    return isinstance(entry, Mapping) and isinstance(entry.get("omitted"), int)


def _amendments(
    entry: entry_types.Entry, text: str, shown_text: str | None = None
) -> list[chat_messages.BaseMessage]:
    """Return an amendment that replaces an entry's text, or `[]` if the text is unchanged."""
    if text in (entry["content"], shown_text):
        return []
    check_length(text)
    if not entry_types.traits_of(entry).in_prompts:
        raise InputError("the topic cannot be changed: start another debate, or add a message to this one")
    return [chat_messages.SystemMessage(text, id=str(uuid4()), additional_kwargs={AMENDS: entry["id"]})]


def pinnable_id(message_id: object, transcript: list[entry_types.Entry]) -> str:
    """Return a message's transcript id if the message can be pinned.

    Raises:
        InputError: no message has this id, or the message is not part of prompts, such as the topic.
    """
    for entry in entry_types.entries_of([str(message_id)], transcript):
        if entry_types.traits_of(entry).in_prompts:
            return entry["id"]
    raise InputError(
        f"there is no message {message_id!r} to pin: "
        f"{advise('run `moot show ID --transcript`', 'read `transcript` of `Debate.document`')} to list the "
        "messages"
    )


MAX_REPLY_CHARS = 100_000
"""Maximum number of characters in a person's reply. A longer reply is truncated."""
QUESTIONS_TOKENS = 800
"""Maximum number of tokens in a model's questions to a person."""


class PersonQuestion(TypedDict):
    """Question that the debate asks a person."""

    id: str
    """Id of the question, such as `architect.2` for the architect's second question."""
    debater: str
    """Id of the debater who asks the question. If a human debater is asked for a turn, it is the human
    debater's id."""
    name: str
    """Display name of the debater who asks the question."""
    question: str


def question_payload(kind: str, round_no: int, questions: Sequence[PersonQuestion]) -> entry_types.JsonObject:
    """Return the payload of the LangGraph interrupt that asks a person questions."""
    properties = {
        each["id"]: {"type": "string", "title": each["name"], "description": each["question"]}
        for each in questions
    }
    return {
        "kind": kind,
        "round": round_no,
        "questions": [dict(question) for question in questions],
        "response_schema": {
            "anyOf": [
                {"type": "string", "minLength": 1, "description": "The reply to the first question."},
                {"type": "object", "properties": properties, "additionalProperties": False},
            ]
        },
        "action_requests": [
            {"name": kind, "args": {each["id"]: ""}, "description": f"**{each['name']}**: {each['question']}"}
            for each in questions
        ],
        "review_configs": [{"action_name": kind, "allowed_decisions": ["respond", "edit"]}],
        "action_request": {"action": kind, "args": {each["id"]: "" for each in questions}},
        "config": {"allow_respond": True, "allow_edit": True, "allow_ignore": False, "allow_accept": False},
        "description": "\n\n".join(f"**{each['name']}**: {each['question']}" for each in questions),
    }


def ask_people(
    kind: str, round_no: int, questions: Sequence[PersonQuestion]
) -> Generator[Effect, object, dict[str, str]]:
    """Ask people questions until their reply is valid, and return the answers by question id."""
    payload = question_payload(kind, round_no, questions)
    replies = yield Ask(payload)
    while problem := reply_error(questions, replies):
        replies = yield Ask({**payload, "problem": problem})
    return match_replies(questions, replies)


def reply_error(questions: Sequence[PersonQuestion], raw_reply: object) -> str:
    """Return why a person's reply is invalid, or `""`. A person passes on a question with `""`."""
    if not questions:
        return "the debate is not waiting for a reply: remove the reply"
    plain_reply, ids = _plain(raw_reply), ", ".join(question["id"] for question in questions)
    if isinstance(plain_reply, Mapping):
        known_keys = {key for question in questions for key in _keys(question)}
        if unknown_keys := [str(key) for key in plain_reply if str(key) not in known_keys]:
            return f"{clip(unknown_keys[0], section.MAX_KEY_CHARS)!r} is not the id of a question: use {ids}"
    replies = _replies(questions, plain_reply).values()
    has_pass = isinstance(plain_reply, Mapping) and any(reply is not None for reply in replies)
    if has_pass or any(replies):
        return ""
    return f'the reply is empty: reply {ids}, or give "" under an id to pass'


def _plain(reply: object) -> object:
    """Remove the wrapper that a client, such as Agent Inbox, adds to a person's reply."""
    if isinstance(reply, chat_messages.BaseMessage):
        return reply.text
    if isinstance(reply, list | tuple) and len(reply) == 1 and isinstance(reply[0], Mapping):
        return _plain(reply[0])
    if isinstance(reply, Mapping):
        decisions = reply.get("decisions")
        if isinstance(decisions, list) and decisions:
            return _joined([_plain(each) for each in decisions])
        if reply.get("type") in ("response", "respond", "edit", "accept", "ignore", "approve", "reject"):
            inner = reply.get("args", reply.get("edited_action", reply.get("message")))
            return inner.get("args", inner) if isinstance(inner, Mapping) else inner
        if reply.keys() & {"role", "type"} and isinstance(reply.get("content"), str):
            return reply["content"]
    return reply


def _joined(replies: list[object]) -> object:
    """Merge replies into a mapping if all are mappings, otherwise into a list."""
    if len(replies) == 1:
        return replies[0]
    if all(isinstance(each, Mapping) for each in replies):
        return {key: value for each in replies if isinstance(each, Mapping) for key, value in each.items()}
    return [next(iter(each.values()), "") if isinstance(each, Mapping) else each for each in replies]


def questions_in(payload: Any) -> list[PersonQuestion]:
    """Return the questions in an interrupt's payload. `[]` for other values."""
    if isinstance(payload, Sequence) and not isinstance(payload, str):
        return [question for each in payload for question in questions_in(each)]
    return list(payload.get("questions", ())) if isinstance(payload, Mapping) else []


def match_replies(questions: Sequence[PersonQuestion], raw_replies: Any) -> dict[str, str]:
    """Return the reply to each question, keyed by question id.

    A missing reply is `""`.

    Args:
        questions: the questions of one interrupt.
        raw_replies: a text (the reply to the first question), a list in the order of the questions, or a
            mapping. A key of the mapping is a question id, the text of a question, or a debater's id or name.
            Under a debater, a text is the reply to the first of these questions. A list has the replies to
            all questions of that debater since the beginning.
    """
    return {key: reply or "" for key, reply in _replies(questions, raw_replies).items()}


def matches_any(questions: Sequence[PersonQuestion], raw_replies: Any) -> bool:
    """Return True if the prepared replies answer at least one of the questions."""
    return any(reply is not None for reply in _replies(questions, raw_replies).values())


def remaining_replies(questions: Sequence[PersonQuestion], raw_replies: Any) -> Any:
    """Return the prepared replies for later questions. Lists stay: the number selects an item."""
    if not isinstance(raw_replies, Mapping):
        return {}
    used_keys = {key for question in questions for key in _keys(question)}
    return {
        key: value
        for key, value in raw_replies.items()
        if str(key) not in used_keys or not isinstance(value, str)
    }


def unused_replies(questions: Sequence[PersonQuestion], raw_replies: Any) -> list[str]:
    """Describe the prepared replies that answer no question."""
    if not isinstance(raw_replies, Mapping):
        unused_count = len(raw_replies) - len(questions) if _is_list(raw_replies) else int(not questions)
        return [f"the last {unused_count}"] if unused_count > 0 else []
    unused = []
    for key, value in raw_replies.items():
        numbers = [_number(each) for each in questions if str(key) in _keys(each)]
        if not numbers:
            unused.append(str(key))
        elif _is_list(value) and len(value) > max(numbers):
            unused.append(f"{key}, from number {max(numbers) + 1} on")
    return unused


def _replies(questions: Sequence[PersonQuestion], raw_replies: Any) -> dict[str, str | None]:
    """Return the reply to each question, keyed by question id. A missing reply is `None`."""
    raw_replies = _plain(raw_replies)
    if not isinstance(raw_replies, Mapping):
        items = chain(raw_replies if _is_list(raw_replies) else [raw_replies], repeat(None))
        return {question["id"]: _text(reply) for question, reply in zip(questions, items, strict=False)}
    by_key = {str(key): value for key, value in raw_replies.items()}
    firsts = {question["debater"]: question["id"] for question in reversed(questions)}
    return {
        question["id"]: _reply(question, by_key, first=firsts[question["debater"]] == question["id"])
        for question in questions
    }


def _keys(question: PersonQuestion) -> tuple[str, ...]:
    return (question["id"], question["question"], question["debater"], question["name"])


def _number(question: PersonQuestion) -> int:
    return int(question["id"].rpartition(".")[2])


def _reply(question: PersonQuestion, by_key: Mapping[str, Any], *, first: bool) -> str | None:
    for key in _keys(question):
        if key not in by_key:
            continue
        value = by_key[key]
        if _is_list(value):
            return _text(value[_number(question) - 1]) if _number(question) <= len(value) else None
        if first or key in (question["id"], question["question"]):
            return _text(value)
    return None


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _text(value: object) -> str | None:
    if value is None:
        return None
    return entry_types.clean_text(value if isinstance(value, str) else str(value)).strip()[:MAX_REPLY_CHARS]
