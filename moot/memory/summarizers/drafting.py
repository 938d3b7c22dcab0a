"""Drafting of a summary version: runs a summarizer, checks its draft and records the result.

Errors of a summarizer never fail the turn, whatever it yields, returns or raises.
"""

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, create_model

from moot.calls.effects import Emit
from moot.calls.model_calls import CallGenerator, ModelCall, Reply
from moot.memory.summarizers.registry import FALLBACK_SUMMARIZER, summarizer_named
from moot.memory.summarizers.rule_based import NOTICE_BELOW, SummaryPoints
from moot.memory.summarizers.summarizer import JUDGE, Draft, SummaryFailed, SummaryRequest
from moot.prompts.templates import FENCE_TOKENS
from moot.prompts.truncation import LABEL_TOKENS
from moot.state.conversation import Summary, SummaryPoint, SummaryVersion
from moot.state.entries import JsonMapping, JsonObject, tokens_of
from moot.text.plain_text import clip, plain_line
from moot.text.tokens import prompt_tokens, truncate_middle

_FIELDS: Any = {name: (type_, ...) for name, type_ in get_type_hints(Draft).items()}
_DRAFT = create_model("DraftFields", __config__=ConfigDict(strict=True), **_FIELDS)
_POINTS = TypeAdapter(SummaryPoints)
FRAME_TOKENS = 24 + FENCE_TOKENS
"""Number of tokens that a summary reserves for its frame. The frame consists of the heading, the delimiter
lines and the message format."""
_REASON_CHARS = 500
EDITED = "edited"
"""Beginning of the `method` of a summary that a person edited, and of its later versions. Also the key of the
edit in their `points`: the fields `text`, `covers_from_seq`, `covers_through_seq` and `messages`."""
EDIT_SHARE = 0.5
"""Maximum share of a summary's tokens for an edited text, so that later messages have the other half."""


def base_version(summary: JsonMapping, *, fresh: bool) -> JsonMapping:
    """Return the version on which the next one builds: with `fresh` a person's edit, or `{}`."""
    points = summary.get("points")
    edit = points.get(EDITED) if isinstance(points, Mapping) else None
    if not fresh:
        return summary
    return {**edit, "points": {EDITED: edit}} if edit else {}


def draft_summary(method: str, request: SummaryRequest) -> CallGenerator[tuple[Draft, str]]:
    """Draft a summary. Return also why the method failed for the summary or a part of it, or `""`.

    The text of a person's edit stays at the beginning. The method summarizes the messages after it.
    """
    if request.max_tokens < NOTICE_BELOW:
        method = FALLBACK_SUMMARIZER  # no model is called if only a notice fits
    request = replace(request, max_tokens=_token_limit(request))
    edit = base_version(request.previous, fresh=True)
    if not edit:
        return (yield from _draft(method, request))
    beginning = truncate_middle(edit["text"], int(request.max_tokens * EDIT_SHARE), request.count) + "\n\n"
    rest = {key: value for key, value in request.previous["points"].items() if key != EDITED}
    through = edit["covers_through_seq"]
    later_request = replace(
        request,
        previous={**request.previous, "points": rest},
        transcript=[entry for entry in request.transcript if entry["seq"] > through],
        max_tokens=request.max_tokens - request.count(beginning),
    )
    draft, failure = yield from _draft(method, later_request)
    points = {**draft.points, **edit["points"]}
    method = f"{EDITED}, then {draft.method}"
    return replace(draft, text=beginning + draft.text, method=method, points=points), failure


def _draft(method: str, request: SummaryRequest) -> CallGenerator[tuple[Draft, str]]:
    calls = _DraftCalls(request)
    try:
        draft = check_draft((yield from calls.run(summarizer_named(method).summarize(request))))
        full_draft = replace(
            draft,
            method=draft.method or method,
            model=draft.model or calls.model,
            provider=draft.provider or calls.provider,
            latency_s=draft.latency_s or calls.latency_s,
            tokens_used=calls.tokens,
        )
        return full_draft, draft.failure and _reason(method, SummaryFailed(draft.failure))
    except (Exception, SystemExit) as error:  # a summarizer may raise any exception
        failure = _reason(method, error)
        new_points = error.points if type(error) is SummaryFailed else {}
    fallback = yield from summarizer_named(FALLBACK_SUMMARIZER).summarize(request)
    previous_points = request.previous.get("points") or {}
    # data that the method stores for its next version
    kept_points = previous_points if isinstance(previous_points, Mapping) else {}
    draft = replace(
        fallback,
        method=f"{fallback.method} (after {method} failed)",
        points={**kept_points, **new_points, **fallback.points},
    )
    return replace(draft, tokens_used=calls.tokens), failure


def _reason(method: str, error: BaseException) -> str:
    return clip(plain_line(f"{method}: {type(error).__name__}: {error}"), _REASON_CHARS)


def _token_limit(request: SummaryRequest) -> int:
    """Return the maximum number of tokens in a summary, which is never longer than what it covers."""
    covered_tokens = 0
    for entry in request.iterate_past():
        covered_tokens += entry["tokens"] + LABEL_TOKENS
        if covered_tokens >= request.max_tokens:
            break  # in a long debate, the other messages change nothing
    return min(request.max_tokens, max(covered_tokens, _before_tokens(request)))


