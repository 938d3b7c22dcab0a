"""Summaries of what one debater has at stake, and the judge's of the final round."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from moot.nodes.calls import Flow
from moot.nodes.memory.perspective import (
    latest_proposals,
    past_threshold,
    perspective_entries,
    perspective_settings,
    summary_room,
    within_chars,
)
from moot.nodes.memory.summarizers.drafting import draft_summary
from moot.nodes.memory.summarizers.summarizer import JUDGE, SummaryRequest
from moot.nodes.memory.versions import FRAME_TOKENS, make_summary
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.rendering import LABEL_TOKENS
from moot.nodes.prompts.request import voice_of
from moot.nodes.roles.role import role_of
from moot.nodes.text.tokens import TokenCounter
from moot.state.config import DebateConfig
from moot.state.config.memory_config import PerspectiveConfig
from moot.state.conversation import ConversationState, Summary
from moot.state.entries import Entry

SUMMARY = load_prompt("perspective", "name", "focus")
JUDGE_SUMMARY = load_prompt("judge_summary")


@dataclass(frozen=True)
class NewSummary:
    """A new version of a summary, or none where what it was to cover is shown as it stands."""

    summary: Summary | None
    failure: str
    """Why the configured method did not make it; `""` where it did."""
    owner: str


def due_debaters(state: ConversationState, config: DebateConfig) -> list[str]:
    """Return the debaters whose perspective has grown past its threshold since it was summarised."""
    summaries = state.get("perspective_summaries") or {}
    due = []
    for each in config.debaters:
        debater, settings = each.id, perspective_settings(config, each)
        entries = perspective_entries(state["full_transcript"], debater)
        covered = summaries[debater]["covers_through_seq"] if debater in summaries else -1
        is_new = bool(entries) and entries[-1]["seq"] > covered
        if settings.enabled and is_new and past_threshold(entries, settings):
            due.append(debater)
    return due


def judge_summary(
    state: ConversationState, config: DebateConfig, entries: Sequence[Entry], count: TokenCounter, now: str
) -> Flow[NewSummary | None]:
    """Make the judge's summary of the final round; `None` where the judge can read its entries itself."""
    settings = config.memory.perspectives
    if not settings.enabled or not past_threshold(entries, settings):
        return None
    voice = voice_of(config, config.judge)
    judge = config.model_copy(update={"model": voice.model, "temperature": voice.temperature})
    request = _request(state, judge, settings, entries, count, JUDGE, JUDGE_SUMMARY.render())
    return (yield from _make("judge", request, settings, state.get("judge_summary") or {}, now, entries))


def perspective_summary(
    state: ConversationState, config: DebateConfig, debater_id: str, count: TokenCounter, now: str
) -> Flow[NewSummary]:
    """Make the summary of one debater's perspective, on its own model."""
    debater = config.debater(debater_id)
    settings = perspective_settings(config, debater)
    entries = perspective_entries(state["full_transcript"], debater_id)
    previous: Any = (state.get("perspective_summaries") or {}).get(debater_id) or {}
    voice = voice_of(config, debater)
    own = config.model_copy(
        update={"model": voice.model, "temperature": voice.temperature, "fallbacks": voice.fallbacks}
    )
    built_in = SUMMARY.render(name=debater.name, focus=role_of(debater).says("summary"))
    prompt = debater.summary_prompt or settings.prompt or built_in
    request = _request(state, own, settings, entries, count, debater_id, prompt)
    if settings.mode == "rolling" and previous:
        new = [entry for entry in entries if entry["seq"] > previous["covers_through_seq"]]
        request = replace(request, previous=previous, entries=new)
    # A refinement shows its own part of the perspective by itself, a critique another's proposal.
    beside = max(
        (entry["tokens"] for entry in latest_proposals(state["full_transcript"]).values()), default=0
    )
    return (yield from _make("perspective", request, settings, previous, now, entries, beside))


def _request(
    state: ConversationState,
    config: DebateConfig,
    settings: PerspectiveConfig,
    entries: Sequence[Entry],
    count: TokenCounter,
    owner: str,
    prompt: str,
) -> SummaryRequest:
    room = summary_room(entries, settings, config.memory.budget.summary - FRAME_TOKENS)
    return SummaryRequest(
        previous={},
        entries=entries,
        max_tokens=room,
        topic=state["topic"],
        config=config,
        count=count,
        owner=owner,
        prompt=prompt,
        transcript=entries,
    )


def _make(
    kind: str,
    request: SummaryRequest,
    settings: PerspectiveConfig,
    before: Any,
    now: str,
    entries: Sequence[Entry],
    beside: int = 0,
) -> Flow[NewSummary]:
    """Make a version; where its method fails, none while all of it fits beside what else is shown."""
    draft, failure = yield from draft_summary(settings.method, request)
    whole = sum(entry["tokens"] + LABEL_TOKENS for entry in entries)
    if failure and beside + whole <= request.config.memory.budget.messages:
        return NewSummary(None, failure, request.owner)
    clamped = replace(draft, text=within_chars(draft.text, settings))
    return NewSummary(make_summary(kind, request, clamped, now, before), failure, request.owner)
