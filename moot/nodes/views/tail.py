"""The tail of a view: what changes from speaker to speaker, and the whole of a long form's view."""

from collections.abc import Sequence
from dataclasses import dataclass

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
BLACKBOARD = 2
"""Priority of the blackboard among the parts of a tail: own commitments before everything retrieved."""
RETRIEVED, RETRIEVED_SHARE = 4, 0.45
"""Priority of what was brought back among the parts of a tail, and the share of it kept free for that."""
EARLIER, EARLIER_SHARE = 3, 4
"""Priority of what was argued in earlier debates, and its part of the tail: one in so many."""
ANCHORS, ANCHOR_SHARE = 4, 3
"""Priority of passages of the speaker's own texts, and their part of the tail: one in so many."""
LEAST_BLACKBOARD, TAIL_MARGIN = 40, 8
"""Tokens below which no blackboard is shown, and what its frame in the tail may cost."""
NO_PARTS = dict.fromkeys(("perspective", "blackboard", "anchors", "retrieved"), "")
"""A tail's parts beside contract and instruction, all of them empty."""
PART_KINDS: dict[str, MemoryKind] = {
    "perspective": "earlier debates",
    "anchors": "own texts",
    "retrieved": "retrieved",
}
"""What kind of memory a part of the tail is; the blackboard holds several."""


@dataclass(frozen=True)
class TailPart:
    """One part of the tail."""

    name: str
    text: str
    priority: int
    """The highest number is cut first."""
    ids: tuple[str, ...] = ()
    """What was brought back in it, for the receipt."""


def tail_block(scene: Scene, parts: Sequence[TailPart] = ()) -> Block:
    """Return what changes from speaker to speaker as the last message.

    Contract and instruction always stay; the other parts share what they leave of the tail's budget, the most
    important first, each cut in its middle where its room is short.

    Args:
        scene: the floor.
        parts: those of `NO_PARTS`, as far as there are any.
    """
    fixed = _fixed(scene)
    if not any(part.name == "perspective" for part in parts):
        parts = [*parts, earlier_part(scene)]
    texts = dict(NO_PARTS)
    budget = scene.config.memory.budget.tail
    for part in sorted((part for part in parts if part.text), key=lambda part: part.priority):
        left = budget - _tail_tokens({**fixed, **texts}, scene.count)
        if left > 16:
            texts[part.name] = cut_middle(part.text, left - 4, scene.count)
    message: WireMessage = {"role": "user", "content": TAIL.render(**fixed, **texts)}
    brought = tuple(key for part in parts if part.text and texts[part.name] == part.text for key in part.ids)
    whole: WireMessage | None = None
    if fixed["contract"] and fixed["contract"] != (contract := contract_text(scene.speaker)):
        whole = {"role": "user", "content": TAIL.render(**{**fixed, **texts, "contract": contract})}
    held: dict[MemoryKind, int] = board_memory(texts["blackboard"], scene.state, scene.count)
    held |= {kind: scene.count(texts[name]) for name, kind in PART_KINDS.items() if texts[name]}
    return Block(
        "tail", message, label="contract and instruction", whole=whole, retrieved=brought, memory=held
    )


def plain_tail(scene: Scene, contract: str, instruction: str, query: str) -> Block:
    """Return contract and instruction, with what fits a query out of the speaker's own texts."""
    anchors = anchors_part(scene, query).text
    text = TAIL.render(contract=contract, instruction=instruction, **(NO_PARTS | {"anchors": anchors}))
    held: dict[MemoryKind, int] = {"own texts": scene.count(anchors)} if anchors else {}
    return Block("tail", {"role": "user", "content": text}, label="contract and instruction", memory=held)


def _fixed(scene: Scene) -> dict[str, str]:
    instruction, budget = scene.floor["instruction"], scene.config.memory.budget.tail
    if scene.config.memory.layout == "per-speaker":
        return {"contract": "", "instruction": instruction}
    room = max(budget // 2, budget - scene.count(instruction) - TAIL_MARGIN)
    return {"contract": cut_once(contract_text(scene.speaker), room, scene.count), "instruction": instruction}


def blackboard_part(
    scene: Scene, room: int | None = None, *, share: float = 1.0, found: bool = True
) -> TailPart:
    """Return the speaker's view of the blackboard, at most a share of what contract and instruction leave.

    Where the view shows elsewhere what was `found` out, it is not told twice.
    """
    text, room = "", int(_left_of_tail(scene) * share) if room is None else room
    if room > LEAST_BLACKBOARD:
        text = render_blackboard(
            scene.state,
            scene.speaker.id,
            max_tokens=room,
            count=scene.count,
            names=scene.names,
            answering=scene.floor["targets"],
            found=found,
            alone=bool(scene.floor["room"]),
        )
    return TailPart("blackboard", text, BLACKBOARD)


def _left_of_tail(scene: Scene, others: Sequence[TailPart] = ()) -> int:
    texts = NO_PARTS | {part.name: part.text for part in others}
    return (
        scene.config.memory.budget.tail - _tail_tokens({**_fixed(scene), **texts}, scene.count) - TAIL_MARGIN
    )


def _tail_tokens(values: dict[str, str], count: TokenCounter) -> int:
    return message_tokens({"role": "user", "content": TAIL.render(**values)}, count)


def debate_blocks(scene: Scene) -> list[Block]:
    """Return the blocks of a long-form view: rules, rolling summary, window, tail; most stable first."""
    persona = contract_text(scene.speaker) if scene.config.memory.layout == "per-speaker" else ""
    return [
        rules_block(scene, extra=persona),
        topic_block(scene.state["topic"], scene.config, scene.count),
        *summary_blocks(scene),
        *window_blocks(scene),
        tail_block(scene, _tail_parts(scene)),
    ]


def _tail_parts(scene: Scene) -> list[TailPart]:
    """Return the parts of a long-form tail: earlier debates, own texts, blackboard, retrieved memories.

    While there is something to bring back the blackboard leaves room for it; what is left of that flows back.
    """
    cue = cue_for(scene.state, scene.window, scene.speaker.id)
    others = [earlier_part(scene), anchors_part(scene, f"{cue.query}\n{cue.answering}")]
    left = _left_of_tail(scene, others)
    if scene.memories is not None and len(scene.window) < len(scene.state["full_transcript"]) - 1:
        board = blackboard_part(scene, int(left * (1 - RETRIEVED_SHARE)))
        back = bring_back(
            scene.state,
            scene.memories,
            scene.config.memory.retrieval,
            cue,
            room=left - scene.count(board.text),
            count=scene.count,
            names=scene.names,
            shown=board.text,
        )
        if back.text:
            return [*others, board, TailPart("retrieved", back.text, RETRIEVED, back.ids)]
    return [*others, blackboard_part(scene, left)]


def earlier_part(scene: Scene) -> TailPart:
    """Return what the speaker argued in earlier debates, where it remembers any."""
    earlier = (scene.state.get("recollections") or {}).get(scene.speaker.id) or []
    room = scene.config.memory.budget.tail // EARLIER_SHARE
    return TailPart("perspective", cut_middle(recollection_text(earlier), room, scene.count), EARLIER)


def anchors_part(scene: Scene, query: str) -> TailPart:
    """Return the passages of the speaker's own texts that fit what is discussed, where it brought any."""
    room = scene.config.memory.budget.tail // ANCHOR_SHARE
    return TailPart("anchors", anchor_text(scene.speaker.anchors, query, room, scene.count), ANCHORS)
