"""Imported transcripts as data, and the state of a debate that is made from one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import uuid4

from moot import documents
from moot.config import RESERVED_IDS, DebateConfig, DebaterConfig
from moot.config.channel_values import check_types
from moot.config.config_files import make_config
from moot.config.participants import unreserved_name
from moot.memory.window import window_message
from moot.protocols.long_form_prompt import evict_through
from moot.runtime.environment import Environment
from moot.state import entries as entry_types
from moot.state.conversation import SCHEMA_VERSION, Step
from moot.state.entries import ToolUse
from moot.state.errors import InputError


@dataclass(frozen=True)
class ParsedMessage:
    """A message read from a transcript."""

    speaker: str
    """Speaker's id, or the speaker's name if no id is assigned yet."""
    content: str
    time: str = ""
    """Time of the message as written in the transcript, or `""` if no time is given."""
    kind: Literal["speech", "tool_call", "tool_result", "proposal", "critique", "refinement"] = "speech"
    call_id: str = ""
    """Id of the tool call that the message makes or answers, or `""` for other messages."""
    tool: ToolUse | None = None
    """Tool result in the message, or `None` for messages without a tool result."""
    round: int = 0
    """Number of the round, starting at 1, or 0 if the transcript has no rounds."""
    target: str = ""
    """Speaker whose proposal the message criticises or refines, or `""` if there is none."""


@dataclass(frozen=True)
class Speaker:
    """A speaker in an imported transcript."""

    id: str
    """Unique speaker id consisting of 1 to 40 lower-case letters, digits or hyphens."""
    name: str
    """The speaker's name as first written in the transcript. Surrounding spaces and a final colon are
    removed."""


@dataclass(frozen=True)
class ImportedTranscript:
    """Transcript whose speakers all have ids."""

    topic: str
    """Topic of the transcript, or `""` if neither the text nor the file name states one."""
    speakers: tuple[Speaker, ...]
    """Speakers of the transcript, in the order of their first messages."""
    messages: tuple[ParsedMessage, ...]
    document: dict[str, object] | None = None
    """The original document if the transcript was a `moot.debate/1` document."""
    solution: str = ""
    """Conclusion that the file states besides the messages, or `""` if there is none."""


_IMPORTED: Step = {
    "kind": "close",
    "phase": "",
    "round": 0,
    "aspect": "",
    "turns": [],
    "end_reason": {"cause": "import", "setting": "", "reason": "imported"},
}


def speakers_by_word(speakers: Sequence[Speaker]) -> dict[str, Speaker]:
    """Return the speakers, keyed by their ids and by their names.

    Names are case-folded. A word that is the name of one speaker and the id of another stands for the speaker
    with the name.
    """
    by_id = {speaker.id: speaker for speaker in speakers}
    return by_id | {speaker.name.casefold(): speaker for speaker in reversed(speakers)}


def transcript_config(
    imported: ImportedTranscript, base: DebateConfig | None = None, debaters: Sequence[str] = ()
) -> DebateConfig:
    """Return a configuration whose debaters are the speakers of a transcript.

    Args:
        imported: The transcript.
        base: Configuration with all other settings; its debaters are ignored.
        debaters: Names or ids of the speakers who debate. Default: all but a moderator.

    Raises:
        InputError: No speaker has this name.
    """
    candidates = [speaker for speaker in imported.speakers if speaker.id not in RESERVED_IDS]
    if not candidates:
        raise InputError(
            "the transcript has no debaters, because only a moderator or judge speaks: add a message by "
            "another speaker"
        )
    known_speakers = speakers_by_word(candidates)
    selection = [known_speakers.get(name.strip().casefold()) for name in debaters]
    if None in selection:
        known = ", ".join(repr(speaker.name) for speaker in candidates[:20])
        unknown = debaters[selection.index(None)]
        raise InputError(f"--debater {unknown!r} is not the name of a speaker; the speakers are {known}")
    selected_speakers = dict.fromkeys(filter(None, selection)) or candidates
    debater_configs = tuple(
        DebaterConfig(id=speaker.id, name=unreserved_name(speaker.name)) for speaker in selected_speakers
    )
    return (base or DebateConfig()).model_copy(
        update={"debaters": debater_configs, "order": (), "turns": None, "rounds": None}
    )


def transcript_values(
    imported: ImportedTranscript,
    topic: str,
    config: DebateConfig,
    environment: Environment,
) -> entry_types.JsonObject:
    """Build the state of a finished debate from a transcript.

    Args:
        imported: The transcript.
        topic: Topic of the debate.
        config: Configuration with the debaters.
        environment: Clock and token counter.

    Raises:
        InputError: The topic is empty.
    """
    topic = entry_types.clean_text(topic).strip()
    if not topic:
        raise InputError("the transcript has no topic: add one with --topic")
    now = environment.clock()
    entries = [entry_types.make_entry(0, "user", "topic", topic, at=now)]
    calls: dict[str, str] = {}
    for seq, message in enumerate(imported.messages, start=1):
        targets = (
            [calls[message.call_id]] if message.kind == "tool_result" and message.call_id in calls else []
        )
        targets += [message.target] if message.target else []
        entry = entry_types.make_entry(
            seq,
            message.speaker,
            message.kind,
            message.content,
            round=message.round,
            targets=targets,
            at=message.time or now,
        )
        if message.kind == "tool_call":
            calls[message.call_id] = entry["id"]
        if message.tool:
            entry["tool"] = message.tool
        if message.time:
            entry["dated"] = True
        entries.append(entry)
    document: documents.DebateDocument = {
        **documents.empty_document(),
        "topic": topic,
        "status": "running",
        "config": config.to_json(),
        "transcript": entries,
        "solution": imported.solution,
        "schema_version": SCHEMA_VERSION,
    }
    return _values(document, config, environment)


def document_values(raw_document: Mapping[str, object], environment: Environment) -> entry_types.JsonObject:
    """Return the debate state stored in a `moot.debate/1` document.

    Raises:
        InputError: The document is invalid. The message names the key.
        ConfigError: The configuration of the document is invalid.
    """
    document = documents.whole_document(raw_document)
    values = _values(document, make_config(document["config"]), environment)
    # `whole_document` has checked that the values can be stored. An empty channel is valid.
    check_types({key: value for key, value in values.items() if value})
    return values


def _values(
    document: documents.DebateDocument, config: DebateConfig, environment: Environment
) -> entry_types.JsonObject:
    count = environment.token_counter_for(config)
    entry_texts = [(entry, entry_types.clean_text(entry["content"])) for entry in document["transcript"]]
    # Tokens are counted again, because budgets need exact counts.
    entries: list[entry_types.Entry] = [
        {**entry, "content": text, "tokens": count(text)} for entry, text in entry_texts
    ]
    board, carried_state = document["blackboard"], document.get("state", {})
    # Without its state, a summary cannot be continued, so its messages are summarized again.
    rolling_summary = carried_state.get("rolling_summary")
    recent_entries = entries[rolling_summary["covers_through_seq"] + 1 if rolling_summary else 0 :]
    evicted_seq = evict_through(recent_entries, document["topic"], config, count)
    origin = str(uuid4())
    step = max((receipt["step"] for receipt in document["receipts"]), default=0)
    return {
        "topic": document["topic"],
        "full_transcript": entries,
        "user_provided": entry_types.user_provided_in(entries),
        "messages": [window_message(entry, origin) for entry in recent_entries if entry["seq"] > evicted_seq],
        "config": document["config"],
        "summary_versions": document["summaries"],
        "claim_events": board["claim_events"],
        "reflections": board["reflections"],
        "crux_cards": {card["id"]: card for card in board["cards"]},
        "convergence": document.get("convergence", []),
        "receipts": document["receipts"],
        "calls": document.get("calls", []),
        "prompt_sources": document["prompt_sources"],
        "usage": document["usage"],
        "errors": document["errors"],
        "verdicts": document["verdicts"],
        "verdict": document["verdict"] or {},
        "solution": document["solution"],
        "step": {**_IMPORTED, "number": step} if step else {},
        "turn_count": entry_types.turns_taken(entries, config.names()),
        "round": max((entry["round"] for entry in entries), default=0),
        "current_speaker": "",
        "status": document["status"],
        "schema_version": document["schema_version"],
        **{
            key: value
            for key, value in carried_state.items()
            if key in documents.CarriedState.__annotations__
        },
    }
