"""Entries as pieces of a view: speeches, what tools brought for them, and what people gave the debate."""

from moot.nodes.calls import WireMessage
from moot.nodes.prompts.material import Piece
from moot.nodes.prompts.rendering import render_entry
from moot.nodes.views.scene import Scene
from moot.state.entries import Entry, Gift, kind_of

TOOL_RANK = 5
"""Added to a speech's rank for what tools brought for it: the least rank of all, so that it is cut first."""


def entry_piece(scene: Scene, entry: Entry, rank: int, label: str = "message", heading: str = "") -> Piece:
    """Return an entry under its speaker's name as a piece, with a heading of its own where one is given."""
    message = render_entry(entry, scene.names)
    if heading:
        message = {**message, "content": f"{heading}\n{message['content']}"}
    return Piece(message, rank, f"{label} {entry['id']}", (entry["id"],))


def given_entries(scene: Scene, *gifts: Gift) -> list[Entry]:
    """Return what people gave the debate so far, of these sorts or of all, oldest first."""
    transcript = scene.state["full_transcript"]
    given = [transcript[seq] for seq in scene.state.get("gifts", ())]
    return [entry for entry in given if not gifts or kind_of(entry).gift in gifts]


def given_piece(scene: Scene, entry: Entry, *, said: int, document: int) -> Piece:
    """Return what a person gave as a piece; a document, which may be long, has a rank of its own."""
    rank = document if kind_of(entry).gift == "document" else said
    return entry_piece(scene, entry, rank, "from the floor")


def tool_pieces(scene: Scene, speech: Entry, rank: int) -> list[Piece]:
    """Return the calls of tools that were made for a speech, each with its result as one piece."""
    start = speech["seq"]
    while start > 0 and kind_of(scene.state["full_transcript"][start - 1]).tool:
        start -= 1
    trail = scene.state["full_transcript"][start : speech["seq"]]
    results = {target: entry for entry in trail for target in entry["targets"]}
    calls = [entry for entry in trail if kind_of(entry).pair == "opens"]
    return [_exchange_piece(scene, call, results.get(call["id"]), TOOL_RANK + rank) for call in calls]


def _exchange_piece(scene: Scene, call: Entry, result: Entry | None, rank: int) -> Piece:
    entries = [call] if result is None else [call, result]
    text = "\n\n".join(render_entry(entry, scene.names)["content"] for entry in entries)
    message: WireMessage = {"role": "user", "name": call["speaker"], "content": text}
    return Piece(message, rank, "tool call and result", tuple(entry["id"] for entry in entries))
