"""Makes a version of a summary: runs a summariser, also a package's own, and records what came of it.

Nothing that a summariser yields, returns or raises reaches the turn.
"""

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, create_model

from moot.nodes.calls import Flow, ModelCall, Reply
from moot.nodes.memory.summarizers.points_layout import NOTICE_BELOW, SummaryPoints
from moot.nodes.memory.summarizers.rule_based import RuleBased
from moot.nodes.memory.summarizers.summarizer import JUDGE, Draft, SummaryFailed, SummaryRequest
from moot.nodes.memory.summarizers.summarizer_table import summarizer_named
from moot.nodes.text.plain import clip, plain_line
from moot.nodes.text.tokens import cut_middle, prompt_tokens
from moot.state.conversation import Summary, SummaryPoint, SummaryVersion
from moot.state.entries import tokens_of

_FIELDS: Any = {name: (type_, ...) for name, type_ in get_type_hints(Draft).items()}
_DRAFT = create_model("DraftFields", __config__=ConfigDict(strict=True), **_FIELDS)
_POINTS = TypeAdapter(SummaryPoints)
FRAME_TOKENS = 24
"""Kept free in the summary's budget for its heading and the message around it."""
_REASON_CHARS = 500


def draft_summary(method: str, request: SummaryRequest) -> Flow[tuple[Draft, str]]:
    """Draft by a method; return the draft and why another method had to make it, `""` where it had not."""
    if request.max_tokens < NOTICE_BELOW:
        method = RuleBased.name  # a notice is all there is room for: no model is paid for more
    calls = _DraftCalls(request)
    try:
        draft = check_draft((yield from calls.run(summarizer_named(method).summarize(request))))
        known = replace(
            draft,
            method=draft.method or method,
            model=draft.model or calls.model,
            provider=draft.provider or calls.provider,
            latency_s=draft.latency_s or calls.latency_s,
            tokens_used=calls.tokens,
        )
        return known, ""
    except (Exception, SystemExit) as error:  # whatever a summariser does
        failure = clip(plain_line(f"{method}: {type(error).__name__}: {error}"), _REASON_CHARS)
    made = yield from RuleBased().summarize(request)
    carried = request.previous.get("points") or {}
    kept = carried if isinstance(carried, Mapping) else {}  # what the method needs to go on where it was
    draft = replace(made, method=f"{made.method} (after {method} failed)", points={**kept, **made.points})
    return replace(draft, tokens_used=calls.tokens), failure


def check_draft(draft: Any) -> Draft:
    """Return a draft that can be stored, shown and gone on with.

    Raises:
        SummaryFailed: it is none, or says nothing.
        ValueError: some field has another type than it should, or is not JSON.
    """
    if not isinstance(draft, Draft):
        raise SummaryFailed(f"it returned {type(draft).__name__}, no Draft")
    fields = dict(vars(draft))
    _DRAFT(**fields)
    json.dumps(fields, allow_nan=False, ensure_ascii=False).encode()
    if "points" in draft.points:
        _POINTS.validate_python(draft.points, strict=True)
        if not all(point["message_ids"] for point in draft.points["points"]):
            raise SummaryFailed("a point has no message ids")
    if not draft.text.strip():
        raise SummaryFailed("the summary is empty")
    return draft


@dataclass
class _DraftCalls:
    """What one summary asks of models, what that took, and who answered."""

    request: SummaryRequest
    tokens: int = 0
    latency_s: float = 0.0
    model: str = ""
    provider: str = ""

    def run(self, flow: Any) -> Generator[Sequence[ModelCall], list[Reply], Any]:
        """Run a summariser's generator and return what it returns.

        Raises:
            SummaryFailed: it is none, or yields what cannot be asked.
        """
        if not isinstance(flow, Generator):
            raise SummaryFailed(f"`summarize` returned {type(flow).__name__}, no generator")
        most, replies = self.request.config.memory.budget.total, None
        try:
            while True:
                batch = flow.send(replies)
                if not isinstance(batch, Sequence) or not all(isinstance(call, ModelCall) for call in batch):
                    raise SummaryFailed("it yielded something else than model calls")
                for call in batch:
                    if not call.digest or prompt_tokens(call.messages, self.request.count) > most:
                        raise SummaryFailed(f"a prompt of its own has more than {most} tokens")

                replies = yield list(batch)
                self.latency_s += max((reply.latency_s for reply in replies), default=0.0)
                for reply in replies:
                    self.tokens += tokens_of(reply.usage)
                    self.model, self.provider = reply.model or self.model, reply.provider or self.provider
        except StopIteration as end:
            return end.value
        finally:
            flow.close()


def version_of(summary: Summary) -> SummaryVersion:
    """Return a summary as the list of versions keeps it: of its pool of points, those that are shown."""
    pool = summary["points"]
    shown: list[SummaryPoint] = [
        {"text": point["text"], "speaker": point["speaker"], "message_ids": point["message_ids"]}
        for point in pool.get("points", [])[: pool.get("shown", 0)]
    ]
    return {**summary, "points": shown}


def make_summary(request: SummaryRequest, draft: Draft, now: str, before: Mapping[str, Any]) -> Summary:
    """Make the version that is recorded, clamped to its budget whatever the summariser wrote.

    `before` is the version before this one, also where this one was made without it; `{}` for none.
    """
    previous: Mapping[str, Any] = request.previous
    text = cut_middle(draft.text, request.max_tokens, request.count)
    old = previous.get("text", "")
    return {
        "kind": {"": "rolling", JUDGE: "judge"}.get(request.owner, "perspective"),
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
