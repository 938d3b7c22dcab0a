"""What a view is made from, and the blocks that most views share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from moot.nodes.blackboard.digest import board_memory, render_blackboard
from moot.nodes.calls import WireMessage
from moot.nodes.judging.rubrics import scored_text
from moot.nodes.memory.earlier import recollection_text
from moot.nodes.memory.recall import Memories, cue_for, recalled
from moot.nodes.memory.summarizers.points_layout import NOTICE_BELOW
from moot.nodes.memory.window import first_seq
from moot.nodes.prompts.fitting import KEEP, Block
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.material import problem_block
from moot.nodes.prompts.rendering import cut_message, render_entry
from moot.nodes.text.tokens import TokenCounter, cut_middle, cut_once, message_tokens
from moot.nodes.views.anchors import anchor_text
from moot.state.config import DebateConfig, DebaterConfig, slug
from moot.state.conversation import ConversationState, Floor, MemoryKind, Step
from moot.state.entries import Entry, kind_of

RULES = load_prompt("rules", "debaters", "scored", "language")
CONTRACT = load_prompt("contract", "name", "role", "stance", "persona", "contract")
TAIL = load_prompt("tail", "contract", "perspective", "blackboard", "anchors", "retrieved", "instruction")

SUMMARY, RECENT, OLDER = 3, 5, 7
"""Priorities: a summary outlives recent messages, which outlive older ones."""

BLACKBOARD = 2
"""Priority of the blackboard among the parts of a tail: own commitments before everything retrieved."""
RETRIEVED, RETRIEVED_SHARE = 4, 0.45
"""Priority of what was brought back among the parts of a tail, and the share of it kept free for that."""
EARLIER, EARLIER_SHARE = 3, 4
"""Priority of what was argued in earlier debates, and its part of the tail: one in so many."""
ANCHORS, ANCHOR_SHARE = 4, 3
"""Priority of passages of the speaker's own texts, and their part of the tail: one in so many."""
LEAST_SUMMARY = 32
"""Tokens of the notice that stands in a summary's place."""
LEAST_BLACKBOARD, TAIL_MARGIN = 40, 8
"""Tokens below which no blackboard is shown, and what its frame in the tail may cost."""

MESSAGE_SHARE = 0.5
"""Most of the messages' budget that one message of the window takes; a longer one is cut in its middle."""

NAME_TOKENS = 150
"""More than a message's frame, label and name ever take."""

RECENT_MESSAGES = 4
"""The newest messages of the window count as recent; the rest of it as older."""


NO_PARTS = dict.fromkeys(("perspective", "blackboard", "anchors", "retrieved"), "")
"""A tail's parts beside contract and instruction, all of them empty."""
PART_KINDS: dict[str, MemoryKind] = {
    "perspective": "earlier debates",
    "anchors": "own texts",
    "retrieved": "retrieved",
}
"""What kind of memory a part of the tail is; the blackboard holds several."""


@dataclass(frozen=True)
class Scene:
    """One floor about to be given: everything that its view may draw on."""

    state: ConversationState
    config: DebateConfig
    step: Step
    floor: Floor
    count: TokenCounter
    total: int | None = None
    """Tokens of the whole view where tools take some of the budget; `None` for all of it."""
    memories: Memories | None = None
    """Where retrieval finds what has left the window; `None` brings nothing back."""

    @property
    def room(self) -> int:
        """Tokens of the whole view."""
        return self.config.memory.budget.total if self.total is None else self.total

    @cached_property
    def names(self) -> dict[str, str]:
        """Display names by debater id."""
        return self.config.names()

    @property
    def speaker(self) -> DebaterConfig:
        """Who has the floor."""
        return self.config.debater(self.floor["speaker"])

    @cached_property
    def window(self) -> list[Entry]:
        """The window's entries, oldest first, without the topic, which the rules hold."""
        transcript = self.state["full_transcript"]
        start = first_seq(self.state["messages"], len(transcript))
        return [entry for entry in transcript[start:] if kind_of(entry).shown]


