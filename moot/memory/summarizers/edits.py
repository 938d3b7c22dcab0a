"""Summaries that a person changes: each change is a version of its own, on which later versions build."""

from typing import cast

from moot.memory.summarizers.drafting import EDITED, FRAME_TOKENS, version_of
from moot.memory.summarizers.summarizer import JUDGE
from moot.prompts.debate_context import DebateContext
from moot.state.conversation import StateValues, Summary
from moot.state.entries import JsonMapping, JsonObject, clean_text
from moot.state.errors import InputError

SUMMARY_CHANNELS = frozenset({"rolling_summary", "perspective_summaries", "judge_summary"})
"""State channels that hold the current versions of summaries."""


def last_version(state: StateValues, kind: str, owner: str, current: JsonMapping) -> JsonMapping:
    """Return the last version of a summary, `current` or one that a person has cleared."""
    versions = reversed(state.get("summary_versions") or ())
    return next((each for each in versions if (each["kind"], each["owner"]) == (kind, owner)), current)


def edited_summaries(changes: JsonObject, debate: DebateContext, now: str) -> JsonObject:
    """Return a client's changed summaries as new versions, and these versions for `summary_versions`.

    Raises:
        InputError: A text is empty or too long, or another field than `text` is changed.
    """
    state, update, versions = debate.state, JsonObject(), list[Summary]()

    def edited(place: str, value: JsonObject, current: JsonMapping, kind: str, owner: str = "") -> JsonObject:
        text, limit = clean_text(value["text"]), debate.config.memory.budget.summary - FRAME_TOKENS
        if current and text == current["text"]:
            raise InputError(f"{place}: only the `text` of a summary can be changed")
        if not text.strip() or (tokens := debate.count(text)) > limit:
            raise InputError(
                f"{place}.text: the text is empty or longer than {limit} tokens: change it, or give {{}} as "
                "the summary to start anew"
            )
        through = min(value["covers_through_seq"], len(state["full_transcript"]) - 1)
        base = current or {**value, "covers_through_seq": through}
        last = last_version(state, kind, owner, current)
        coverage = {key: base[key] for key in ("covers_from_seq", "covers_through_seq", "messages")}
        version: JsonObject = {key: each for key, each in base.items() if key != "failure"}
        version |= {"kind": kind, "owner": owner, "version": last.get("version", 0) + 1, "text": text}
        version |= {"method": EDITED, "model": "", "provider": "", "temperature": None, "latency_s": 0.0}
        version |= {"after_tokens": tokens, "after_chars": len(text), "updated_at": now}
        version["points"] = {EDITED: {"text": text, **coverage}}
        versions.append(cast(Summary, version))
        return version

    if value := changes.get("rolling_summary"):
        update["rolling_summary"] = edited("rolling_summary", value, state["rolling_summary"], "rolling")
    if value := changes.get("judge_summary"):
        update["judge_summary"] = edited("judge_summary", value, state["judge_summary"], "judge", JUDGE)
    if (perspectives := changes.get("perspective_summaries")) is not None:
        current = state.get("perspective_summaries") or {}
        update["perspective_summaries"] = {
            key: edited(f"perspective_summaries.{key}", value, current.get(key) or {}, "perspective", key)
            if value
            else None
            for key, value in (perspectives or dict.fromkeys(current)).items()
        }
    return {**update, "summary_versions": [*map(version_of, versions)]}
