"""Selection of the messages for a judge's prompt, in which each side gets an equal share of the tokens."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, groupby
from typing import TYPE_CHECKING

from moot.prompts import truncation
from moot.prompts.templates import FENCE_TOKENS
from moot.state.entries import Entry, traits_of
from moot.text.tokens import common_length

if TYPE_CHECKING:
    from moot.retrieval import EvidenceIndex

MIN_MESSAGE_TOKENS = 40
"""Minimum number of tokens in a truncated message. A message with less space is left out."""
OTHERS_SHARE = 0.1
"""Maximum share of the available prompt tokens for messages of non-debaters, such as documents. It applies if
not all messages fit."""
MESSAGE_SHARE = 0.5
"""Maximum share of a debater's tokens that one message may use. A longer message is truncated in the
middle."""
MAX_PARTS = 4
"""Maximum number of parts into which the tokens for other messages are split. Other messages are those of
non-debaters. One part is the initial limit for one message. With fewer messages, there are fewer parts."""
FRAME_TOKENS = 14 + FENCE_TOKENS
"""Number of tokens that a message in a judge's prompt uses besides its content. They are 12 for role, label
and id, 2 for a longer label, and the fence lines."""


@dataclass(frozen=True)
class SelectedMessage:
    """Message selected for a judge's prompt."""

    entry: Entry
    remaining: int
    """Maximum number of prompt tokens for the message, including its role, label and id. A longer message is
    truncated in the middle."""


@dataclass(frozen=True)
class Selection:
    """Messages selected for a judge's prompt, with names not yet replaced by labels."""

    messages: tuple[SelectedMessage, ...]
    """Messages selected for the judge's prompt, in transcript order."""
    share: int | None
    """Maximum number of tokens for the messages of one debater. `None`: no limit is needed."""


def is_argued(entry: Entry, sides: Sequence[str]) -> bool:
    """Return True if a debater in `sides` argues in this entry."""
    return entry["speaker"] in sides and traits_of(entry).argues


def exceeds(entries: Iterable[Entry], sides: Sequence[str], remaining: int) -> bool:
    """Return True if the debaters' arguments exceed `remaining` tokens."""
    return any(
        tokens > remaining
        for tokens in accumulate(_estimated_cost(each) for each in entries if is_argued(each, sides))
    )


