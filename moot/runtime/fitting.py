"""Prompts that fit the context and the tokenizer of a debate's models.

The budget of a node's prompts follows what the models have shown so far: the size of their contexts, and how
many tokens they count where Moot counts one. These facts are part of the state, so a node that is resumed,
replayed or reconstructed builds the same prompts.
"""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from moot.calls import effects, model_calls
from moot.config import DebateConfig
from moot.config.memory_config import MINIMUM, Budget
from moot.runtime.context import NodeContext, NodeFunction
from moot.state.entries import ModelFacts, memoize_by_identity
from moot.state.reducers import merge_facts

T = TypeVar("T")
Flow = Generator[Any, Any, T]
"""Generator of a node: yields model calls and other effects, and is sent their results."""


@memoize_by_identity(64)  # the same object for equal inputs keeps caches of prompt blocks valid
def fitted_config(config: DebateConfig, facts: Mapping[str, ModelFacts], node: str) -> DebateConfig:
    """Return a configuration whose prompt budget fits the models that a node calls."""
    names, reply = _calls_of(config, node)
    known = [facts.get(name, {}) for name in names]
    limits = [
        size
        for name, each in zip(names, known, strict=True)
        if (size := min(filter(None, (each.get("limit"), config.settings(name).context_size)), default=0))
    ]
    ratio, budget = max((each.get("ratio", 1.0) for each in known), default=1.0), config.memory.budget
    limit = min(limits, default=0)
    # In a small context, a reply may take at most half.
    largest = min(budget.total, limit - min(reply, limit // 2)) if limit else budget.total
    total = max(MINIMUM["total"], int(largest / ratio))
    if total >= budget.total:
        return config
    share = total / budget.total
    parts = {name: max(MINIMUM[name], int(getattr(budget, name) * share)) for name in ("system", "summary")}
    smaller = Budget(
        **{
            **budget.model_dump(),
            **parts,
            "total": total,
            "messages": max(
                MINIMUM["messages"], min(int(budget.messages * share), total - sum(parts.values()))
            ),
            "reply": min(budget.reply, limit // 2) if limit else budget.reply,
            "turn_suffix": max(50, min(budget.turn_suffix, int(budget.turn_suffix * share), total // 2)),
        }
    )
    return config.model_copy(update={"memory": config.memory.model_copy(update={"budget": smaller})})


def _calls_of(config: DebateConfig, node: str) -> tuple[list[str], int]:
    """Return the models that a node calls, and the tokens that it reserves for a reply."""
    default = [config.model, *config.fallbacks]
    if node in ("judge", "ask"):
        panel = [judge.model or config.judge.model or config.model for judge in config.judge.panel]
        return [config.judge.model or config.model, *panel, *config.fallbacks], config.judge.reply
    if node in ("extract", "reflect", "read_topic"):
        return [config.blackboard.model or config.model, *config.fallbacks], config.blackboard.reply
    debaters = [config.model_of(debater) for debater in config.debaters if not debater.is_human]
    fallbacks = [name for debater in config.debaters for name in debater.fallbacks or ()]
    summary = [config.memory.summary_model] if config.memory.summary_model else []
    return [*default, *debaters, *fallbacks, *summary], config.memory.budget.reply


def fitted_body(node: str, body: NodeFunction) -> NodeFunction:
    """Return a node function that builds its prompts within the budget that fits its models.

    If a server refuses a prompt as too long, the node runs again with what the error shows, up to
    `MAX_SHORTENINGS` times. Replies to unchanged requests are used again. Debaters' turns shorten their own
    prompts.
    """

    def run(context: NodeContext) -> effects.NodeBody:
        def fitted(facts: Mapping[str, ModelFacts]) -> effects.NodeBody:
            return body(fitted_context(context, facts, node))

        return (yield from until_prompts_fit(fitted, context.state.get("model_facts") or {}, ("turn", "ask")))

    return run


def fitted_context(context: NodeContext, facts: Mapping[str, ModelFacts], node: str) -> NodeContext:
    """Return a node's context with a prompt budget that fits the models that the node calls."""
    config = fitted_config(context.config, facts, node)
    return context if config is context.config else replace(context, config=config)


def until_prompts_fit(
    make: Callable[[Mapping[str, ModelFacts]], Flow[T]],
    facts: Mapping[str, ModelFacts],
    leave: Collection[model_calls.Purpose] = (),
) -> Flow[T]:
    """Run the generator that `make` returns, again with new facts if a prompt is too long.

    Calls for the purposes `leave` shorten their own prompts.
    """
    known: dict[str, list[model_calls.Reply]] = {}
    for attempt in range(model_calls.MAX_SHORTENINGS + 1):
        flow, outcome, used = make(facts), None, dict.fromkeys(known, 0)
        learned: list[Mapping[str, ModelFacts]] = []
        try:
            while not learned:
                effect = flow.send(outcome)
                if not isinstance(effect, Sequence):
                    outcome = yield effect
                    continue
                replies: list[model_calls.Reply | None] = [_take(known, used, call.digest) for call in effect]
                missing = [place for place, reply in enumerate(replies) if reply is None]
                for place, reply in zip(
                    missing, (yield [effect[p] for p in missing]) if missing else [], strict=True
                ):
                    replies[place] = reply
                    if reply.ok:
                        known.setdefault(effect[place].digest, []).append(reply)
                        used[effect[place].digest] = len(known[effect[place].digest])
                outcome = replies
                if attempt < model_calls.MAX_SHORTENINGS:
                    pairs = zip(effect, replies, strict=True)
                    learned = [
                        reply.facts
                        for call, reply in pairs
                        if reply and reply.excess and call.purpose not in leave
                    ]
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            flow.close()
        facts = merge_facts(facts, learned)
    raise AssertionError("the last attempt always ends")


def _take(
    known: Mapping[str, Sequence[model_calls.Reply]], used: dict[str, int], digest: str
) -> model_calls.Reply | None:
    place = used.get(digest, 0)
    if place >= len(known.get(digest, ())):
        return None
    used[digest] = place + 1
    return known[digest][place]
