"""`summarize`: folds what left the window into the rolling summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import Body, Emit
from moot.nodes.memory.coverage import uncovered
from moot.nodes.memory.embeddings import embeddings_of
from moot.nodes.memory.recall import Memories
from moot.nodes.memory.summarizers.drafting import draft_summary
from moot.nodes.memory.summarizers.summarizer import Draft, SummaryRequest
from moot.nodes.text.tokens import cut_middle
from moot.state.config import DebateConfig
from moot.state.config.frozen import frozen_config
from moot.state.conversation import ConversationState, Summary, SummaryPoint, SummaryVersion
from moot.state.entries import Entry, kind_of


def summarize(state: ConversationState, context: NodeContext) -> Body:
    """Make the next version of the rolling summary; a summariser that fails is replaced by `rule-based`."""
    config = frozen_config(state)
    entries = uncovered(state)
    if not entries:
        return {}
    request = _request(state, context, config, entries)
    draft, failure = yield from draft_summary(config.memory.summarizer, request)
    before = state.get("rolling_summary") or {}
    summary = make_summary("rolling", request, draft, context.env.clock(), before)
    yield Emit({"event": "summary", "version": summary["version"], "method": summary["method"]})
    update: dict[str, Any] = {"rolling_summary": summary, "summary_versions": [version_of(summary)]}
    if failure:
        update["errors"] = [
            {"step": (state.get("step") or {}).get("no", 0), "node": "summarize", "error": failure}
        ]
    return update


def _request(
    state: ConversationState, context: NodeContext, config: DebateConfig, entries: Sequence[Entry]
) -> SummaryRequest:
    """Return what is to be summarised: what is new, or in the mode `fresh` all that has left the window."""
    transcript = state["full_transcript"]
    fresh = config.memory.mode == "fresh"
    entries = transcript[: entries[-1]["seq"] + 1] if fresh else entries
    embeddings = embeddings_of(config, context.env.embeddings)
    return SummaryRequest(
        previous={} if fresh else state.get("rolling_summary") or {},
        entries=[entry for entry in entries if kind_of(entry).shown] or entries,  # the rules hold it
        max_tokens=config.memory.budget.summary - FRAME_TOKENS,
        topic=state["topic"],
        config=config,
        count=context.env.count_for(config),
        prompt=config.memory.summary_prompt,
        transcript=transcript,
        memories=Memories(context.env.indexes, context.debate, embeddings),
    )


FRAME_TOKENS = 24
"""Kept free in the summary's budget for its heading and the message around it."""


def version_of(summary: Summary) -> SummaryVersion:
    """Return a summary as the list of versions keeps it: of its pool of points, those that are shown."""
    pool = summary["points"]
    shown: list[SummaryPoint] = [
        {"text": point["text"], "speaker": point["speaker"], "message_ids": point["message_ids"]}
        for point in pool.get("points", [])[: pool.get("shown", 0)]
    ]
    return {**summary, "points": shown}


def make_summary(
    kind: str, request: SummaryRequest, draft: Draft, now: str, before: Mapping[str, Any]
) -> Summary:
    """Make the version that is recorded, clamped to its budget whatever the summariser wrote.

    Args:
        kind: `rolling`, `perspective` or `judge`.
        request: what was to be summarised.
        draft: what was made of it.
        now: the time.
        before: the version before this one, also where it was made without it; `{}` for none.
    """
    previous: Mapping[str, Any] = request.previous
    text = cut_middle(draft.text, request.max_tokens, request.count)
    old = previous.get("text", "")
    return {
        "kind": kind,
        "owner": request.owner,
        "version": int(before.get("version", 0)) + 1,
        "text": text,
        "points": draft.points,
        "covers_from_seq": min(
            [seq for seq in (previous.get("covers_from_seq"), request.entries[0]["seq"]) if seq is not None]
        ),
        "covers_through_seq": request.entries[-1]["seq"],
        "messages": int(previous.get("messages", 0)) + len(request.entries),
        "before_tokens": request.count(old) + sum(entry["tokens"] for entry in request.entries),
        "after_tokens": request.count(text),
        "before_chars": len(old) + sum(len(entry["content"]) for entry in request.entries),
        "after_chars": len(text),
        "method": draft.method,
        "model": draft.model,
        "provider": draft.provider,
        "temperature": draft.temperature,
        "latency_s": draft.latency_s,
        "tokens_used": int(before.get("tokens_used", 0)) + draft.tokens_used,
        "created_at": before.get("created_at") or now,
        "updated_at": now,
    }
