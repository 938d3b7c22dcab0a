"""`judge`: the verdict on what was said."""

from moot.nodes.calls import Flow
from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import Body, Emit, errors_update
from moot.nodes.judging.assess import Assessment, assess, next_judging
from moot.nodes.memory.perspective import NewSummary, judge_summary
from moot.nodes.memory.summarizers.drafting import version_of
from moot.nodes.protocols.protocol_table import protocol_named
from moot.nodes.text.tokens import TokenCounter
from moot.state.config import DebateConfig
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationState
from moot.state.entries import JsonObject


def assess_debate(state: ConversationState, config: DebateConfig, count: TokenCounter) -> Flow[Assessment]:
    """Let the panel judge, as the debate's protocol wants it."""
    protocol = protocol_named(config.protocol)
    return assess(state, config, count, protocol.brief, protocol.evidence(state))


def judge(state: ConversationState, context: NodeContext) -> Body:
    """Let the panel judge; a verdict that failed says so and is never replaced by anybody's answer."""
    config = frozen_config(state)
    count, protocol = context.env.count_for(config), protocol_named(config.protocol)
    if "ended_by" not in state["step"]:
        return (yield from protocol.look(state, config, count))
    ruling = protocol.ruling(state, config)
    made: NewSummary | None = None
    if ruling is None:
        final = protocol.final_round(state)
        made = yield from judge_summary(state, config, final, count, context.env.clock())
        seen: ConversationState = {**state}
        seen.pop("judge_summary", None)  # an earlier judging's
        if made and made.summary:
            seen["judge_summary"] = made.summary
        assessment = yield from assess_debate(seen, config, count)
    else:
        assessment = Assessment([], {**ruling, "judging": next_judging(state)})
    decision = assessment.decision
    yield Emit({"event": "verdict", "status": decision["status"], "winner": decision["winner"]})
    update: JsonObject = {
        "verdicts": assessment.verdicts,
        "verdict": decision,
        "solution": decision["solution_markdown"],
    }
    if made and made.summary:
        update |= {"judge_summary": made.summary, "summary_versions": [version_of(made.summary)]}
    failures = [decision["error"] if decision["status"] == "failed" else "", made.failure if made else ""]
    return {**update, **errors_update(state, "judge", failures)}
