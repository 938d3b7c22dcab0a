"""The tail of a view: what changes from speaker to speaker, and the whole of a long form's view."""

from collections.abc import Mapping

from moot.nodes.blackboard.digest import board_memory, render_blackboard
from moot.nodes.calls import WireMessage
from moot.nodes.memory.earlier import recollection_text
from moot.nodes.memory.recall import bring_back, cue_for
from moot.nodes.prompts.fitting import Block
from moot.nodes.prompts.library import load_prompt
from moot.nodes.text.tokens import TokenCounter, cut_middle, cut_once, message_tokens
from moot.nodes.views.anchors import anchor_text
from moot.nodes.views.head import contract_text, rules_block, topic_block
from moot.nodes.views.rolling import summary_blocks, window_blocks
from moot.nodes.views.scene import Scene
from moot.state.conversation import MemoryKind

TAIL = load_prompt("tail", "contract", "perspective", "blackboard", "anchors", "retrieved", "instruction")
PARTS = ("blackboard", "perspective", "anchors", "retrieved")
"""A tail's parts beside contract and instruction, most important first: own commitments before all that is
brought back, of which what was argued in earlier debates comes before the speaker's own texts."""
RETRIEVED_SHARE = 0.45
"""Share of a long form's tail that is kept free for what is retrieved."""
EARLIER_SHARE, ANCHOR_SHARE = 4, 3
"""Earlier debates, and passages of own texts, have one in so many of the tail's tokens."""
LEAST_PART, LEAST_BLACKBOARD, TAIL_MARGIN = 16, 40, 8
"""Tokens below which no part, and no blackboard, is shown, and what a part's frame in the tail may cost."""
PART_KINDS: dict[str, MemoryKind] = {
    "perspective": "earlier debates",
    "anchors": "own texts",
    "retrieved": "retrieved",
}
"""What kind of memory a part of the tail is; the blackboard holds several."""


def tail_block(
    scene: Scene, parts: Mapping[str, str] | None = None, retrieved: tuple[str, ...] = ()
) -> Block:
    """Return what changes from speaker to speaker as the last message.

    Contract and instruction always stay; the other parts share what they leave of the tail's budget, the most
    important first, each cut in its middle where its room is short. `parts` are texts of `PARTS`; `retrieved`
    are the ids of what the part of that name brings back, for the receipt.
    """
    texts, budget = _bare_tail(scene), scene.config.memory.budget.tail
    given = dict(parts or {})
    if "perspective" not in given:  # a long form has read it already, to know what it leaves
        given["perspective"] = earlier_text(scene)
    for name in PARTS:
        if text := given.get(name):
            left = budget - _tail_tokens(texts, scene.count)
            texts[name] = cut_middle(text, left - 4, scene.count) if left > LEAST_PART else ""
    message: WireMessage = {"role": "user", "content": TAIL.render(**texts)}
    whole: WireMessage | None = None
    if texts["contract"] and texts["contract"] != (contract := contract_text(scene.speaker)):
        whole = {"role": "user", "content": TAIL.render(**{**texts, "contract": contract})}
    held: dict[MemoryKind, int] = board_memory(texts["blackboard"], scene.state, scene.count)
    held |= {kind: scene.count(texts[name]) for name, kind in PART_KINDS.items() if texts[name]}
    brought = retrieved if texts["retrieved"] == given.get("retrieved") else ()
    return Block(
        "tail", message, label="contract and instruction", whole=whole, retrieved=brought, memory=held
    )


def plain_tail(scene: Scene, contract: str, instruction: str, query: str) -> Block:
    """Return contract and instruction, with what fits a query out of the speaker's own texts."""
    anchors = anchors_text(scene, query)
    parts = dict.fromkeys(PARTS, "") | {"anchors": anchors}
    message: WireMessage = {
        "role": "user",
        "content": TAIL.render(contract=contract, instruction=instruction, **parts),
    }
    held: dict[MemoryKind, int] = {"own texts": scene.count(anchors)} if anchors else {}
    return Block("tail", message, label="contract and instruction", memory=held)


