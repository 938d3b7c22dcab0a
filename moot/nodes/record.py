"""`record`: takes the minutes of what was said, where somebody will read them."""

from collections.abc import Sequence

from moot.nodes.blackboard.by_model import minutes_by_model, read_in_batches
from moot.nodes.blackboard.by_rule import RuleReader
from moot.nodes.blackboard.folding import ledger_of
from moot.nodes.blackboard.minutes import Minutes
from moot.nodes.blackboard.rooms import awaits_second, with_entries
from moot.nodes.calls import Flow
from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import Body, Update, errors_update
from moot.nodes.protocols.protocol_table import protocol_named
from moot.nodes.trim import leaves_through
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, ids_in, kind_of, seqs_of
from moot.state.ledger import OVERALL


def record(state: ConversationState, context: NodeContext) -> Body:
    """Add to the ledger what is due to be read; what a model cannot read, the rules do."""
    config = frozen_config(state)
    transcript = state["full_transcript"]
    update: Update = {}
    start = ledger_of(state).read_through + 1
    if spoken_in := with_entries(state.get("crux_rooms", {}), transcript[start:]):
        update["crux_rooms"] = spoken_in
    through = due_through(state, leaves_through(state, context.env))
    if through < start:
        return update
    entries = [
        entry
        for entry in transcript[start : through + 1]
        if entry["speaker"] in config.names() and kind_of(entry).argues
    ]
    if not entries:
        return update
    minutes, failure = yield from _take_minutes(state, context, entries)
    update["minutes"] = minutes.close(through)
    failed = f"read by rule: {failure}" if failure else ""
    return {**update, **errors_update(state, "record", [failed])}


def record_due(state: ConversationState, leaving: int) -> bool:
    """Return whether there is anything to note, be it who has spoken in a room.

    Messages up to the `seq` `leaving` are about to leave the window, -1 for none.
    """
    start = ledger_of(state).read_through + 1
    spoken_in = with_entries(state.get("crux_rooms", {}), state["full_transcript"][start:])
    return bool(spoken_in) or due_through(state, leaving) >= start


def due_through(state: ConversationState, leaving: int) -> int:
    """Return the `seq` up to which minutes are due, -1 for none.

    A dialogue is read every step, since rooms open on it; where two take turns in a room, once both have
    spoken. A council, whose debaters and judge read the proposals themselves, is read by a model alone, once
    its proposals are refined. In the long form a message stands in the window until it leaves it: then it is
    read, and what is left once the last turn is taken.
    """
    config, step = frozen_config(state), state.get("step", {})
    protocol, everything = protocol_named(config.protocol), len(state["full_transcript"]) - 1
    if protocol.minutes_after:
        due = protocol.reads_by_model(config) and step.get("phase") == protocol.minutes_after
        return everything if due else -1
    if protocol.minutes_every_step:
        return -1 if any(map(awaits_second, state.get("crux_rooms", {}).values())) else everything
    over = not step or state.get("turn_count", 0) >= config.total_turns()
    return everything if over else leaving


def _take_minutes(
    state: ConversationState, context: NodeContext, entries: Sequence[Entry]
) -> Flow[tuple[Minutes, str]]:
    """Return the minutes of entries, and why the rules took some that a model was asked for."""
    config, transcript = frozen_config(state), state["full_transcript"]
    protocol = protocol_named(config.protocol)
    by_model = protocol.reads_by_model(config)
    # The words of earlier messages that entries cite may be noted as they are quoted there.
    cited = {seq for entry in entries for seq in seqs_of(ids_in(entry["content"]))}
    earlier = [transcript[seq] for seq in sorted(cited) if 0 < seq < entries[0]["seq"]]
    minutes = Minutes(
        known=state.get("minutes") or [],
        topic=state["topic"],
        entries={entry["id"]: entry for entry in (*earlier, *entries)},
        debaters=list(config.names()),
        by="model" if by_model else "rule",
    )
    failure = ""
    for chunk in read_in_batches(entries, config) if by_model else [entries]:
        minutes.aspect, minutes.about = _subject(state, chunk)
        failed = ""
        if by_model:
            minutes.by, minutes.threshold = "model", config.blackboard.confidence
            failed = yield from minutes_by_model(minutes, config, chunk, context.env.count_for(config))
            failure = failed or failure
        if (failed or not by_model) and not protocol.minutes_after:
            minutes.by, minutes.threshold = "rule", 0.0
            before = transcript[max(0, chunk[0]["seq"] - 8) : chunk[0]["seq"]]
            minutes.entries = {**minutes.entries, **{entry["id"]: entry for entry in before}}
            minutes.take(RuleReader(config.names(), state["topic"], minutes.ledger).read(chunk, before))
    return minutes, failure


def _subject(state: ConversationState, entries: Sequence[Entry]) -> tuple[str, str]:
    """Return the aspect of entries said one after another, and with the rooms that some were said in."""
    rooms = state.get("crux_rooms", {})
    first = rooms.get(entries[0]["room"])
    claim = ledger_of(state).propositions.get(first["claim"]) if first else None
    aspect = claim["aspect"] if claim else state.get("step", {}).get("aspect") or OVERALL
    inside = [rooms[key] for key in dict.fromkeys(entry["room"] for entry in entries) if key]
    told = [f"{' and '.join(room['between'])} in a room on {room['claim']}" for room in inside]
    return aspect, "; ".join([aspect, *told]) if told else ""
