"""The middle of a view: the rolling summary and the window of recent messages."""

from collections.abc import Sequence

from moot.nodes.calls import WireMessage
from moot.nodes.memory.summarizers.points_layout import NOTICE_BELOW
from moot.nodes.memory.window import WindowLimits, compact
from moot.nodes.prompts.fitting import KEEP, Block
from moot.nodes.prompts.rendering import cut_message, render_entry
from moot.nodes.text.tokens import TokenCounter, cut_once, message_tokens
from moot.nodes.views.head import head_tokens
from moot.nodes.views.scene import Scene
from moot.state.at_sight import at_sight
from moot.state.config import DebateConfig
from moot.state.conversation import MemoryKind
from moot.state.entries import Entry, entry_id, kind_of

SUMMARY, RECENT, OLDER = 3, 5, 7
"""Priorities: a summary outlives recent messages, which outlive older ones."""
LEAST_SUMMARY = 32
"""Tokens of the notice that stands in a summary's place."""
MESSAGE_SHARE = 0.5
"""Most of the messages' budget that one message of the window takes; a longer one is cut in its middle."""
NAME_TOKENS = 150
"""More than a message's frame, label and name ever take."""
RECENT_MESSAGES = 4
"""The newest messages of the window count as recent; the rest of it as older."""


def summary_blocks(scene: Scene) -> list[Block]:
    """Return the rolling summary as one message, `[]` while there is none."""
    summary = scene.state.get("rolling_summary", {})
    text = summary.get("text", "")
    if not text:
        return []
    budget = scene.config.memory.budget
    # Its section's room, or where room is short at most a tenth of what is left.
    left = scene.room - budget.tail - head_tokens(scene.state["topic"], scene.config, scene.count)
    roomy = left >= budget.summary + budget.messages * MESSAGE_SHARE
    room = budget.summary if roomy else max(0, min(budget.summary, left // 10))
    heading = f"# Summary of the debate up to [{entry_id(summary['covers_through_seq'])}]"
    whole: WireMessage = {"role": "user", "content": f"{heading}\n{text}"}
    message = whole
    if room < min(NOTICE_BELOW, budget.summary):
        notice = f"{summary['messages']} earlier messages; there is no room for their summary."
        message = {**whole, "content": f"{heading}\n{notice}"}
    message = cut_message(message, max(room, LEAST_SUMMARY), scene.count)
    held: dict[MemoryKind, int] = {"rolling summary": scene.count(message["content"])}
    cut = whole if message != whole else None
    return [Block("summary", message, SUMMARY, label="rolling summary", whole=cut, memory=held)]


def window_blocks(scene: Scene, entries: Sequence[Entry] | None = None) -> list[Block]:
    """Return recent messages, each under its speaker's name; the newest one always stays.

    One that is longer than its share of the messages' budget is cut, so that it drives nothing else out.
    """
    shown = scene.window if entries is None else entries
    last = len(shown) - 1
    own = "" if scene.config.memory.layout == "shared" else scene.floor["speaker"]
    return [
        _message_block(
            entry,
            KEEP if i == last else RECENT if i > last - RECENT_MESSAGES else OLDER,
            entry["speaker"] == own,
            scene.config,
            scene.count,
        )
        for i, entry in enumerate(shown)
    ]


@at_sight(4096)  # a message of the window stands in the view of every turn
def _message_block(
    entry: Entry, priority: int, own: bool, config: DebateConfig, count: TokenCounter
) -> Block:
    """Return an entry of the window, cut where it is too long.

    The speaker's own words stand in the assistant's role, in the per-speaker layout only.
    """
    message = render_entry(entry, config.names())
    if own:
        message = {"role": "assistant", "content": entry["content"]}
    whole: WireMessage | None = None
    cap = int(config.memory.budget.messages * MESSAGE_SHARE)
    # The entry's own count is another encoding's for some models: only what is well below needs no second.
    if entry["tokens"] + NAME_TOKENS >= cap / 2 and message_tokens(message, count) > cap:
        room = max(1, cap - message_tokens(message, count, content=0))
        whole, message = message, {**message, "content": cut_once(message["content"], room, count)}

    # A tool's call stays or goes with its result, a question with its answer.
    pair, group = kind_of(entry).pair, ""
    if pair == "closes" and entry["targets"]:
        group = entry["targets"][0]
    elif pair == "opens":
        group = entry["id"]
    label = f"message {entry['id']}" if priority == KEEP else "window messages"
    return Block("messages", message, priority, (entry["id"],), group, label, whole)


def leaves_window(
    entries: Sequence[Entry], topic: str, config: DebateConfig, count: TokenCounter, *, pinned: int = 0
) -> int:
    """Return the `seq` up to which entries must leave the window, -1 for none; pins take `pinned` tokens."""
    limits = WindowLimits.of(config.memory, head_tokens(topic, config, count) + pinned)
    through = compact(entries, limits, config.names(), count)
    return -1 if through is None else through
