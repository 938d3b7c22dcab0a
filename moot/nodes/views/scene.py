"""One floor about to be given: what its view may draw on, and entries as pieces of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from moot.nodes.calls import WireMessage
from moot.nodes.memory.recall import Memories
from moot.nodes.memory.window import window_start
from moot.nodes.prompts.fitting import Block
from moot.nodes.prompts.rendering import render_entry
from moot.nodes.text.tokens import TokenCounter
from moot.state.config import DebateConfig, DebaterConfig
from moot.state.conversation import ConversationState, Floor, Step
from moot.state.entries import Entry, Gift, kind_of

TOOL_RANK = 5
"""Added to a speech's rank for what tools brought for it: the least rank of all, so that it is cut first."""


@dataclass(frozen=True)
class Scene:
    """One floor about to be given: everything that its view may draw on."""

    state: ConversationState
    config: DebateConfig
    floor: Floor
    count: TokenCounter
    total: int | None = None
    """Tokens of the whole view where tools take some of the budget; `None` for all of it."""
    memories: Memories | None = None
    """Where retrieval finds what has left the window; `None` brings nothing back."""

    @property
    def step(self) -> Step:
        """The step whose floor it is."""
        return self.state["step"]

    @property
    def room(self) -> int:
        """Tokens of the whole view."""
        return self.config.memory.budget.total if self.total is None else self.total

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Display names by debater id."""
        return self.config.names()

    @property
    def speaker(self) -> DebaterConfig:
        """Who has the floor."""
        return self.config.debater(self.floor["speaker"])

    @cached_property
    def window(self) -> list[Entry]:
        """The window's entries, oldest first, without the topic, which the rules hold."""
        entries = self.state["full_transcript"][window_start(self.state) :]
        return [entry for entry in entries if kind_of(entry).shown]


def entry_piece(scene: Scene, entry: Entry, rank: int, label: str = "message", heading: str = "") -> Block:
    """Return an entry under its speaker's name as a piece, with a heading of its own where one is given."""
    message = render_entry(entry, scene.names)
    if heading:
        message = {**message, "content": f"{heading}\n{message['content']}"}
    return Block("messages", message, rank, (entry["id"],), label=f"{label} {entry['id']}")


def given_entries(scene: Scene, *gifts: Gift) -> list[Entry]:
    """Return what people gave the debate so far, of these sorts or of all, oldest first."""
    transcript = scene.state["full_transcript"]
    given = [transcript[seq] for seq in scene.state.get("gifts", ())]
    return [entry for entry in given if not gifts or kind_of(entry).gift in gifts]


def given_piece(scene: Scene, entry: Entry, *, said: int, document: int) -> Block:
    """Return what a person gave as a piece; a document, which may be long, has a rank of its own."""
    rank = document if kind_of(entry).gift == "document" else said
    return entry_piece(scene, entry, rank, "from the floor")


def tool_pieces(scene: Scene, speech: Entry, rank: int) -> list[Block]:
    """Return the calls of tools that were made for a speech, each with its result as one piece."""
    transcript = scene.state["full_transcript"]
    start = speech["seq"]
    while start > 0 and kind_of(transcript[start - 1]).tool:
        start -= 1
    trail = transcript[start : speech["seq"]]
    results = {target: entry for entry in trail for target in entry["targets"]}

    pieces = []
    for call in trail:
        if kind_of(call).pair == "opens":
            exchange = [call, results[call["id"]]] if call["id"] in results else [call]
            text = "\n\n".join(render_entry(entry, scene.names)["content"] for entry in exchange)
            message: WireMessage = {"role": "user", "name": call["speaker"], "content": text}
            ids = tuple(entry["id"] for entry in exchange)
            pieces.append(Block("messages", message, TOOL_RANK + rank, ids, label="tool call and result"))
    return pieces
