"""What one debater has at stake, whole and in summary: its own proposals, and the critiques of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from moot.nodes.calls import Flow
from moot.nodes.memory.summarizers.drafting import FRAME_TOKENS, draft_summary, make_summary
from moot.nodes.memory.summarizers.summarizer import JUDGE, SummaryRequest
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.rendering import LABEL_TOKENS
from moot.nodes.prompts.request import Voice, voice_of
from moot.nodes.roles.role import role_of
from moot.nodes.text.tokens import TokenCounter, cut_middle
from moot.state.config import DebateConfig
from moot.state.config.debaters import DebaterConfig
from moot.state.config.memory_config import PerspectiveConfig
from moot.state.conversation import ConversationState, StateValues, Summary
from moot.state.entries import Entry, kind_of

SUMMARY = load_prompt("perspective", "name", "focus")
JUDGE_SUMMARY = load_prompt("judge_summary")


@dataclass(frozen=True)
class Perspective:
    """A debater's perspective as a view may show it."""

    summary: str
    """Text of the current summary, `""` while everything is shown in full."""
    entries: list[Entry]
    """What the summary does not cover, oldest first."""


@dataclass(frozen=True)
class NewSummary:
    """A new version of a summary, or none where what it was to cover is shown as it stands."""

    summary: Summary | None
    failure: str
    """Why the configured method did not make it; `""` where it did."""
    owner: str


def perspective_entries(transcript: Sequence[Entry], debater: str) -> list[Entry]:
    """Return a debater's own proposals and refinements and the critiques it received, oldest first."""
    return [
        entry
        for entry in transcript
        if (entry["kind"] == "critique" and debater in entry["targets"])
        or (kind_of(entry).proposes and entry["speaker"] == debater)
    ]


def latest_proposals(transcript: Sequence[Entry]) -> dict[str, Entry]:
    """Return each debater's last proposal or refinement, in the order of the transcript."""
    latest = {entry["speaker"]: entry for entry in transcript if kind_of(entry).proposes}
    return dict(sorted(latest.items(), key=lambda item: item[1]["seq"]))


def perspective_of(state: StateValues, debater: str) -> Perspective:
    """Return a debater's perspective: the summary and what came after it, or all while that is short."""
    summary = (state.get("perspective_summaries") or {}).get(debater) or {}
    covered = summary.get("covers_through_seq", -1)
    entries = perspective_entries(state["full_transcript"], debater)
    return Perspective(summary.get("text", ""), [entry for entry in entries if entry["seq"] > covered])


def perspective_settings(config: DebateConfig, debater: DebaterConfig) -> PerspectiveConfig:
    """Return a debater's settings: its own where it has any, else the debate's."""
    return config.memory.perspectives.with_own(debater.perspective)


def past_threshold(entries: Sequence[Entry], settings: PerspectiveConfig) -> bool:
    """Return whether entries are long enough to be summarised."""
    chars = sum(len(entry["content"]) for entry in entries)
    return settings.is_passed(chars, sum(entry["tokens"] for entry in entries))


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
    request = _request(
        state, config, voice_of(config, config.judge), settings, entries, count, JUDGE, JUDGE_SUMMARY.render()
    )
    return (yield from _make(request, settings, state.get("judge_summary") or {}, now))


def perspective_summary(
    state: ConversationState, config: DebateConfig, debater_id: str, count: TokenCounter, now: str
) -> Flow[NewSummary]:
    """Make the summary of one debater's perspective, on its own model."""
    debater = config.debater(debater_id)
    settings = perspective_settings(config, debater)
    entries = perspective_entries(state["full_transcript"], debater_id)
    previous: Any = (state.get("perspective_summaries") or {}).get(debater_id) or {}
    built_in = SUMMARY.render(name=debater.name, focus=role_of(debater).says("summary"))
    prompt = debater.summary_prompt or settings.prompt or built_in
    voice = voice_of(config, debater)
    request = _request(state, config, voice, settings, entries, count, debater_id, prompt)
    if settings.mode == "rolling" and previous:
        new = [entry for entry in entries if entry["seq"] > previous["covers_through_seq"]]
        request = replace(request, previous=previous, entries=new)
    # A refinement shows its own part of the perspective by itself, a critique another's proposal.
    proposals = latest_proposals(state["full_transcript"]).values()
    beside = max((entry["tokens"] for entry in proposals), default=0)
    return (yield from _make(request, settings, previous, now, beside))


def _request(
    state: ConversationState,
    config: DebateConfig,
    voice: Voice,
    settings: PerspectiveConfig,
    entries: Sequence[Entry],
    count: TokenCounter,
    owner: str,
    prompt: str,
) -> SummaryRequest:
    most = config.memory.budget.summary - FRAME_TOKENS
    if settings.max_tokens is not None:
        room = min(most, settings.max_tokens)
    else:
        # A limit in characters becomes tokens at the rate of the entries themselves, whatever their script.
        chars = sum(len(entry["content"]) for entry in entries)
        rate = sum(entry["tokens"] for entry in entries) / chars if chars else 0.25
        room = max(16, min(most, int(settings.max_chars * rate)))
    own = {"model": voice.model, "temperature": voice.temperature, "fallbacks": voice.fallbacks}
    return SummaryRequest(
        previous={},
        entries=entries,
        max_tokens=room,
        topic=state["topic"],
        config=config.model_copy(update=own),
        count=count,
        owner=owner,
        prompt=prompt,
        transcript=entries,
    )


def _make(
    request: SummaryRequest, settings: PerspectiveConfig, before: Any, now: str, beside: int = 0
) -> Flow[NewSummary]:
    """Make a version; where its method fails, none while all of it fits beside what else is shown."""
    draft, failure = yield from draft_summary(settings.method, request)
    whole = sum(entry["tokens"] + LABEL_TOKENS for entry in request.transcript)
    if failure and beside + whole <= request.config.memory.budget.messages:
        return NewSummary(None, failure, request.owner)
    if settings.max_tokens is None:
        draft = replace(draft, text=cut_middle(draft.text, settings.max_chars, len))
    return NewSummary(make_summary(request, draft, now, before), failure, request.owner)