def _bare_tail(scene: Scene) -> dict[str, str]:
    """Return a tail's texts with none of its `PARTS`."""
    instruction, budget = scene.floor["instruction"], scene.config.memory.budget.tail
    contract = ""
    if scene.config.memory.layout == "shared":
        room = max(budget // 2, budget - scene.count(instruction) - TAIL_MARGIN)
        contract = cut_once(contract_text(scene.speaker), room, scene.count)
    return {"contract": contract, "instruction": instruction, **dict.fromkeys(PARTS, "")}


def _tail_tokens(texts: dict[str, str], count: TokenCounter) -> int:
    return message_tokens({"role": "user", "content": TAIL.render(**texts)}, count)


def tail_room(scene: Scene, parts: Mapping[str, str] | None = None) -> int:
    """Return the tokens that contract, instruction and other parts leave of the tail."""
    texts = {**_bare_tail(scene), **(parts or {})}
    return scene.config.memory.budget.tail - _tail_tokens(texts, scene.count) - TAIL_MARGIN


def debate_blocks(scene: Scene) -> list[Block]:
    """Return the blocks of a long-form view: rules, rolling summary, window, tail; most stable first."""
    persona = contract_text(scene.speaker) if scene.config.memory.layout == "per-speaker" else ""
    return [
        rules_block(scene, extra=persona),
        topic_block(scene.state["topic"], scene.config, scene.count),
        *summary_blocks(scene),
        *window_blocks(scene),
        _long_form_tail(scene),
    ]


def _long_form_tail(scene: Scene) -> Block:
    """Return a tail with earlier debates, own texts, blackboard, retrieved memories.

    While there is something to bring back the blackboard leaves room for it; what is left of that flows back.
    """
    cue = cue_for(scene.state, scene.window, scene.speaker.id)
    parts = {
        "perspective": earlier_text(scene),
        "anchors": anchors_text(scene, f"{cue.query}\n{cue.answering}"),
    }
    left = tail_room(scene, parts)
    if scene.memories is not None and len(scene.window) < len(scene.state["full_transcript"]) - 1:
        board = blackboard_text(scene, int(left * (1 - RETRIEVED_SHARE)))
        back = bring_back(
            scene.state,
            scene.memories,
            scene.config.memory.retrieval,
            cue,
            room=left - scene.count(board),
            count=scene.count,
            names=scene.names,
            shown=board,
        )
        if back.text:
            return tail_block(scene, {**parts, "blackboard": board, "retrieved": back.text}, back.ids)
    return tail_block(scene, {**parts, "blackboard": blackboard_text(scene, left)})


def blackboard_text(scene: Scene, room: int, *, found: bool = True) -> str:
    """Return the speaker's view of the blackboard within `room` tokens.

    Where the view shows elsewhere what was `found` out, it is not told twice.
    """
    if room <= LEAST_BLACKBOARD:
        return ""
    return render_blackboard(
        scene.state,
        scene.speaker.id,
        max_tokens=room,
        count=scene.count,
        names=scene.names,
        answering=scene.floor["targets"],
        found=found,
        alone=bool(scene.floor["room"]),
    )


def earlier_text(scene: Scene) -> str:
    """Return what the speaker argued in earlier debates, where it remembers any."""
    earlier = (scene.state.get("recollections") or {}).get(scene.speaker.id) or []
    room = scene.config.memory.budget.tail // EARLIER_SHARE
    return cut_middle(recollection_text(earlier), room, scene.count)


def anchors_text(scene: Scene, query: str) -> str:
    """Return the passages of the speaker's own texts that fit what is discussed, where it brought any."""
    room = scene.config.memory.budget.tail // ANCHOR_SHARE
    return anchor_text(scene.speaker.anchors, query, room, scene.count)
