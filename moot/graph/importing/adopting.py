"""State of a debate from outside: a transcript's speakers become debaters, a document becomes what it was."""

from collections.abc import Mapping, Sequence

from moot.graph.documents import DebateDocument, as_far_as_it_goes, whole_document
from moot.graph.importing.transcript import ImportedTranscript
from moot.nodes.driving.environment import Environment
from moot.nodes.memory.window import window_message
from moot.nodes.reading.moves import importance
from moot.nodes.views.rolling import leaves_window
from moot.state.config import RESERVED_IDS, DebateConfig, DebaterConfig
from moot.state.config.config_files import make_config
from moot.state.config.debaters import NAME_CHARS
from moot.state.conversation import SCHEMA_VERSION, Step
from moot.state.earlier_builds import up_to_date
from moot.state.entries import Entry, JsonObject, clean_text, gifts_in, make_entry, turns_taken
from moot.state.errors import InputError

_IMPORTED: Step = {
    "kind": "close",
    "phase": "",
    "round": 0,
    "aspect": "",
    "floors": [],
    "ended_by": {"by": "import", "what": "", "reason": "imported"},
}


def transcript_config(
    imported: ImportedTranscript, base: DebateConfig | None = None, debaters: Sequence[str] = ()
) -> DebateConfig:
    """Return a configuration whose debaters are a transcript's speakers, everything else `base`'s.

    Args:
        imported: the transcript.
        base: settings; its own debaters do not count.
        debaters: ids or names of those who argue; by default everybody but whoever is called moderator.

    Raises:
        InputError: nobody of that name speaks.
    """
    arguing = [speaker for speaker in imported.speakers if speaker.id not in RESERVED_IDS]
    if not arguing:
        raise InputError("nobody argues in this transcript: only a moderator or judge speaks")
    by_word = {word: one for one in reversed(arguing) for word in (one.name.casefold(), one.id)}
    chosen = [by_word.get(name.strip().casefold()) for name in debaters]
    if None in chosen:
        known = ", ".join(repr(speaker.name) for speaker in arguing[:20])
        unknown = debaters[chosen.index(None)]
        raise InputError(f"--debater {unknown!r}: nobody of that name speaks; there are {known}")
    named = dict.fromkeys(filter(None, chosen)) or arguing
    people = tuple(DebaterConfig(id=one.id, name=one.name[:NAME_CHARS]) for one in named)
    return (base or DebateConfig()).model_copy(
        update={"debaters": people, "order": (), "turns": None, "rounds": None}
    )


def transcript_values(
    imported: ImportedTranscript,
    topic: str,
    config: DebateConfig,
    environment: Environment,
    *,
    rated: bool = True,
) -> JsonObject:
    """Return the state of a transcript that is over, without summaries and blackboard.

    Args:
        imported: the transcript.
        topic: what was argued.
        config: with its debaters.
        environment: clock and counter.
        rated: whether entries are rated for importance, most of the work; judging does without.

    Raises:
        InputError: the topic is empty.
    """
    said = clean_text(topic).strip()
    if not said:
        raise InputError("this transcript says no topic: give one with --topic")
    now = environment.clock()
    entries = [make_entry(0, "user", "topic", said, at=now)]
    for seq, one in enumerate(imported.utterances, start=1):
        entry = make_entry(seq, one.speaker, "speech", one.content, at=one.at or now)
        entries.append({**entry, "importance": importance(entry)} if rated else entry)
    document: DebateDocument = {
        **as_far_as_it_goes(DebateDocument, {}),
        "topic": said,
        "status": "running",
        "config": config.to_json(),
        "transcript": entries,
        "solution": imported.solution,
        "schema_version": SCHEMA_VERSION,
    }
    return _values(document, config, environment)


def document_values(given: Mapping[str, object], environment: Environment) -> JsonObject:
    """Return the state that a `moot.debate/1` document was made from.

    Raises:
        InputError: it is no such document; the message names the key.
        ConfigError: its configuration cannot be used.
    """
    document = whole_document(given)
    return _values(document, make_config(document["config"]), environment)


def _values(document: DebateDocument, config: DebateConfig, environment: Environment) -> JsonObject:
    count = environment.count_for(config)
    cleaned = [(entry, clean_text(entry["content"])) for entry in document["transcript"]]
    # Counted anew: budgets rest on exact counts.
    entries: list[Entry] = [{**entry, "content": text, "tokens": count(text)} for entry, text in cleaned]
    board, carried = document["blackboard"], document.get("state", {})
    # Without the state that made it, a summary cannot be gone on with: what it covers is summarised anew.
    rolling = carried.get("rolling_summary")
    shown = entries[rolling["covers_through_seq"] + 1 if rolling else 0 :]
    dropped = leaves_window(shown, document["topic"], config, count)
    step = max((receipt["step"] for receipt in document["receipts"]), default=0)
    values = {
        "topic": document["topic"],
        "full_transcript": entries,
        "gifts": gifts_in(entries),
        "messages": [window_message(entry) for entry in shown if entry["seq"] > dropped],
        "config": document["config"],
        "summary_versions": document["summaries"],
        "minutes": board["minutes"],  # what earlier builds noted has no quotations: it is read anew
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
        "step": {**_IMPORTED, "no": step} if step else {},
        "turn_count": turns_taken(entries, config.names()),
        "round": max((entry["round"] for entry in entries), default=0),
        "current_speaker": "",
        "status": document["status"],
        "schema_version": document["schema_version"],
        **carried,
    }
    return {**up_to_date(values), "schema_version": SCHEMA_VERSION}
