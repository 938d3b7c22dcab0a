"""`record`: takes the minutes of what was said, where somebody will read them."""

from collections.abc import Sequence

from moot.nodes.blackboard.by_model import minutes_by_model, read_in_batches
from moot.nodes.blackboard.by_rule import operations_by_rule
from moot.nodes.blackboard.folding import ledger_of
from moot.nodes.blackboard.minutes import Minutes
from moot.nodes.blackboard.rooms import awaits_second, with_entries
from moot.nodes.calls import Flow
from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import Body, Update, errors_update
from moot.nodes.protocols.protocol_table import protocol_named
from moot.nodes.trim import leaves_through
from moot.state.config import DebateConfig
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, JsonObject, ids_in, kind_of, seq_of
from moot.state.ledger import OVERALL


def record(state: ConversationState, context: NodeContext) -> Body:
    """Add to the ledger what is due to be read; what a model cannot read, the rules do."""
    config = frozen_config(state)
    transcript = state["full_transcript"]
    update: Update = {}
    start = ledger_of(state).read_through + 1
    if spoken_in := with_entries(state.get("crux_rooms", {}), transcript[start:]):
        update["crux_rooms"] = spoken_in
    through = due_through(state, config, leaves_through(state, context.env))
    if through < start:
        return update
    entries = [
        entry
        for entry in transcript[start : through + 1]
        if entry["speaker"] in config.names() and kind_of(entry).argues
    ]
    minutes, failure = yield from _taken(state, config, entries, context)
    if entries:
        update["minutes"] = minutes.close(through)
    failed = f"read by rule: {failure}" if failure else ""
    return {**update, **errors_update(state, "record", [failed])}


def record_due(state: ConversationState, leaving: int) -> bool:
    """Return whether there is anything to note, be it who has spoken in a room.

    Args:
        state: the debate's.
        leaving: the `seq` up to which messages are about to leave the window, -1 for none.
    """
    start = ledger_of(state).read_through + 1
    spoken_in = with_entries(state.get("crux_rooms", {}), state["full_transcript"][start:])
    return bool(spoken_in) or due_through(state, frozen_config(state), leaving) >= start


def due_through(state: ConversationState, config: DebateConfig, leaving: int) -> int:
    """Return the `seq` up to which minutes are due, -1 for none.

    A dialogue is read every step, since rooms open on it; where two take turns in a room, once both have
    spoken. A council, whose debaters and judge read the proposals themselves, is read by a model alone, once
    its proposals are refined. In the long form a message stands in the window until it leaves it: then it is
    read, and what is left once the last turn is taken.
    """
    everything = len(state["full_transcript"]) - 1
    rooms = state.get("crux_rooms", {}).values()
    protocol, step = protocol_named(config.protocol), state.get("step", {})
    if protocol.minutes_after:
        due = reads_by_model(config) and step.get("phase") == protocol.minutes_after
        return everything if due else -1
    if protocol.minutes_every_step:
        return -1 if any(awaits_second(room) for room in rooms) else everything
    over = not step or state.get("turn_count", 0) >= config.total_turns()
    return everything if over else leaving


def reads_by_model(config: DebateConfig) -> bool:
    """Return whether a model takes the minutes."""
    return protocol_named(config.protocol).reads_by_model(config)


def _taken(
    state: ConversationState, config: DebateConfig, entries: Sequence[Entry], context: NodeContext
) -> Flow[tuple[Minutes, str]]:
    """Return the minutes of entries, and why the rules took some that a model was asked for."""
    transcript = state["full_transcript"]
    by_model = reads_by_model(config)
    fields: JsonObject = {
        "topic": state["topic"],
        "entries": {entry["id"]: entry for entry in (*_cited(transcript, entries), *entries)},
        "debaters": list(config.names()),
    }
    minutes = Minutes(known=state.get("minutes") or [], by="model" if by_model else "rule", **fields)
    failure = ""
    for chunk in read_in_batches(entries, config) if by_model else [list(entries)] if entries else []:
        minutes.aspect, minutes.by = _aspect(state, chunk[0]), "model" if by_model else "rule"
        minutes.about = _in_rooms(state, chunk, minutes)
        minutes.threshold = config.blackboard.confidence if by_model else 0.0
        failed = ""
        if by_model:
            failed = yield from minutes_by_model(minutes, config, chunk, context.env.count_for(config))
            failure = failed or failure
        if (failed or not by_model) and not protocol_named(config.protocol).minutes_after:
            minutes.by, minutes.threshold = "rule", 0.0
            before = transcript[max(0, chunk[0]["seq"] - 8) : chunk[0]["seq"]]
            minutes.entries = {**minutes.entries, **{entry["id"]: entry for entry in before}}
            minutes.take(operations_by_rule(chunk, config.names(), state["topic"], minutes.ledger, before))
    return minutes, failure


def _cited(transcript: Sequence[Entry], entries: Sequence[Entry]) -> list[Entry]:
    """Return the earlier messages that entries cite: their words may be noted as they are quoted there."""
    cited = {seq for entry in entries for key in ids_in(entry["content"]) if (seq := seq_of(key))}
    return [transcript[seq] for seq in sorted(cited) if seq < entries[0]["seq"]]


def _in_rooms(state: ConversationState, entries: Sequence[Entry], minutes: Minutes) -> str:
    """Return what the rooms are about in which some of the entries were said, `""` for the main floor."""
    rooms = [state["crux_rooms"][key] for key in dict.fromkeys(entry["room"] for entry in entries) if key]
    told = (f"{' and '.join(room['between'])} in a room on {room['claim']}" for room in rooms)
    return "; ".join([minutes.aspect, *told]) if rooms else ""


def _aspect(state: ConversationState, entry: Entry) -> str:
    """Return the aspect that an entry is about: its room's, else the one that the protocol is at."""
    room = state.get("crux_rooms", {}).get(entry["room"])
    known = ledger_of(state).propositions.get(room["claim"]) if room else None
    if known is not None:
        return known["aspect"]
    return state.get("step", {}).get("aspect") or OVERALL
