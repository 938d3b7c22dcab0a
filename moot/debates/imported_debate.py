"""Imported transcripts as data, and the state of a debate that is made from one."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast
from uuid import uuid4

from moot import documents
from moot.config import RESERVED_IDS, DebateConfig, DebaterConfig, channel_values, config_files, participants
from moot.judging.response_check import failed_verdict
from moot.memory.window import window_message
from moot.protocols.long_form_prompt import evict_through
from moot.runtime.environment import Environment
from moot.state import entries as entry_types
from moot.state.conversation import SCHEMA_VERSION, Step, SummaryVersion
from moot.state.entries import EntryKind, ToolUse
from moot.state.errors import InputError, option
from moot.state.verdict import Verdict


@dataclass(frozen=True)
class ParsedMessage:
    """A message read from a transcript."""

    speaker: str
    """Speaker's id, or the speaker's name if no id is assigned yet."""
    content: str
    time: str = ""
    """Time of the message, or `""` if no time is given. A complete date is in ISO 8601 format. Any other time
    is as written in the transcript."""
    kind: EntryKind = "speech"
    call_id: str = ""
    """Id of the tool call or clarification question that the message makes or answers, or `""` for other
    messages."""
    tool: ToolUse | None = None
    """Tool result in the message, or `None` for messages without a tool result."""
    round: int = 0
    """Number of the round, starting at 1, or 0 if the transcript has no rounds."""
    target: str = ""
    """Speaker whose proposal the message criticises or refines, or `""` if there is none."""
    phase: str = ""
    """Phase of the protocol, such as `critique` in a council, or `""` if the transcript has no phases."""
    model: str = ""
    """Model that wrote the message, or `""` if none is known."""
    tokens: int = 0
    """Tokens that the call for the message used, or 0 if they are not known."""

    @property
    def is_by_speaker(self) -> bool:
        """Whether one of the speakers wrote the message, and not a tool or the user."""
        return self.kind not in ("tool_result", "context", "answer")


@dataclass(frozen=True)
class ParsedSummary:
    """A summary that the program made during the debate."""

    owner: str
    """Speaker from whose perspective the summary is written, or `""` for the judge's summary."""
    text: str
    messages: int
    """Number of messages that the summary covers, from the first one."""
    before_chars: int = 0
    after_chars: int = 0
    model: str = ""
    created_at: str = ""


