"""The outcome as the debate's last message, for chats, agents and whoever else reads messages alone."""

from langchain_core.messages import AIMessage

from moot.nodes.judging.opinion_check import confidence_of
from moot.nodes.protocols.protocol_table import protocol_named
from moot.state.config.frozen import frozen_config
from moot.state.conversation import StateValues
from moot.state.reducers import OUTCOME
from moot.state.verdict import PLACEHOLDER, Decision

WHY_CHARS, SOLUTION_CHARS = 700, 2_000
"""A reader who wants more than a glance has the state, the report and `moot ask`."""
MOST = 6
"""Citations, and open questions, that it names."""


def outcome_message(values: StateValues) -> AIMessage:
    """Return the last message of a debate that has ended: decision, why, citations and what stays open."""
    verdict: Decision | None = values.get("verdict") or None
    step = values.get("step") or {}
    number = verdict.get("judging", 0) if verdict else 0
    ended = step.get("ended_by", {}).get("reason", "")
    config = frozen_config(values)
    headline = protocol_named(config.protocol).headline(verdict, config.names()) if verdict else ""
    parts = _ruling(verdict, headline) if verdict else [f"**No verdict.** {ended}".strip()]
    parts.append(_cut(values.get("solution", ""), SOLUTION_CHARS))
    return AIMessage(
        "\n\n".join(filter(None, parts)), id=f"{OUTCOME}{step.get('no', 0)}-{number}", name="judge"
    )


def _ruling(verdict: Decision, headline: str) -> list[str]:
    if verdict["status"] == "failed":
        return [f"**No verdict.** Judging failed: {_cut(verdict['error'], WHY_CHARS)}"]
    if verdict.get("placeholder"):
        return [f"**{PLACEHOLDER}**"]
    scores = [score for row in verdict["scores"].values() for score in row.values()]
    cited = list(dict.fromkeys(key for score in scores for key in score["citations"]))[:MOST]
    unmet = [item["text"] for item in verdict["unmet_requirements"]]
    sure = confidence_of(verdict)
    left = [*unmet, *verdict["open_questions"]][:MOST]
    return [
        f"**{headline}**" + ("" if sure is None else f" (confidence {sure} of 100)"),
        _cut(verdict["reasoning"], WHY_CHARS),
        f"From {', '.join(cited)}." if cited else "",
        "\n".join(["Open:", *(f"- {_cut(item, WHY_CHARS // 2)}" for item in left)]) if left else "",
    ]


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[:chars].rsplit(' ', 1)[0]} …"
