"""Text of a debate's result, as chats, answers of tools and prompts about the debate show it."""

from moot.judging.judge_response import ShownField, shown
from moot.protocols.registry import protocol_named
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import StateValues
from moot.state.verdict import PLACEHOLDER, PanelVerdict
from moot.text.plain_text import clip

WHY_CHARS, SOLUTION_CHARS = 700, 2_000
"""Maximum numbers of characters in the judge's reasons and in the solution, as shown in the result
message."""
MOST = 6
"""Maximum number of items in each list of the message that announces the debate's result."""


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
    """Return the text of the debate's result message as Markdown.

    `share` scales its parts' maximum lengths.
    """
    verdict: PanelVerdict | None = values.get("verdict") or None
    ended = (values.get("step") or {}).get("end_reason", {}).get("reason", "")
    config = frozen_config(values)
    protocol = protocol_named(config.protocol)
    text = verdict_text(verdict, values, share) if verdict else f"**No verdict.** {ended}".strip()
    solution = clip(protocol.at_a_glance(values.get("solution", "")), int(share * SOLUTION_CHARS))
    return "\n\n".join(filter(None, [text, solution]))


def verdict_text(verdict: PanelVerdict, values: StateValues, share: float = 1.0) -> str:
    """Return a verdict as Markdown, without the solution. `share` scales its parts' maximum lengths."""
    why, most = int(share * WHY_CHARS), max(1, int(share * MOST))
    if verdict["status"] == "failed":
        return f"**No verdict.** Judging failed: {clip(verdict['error'], why)}"
    if verdict.get("placeholder"):
        return f"**{PLACEHOLDER}**"
    scores = [score for row in verdict["scores"].values() for score in row.values()]
    cited = list(dict.fromkeys(key for score in scores for key in score["citations"]))[:most]
    names, transcript = frozen_config(values).names(), values.get("full_transcript") or []
    fields = shown(verdict, names, headline=judged_headline(values), transcript=transcript)
    parts = [
        *(_field_text(field, most, why) for field in fields),
        clip(verdict["reasoning"], why),
        f"From {', '.join(cited)}." if cited else "",
    ]
    return "\n\n".join(filter(None, parts))


def _field_text(field: ShownField, most: int, chars: int) -> str:
    if field.name in ("question", "winner"):
        return f"**{clip(field.text, chars)}**"
    if field.single:
        return f"{field.label}: {clip(field.text, chars)}"
    lines = [f"{line.text}{''.join(f' [{key}]' for key in line.citations)}" for line in field.lines[:most]]
    return "\n".join([f"{field.label}:", *(f"- {clip(line, chars // 2)}" for line in lines)])
