"""What a persona sees in a dialogue, phase by phase: DESIGN's table of view policies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nodes.blackboard.cards import room_entries
from nodes.blackboard.overview import card_text, cards_text, ledger_text, reflections_text, rounds_text
from nodes.blackboard.rooms import Room, rooms_of
from nodes.memory.material import Piece, with_pieces
from nodes.memory.rendering import render_entry
from nodes.memory.scene import Scene, TailPart, blackboard_part, contract_text, rules_block, tail_block
from nodes.memory.view import Block
from nodes.models.calls import WireMessage
from nodes.prompts.library import load_prompt
from nodes.protocols.anchors import anchor_text
from state.entries import Entry

ASPECTS = load_prompt("dialogue/rules", "aspects")

SUBJECT, EXCHANGE, BACKGROUND = 0, 1, 2
"""Ranks of material: what is answered, what was said around it, what else helps."""
TOOL_KINDS = frozenset({"tool_call", "tool_result"})
ANCHOR_SHARE = 3
"""Anchors get at most this part of the tail: one in so many."""
TOP_REFLECTIONS = 3


def dialogue_view(scene: Scene) -> list[Block]:
    """Return the blocks of a view: rules with the aspects, the phase's material, contract and instruction."""
    material = {
        "opening": _nothing,
        "take": _take,
        "respond": _exchange,
        "reply": _exchange,
        "closing": _everything,
    }
    pieces = list(material.get(scene.step["phase"], _room)(scene))
    budget = scene.config.memory.budget
    return with_pieces([_rules(scene)], pieces, _tail(scene), budget.total, scene.count)


def _rules(scene: Scene) -> Block:
    aspects = (scene.state.get("protocol_state") or {}).get("aspects") or []
    listed = ASPECTS.render(aspects="\n".join(f"- {aspect}" for aspect in aspects)) if aspects else ""
    persona = contract_text(scene.speaker) if scene.config.memory.layout == "per-speaker" else ""
    return rules_block(scene, extra="\n\n".join(filter(None, (listed, persona))))


def _tail(scene: Scene) -> Block:
    cold = scene.step["phase"] in ("opening", "closing")
    room = scene.config.memory.budget.tail // ANCHOR_SHARE
    anchors = anchor_text(scene.speaker.anchors, _query(scene), room, scene.count)
    parts = [TailPart("retrieved", anchors, 4)]
    if not cold:
        parts.append(blackboard_part(scene, share=0.6 if anchors else 1.0))
    return tail_block(scene, parts)


def _query(scene: Scene) -> str:
    """Return what a persona's own texts are searched for: the aspect, and what is answered."""
    aspect = str((scene.state.get("protocol_state") or {}).get("aspect") or scene.state["topic"])
    said = [entry["content"] for entry in room_entries(scene.state, scene.floor["targets"])]
    return "\n".join([aspect, scene.floor["instruction"], *said])


def _nothing(scene: Scene) -> Iterator[Piece]:
    yield from ()


def _take(scene: Scene) -> Iterator[Piece]:
    yield from _text_piece("Insights so far", reflections_text(scene.state), BACKGROUND)


def _exchange(scene: Scene) -> Iterator[Piece]:
    """Yield the aspect's exchange on the main floor, what is answered first of all, and the top insights."""
    top = "\n".join(reflections_text(scene.state).splitlines()[:TOP_REFLECTIONS])
    yield from _text_piece("Insights so far", top, BACKGROUND)
    targets = set(scene.floor["targets"])
    for entry in recent_exchange(scene.state["full_transcript"], scene.step["round"]):
        yield _entry_piece(scene, entry, SUBJECT if entry["id"] in targets else EXCHANGE)


def recent_exchange(transcript: Sequence[Entry], round_no: int) -> list[Entry]:
    """Return what was said on the main floor in the round, oldest first; only the round is walked."""
    said: list[Entry] = []
    for entry in reversed(transcript):
        if entry["round"] != round_no:
            break
        if not entry["room"] and entry["kind"] not in TOOL_KINDS:
            said.append(entry)
    return said[::-1]


def _room(scene: Scene) -> Iterator[Piece]:
    """Yield the claim's origin, both positions, related cards, and the whole room so far."""
    room = rooms_of(scene.state)[scene.floor["room"]]
    yield from _text_piece("Positions of the two of you", _positions(scene, room), BACKGROUND)
    for card in (scene.state.get("crux_cards") or {}).values():
        if set(card["sides"]) & set(room["between"]):
            yield from _text_piece("An earlier crux", card_text(card, scene.names), BACKGROUND)
    for entry in room_entries(scene.state, room["trigger"]):
        yield _entry_piece(scene, entry, EXCHANGE)
    for entry in room_entries(scene.state, room["message_ids"]):
        yield _entry_piece(scene, entry, SUBJECT)


def _positions(scene: Scene, room: Room) -> str:
    ledger = scene.state.get("ledger") or {}
    rows = {who: ledger[who] for who in room["between"] if who in ledger}
    return ledger_text({"ledger": rows}, scene.names)


def _everything(scene: Scene) -> Iterator[Piece]:
    """Yield the whole blackboard."""
    yield from _text_piece("Where everybody stands", ledger_text(scene.state, scene.names), SUBJECT)
    yield from _text_piece("Cruxes", cards_text(scene.state, scene.names), SUBJECT)
    yield from _text_piece("Insights", reflections_text(scene.state), EXCHANGE)
    yield from _text_piece("Round by round", rounds_text(scene.state), EXCHANGE)


def _text_piece(title: str, text: str, rank: int) -> Iterator[Piece]:
    if text:
        message: WireMessage = {"role": "user", "content": f"# {title}\n{text}"}
        yield Piece(message, rank, title.lower(), section="blackboard")


def _entry_piece(scene: Scene, entry: Entry, rank: int) -> Piece:
    return Piece(render_entry(entry, scene.names), rank, f"message {entry['id']}", (entry["id"],))
