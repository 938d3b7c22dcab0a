"""Perspective of a debater, with its proposals, the critiques of these proposals, and a summary."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from moot.calls.model_calls import CallGenerator
from moot.config import DebateConfig, participants
from moot.config.memory_config import PerspectiveConfig
from moot.memory.summarizers.drafting import FRAME_TOKENS, base_version, draft_summary, make_summary
from moot.memory.summarizers.edits import last_version
from moot.memory.summarizers.summarizer import JUDGE, SummaryRequest
from moot.prompts.debate_context import DebateContext
from moot.prompts.request import ModelParams, model_params
from moot.prompts.templates import break_fence, load_prompt_template, role_of
from moot.prompts.truncation import label_tokens, prompt_name
from moot.state.conversation import StateValues, Summary
from moot.state.entries import Entry, traits_of
from moot.text.tokens import truncate_middle

SUMMARY = load_prompt_template("perspective", "name", "focus")
JUDGE_SUMMARY = load_prompt_template("judge_summary")


@dataclass(frozen=True)
class Perspective:
    """View of a debate for one debater's prompts: a summary, and the entries after it."""

    summary: str
    """Text of the latest summary, or `""` if there is none yet."""
    entries: list[Entry]
    """Entries that the summary does not cover yet, oldest first."""


@dataclass(frozen=True)
class PerspectiveResult:
    """Result of summarizing the debate for one debater or for the judge."""

    summary: Summary | None
    failure: str
    """Reason why the configured summarizer failed, or `""` if it did not fail."""
    owner: str


def perspective_entries(transcript: Sequence[Entry], debater: str) -> list[Entry]:
    """Return a debater's proposals and the critiques that the debater received, oldest first."""
    return [
        entry
        for entry in transcript
        if (entry["kind"] == "critique" and debater in entry["targets"])
        or (traits_of(entry).proposes and entry["speaker"] == debater)
    ]


def latest_proposals(transcript: Sequence[Entry]) -> dict[str, Entry]:
    """Return the latest proposal or refinement of each debater, in transcript order."""
    latest = {entry["speaker"]: entry for entry in transcript if traits_of(entry).proposes}
    return dict(sorted(latest.items(), key=lambda item: item[1]["seq"]))


def perspective_of(state: StateValues, debater: str) -> Perspective:
    """Return a debater's summary of the debate, and the entries that the summary does not cover yet."""
    summary = (state.get("perspective_summaries") or {}).get(debater) or {}
    covered = summary.get("covers_through_seq", -1)
    entries = perspective_entries(state["full_transcript"], debater)
    return Perspective(summary.get("text", ""), [entry for entry in entries if entry["seq"] > covered])


def perspective_settings(config: DebateConfig, debater: participants.DebaterConfig) -> PerspectiveConfig:
    """Return the debater's own settings for its summaries, or else the debate's."""
    return config.memory.perspectives.with_overrides(debater.perspective)


def replaceable_entries(transcript: Sequence[Entry], debater: str) -> list[Entry]:
    """Return the entries that a summary may replace in a debater's prompts.

    The entries are the debater's proposals and the critiques of them, except the latest proposal, which
    prompts show in full.
    """
    latest = latest_proposals(transcript).get(debater)
    return [entry for entry in perspective_entries(transcript, debater) if entry != latest]


def exceeds_threshold(entries: Sequence[Entry], settings: PerspectiveConfig, *, fits: bool) -> bool:
    """Return True if `entries` are long enough to need a summary."""
    chars = sum(len(entry["content"]) for entry in entries)
    return settings.is_exceeded(chars, sum(entry["tokens"] for entry in entries), fits=fits)


def due_debaters(debate: DebateContext, token_limit: Callable[[str], int]) -> list[str]:
    """Return the debaters whose summaries need an update, given their limits of tokens."""
    state, config = debate.state, debate.config
    summaries = state.get("perspective_summaries") or {}
    due_ids = []
    for debater in config.debaters:
        debater_id, settings = debater.id, perspective_settings(config, debater)
        entries = perspective_entries(state["full_transcript"], debater_id)
        replaceable = replaceable_entries(state["full_transcript"], debater_id)
        covered = summaries[debater_id]["covers_through_seq"] if debater_id in summaries else -1
        if not settings.enabled or not replaceable or replaceable[-1]["seq"] <= covered:
            continue
        measures = settings.threshold_chars is None and settings.threshold_tokens is None
        fits = not measures or whole_tokens(replaceable) <= token_limit(debater_id)
        if exceeds_threshold(entries, settings, fits=fits):
            due_ids.append(debater_id)
    return due_ids


