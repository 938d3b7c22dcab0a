"""`summarize` node: updates the rolling summary and the perspective summaries.

All perspective summaries that are due are made in parallel, each by its debater's own model.
"""

from collections.abc import Sequence
from functools import partial

from moot.calls.effects import NodeBody, errors_update
from moot.calls.model_calls import gather_calls
from moot.judging.transcript_selection import exceeds
from moot.memory.background import select_background
from moot.memory.perspectives import due_debaters, perspective_summary
from moot.memory.summarizers import drafting, registry, summarizer
from moot.memory.summarizers.edits import last_version
from moot.memory.window import entries_to_cover, window_start
from moot.protocols.registry import next_step
from moot.protocols.schedule import ConsultModels, End
from moot.runtime.context import NodeContext
from moot.state.entries import Entry, traits_of


def summarize(context: NodeContext) -> NodeBody:
    """Update the rolling summary and each debater's perspective summary."""
    update = yield from _update_rolling_summary(context)
    now, due = context.env.clock(), perspectives_due(context)
    if not due:
        return update
    results = yield from gather_calls([perspective_summary(context, each, now) for each in due])
    versions = [result.summary for result in results if result.summary]
    for result in results:
        if result.summary or result.failure:
            yield drafting.summary_event(result.summary, result.owner, result.failure)
    failures = [f"{result.owner}: {result.failure}" for result in results if result.failure]
    errors = errors_update(context.state, "summarize", failures).get("errors", ())
    return {
        **update,
        "perspective_summaries": {result.owner: result.summary for result in results},
        "summary_versions": [*update.get("summary_versions", ()), *map(drafting.version_of, versions)],
        "errors": [*update.get("errors", ()), *errors],
    }


def perspectives_due(context: NodeContext) -> list[str]:
    """Return the ids of the debaters who need a new perspective summary now."""
    state, protocol = context.state, context.protocol
    past_tokens = next((row.past_tokens for row in protocol.phases.values() if row.past_tokens), None)
    if past_tokens is None or not state.get("step"):
        return []
    step = next_step(state, context.config)
    if isinstance(step, End | ConsultModels) or step["round"] <= state["step"]["round"]:
        return []
    return due_debaters(context, partial(past_tokens, context))


def entries_to_fold(context: NodeContext, leaving: int = -1) -> Sequence[Entry]:
    """Return the messages to add to the rolling summary now.

    A judge reads the summary if its prompt does not show all messages whole. Speakers read it while turns are
    left; after the last turn only a free summary is updated. Messages up to the `seq` `leaving` are about to
    leave the window, -1 for none.
    """
    state, config, protocol = context.state, context.config, context.protocol
    entries = entries_to_cover(state, leaving)
    if not entries:
        return []
    is_free = not registry.asks_model(config.memory.summarizer) or not state.get("step")
    if protocol.shows_summary and (is_free or not isinstance(next_step(state, config), End)):
        return entries
    is_judged = config.judge.enabled and protocol.judge_spec.judged and protocol.judge_spec.reads_summary
    if not is_judged or judge_sees_everything(context):
        return []
    return entries


def judge_sees_everything(context: NodeContext) -> bool:
    """Return True if the judges' prompts show all messages in full, without a summary."""
    transcript, config, total = context.state["full_transcript"], context.config, context.judging.budget
    sides = [debater.id for debater in config.debaters]
    # Half of the budget always holds the messages of a shorter debate, beside a verdict's schema.
    if not exceeds(transcript, sides, total // 2):
        return True
    return not exceeds(transcript, sides, total) and context.judging.shows_whole


def _update_rolling_summary(context: NodeContext) -> NodeBody:
    """Write the next version of the rolling summary.

    If the summarizer fails, `rule-based` is used instead. It covers the previous version and the new
    messages; with `memory.mode: fresh`, all messages that left the window.
    """
    state, config, leaving = context.state, context.config, context.leaving_through
    entries = entries_to_fold(context, leaving)
    if not entries:
        return {}
    background = select_background(context, start=max(window_start(state), leaving + 1))
    transcript, current = state["full_transcript"], state.get("rolling_summary", {})
    previous = drafting.base_version(current, fresh=config.memory.mode == "fresh")
    entries = transcript[previous.get("covers_through_seq", -1) + 1 : entries[-1]["seq"] + 1]
    request = summarizer.SummaryRequest(
        previous=previous,
        entries=[entry for entry in entries if traits_of(entry).in_prompts]
        or entries,  # only the topic, which the rules already show
        max_tokens=config.memory.budget.summary - drafting.FRAME_TOKENS,
        topic=state["topic"],
        config=config,
        count=context.count,
        prompt=config.memory.summary_prompt,
        transcript=transcript,
        shown=background.whole_ids,
    )
    is_shown = context.protocol.shows_summary
    method = config.memory.summarizer if is_shown else registry.FALLBACK_SUMMARIZER
    draft, failure = yield from drafting.draft_summary(method, request)
    last = last_version(state, "rolling", "", current)
    summary = drafting.make_summary(request, draft, context.env.clock(), last, failure)
    yield drafting.summary_event(summary, "", failure)
    errors = errors_update(state, "summarize", [failure])
    return {"rolling_summary": summary, "summary_versions": [drafting.version_of(summary)], **errors}
