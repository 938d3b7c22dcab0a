"""`summarize`: brings the summaries up to date: of what left the window, and of debaters' perspectives.

All perspectives that are due are summarised at the same time, each on its debater's own model.
"""

from __future__ import annotations

from collections.abc import Sequence

from moot.nodes.calls import side_by_side
from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import Body, Emit, errors_update
from moot.nodes.judging.docket import outgrows
from moot.nodes.memory.perspective import due_debaters, perspective_summary
from moot.nodes.memory.summarizers.drafting import FRAME_TOKENS, draft_summary, make_summary, version_of
from moot.nodes.memory.summarizers.rule_based import RuleBased
from moot.nodes.memory.summarizers.summarizer import SummaryRequest
from moot.nodes.memory.window import entries_to_cover
from moot.nodes.protocols.protocol import Consult, End
from moot.nodes.protocols.protocol_table import next_step, protocol_named
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, kind_of


def summarize(state: ConversationState, context: NodeContext) -> Body:
    """Fold what left the window into the rolling summary, and make the perspective summaries that are due."""
    update = yield from _roll(state, context)
    due = perspectives_due(state)
    if not due:
        return update
    config, now = frozen_config(state), context.env.clock()
    count = context.env.count_for(config)
    made = yield from side_by_side([perspective_summary(state, config, each, count, now) for each in due])
    versions = [new.summary for new in made if new.summary]
    for version in versions:
        told = {key: version[key] for key in ("kind", "owner", "version", "method")}
        yield Emit({"event": "summary", **told})
    failures = [f"{new.owner}: {new.failure}" for new in made if new.failure]
    errors = errors_update(state, "summarize", failures).get("errors", ())
    return {
        **update,
        "perspective_summaries": {new.owner: new.summary for new in made},
        "summary_versions": [*update.get("summary_versions", ()), *map(version_of, versions)],
        "errors": [*update.get("errors", ()), *errors],
    }


def perspectives_due(state: ConversationState) -> list[str]:
    """Return whose perspectives are to be summarised, as the next step begins another round."""
    config = frozen_config(state)
    if not protocol_named(config.protocol).perspectives or not state.get("step"):
        return []
    step = next_step(state, config)
    if isinstance(step, End | Consult) or step["round"] <= state["step"]["round"]:
        return []
    return due_debaters(state, config)


def entries_to_fold(state: ConversationState) -> Sequence[Entry]:
    """Return what is to be folded into the rolling summary: nothing where no view and no judge will show it.

    A judge is shown a summary where what was argued has outgrown its prompt; the views of speakers only while
    somebody is still to speak, for which only a summary that costs nothing is made in advance.
    """
    entries, config = entries_to_cover(state), frozen_config(state)
    if not entries:
        return []
    protocol, memory = protocol_named(config.protocol), config.memory
    free = memory.summarizer == RuleBased.name or not state.get("step")
    if protocol.shows_summary and (free or not isinstance(next_step(state, config), End)):
        return entries
    judged = config.judge.enabled and protocol.brief.judged and protocol.judge_reads_summary
    sides = [debater.id for debater in config.debaters]
    long = judged and outgrows(state["full_transcript"], sides, memory.budget.total)
    return entries if long else []


def _roll(state: ConversationState, context: NodeContext) -> Body:
    """Make the next version of the rolling summary; a summariser that fails is replaced by `rule-based`.

    It is made of what is new and the last version; in the mode `fresh`, of all that has left the window.
    """
    config, entries = frozen_config(state), entries_to_fold(state)
    if not entries:
        return {}
    transcript, fresh = state["full_transcript"], config.memory.mode == "fresh"
    entries = transcript[: entries[-1]["seq"] + 1] if fresh else entries
    request = SummaryRequest(
        previous={} if fresh else state.get("rolling_summary", {}),
        entries=[entry for entry in entries if kind_of(entry).shown] or entries,  # the rules hold it
        max_tokens=config.memory.budget.summary - FRAME_TOKENS,
        topic=state["topic"],
        config=config,
        count=context.env.count_for(config),
        prompt=config.memory.summary_prompt,
        transcript=transcript,
    )
    shown = protocol_named(config.protocol).shows_summary
    method = config.memory.summarizer if shown else RuleBased.name
    draft, failure = yield from draft_summary(method, request)
    summary = make_summary(request, draft, context.env.clock(), state.get("rolling_summary", {}))
    yield Emit({"event": "summary", "version": summary["version"], "method": summary["method"]})
    errors = errors_update(state, "summarize", [failure])
    return {"rolling_summary": summary, "summary_versions": [version_of(summary)], **errors}
