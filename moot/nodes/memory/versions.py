"""Versions of summaries: what is recorded of one, whoever made it."""

from collections.abc import Mapping
from typing import Any

from moot.nodes.memory.summarizers.summarizer import Draft, SummaryRequest
from moot.nodes.text.tokens import cut_middle
from moot.state.conversation import Summary, SummaryPoint, SummaryVersion

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