@dataclass(frozen=True)
class TailPart:
    """One part of the tail."""

    name: str
    text: str
    priority: int
    """The highest number is cut first."""
    ids: tuple[str, ...] = ()
    """What was brought back in it, for the receipt."""


def contract_text(debater: DebaterConfig) -> str:
    """Return what a debater is told about itself."""
    return CONTRACT.render(
        name=debater.name,
        role=f"Your role: {debater.role}." if _adds(debater, debater.role) else "",
        stance=f"Your stance: {debater.stance}." if debater.stance else "",
        persona="\n\n".join(filter(None, [debater.system_prompt, debater.persona])),
        contract="\n".join(_contract_lines(debater)),
    )


def _contract_lines(debater: DebaterConfig) -> Iterator[str]:
    flips = "; ".join(debater.flip_conditions)
    for title, text in (
        ("Your temper", debater.personality),
        ("What is at stake for you", debater.stakes),
        ("What counts as knowledge for you", debater.epistemology),
        ("How far ahead you look", debater.time_horizon),
        ("What would change your mind", flips),
        ("Evidence", debater.evidence_policy),
        ("Your voice", debater.voice),
    ):
        if text:
            yield f"{title}: {text}"


def rules_text(config: DebateConfig) -> str:
    """Return the debate's rules: the same for everybody, for the whole debate."""
    language = f"- Speak {config.language}." if config.language else ""
    return RULES.render(debaters=members_text(config), scored=scored_text(config), language=language)


def members_text(config: DebateConfig) -> str:
    """Return a line for each debater: its name, and of id, role and stance what the name does not say."""
    told = (
        (d.name, ", ".join(part for part in (d.id, d.role, d.stance) if _adds(d, part)))
        for d in config.debaters
    )
    return "\n".join(f"- {name} ({rest})" if rest else f"- {name}" for name, rest in told)


def _adds(debater: DebaterConfig, part: str) -> bool:
    return bool(part) and slug(part) != slug(debater.name)


def topic_block(topic: str, config: DebateConfig, count: TokenCounter) -> Block:
    """Return the topic, a message of its own after the rules."""
    return problem_block(topic, config.memory.budget, count, heading="# Topic")


def head_tokens(topic: str, config: DebateConfig, count: TokenCounter) -> int:
    """Return what rules and topic take; where each speaker's rules are others, the whole of their section."""
    rules = config.memory.budget.system
    if config.memory.layout == "shared":
        message: WireMessage = {"role": "system", "content": rules_text(config)}
        rules = min(message_tokens(message, count), rules)
    return rules + message_tokens(topic_block(topic, config, count).message, count)


def rules_block(scene: Scene, *, extra: str = "") -> Block:
    """Return the system message, within the system section's budget."""
    content = "\n\n".join(filter(None, [rules_text(scene.config), extra]))
    whole: WireMessage = {"role": "system", "content": content}
    message = cut_message(whole, scene.config.memory.budget.system, scene.count)
    return Block("system", message, label="rules", whole=whole if message != whole else None)


def summary_blocks(scene: Scene) -> list[Block]:
    """Return the rolling summary as one message, `[]` while there is none."""
    summary = scene.state.get("rolling_summary", {})
    text = summary.get("text", "")
    if not text:
        return []
    room = _summary_room(scene)
    whole: WireMessage = {"role": "user", "content": f"# Summary of the debate so far\n{text}"}
    message = whole
    if room < min(NOTICE_BELOW, scene.config.memory.budget.summary):
        notice = f"{summary['messages']} earlier messages; there is no room for their summary."
        message = {**whole, "content": f"# Summary of the debate so far\n{notice}"}
    message = cut_message(message, max(room, LEAST_SUMMARY), scene.count)
    held: dict[MemoryKind, int] = {"rolling summary": scene.count(message["content"])}
    cut = whole if message != whole else None
    return [Block("summary", message, SUMMARY, label="rolling summary", whole=cut, memory=held)]


