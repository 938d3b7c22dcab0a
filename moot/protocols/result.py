"""Result of a debate as text: headline, decision, verdict and final answer."""

from moot.config.debate_config import frozen_config
from moot.judging.shortcomings import shortcomings
from moot.judging.verdict_fields import ShownField, shown
from moot.protocols.registry import protocol_named, protocol_of
from moot.state.conversation import ConversationState, StateValues
from moot.state.verdict import COUNT, PLACEHOLDER, PanelVerdict
from moot.text.plain_text import clip

WHY_CHARS = 700
"""Maximum length of the reasons in a debate's result message, in characters."""
SOLUTION_CHARS = 2_000
"""Maximum length of the solution in a debate's result message, in characters."""
MOST = 6
"""Maximum number of items in each list of the debate's result message."""


def judged_headline(values: StateValues) -> str:
    """Return one line that states the debate's result, or `""` if there is no valid verdict."""
    verdict: PanelVerdict | None = values.get("verdict") or None
    if verdict is None or verdict["status"] != "ok":
        return ""
    config = frozen_config(values)
    return protocol_named(config.protocol).headline(verdict, config.names())


def decision_line(values: StateValues) -> str:
    """Return the decision on the debate's question, or the winner if nothing was decided."""
    decision, headline = (values.get("verdict") or {}).get("decision") or "", judged_headline(values)
    return headline if headline.startswith(decision) else decision


def result_text(values: StateValues, share: float = 1.0) -> str:
    """Return the result as Markdown. `share` scales the maximum length of each part."""
    verdict: PanelVerdict | None = values.get("verdict") or None
    ended = (values.get("step") or {}).get("end_reason", {}).get("reason", "")
    config = frozen_config(values)
    protocol = protocol_named(config.protocol)
    text = verdict_text(verdict, values, share) if verdict else f"**No verdict.** {ended}".strip()
    solution = clip(protocol.at_a_glance(values.get("solution", "")), int(share * SOLUTION_CHARS))
    return "\n\n".join(filter(None, [text, solution]))


def verdict_text(verdict: PanelVerdict, values: StateValues, share: float = 1.0) -> str:
    """Return a verdict without its solution as Markdown. `share` scales the maximum lengths."""
    max_chars, max_items = int(share * WHY_CHARS), max(1, int(share * MOST))
    if verdict["status"] == "failed":
        return f"**No verdict.** Judging failed: {clip(verdict['error'], max_chars)}"
    if verdict.get("placeholder"):
        return f"**{PLACEHOLDER}**"
    scores = [score for row in verdict["scores"].values() for score in row.values()]
    citations = list(dict.fromkeys(key for score in scores for key in score["citations"]))[:max_items]
    names, transcript = frozen_config(values).names(), values.get("full_transcript") or []
    fields = shown(verdict, names, headline=judged_headline(values))
    parts = [
        *shortcomings(
            verdict,
            verdicts=values.get("verdicts") or [],
            transcript=transcript,
            errors=values.get("errors") or [],
            names=names,
        ),
        *(_field_text(field, max_items, max_chars) for field in fields),
        clip(verdict["reasoning"], max_chars),
        f"From {', '.join(citations)}." if citations else "",
    ]
    return "\n\n".join(filter(None, parts))


def _field_text(field: ShownField, max_items: int, max_chars: int) -> str:
    if field.name == "question" or (field.name == "winner" and field.lead):
        return f"**{clip(field.text, max_chars)}**"
    if field.single:
        return f"{field.label}: {clip(field.text, max_chars)}"
    lines = [
        f"{line.text}{''.join(f' [{key}]' for key in line.citations)}" for line in field.lines[:max_items]
    ]
    return "\n".join([f"{field.label}:", *(f"- {clip(line, max_chars // 2)}" for line in lines)])


def with_final_answer(state: ConversationState, solution: str) -> str:
    """Append the protocol's final answer to a debate's solution.

    The protocol decides whether this happens. An empty solution is always replaced by the final answer.
    """
    protocol = protocol_named(frozen_config(state).protocol)
    answer = protocol.final_answer(state) if protocol.always_answers or not solution else ""
    return f"{solution}\n\n{answer}".strip() if answer else solution


def final_answer(values: StateValues) -> str:
    """Return a debate's final answer as Markdown.

    Every protocol has an answer, so a debate can be compared with a single answer or a vote. It is `""`
    before the end.
    """
    verdict: PanelVerdict | None = values.get("verdict") or None
    solution = protocol_of(values).at_a_glance(values.get("solution", "")).strip()
    is_judged = verdict and verdict["status"] == "ok" and not verdict.get("placeholder")
    decision = verdict.get("decision", "") if verdict and is_judged else ""
    if verdict and is_judged and not verdict.get("solution_markdown") and decision:
        solution = ""  # findings that a protocol adds to a decision are no answer
    is_option = verdict is not None and "options" in verdict and verdict["judge"] != COUNT
    is_repeated = decision and decision in solution and not is_option  # an option can occur in any text
    return "\n\n".join(filter(None, [decision, "" if is_repeated else solution]))
