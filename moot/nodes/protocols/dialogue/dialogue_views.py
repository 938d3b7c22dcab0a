"""What a persona sees in a dialogue, phase by phase: DESIGN's table of view policies."""

from collections.abc import Iterator, Mapping, Sequence

from moot.nodes.blackboard.board_words import card_text, cards_of, reflections_text
from moot.nodes.blackboard.digest import FOUND, board_memory, found_text, whole_board
from moot.nodes.calls import WireMessage
from moot.nodes.prompts.fitting import Block
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.material import with_pieces
from moot.nodes.prompts.rendering import display_name
from moot.nodes.views.head import contract_text, rules_block, topic_block
from moot.nodes.views.scene import Scene, entry_piece, given_entries, given_piece, tool_pieces
from moot.nodes.views.tail import anchors_text, blackboard_text, tail_block, tail_room
from moot.state.conversation import MemoryKind
from moot.state.entries import Entry, entries_of, kind_of
from moot.state.ledger import OVERALL

ASPECTS = load_prompt("rules", "aspects", home=__package__)

SUBJECT, EXCHANGE, BACKGROUND = 0, 1, 2
"""Ranks of material: what is answered, what was said around it, what else helps."""


def dialogue_view(scene: Scene) -> list[Block]:
    """Return the blocks of a view: rules with the aspects, the material, contract and instruction.

    The material is what people gave first, the phase's own, and what was said from the floor since.
    """
    material = {
        "opening": _speech_pieces,
        "take": _on_aspect,
        "respond": _on_aspect,
        "reply": _on_aspect,
        "closing": _everything,
    }
    given = [
        given_piece(scene, entry, said=EXCHANGE, document=BACKGROUND)
        for entry in given_entries(scene, "document", "answer")
    ]
    pieces = [*given, *material.get(scene.step["phase"], _room)(scene)]
    cold = scene.step["phase"] in ("opening", "closing")
    aspect = scene.step.get("aspect") or OVERALL
    said = [entry["content"] for entry in entries_of(scene.floor["targets"], scene.state["full_transcript"])]
    about = scene.state["topic"] if aspect == OVERALL else aspect
    parts = {"anchors": anchors_text(scene, "\n".join([about, scene.floor["instruction"], *said]))}
    if not cold:
        room = int(tail_room(scene) * (0.6 if parts["anchors"] else 1.0))
        parts["blackboard"] = blackboard_text(scene, room, found=False)
    aspects = (scene.state.get("protocol_state") or {}).get("aspects") or []
    listed = ASPECTS.render(aspects="\n".join(f"- {each}" for each in aspects)) if aspects else ""
    persona = contract_text(scene.speaker) if scene.config.memory.layout == "per-speaker" else ""
    head = [
        rules_block(scene, extra="\n\n".join(filter(None, (listed, persona)))),
        topic_block(scene.state["topic"], scene.config, scene.count),
    ]
    return with_pieces(head, pieces, tail_block(scene, parts), scene.room, scene.count)


def _on_aspect(scene: Scene) -> Iterator[Block]:
    """Yield what was found; then, but for a first take, the aspect's exchange on the main floor.

    What is answered comes first of all. What was said in crux rooms since the round began stands with it;
    where room is short, the speaker's own.
    """
    text = found_text(scene.state, scene.speaker.id, scene.names)
    held = board_memory(f"{FOUND}:\n{text}", scene.state, scene.count)
    yield from _text_piece(scene, FOUND, text, BACKGROUND, held)
    if scene.step["phase"] == "take":
        yield from _speech_pieces(scene)
        return
    transcript, round_no = scene.state["full_transcript"], scene.step["round"]
    own: list[str] = []
    others: list[str] = []
    for room in scene.state.get("crux_rooms", {}).values():
        if room["round"] == round_no:
            heard = own if scene.speaker.id in room["between"] else others
            heard += room["message_ids"]
    elsewhere = entries_of(others, transcript)
    speeches = [*recent_exchange(transcript, round_no), *entries_of(own, transcript), *elsewhere]
    yield from _speech_pieces(scene, speeches, scene.floor["targets"], elsewhere)