def _summary_room(scene: Scene) -> int:
    """Return the summary's tokens: its section's, or where room is short at most a tenth of what is left."""
    budget = scene.config.memory.budget
    left = scene.room - budget.tail - head_tokens(scene.state["topic"], scene.config, scene.count)
    roomy = left >= budget.summary + budget.messages * MESSAGE_SHARE
    return budget.summary if roomy else max(0, min(budget.summary, left // 10))


def window_blocks(scene: Scene, entries: Sequence[Entry] | None = None) -> list[Block]:
    """Return recent messages, each under its speaker's name; the newest one always stays.

    One that is longer than its share of the messages' budget is cut, so that it drives nothing else out.
    """
    shown = scene.window if entries is None else entries
    last = len(shown) - 1
    return [
        Block(
            "messages",
            message,
            KEEP if i == last else (RECENT if i > last - RECENT_MESSAGES else OLDER),
            ids=(entry["id"],),
            group=_pair(entry),
            label=f"message {entry['id']}" if i == last else "window messages",
            whole=whole,
        )
        for i, entry in enumerate(shown)
        for message, whole in [_window_message(scene, entry)]
    ]


def _window_message(scene: Scene, entry: Entry) -> tuple[WireMessage, WireMessage | None]:
    """Return an entry as the window shows it, and the whole of it where it was cut."""
    message = own_words(scene, entry) or render_entry(entry, scene.names)
    cap = int(scene.config.memory.budget.messages * MESSAGE_SHARE)
    # The entry's own count is another encoding's for some models: only what is well below needs no second.
    if entry["tokens"] + NAME_TOKENS < cap / 2:
        return message, None
    if message_tokens(message, scene.count) <= cap:
        return message, None
    room = max(1, cap - message_tokens(message, scene.count, content=0))
    short: WireMessage = {**message, "content": cut_once(message["content"], room, scene.count)}
    return short, message


def _pair(entry: Entry) -> str:
    """Return what a tool's call shares with its result and a question with its answer, `""` for the rest."""
    pair = kind_of(entry).pair
    if pair == "closes" and entry["targets"]:
        return entry["targets"][0]
    return entry["id"] if pair == "opens" else ""


def own_words(scene: Scene, entry: Entry) -> WireMessage | None:
    """Return the speaker's own message in the assistant's role, in the per-speaker layout only."""
    if scene.config.memory.layout == "shared" or entry["speaker"] != scene.floor["speaker"]:
        return None
    return {"role": "assistant", "content": entry["content"]}


def tail_block(scene: Scene, parts: Sequence[TailPart] = (), *, room: int | None = None) -> Block:
    """Return what changes from speaker to speaker as the last message.

    Contract and instruction always stay; the other parts share what they leave of the tail's budget, the most
    important first, each cut in its middle where its room is short.

    Args:
        scene: the floor.
        parts: those of `NO_PARTS`, as far as there are any.
        room: tokens of the whole tail; `None` for the configured budget.
    """
    fixed = _fixed(scene)
    if not any(part.name == "perspective" for part in parts):
        parts = [*parts, earlier_part(scene)]
    texts = dict(NO_PARTS)
    budget = scene.config.memory.budget.tail if room is None else room
    left = budget - _tail_tokens({**fixed, **texts}, scene.count)
    for part in sorted(parts, key=lambda part: part.priority):
        if left > 16 and part.text:
            texts[part.name] = cut_middle(part.text, left - 4, scene.count)
            left = budget - _tail_tokens({**fixed, **texts}, scene.count)
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


def _fixed(scene: Scene) -> dict[str, str]:
    instruction, budget = scene.floor["instruction"], scene.config.memory.budget.tail
    if scene.config.memory.layout == "per-speaker":
        return {"contract": "", "instruction": instruction}
    room = max(budget // 2, budget - scene.count(instruction) - TAIL_MARGIN)
    return {"contract": cut_once(contract_text(scene.speaker), room, scene.count), "instruction": instruction}


def blackboard_part(scene: Scene, *, share: float = 1.0, found: bool = True) -> TailPart:
    """Return the speaker's view of the blackboard, at most a share of what contract and instruction leave.

    Where the view shows elsewhere what was `found` out, it is not told twice.
    """
    return _board(scene, int(_left_of_tail(scene) * share), found=found)


def _board(scene: Scene, room: int, *, found: bool = True) -> TailPart:
    text = ""
    if room > LEAST_BLACKBOARD:
        text = render_blackboard(
            scene.state,
            scene.speaker.id,
            max_tokens=room,
            count=scene.count,
            names=scene.names,
            answering=scene.floor["targets"],
            found=found,
        )
    return TailPart("blackboard", text, BLACKBOARD)


def _left_of_tail(scene: Scene, others: Sequence[TailPart] = ()) -> int:
    texts = NO_PARTS | {part.name: part.text for part in others}
    return (
        scene.config.memory.budget.tail - _tail_tokens({**_fixed(scene), **texts}, scene.count) - TAIL_MARGIN
    )


def _tail_tokens(values: dict[str, str], count: TokenCounter) -> int:
    return message_tokens({"role": "user", "content": TAIL.render(**values)}, count)


def debate_blocks(scene: Scene, parts: Sequence[TailPart] = ()) -> list[Block]:
    """Return the blocks of a long-form view: rules, rolling summary, window, tail; most stable first."""
    persona = contract_text(scene.speaker) if scene.config.memory.layout == "per-speaker" else ""
    return [
        rules_block(scene, extra=persona),
        topic_block(scene.state["topic"], scene.config, scene.count),
        *summary_blocks(scene),
        *window_blocks(scene),
        tail_block(scene, tail_parts(scene, parts)),
    ]


def tail_parts(scene: Scene, others: Sequence[TailPart] = ()) -> list[TailPart]:
    """Return the parts of a long-form tail: blackboard, retrieved memories, and a protocol's own.

    While there is something to bring back the blackboard leaves room for it; what is left of that flows back.
    """
    others = others if any(part.name == "perspective" for part in others) else [*others, earlier_part(scene)]
    cue = cue_for(scene.state, scene.window, scene.speaker.id)
    others = [*others, anchors_part(scene, f"{cue.query}\n{cue.answering}")]
    left = _left_of_tail(scene, others)
    some = scene.memories is not None and len(scene.window) < len(scene.state["full_transcript"]) - 1
    board = _board(scene, int(left * (1 - RETRIEVED_SHARE)) if some else left)
    back = recalled_part(scene, room=left - scene.count(board.text), shown=board.text) if some else None
    if back and not back.text:
        board, back = _board(scene, left), None
    return [*others, board, *([back] if back else [])]


def earlier_part(scene: Scene) -> TailPart:
    """Return what the speaker argued in earlier debates, where it remembers any."""
    earlier = (scene.state.get("recollections") or {}).get(scene.speaker.id) or []
    room = scene.config.memory.budget.tail // EARLIER_SHARE
    return TailPart("perspective", cut_middle(recollection_text(earlier), room, scene.count), EARLIER)


def anchors_part(scene: Scene, query: str) -> TailPart:
    """Return the passages of the speaker's own texts that fit what is discussed, where it brought any."""
    room = scene.config.memory.budget.tail // ANCHOR_SHARE
    return TailPart("anchors", anchor_text(scene.speaker.anchors, query, room, scene.count), ANCHORS)


def recalled_part(scene: Scene, *, room: int, shown: str = "") -> TailPart:
    """Return what has left the window and bears on what the speaker answers, within `room` tokens."""
    if scene.memories is None:
        return TailPart("retrieved", "", RETRIEVED)
    found = recalled(
        scene.state,
        scene.memories,
        scene.config.memory.retrieval,
        cue_for(scene.state, scene.window, scene.speaker.id),
        room=room,
        count=scene.count,
        names=scene.names,
        shown=shown,
    )
    return TailPart("retrieved", found.text, RETRIEVED, found.ids)
