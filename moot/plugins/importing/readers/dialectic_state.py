"""Debate states of the program dialectic, which become councils."""

from collections.abc import Iterator, Mapping

from moot.importers import LeftOut, ParsedMessage, ParsedSummary, ParsedTranscript, Reader, Source
from moot.plugins.importing.message_objects import TEXT_KEYS, JsonDict, first_text
from moot.state import entries, verdict

_KINDS: Mapping[str, tuple[entries.EntryKind, str]] = {
    "proposal": ("proposal", "propose"),
    "critique": ("critique", "critique"),
    "refinement": ("refinement", "refine"),
}
"""Moot's entry kind and phase for each contribution type."""
_NO_ANSWER = "NA"
"""Answer with which dialectic stores that the user skipped a question."""


def _read(source: Source) -> ParsedTranscript | None:
    state = source.json
    if not isinstance(state, dict) or not isinstance(state.get("rounds"), list) or "problem" not in state:
        return None
    left_out, summaries = LeftOut(), list[ParsedSummary]()
    messages = [*_background(state)]
    for number, debate_round in enumerate(_dicts(state["rounds"]), start=1):
        before = len(messages)
        time = first_text(debate_round, ("timestamp",)) or first_text(state, ("createdAt",))
        messages += _contributions(debate_round, number, time, messages, left_out)
        inner = debate_round.get("summaries")
        for each in _dicts(list(inner.values()) if isinstance(inner, dict) else ()):
            summaries.append(_summary(each, before))
    if isinstance(judge_summary := state.get("judgeSummary"), dict):
        summaries.append(_summary({**judge_summary, "agentId": ""}, len(messages)))
    left_out["prompt record"] += len(_agents(state))
    final = state.get("finalSolution")
    final = final if isinstance(final, dict) else {"description": final} if final else {}
    agents = {each.speaker for each in messages if each.is_by_speaker}
    return ParsedTranscript(
        messages,
        first_text(state, ("problem",)),
        _solution(final),
        names=_names(state),
        roles={key: role for each in _everyone(state) for key, role in [_role_of(each)] if key and role},
        settings={"protocol": "council", "rounds": len(state["rounds"]) or None} if len(agents) > 1 else {},
        verdict=_verdict(final),
        summaries=summaries,
        left_out=left_out,
    )


def _dicts(value: object) -> list[JsonDict]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _background(state: JsonDict) -> Iterator[ParsedMessage]:
    """Yield the context, and the clarification questions with their answers."""
    time = first_text(state, ("createdAt",))
    if context := first_text(state, ("context",)):
        yield ParsedMessage("user", context, time, kind="context")
    for number, group in enumerate(_dicts(state.get("clarifications"))):
        for item in _dicts(group.get("items")):
            key = f"{number}/{first_text(item, ('id', 'question'))}"
            yield ParsedMessage(
                first_text(group, ("agentId", "agentName")),
                first_text(item, ("question",)),
                time,
                kind="question",
                call_id=key,
            )
            answer = first_text(item, ("answer",))
            text = "(no answer)" if answer in ("", _NO_ANSWER) else answer
            yield ParsedMessage("user", text, time, kind="answer", call_id=key)


def _contributions(
    debate_round: JsonDict, number: int, time: str, earlier: list[ParsedMessage], left_out: LeftOut
) -> Iterator[ParsedMessage]:
    """Yield the contributions of a round.

    From round 2 on, dialectic repeats each refinement as a proposal. The repetition is left out.
    """
    refined = {each.speaker: each.content for each in earlier if each.kind == "refinement"}
    for contribution in _dicts(debate_round.get("contributions")):
        kind, phase = _KINDS.get(str(contribution.get("type")), ("speech", ""))
        speaker, text = (
            first_text(contribution, ("agentId", "agentRole")),
            first_text(contribution, TEXT_KEYS),
        )
        if kind == "proposal" and refined.get(speaker) == text:
            left_out["repeated proposal"] += 1
            continue
        raw_metadata = contribution.get("metadata")
        metadata = raw_metadata if isinstance(raw_metadata, dict) else {}
        tokens = metadata.get("tokensUsed")
        left_out["tool call"] += len(_dicts(metadata.get("toolCalls")))
        yield ParsedMessage(
            speaker,
            text,
            time,
            kind,
            round=number,
            target=first_text(contribution, ("targetAgentId",)),
            phase=phase,
            model=first_text(metadata, ("model",)),
            tokens=tokens if isinstance(tokens, int) and not isinstance(tokens, bool) else 0,
        )


def _summary(item: JsonDict, messages: int) -> ParsedSummary:
    raw_metadata = item.get("metadata")
    metadata = raw_metadata if isinstance(raw_metadata, dict) else {}
    text, before = first_text(item, ("summary",)), metadata.get("beforeChars")
    return ParsedSummary(
        first_text(item, ("agentId",)),
        text,
        messages,
        before_chars=before if isinstance(before, int) else 0,
        after_chars=len(text),
        model=first_text(metadata, ("model",)),
        created_at=first_text(metadata, ("timestamp",)),
    )


def _agents(state: JsonDict) -> list[JsonDict]:
    sources = state.get("promptSources")
    return _dicts(sources.get("agents")) if isinstance(sources, dict) else []


def _everyone(state: JsonDict) -> list[JsonDict]:
    """Return all objects that state the role of an agent."""
    rounds = (_dicts(each.get("contributions")) for each in _dicts(state.get("rounds")))
    return [
        *_agents(state),
        *_dicts(state.get("clarifications")),
        *(item for each in rounds for item in each),
    ]


def _role_of(item: JsonDict) -> tuple[str, str]:
    return first_text(item, ("agentId",)), first_text(item, ("role", "agentRole"))


def _names(state: JsonDict) -> dict[str, str]:
    """Return the names of the agents. Only clarifications state them."""
    groups = _dicts(state.get("clarifications"))
    names = {first_text(each, ("agentId",)): first_text(each, ("agentName",)) for each in groups}
    return {key: name for key, name in names.items() if key and name}


def _solution(final: JsonDict) -> str:
    """Convert the solution of a state to Markdown text."""
    parts = [first_text(final, TEXT_KEYS)]
    if implementation := first_text(final, ("implementation",)):
        parts.append(f"## Implementation\n\n{implementation}")
    for key, title in (("tradeoffs", "Trade-offs"), ("recommendations", "Recommendations")):
        if points := _texts(final.get(key)):
            parts.append(f"## {title}\n\n" + "\n".join(f"- {point}" for point in points))
    return "\n\n".join(filter(None, parts))


def _texts(value: object) -> list[str]:
    return [str(each) for each in value if each] if isinstance(value, list) else []


def _verdict(final: JsonDict) -> JsonDict:
    """Return the judge's solution as fields of a verdict."""
    if "confidence" not in final and "synthesizedBy" not in final:
        return {}
    confidence = final.get("confidence")
    unmet = _texts(final.get("unfulfilledMajorRequirements"))
    return {
        "judge": first_text(final, ("synthesizedBy",)) or "judge",
        "confidence": float(confidence) if isinstance(confidence, int | float) else None,
        "solution_markdown": _solution(final),
        "tradeoffs": _texts(final.get("tradeoffs")),
        "unmet_requirements": [{"text": text, "major": True} for text in unmet],
        "checks": [
            {**dict.fromkeys(verdict.OpenCheck.__annotations__, ""), "question": text}
            for text in _texts(final.get("openQuestions"))
        ],
    }


READER = Reader("dialectic debate", "json", _read)