def _before_tokens(request: SummaryRequest) -> int:
    """Return the number of tokens of the previous version and the new messages, as prompts show them."""
    new_tokens = sum(entry["tokens"] + LABEL_TOKENS for entry in request.entries)
    return request.count(str(request.previous.get("text", ""))) + new_tokens


def check_draft(draft: Any) -> Draft:
    """Check that a summarizer's draft can be stored and shown, and return the draft.

    Raises:
        SummaryFailed: the value is no `Draft`, or its text is empty.
        ValueError: a field has a wrong type, or contains NaN, infinity or a lone surrogate.
        TypeError: a field contains a value that is not JSON.
    """
    if not isinstance(draft, Draft):
        raise SummaryFailed(
            f"the summarizer returned a value of type {type(draft).__name__} instead of Draft"
        )
    fields = dict(vars(draft))
    _DRAFT(**fields)
    json.dumps(fields, allow_nan=False, ensure_ascii=False).encode()
    if "points" in draft.points:
        _POINTS.validate_python(draft.points, strict=True)
        if not all(point["message_ids"] for point in draft.points["points"]):
            raise SummaryFailed("a point in the summary cites no message ids")
    if not draft.text.strip():
        raise SummaryFailed("the summary is empty")
    return draft


@dataclass
class _DraftCalls:
    """Runner that makes a summary's model calls and records tokens, latency and model."""

    request: SummaryRequest
    tokens: int = 0
    latency_s: float = 0.0
    model: str = ""
    provider: str = ""

    def run(self, flow: Any) -> Generator[Sequence[ModelCall], list[Reply], Any]:
        """Run a summarizer, and return its result.

        The summarizer yields the model calls to make.

        Raises:
            SummaryFailed: the value is no generator, or yields something other than model calls.
        """
        if not isinstance(flow, Generator):
            raise SummaryFailed(
                f"`summarize` returned a value of type {type(flow).__name__} instead of a generator"
            )
        max_tokens, replies = self.request.config.memory.budget.total, None
        try:
            while True:
                batch = flow.send(replies)
                if not isinstance(batch, Sequence) or not all(isinstance(call, ModelCall) for call in batch):
                    raise SummaryFailed("the summarizer must yield sequences of `ModelCall` objects only")
                for call in batch:
                    if not call.digest or prompt_tokens(call.messages, self.request.count) > max_tokens:
                        raise SummaryFailed(
                            f"a prompt from the summarizer exceeds the limit of {max_tokens} tokens"
                        )

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
    """Return a summary with only the points that its text shows."""
    pool = summary["points"]
    shown_points: list[SummaryPoint] = [
        {"text": point["text"], "speaker": point["speaker"], "message_ids": point["message_ids"]}
        for point in pool.get("points", [])[: pool.get("shown", 0)]
    ]
    return {**summary, "points": shown_points}


def make_summary(
    request: SummaryRequest, draft: Draft, now: str, last_version: Mapping[str, Any], failure: str = ""
) -> Summary:
    """Make a summary version from a draft.

    The text is truncated to the summary's token budget. `last_version` is the previous version, even if this
    version was made without it. It is `{}` if there is none. `failure` is the reason why the configured
    method did not make it, `""` if it did.
    """
    previous: Mapping[str, Any] = request.previous
    text = truncate_middle(draft.text, _token_limit(request), request.count)
    previous_text = previous.get("text", "")
    summary: Summary = {
        "kind": {"": "rolling", JUDGE: "judge"}.get(request.owner, "perspective"),
        "owner": request.owner,
        "round": request.entries[-1]["round"],
        "version": int(last_version.get("version", 0)) + 1,
        "text": text,
        "points": draft.points,
        "covers_from_seq": min(
            [seq for seq in (previous.get("covers_from_seq"), request.entries[0]["seq"]) if seq is not None]
        ),
        "covers_through_seq": request.entries[-1]["seq"],
        "messages": int(previous.get("messages", 0)) + len(request.entries),
        "before_tokens": _before_tokens(request),
        "after_tokens": request.count(text),
        "before_chars": len(previous_text) + sum(len(entry["content"]) for entry in request.entries),
        "after_chars": len(text),
        "method": draft.method,
        "model": draft.model,
        "provider": draft.provider,
        "temperature": draft.temperature,
        "latency_s": draft.latency_s,
        "tokens_used": int(last_version.get("tokens_used", 0)) + draft.tokens_used,
        "created_at": last_version.get("created_at") or now,
        "updated_at": now,
    }
    if request.owner in request.config.names():
        summary["role"] = request.config.debater(request.owner).role
    if failure:
        summary["failure"] = failure
    return summary


def summary_event(summary: Summary | None, owner: str, failure: str) -> Emit:
    """Return the event that reports a new summary version, a failed summarizer, or both."""
    fields: JsonObject = {"owner": owner}
    if summary:
        fields = {key: summary[key] for key in ("kind", "owner", "version", "method")}
    return Emit({"event": "summary", **fields, **({"failure": failure} if failure else {})})
