"""Perspective summaries: each debater's own, brought up to date as a round begins, and the judge's.

All that are due are made at the same time, each on its debater's own model, temperature and fallbacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from moot.nodes.calls import Flow
from moot.nodes.driving.batching import side_by_side
from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import Body, Emit
from moot.nodes.memory.perspective import (
    past_threshold,
    perspective_entries,
    perspective_settings,
    summary_room,
    within_chars,
)
from moot.nodes.memory.summarizers.drafting import draft_summary
from moot.nodes.memory.summarizers.summarizer import Draft, SummaryRequest
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.request import voice_of
from moot.nodes.protocols.limits import limit_reached
from moot.nodes.protocols.protocol import Consult, End
from moot.nodes.protocols.protocol_table import protocol_named
from moot.nodes.roles.role import role_of
from moot.nodes.summarize import FRAME_TOKENS, make_summary, summarize, version_of
from moot.nodes.text.tokens import TokenCounter
from moot.state.config import DebateConfig
from moot.state.config.budgets import PerspectiveConfig
from moot.state.config.frozen import frozen_config
from moot.state.conversation import ConversationState, Summary
from moot.state.entries import Entry

SUMMARY = load_prompt("perspective", "name", "focus")
JUDGE_SUMMARY = load_prompt("judge_summary")


@dataclass(frozen=True)
class Made:
    """A new version of a summary."""

    summary: Summary
    failure: str
    """Why another method than the configured one made it; `""` where it did not."""


def summarize_all(state: ConversationState, context: NodeContext) -> Body:
    """Fold what left the window into the rolling summary, and make the perspective summaries that are due."""
    update = yield from summarize(state, context)
    config = frozen_config(state)
    debaters = due_debaters(state, config) if round_begins(state) else []
    if not debaters:
        return update
    count, now = context.env.count_for(config), context.env.clock()
    made = yield from side_by_side([_perspective(state, config, d, count, now) for d in debaters])
    for item in made:
        yield Emit({"event": "summary", **_told(item)})
    versions = [item.summary for item in made]
    failures = [_failure(state, item) for item in made if item.failure]
    return {
        **update,
        "perspective_summaries": {version["owner"]: version for version in versions},
        "summary_versions": [*update.get("summary_versions", ()), *map(version_of, versions)],
        "errors": [*update.get("errors", ()), *failures],
    }


def perspectives_due(state: ConversationState) -> bool:
    """Return whether a round begins and a perspective summary is due."""
    return round_begins(state) and bool(due_debaters(state, frozen_config(state)))


def round_begins(state: ConversationState) -> bool:
    """Return whether the step that is planned next begins another round of a protocol with perspectives."""
    config = frozen_config(state)
    protocol = protocol_named(config.protocol)
    if not protocol.perspectives or not state.get("step") or limit_reached(state, config):
        return False
    following = protocol.next_step(state, config)
    if isinstance(following, End | Consult):
        return False
    return bool(following["round"] > state["step"]["round"])


def due_debaters(state: ConversationState, config: DebateConfig) -> list[str]:
    """Return the debaters whose perspective has grown past its threshold since it was summarised."""
    summaries = state.get("perspective_summaries") or {}
    due = []
    for debater in config.names():
        settings = perspective_settings(config, debater)
        entries = perspective_entries(state["full_transcript"], debater)
        covered = summaries[debater]["covers_through_seq"] if debater in summaries else -1
        is_new = bool(entries) and entries[-1]["seq"] > covered
        if settings.enabled and is_new and past_threshold(entries, settings):
            due.append(debater)
    return due


def judge_summary(
    state: ConversationState, config: DebateConfig, count: TokenCounter, now: str
) -> Flow[Made | None]:
    """Make the judge's summary of the final round; `None` where the judge can read that round itself."""
    entries = protocol_named(config.protocol).final_round(state)
    settings = config.memory.perspectives
    if not settings.enabled or not past_threshold(entries, settings):
        return None
    voice = voice_of(config, config.judge)
    judge = config.model_copy(update={"model": voice.model, "temperature": voice.temperature})
    request = _request(state, judge, settings, entries, count, "judge", JUDGE_SUMMARY.render())
    return (yield from _make("judge", request, settings, state.get("judge_summary") or {}, now))


def _perspective(
    state: ConversationState, config: DebateConfig, debater_id: str, count: TokenCounter, now: str
) -> Flow[Made]:
    settings, debater = perspective_settings(config, debater_id), config.debater(debater_id)
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
    return (yield from _make("perspective", request, settings, previous, now))


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
    kind: str, request: SummaryRequest, settings: PerspectiveConfig, before: Any, now: str
) -> Flow[Made]:
    draft, failure = yield from draft_summary(settings.method, request)
    clamped: Draft = replace(draft, text=within_chars(draft.text, settings))
    return Made(make_summary(kind, request, clamped, now, before), failure)


def _told(item: Made) -> dict[str, Any]:
    return {key: item.summary[key] for key in ("kind", "owner", "version", "method")}


def _failure(state: ConversationState, item: Made) -> dict[str, Any]:
    return {
        "step": state["step"]["no"],
        "node": "summarize",
        "error": f"{item.summary['owner']}: {item.failure}",
    }