class TranscriptSelector:
    """Selector of the messages for the prompts of all judges of a debate."""

    def __init__(
        self,
        entries: Sequence[Entry],
        sides: Sequence[str],
        names: Mapping[str, str],
        evidence: Sequence[Entry] | None = None,
    ) -> None:
        """Separate the judged debaters' arguments from all other messages.

        `evidence` lists the arguments to show first. `None`: all arguments.
        """
        self.sides = sorted(set(sides))
        self._names = names
        self._costs: dict[str, int] = {}
        argued = [entry for entry in entries if is_argued(entry, sides)]
        self.argued = sum(map(_estimated_cost, argued))
        """Tokens of all arguments of the sides."""
        self._ids = frozenset(entry["id"] for entry in argued)
        self._arguments = (
            argued if evidence is None else [each for each in evidence if is_argued(each, sides)]
        )
        seen = {entry["seq"] for entry in self._arguments}
        self.earlier = [entry for entry in reversed(argued) if entry["seq"] not in seen]
        """Arguments that are not part of the evidence, the newest first. They are shown if tokens remain."""
        # Leave out the topic, which the prompt contains anyway, and messages of the program.
        self._others = [
            entry
            for entry in entries
            if not is_argued(entry, sides) and traits_of(entry).in_prompts and traits_of(entry).by != "moot"
        ]

    def measure(self, cost: Callable[[Entry], int], budget: int) -> None:
        """Replace estimated token counts of messages with exact counts.

        The arguments are one group, and the other messages are another. A group that is estimated to exceed
        `budget` keeps its estimates. `cost` returns the number of tokens of a message in the prompt.
        """
        for entries in (self._arguments, self._others):
            if sum(map(_estimated_cost, entries)) <= budget:
                self._costs |= {entry["id"]: cost(entry) for entry in entries}

    def _cost(self, entry: Entry) -> int:
        return self._costs.get(entry["id"]) or _estimated_cost(entry)

    @property
    def judged_tokens(self) -> int:
        """Return how many prompt tokens the messages to judge need in full."""
        return sum(map(self._cost, self._arguments))

    def reserved(self, remaining: int) -> int:
        """Return how many prompt tokens to reserve for transcript messages.

        The tokens are for the messages to judge, and for other messages, in full or truncated. The rest may
        be used for a summary and the claims. The result is 0 if the messages to judge do not fit.
        """
        argument_tokens, other_tokens = self.judged_tokens, sum(map(self._cost, self._others))
        if argument_tokens > remaining:
            return 0
        return argument_tokens + (
            other_tokens
            if argument_tokens + other_tokens <= remaining
            else _others_part(other_tokens, argument_tokens, remaining)
        )

    def select(self, query: str, remaining: int) -> Selection:
        """Return the messages to show to a judge, using at most `remaining` tokens.

        All arguments of the debate come before the full text of other messages. If the messages to judge do
        not fit, each side gets an equal share: its first and last message, then the messages that best match
        `query`. Tokens that a side does not use are not given to others.
        """
        argument_tokens, other_tokens = self.judged_tokens, sum(map(self._cost, self._others))
        others_limit = _others_part(other_tokens, argument_tokens, remaining)
        all_fit = argument_tokens + sum(map(self._cost, self.earlier)) + others_limit <= remaining
        if argument_tokens + other_tokens <= remaining and not all_fit:
            earlier_messages, _ = self._with_earlier(remaining - argument_tokens - other_tokens)
            entries = (*self._arguments, *self._others)
            messages = [*(SelectedMessage(entry, remaining) for entry in entries), *earlier_messages]
            return Selection(_in_order(messages), None)
        if remaining < MIN_MESSAGE_TOKENS or not self.sides:
            return Selection((), 0)
        if argument_tokens <= remaining:
            earlier_messages, spare_tokens = self._with_earlier(remaining - argument_tokens - others_limit)
            messages = [*(SelectedMessage(entry, remaining) for entry in self._arguments), *earlier_messages]
            return self._with_others(messages, others_limit + spare_tokens, None)
        share = (remaining - others_limit) // len(self.sides)
        return self._with_others(self._shares(query, share), others_limit, share)

    def _with_earlier(self, remaining: int) -> tuple[list[SelectedMessage], int]:
        """Return the additional arguments that fit in `remaining` tokens.

        Also return the number of tokens left over. Additional arguments are those that are not part of the
        evidence. The messages of the newest steps come first. If those of one step do not fit, all of them
        are truncated to the same length, so that no side is shown whole and another not at all.
        """
        messages: list[SelectedMessage] = []
        for _, group in groupby(self.earlier, key=lambda entry: (entry["round"], entry["phase"])):
            entries = list(group)
            costs = [self._cost(entry) for entry in entries]
            limits = common_length(costs, remaining)
            if limits == costs:  # costs are estimates, so a message that fits is not truncated to its cost
                messages += [SelectedMessage(entry, remaining) for entry in entries]
                remaining -= sum(costs)
                continue
            if max(limits) >= MIN_MESSAGE_TOKENS:
                messages += [SelectedMessage(*pair) for pair in zip(entries, limits, strict=True)]
                remaining -= sum(limits)
            break
        return messages, remaining

    def is_whole(self, shown_ids: Iterable[str]) -> bool:
        """Return True if all messages in which debaters argue are shown in full: they are in `shown_ids`."""
        return self._ids <= frozenset(shown_ids)

    def unselected(self, shown_ids: Iterable[str]) -> list[Entry]:
        """Return all candidate messages whose ids are not in `shown_ids`."""
        excluded_ids = frozenset(shown_ids)
        material = [*self._arguments, *self._others, *self.earlier]
        return [entry for entry in material if entry["id"] not in excluded_ids]

    def _shares(self, query: str, share: int) -> list[SelectedMessage]:
        from moot.retrieval import select_evidence

        max_tokens = max(int(share * MESSAGE_SHARE), min(share, MIN_MESSAGE_TOKENS))
        index = copy(self._index)  # limit the cost of each message to that of its truncated form
        index.tokens = array("q", (min(tokens, max_tokens) for tokens in index.tokens))
        seqs_by_speaker: dict[str, list[int]] = {}
        for entry in self._arguments:
            seqs_by_speaker.setdefault(entry["speaker"], []).append(entry["seq"])
        evidence = select_evidence(
            index,
            query,
            budget=share * len(self.sides),
            costs={entry["seq"]: min(self._cost(entry), max_tokens) for entry in self._arguments},
            must_keep=[seq for seqs in seqs_by_speaker.values() for seq in (seqs[0], seqs[-1])],
            speakers=self.sides,
        )
        selected_seqs = frozenset(evidence.seqs)
        return [
            SelectedMessage(entry, max_tokens) for entry in self._arguments if entry["seq"] in selected_seqs
        ]

    @cached_property
    def _index(self) -> EvidenceIndex:
        from moot.retrieval import EvidenceIndex

        return EvidenceIndex(self._arguments, names=self._names)

    def _with_others(self, messages: list[SelectedMessage], remaining: int, share: int | None) -> Selection:
        """Add messages of non-debaters to the given messages.

        The added messages use at most `remaining` tokens. The result is the selection for the prompt.
        Documents and messages that were replied to come first.
        """
        answered_seqs = {argument.entry["seq"] - 1 for argument in messages}
        ranked = sorted(
            self._others,
            key=lambda entry: (
                traits_of(entry).user_input != "document",
                entry["seq"] not in answered_seqs,
                -entry["seq"],
            ),
        )
        max_tokens = max(MIN_MESSAGE_TOKENS, remaining // max(1, min(len(ranked), MAX_PARTS)))
        other_messages = []
        for entry in ranked:
            cost = min(self._cost(entry), max_tokens)
            if cost <= remaining:
                other_messages.append(SelectedMessage(entry, cost))
                remaining -= cost
            if remaining < MIN_MESSAGE_TOKENS:
                break
        for message in other_messages:  # tokens that shorter messages leave restore truncated messages
            extra_tokens = min(self._cost(message.entry) - message.remaining, remaining)
            messages.append(replace(message, remaining=message.remaining + extra_tokens))
            remaining -= extra_tokens
        return Selection(_in_order(messages), share)


def _others_part(other_tokens: int, argument_tokens: int, remaining: int) -> int:
    """Return how many tokens of a judge's prompt other messages may use.

    Other messages are those of non-debaters. The limit applies if the prompt cannot hold all messages.
    Arguments that need `argument_tokens` tokens come first if they fit in full.
    """
    limit = min(other_tokens, int(remaining * OTHERS_SHARE))
    return min(limit, remaining - argument_tokens) if argument_tokens <= remaining else limit


def _estimated_cost(entry: Entry) -> int:
    return entry["tokens"] + FRAME_TOKENS + (truncation.TIME_TOKENS if entry.get("dated") else 0)


def _in_order(messages: Iterable[SelectedMessage]) -> tuple[SelectedMessage, ...]:
    return tuple(sorted(messages, key=lambda message: message.entry["seq"]))


def fair_shares(costs: Mapping[str, int], share: int) -> dict[str, int]:
    """Divide `share` tokens among a debater's messages.

    Return the limit for each message. The longest message is truncated first. A message with fewer than
    `MIN_MESSAGE_TOKENS` left is dropped.
    """
    limits = dict(costs)
    while limits and (excess := sum(limits.values()) - share) > 0:
        longest = max(limits, key=lambda key: (limits[key], key))
        limit = limits[longest] - excess
        if limit >= MIN_MESSAGE_TOKENS:
            limits[longest] = limit
        else:
            del limits[longest]
    return limits