@dataclass(frozen=True)
class Speaker:
    """A speaker in an imported transcript."""

    id: str
    """Unique speaker id consisting of 1 to 40 lower-case letters, digits or hyphens."""
    name: str
    """The speaker's name as first written in the transcript. Surrounding spaces and a final colon are
    removed."""
    role: str = ""
    """Role that the transcript states, or `""` if it states none."""


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
    reader: str = ""
    """Name of the form that was recognised, such as `WhatsApp`, or `""` for an exported debate."""
    left_out: str = ""
    """What the file contains besides the messages, such as `3 attachments left out`, or `""` if nothing."""
    encoding: str = ""
    """Encoding of the file if it was guessed, or `""` if the file states it."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """Settings of the debate that the file states, such as its protocol."""
    verdict: Mapping[str, object] = field(default_factory=dict)
    """Fields of the verdict in the file, or an empty mapping if it has none."""
    summaries: tuple[ParsedSummary, ...] = ()
    """Summaries in the file. Their owners are speaker ids."""

    def notes(self) -> list[str]:
        """Return lines that say how the file was read: its form, a guessed encoding, and what is left out."""
        return [
            note
            for note, applies in (
                (f"read as: {self.reader}", self.reader),
                (f"the encoding of the file was guessed: {self.encoding}", self.encoding),
                (self.left_out, self.left_out),
            )
            if applies
        ]

    def preview(self, count: int = 3) -> entry_types.JsonObject:
        """Return what an import would contain, as JSON data.

        The keys are `topic`, `notes`, `speakers` with their numbers of messages, and `first_messages` with
        the first `count` messages.
        """
        names = {speaker.id: speaker.name for speaker in self.speakers}
        counts = Counter(message.speaker for message in self.messages)
        return {
            "topic": self.topic,
            "notes": self.notes(),
            "speakers": [{"name": name, "messages": counts[key]} for key, name in names.items()],
            "first_messages": [
                {"speaker": names.get(each.speaker, each.speaker), "content": each.content, "time": each.time}
                for each in self.messages[:count]
            ],
        }


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

    `base` has all other settings. Default `debaters`: all but a moderator.

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
        label = option("debater", "debaters")
        raise InputError(f"{label}: {unknown!r} is not the name of a speaker; the speakers are {known}")
    selected_speakers = dict.fromkeys(filter(None, selection)) or candidates
    debater_configs = tuple(
        DebaterConfig(id=speaker.id, name=participants.unreserved_name(speaker.name), role=speaker.role)
        for speaker in selected_speakers
    )
    return (base or DebateConfig()).model_copy(
        update={
            "debaters": debater_configs,
            "order": (),
            "turns": None,
            "rounds": None,
            **({} if base is not None and "protocol" in base.model_fields_set else imported.settings),
        }
    )


def transcript_values(
    imported: ImportedTranscript, topic: str, config: DebateConfig, environment: Environment
) -> entry_types.JsonObject:
    """Build the state of a finished debate from a transcript. An empty topic is an `InputError`."""
    topic = entry_types.clean_text(topic).strip()
    if not topic:
        raise InputError(f"the transcript has no topic: add one with {option('topic')}")
    now = environment.clock()
    entries = [entry_types.make_entry(0, "user", "topic", topic, at=now)]
    calls: dict[str, str] = {}
    for seq, message in enumerate(imported.messages, start=1):
        is_reply = message.kind in ("tool_result", "answer") and message.call_id in calls
        targets = [calls[message.call_id]] if is_reply else []
        targets += [message.target] if message.target else []
        entry = entry_types.make_entry(
            seq,
            message.speaker,
            message.kind,
            message.content,
            round=message.round,
            targets=targets,
            at=message.time or now,
            phase=message.phase,
            model=message.model,
            usage={"completion_tokens": message.tokens} if message.tokens else None,
        )
        if message.kind in ("tool_call", "question"):
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
    if imported.verdict:
        verdict = _verdict(imported.verdict, config)
        document |= {"verdict": verdict, "verdicts": [verdict]}
    document["summaries"] = [
        _summary_version(each, number, entries, now)
        for number, each in enumerate(imported.summaries, start=1)
    ]
    return _values(document, config, environment)


def _verdict(fields: Mapping[str, object], config: DebateConfig) -> Verdict:
    """Return a verdict with the fields that the file states, and empty values for all others."""
    empty, judge = (
        failed_verdict("judge", "", order=[*config.names()]),
        participants.slug(str(fields.get("judge") or "")),
    )
    return cast(Verdict, {**empty, **fields, "judge": judge or "judge", "status": "ok"})


def _summary_version(
    summary: ParsedSummary, number: int, entries: Sequence[entry_types.Entry], now: str
) -> SummaryVersion:
    """Return a summary of the file as a version of a stored summary."""
    covered = entries[1 : summary.messages + 1]
    return {
        "kind": "perspective" if summary.owner else "judge",
        "owner": summary.owner,
        "version": number,
        "text": summary.text,
        "covers_from_seq": 1,
        "covers_through_seq": covered[-1]["seq"] if covered else -1,
        "messages": len(covered),
        "before_tokens": 0,
        "after_tokens": 0,
        "before_chars": summary.before_chars,
        "after_chars": summary.after_chars,
        "method": "imported",
        "model": summary.model,
        "temperature": None,
        "latency_s": 0.0,
        "created_at": summary.created_at or now,
        "updated_at": summary.created_at or now,
        "points": [],
    }


def document_values(raw_document: Mapping[str, object], environment: Environment) -> entry_types.JsonObject:
    """Return the debate state stored in a `moot.debate/1` document.

    Raises:
        InputError: The document is invalid. The message names the key.
        ConfigError: The configuration of the document is invalid.
    """
    document = documents.whole_document(raw_document)
    values = _values(document, config_files.make_config(document["config"]), environment)
    # `whole_document` has checked that the values can be stored. An empty channel is valid.
    channel_values.check_types({key: value for key, value in values.items() if value})
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
        "fence": environment.fence_for(document["topic"], config.seed, str(document)),
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
