"""How one entry looks in a prompt."""

from collections.abc import Mapping

from moot.nodes.calls import WireMessage
from moot.nodes.text.frames import frames_quoted
from moot.nodes.text.plain import clip, inert
from moot.nodes.text.tokens import TokenCounter, cut_middle, message_tokens
from moot.state.at_sight import at_sight
from moot.state.entries import Entry

PEOPLE = {
    "user": "The person who opened the debate",
    "moot": "Note",
    "moderator": "Moderator",
    "tools": "Tool result",
}
"""Display names of speakers who are no debaters."""

LABEL_TOKENS = 18
"""What an entry costs beside its words: 12 for a name of one word, 18 for one of three."""
NAME_CHARS = 40
"""Longest name in a line of ours."""


def display_name(speaker: str, names: Mapping[str, str]) -> str:
    """Return a speaker's display name, the id itself where there is none."""
    return names.get(speaker) or PEOPLE.get(speaker) or speaker


def speaker_label(speaker: str, names: Mapping[str, str], chars: int = NAME_CHARS) -> str:
    """Return a speaker's display name for a line of ours, of which no name can be more than a part."""
    return clip(inert(display_name(speaker, names)), chars)


@at_sight(4096)
def render_entry(entry: Entry, names: Mapping[str, str]) -> WireMessage:
    """Return an entry as a message in the third person, under its speaker's name and its id.

    Whatever in its words looks like a label, a heading or a mark of a chat template is quoted. A window's
    messages are rendered several times a turn.
    """
    label = f"{display_name(entry['speaker'], names)} [{entry['id']}]:"
    said = frames_quoted(entry["content"], frozenset((*names.keys(), *names.values(), *PEOPLE.values())))
    return {"role": "user", "name": entry["speaker"], "content": f"{label}\n{said}"}


@at_sight(4096)
def entry_tokens(entry: Entry, names: Mapping[str, str], count: TokenCounter) -> int:
    """Return what an entry costs as it is rendered."""
    return message_tokens(render_entry(entry, names), count)


def cut_message(message: WireMessage, max_tokens: int, count: TokenCounter) -> WireMessage:
    """Return a message within `max_tokens` as the chat formula counts it, cut in its middle if need be."""
    overhead = message_tokens(message, count, content=0)
    return {**message, "content": cut_middle(message["content"], max(1, max_tokens - overhead), count)}