def recent_exchange(transcript: Sequence[Entry], round_no: int) -> list[Entry]:
    """Return what debaters said on the main floor in the round, oldest first; only the round is walked."""
    said: list[Entry] = []
    for entry in reversed(transcript):
        if entry["round"] != round_no:
            break
        kind = kind_of(entry)
        if not (entry["room"] or kind.tool or kind.gift):
            said.append(entry)
    return said[::-1]


def _room(scene: Scene) -> Iterator[Block]:
    """Yield the claim's origin, related cards, insights, and the whole room so far."""
    room = scene.state["crux_rooms"][scene.floor["room"]]
    for card in cards_of(scene.state):
        if set(card["sides"]) & set(room["between"]):
            text = card_text(card, scene.names)
            yield from _text_piece(scene, "An earlier crux", text, BACKGROUND, "cruxes")
    yield from _text_piece(scene, "Insights", reflections_text(scene.state), BACKGROUND, "reflections")
    entries = entries_of([*room["trigger"], *room["message_ids"]], scene.state["full_transcript"])
    yield from _speech_pieces(scene, entries, room["message_ids"])


def _speech_pieces(
    scene: Scene,
    speeches: Sequence[Entry] = (),
    subjects: Sequence[str] = (),
    background: Sequence[Entry] = (),
) -> Iterator[Block]:
    """Yield speeches and remarks, what tools brought before each; `subjects` outlast the others."""
    shown = {entry["seq"]: entry for entry in (*speeches, *given_entries(scene, "remark"))}
    ranks = {entry["id"]: BACKGROUND for entry in background} | dict.fromkeys(subjects, SUBJECT)
    for _, entry in sorted(shown.items()):
        if kind_of(entry).gift == "remark" and entry["id"] not in subjects:
            yield given_piece(scene, entry, said=EXCHANGE, document=BACKGROUND)
            continue
        rank = ranks.get(entry["id"], EXCHANGE)
        yield from tool_pieces(scene, entry, rank)
        apart = entry["room"] and not scene.floor["room"]
        between = scene.state["crux_rooms"][entry["room"]]["between"] if apart else ()
        who = " and ".join(display_name(one, scene.names) for one in between)
        yield entry_piece(scene, entry, rank, heading=f"(in a room, {who} alone)" if apart else "")


def _everything(scene: Scene) -> Iterator[Block]:
    """Yield the whole blackboard, then how the speaker opened, its rooms, and the last round."""
    heading, _, board = whole_board(scene.state, scene.names).partition("\n")
    yield from _text_piece(scene, heading.removeprefix("# "), board, SUBJECT, "ledger")
    cards = "\n\n".join(card_text(card, scene.names) for card in cards_of(scene.state))
    yield from _text_piece(scene, "Cruxes", cards, SUBJECT, "cruxes")
    yield from _text_piece(scene, "Insights", reflections_text(scene.state), EXCHANGE, "reflections")
    transcript, before = scene.state["full_transcript"], scene.step["round"] - 1
    own = [e for e in transcript if e["speaker"] == scene.speaker.id and kind_of(e).argues]
    rooms = {entry["room"] for entry in own} - {""}
    confided = [e for e in transcript if e["room"] in rooms and kind_of(e).argues]
    speeches = [*own[:1], *confided, *recent_exchange(transcript, before)]
    yield from _speech_pieces(scene, speeches, [entry["id"] for entry in own[:1]], confided)


def _text_piece(
    scene: Scene, title: str, text: str, rank: int, held: MemoryKind | Mapping[MemoryKind, int]
) -> Iterator[Block]:
    if text:
        message: WireMessage = {"role": "user", "content": f"# {title}\n{text}"}
        memory = {held: scene.count(text)} if isinstance(held, str) else held
        yield Block("blackboard", message, rank, label=title.lower(), memory=memory)