def whole_tokens(entries: Sequence[Entry]) -> int:
    """Return the estimated number of tokens that entries take in a prompt that shows them in full."""
    return sum(entry["tokens"] + label_tokens(entry) for entry in entries)


def judge_summary(
    debate: DebateContext, entries: Sequence[Entry], now: str
) -> CallGenerator[PerspectiveResult | None]:
    """Summarize the final round for the judge, or return `None` if this is unnecessary."""
    state, config = debate.state, debate.config
    overrides = config.judge.summary
    settings = config.memory.perspectives.with_overrides(overrides)
    # The caller asks for a summary only if the round does not fit the judge's prompt.
    if not settings.enabled or not exceeds_threshold(entries, settings, fits=False):
        return None
    request = _request(
        debate,
        model_params(config, config.judge),
        settings,
        entries,
        JUDGE,
        (overrides and overrides.prompt) or JUDGE_SUMMARY.render(),
    )
    last = last_version(state, "judge", JUDGE, state.get("judge_summary") or {})
    return (yield from _make(request, settings, last, now))


def perspective_summary(debate: DebateContext, debater_id: str, now: str) -> CallGenerator[PerspectiveResult]:
    """Return a new summary from a debater's perspective, written by the debater's own model."""
    state, config = debate.state, debate.config
    debater = config.debater(debater_id)
    settings = perspective_settings(config, debater)
    entries = replaceable_entries(state["full_transcript"], debater_id)
    previous: Any = (state.get("perspective_summaries") or {}).get(debater_id) or {}
    name = prompt_name(debater_id, debate.names)
    built_in = SUMMARY.render(name=name, focus=role_of(debater).says("summary"))
    prompt = break_fence(debater.summary_prompt or settings.prompt or built_in, config.fence)
    params = model_params(config, debater)
    request = _request(debate, params, settings, entries, debater_id, prompt)
    if base := base_version(previous, fresh=settings.mode != "rolling"):
        new_entries = [entry for entry in entries if entry["seq"] > base["covers_through_seq"]]
        request = replace(request, previous=base, entries=new_entries)
    # A refinement or critique also contains a whole proposal.
    proposals = latest_proposals(state["full_transcript"]).values()
    proposal_tokens = max((entry["tokens"] for entry in proposals), default=0)
    last = last_version(state, "perspective", debater_id, previous)
    return (yield from _make(request, settings, last, now, proposal_tokens))


def _request(
    debate: DebateContext,
    params: ModelParams,
    settings: PerspectiveConfig,
    entries: Sequence[Entry],
    owner: str,
    prompt: str,
) -> SummaryRequest:
    summary_budget = debate.config.memory.budget.summary - FRAME_TOKENS
    if settings.max_tokens is not None:
        remaining = min(summary_budget, settings.max_tokens)
    else:
        # A limit in characters is converted to tokens with the ratio of these entries, for any script.
        chars = sum(len(entry["content"]) for entry in entries)
        rate = sum(entry["tokens"] for entry in entries) / chars if chars else 0.25
        remaining = max(16, min(summary_budget, int(settings.max_chars * rate)))
    model_settings = {"model": params.model, "temperature": params.temperature, "fallbacks": params.fallbacks}
    return SummaryRequest(
        previous={},
        entries=entries,
        max_tokens=remaining,
        topic=debate.state["topic"],
        config=debate.config.model_copy(update=model_settings),
        count=debate.count,
        owner=owner,
        prompt=prompt,
        transcript=entries,
    )


def _make(
    request: SummaryRequest, settings: PerspectiveConfig, previous: Any, now: str, proposal_tokens: int = 0
) -> CallGenerator[PerspectiveResult]:
    """Write a new summary for a debater or for the judge.

    `request` names the owner of the summary. The result also contains the reason if the configured summarizer
    failed.

    If the summarization method fails and all entries fit in a prompt, or if the summary is not shorter than
    the entries, return a result without a summary.
    """
    draft, failure = yield from draft_summary(settings.method, request)
    full_tokens = whole_tokens(request.transcript)
    if request.count(draft.text) >= full_tokens:
        return PerspectiveResult(None, failure, request.owner)
    if failure and proposal_tokens + full_tokens <= request.config.memory.budget.messages:
        return PerspectiveResult(None, failure, request.owner)
    if settings.max_tokens is None:
        draft = replace(draft, text=truncate_middle(draft.text, settings.max_chars, len))
    return PerspectiveResult(make_summary(request, draft, now, previous, failure), failure, request.owner)
