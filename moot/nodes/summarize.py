"""`summarize` node: updates the rolling summary and the perspective summaries.

All perspective summaries that are due are made in parallel, each by its debater's own model.
"""

from collections.abc import Sequence

from moot.calls.effects import NodeBody, errors_update
from moot.calls.model_calls import gather_calls
from moot.config.debate_config import frozen_config
from moot.judging.judge_prompt import exceeds
from moot.judging.panel import shows_whole
from moot.memory.background import select_background
from moot.memory.perspectives import due_debaters, perspective_summary
from moot.memory.summarizers import drafting
from moot.memory.summarizers.registry import FALLBACK_SUMMARIZER, asks_model
from moot.memory.summarizers.summarizer import SummaryRequest
from moot.memory.window import entries_to_cover, window_start
from moot.nodes.trim import leaving_through
from moot.protocols.base import ConsultModels, End
from moot.protocols.registry import next_step, protocol_named
from moot.runtime.environment import NodeContext
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, traits_of
from moot.text.tokens import TokenCounter


def summarize(state: ConversationState, context: NodeContext) -> NodeBody:
    """Update the rolling summary and each debater's perspective summary."""
    update = yield from _update_rolling_summary(state, context)
    config, now = frozen_config(state), context.env.clock()
    count = context.env.token_counter_for(config)
    due = perspectives_due(state, count)
    if not due:
        return update
    results = yield from gather_calls([perspective_summary(state, config, each, count, now) for each in due])
    versions = [result.summary for result in results if result.summary]
    for result in results:
        if result.summary or result.failure:
            yield drafting.summary_event(result.summary, result.owner, result.failure)
    failures = [f"{result.owner}: {result.failure}" for result in results if result.failure]
    errors = errors_update(state, "summarize", failures).get("errors", ())
    return {
        **update,
        "perspective_summaries": {result.owner: result.summary for result in results},
        "summary_versions": [*update.get("summary_versions", ()), *map(drafting.version_of, versions)],
        "errors": [*update.get("errors", ()), *errors],
    }


def perspectives_due(state: ConversationState, count: TokenCounter) -> list[str]:
    """Return the ids of the debaters who need a new perspective summary now."""
    config = frozen_config(state)
    protocol = protocol_named(config.protocol)
    if not protocol.perspectives or not state.get("step"):
        return []
    step = next_step(state, config)
    if isinstance(step, End | ConsultModels) or step["round"] <= state["step"]["round"]:
        return []

    def remaining_tokens(debater: str) -> int:
        return protocol.perspective_room(state, config, debater, count)

    return due_debaters(state, config, remaining_tokens)


def entries_to_fold(state: ConversationState, count: TokenCounter, leaving: int = -1) -> Sequence[Entry]:
    """Return the messages to add to the rolling summary now.

    A judge reads the summary if its prompt does not show all messages whole. Speakers read it while turns are
    left; after the last turn only a free summary is updated. Messages up to the `seq` `leaving` are about to
    leave the window, -1 for none.
    """
    entries, config = entries_to_cover(state, leaving), frozen_config(state)
    if not entries:
        return []
    protocol, memory = protocol_named(config.protocol), config.memory
    is_free = not asks_model(memory.summarizer) or not state.get("step")
    if protocol.shows_summary and (is_free or not isinstance(next_step(state, config), End)):
        return entries
    is_judged = config.judge.enabled and protocol.judge_spec.judged and protocol.judge_reads_summary
    if not is_judged or judge_sees_everything(state, count):
        return []
    return entries


def judge_sees_everything(state: ConversationState, count: TokenCounter) -> bool:
    """Return True if the judges' prompts show all messages in full, without a summary."""
    config = frozen_config(state)
    protocol, total = protocol_named(config.protocol), config.memory.budget.total
    sides = [debater.id for debater in config.debaters]
    # Half of the budget always holds the messages of a shorter debate, beside a verdict's schema.
    if not exceeds(state["full_transcript"], sides, total // 2):
        return True
    return not exceeds(state["full_transcript"], sides, total) and shows_whole(
        state, config, count, protocol.judged_as(state), protocol.judged_entries(state)
    )


def _update_rolling_summary(state: ConversationState, context: NodeContext) -> NodeBody:
    """Write the next version of the rolling summary.

    If the summarizer fails, `rule-based` is used instead. It covers the previous version and the new
    messages; with `memory.mode: fresh`, all messages that left the window.
    """
    config = frozen_config(state)
    count = context.env.token_counter_for(config)
    leaving = leaving_through(state, context.env)
    entries = entries_to_fold(state, count, leaving)
    if not entries:
        return {}
    background = select_background(state, config, count, start=max(window_start(state), leaving + 1))
    transcript, is_fresh = state["full_transcript"], config.memory.mode == "fresh"
    entries = transcript[: entries[-1]["seq"] + 1] if is_fresh else entries
    request = SummaryRequest(
        previous={} if is_fresh else state.get("rolling_summary", {}),
        entries=[entry for entry in entries if traits_of(entry).in_prompts]
        or entries,  # only the topic, which the rules already show
        max_tokens=config.memory.budget.summary - drafting.FRAME_TOKENS,
        topic=state["topic"],
        config=config,
        count=count,
        prompt=config.memory.summary_prompt,
        transcript=transcript,
        shown=background.whole_ids,
    )
    is_shown = protocol_named(config.protocol).shows_summary
    method = config.memory.summarizer if is_shown else FALLBACK_SUMMARIZER
    draft, failure = yield from drafting.draft_summary(method, request)
    summary = drafting.make_summary(
        request, draft, context.env.clock(), state.get("rolling_summary", {}), failure
    )
    yield drafting.summary_event(summary, "", failure)
    errors = errors_update(state, "summarize", [failure])
    return {"rolling_summary": summary, "summary_versions": [drafting.version_of(summary)], **errors}
