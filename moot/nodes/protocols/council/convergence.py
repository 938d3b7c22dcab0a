"""How far a council's proposals agree, which may end it: one structured call at the end of a round."""

from typing import Literal

from pydantic import BaseModel, Field

from moot.nodes.blackboard.by_model import found_in
from moot.nodes.calls import Flow, Hints
from moot.nodes.effects import errors_update
from moot.nodes.memory.perspective import latest_proposals
from moot.nodes.prompts.fitting import Block, fit
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.material import with_pieces
from moot.nodes.prompts.rendering import render_entry
from moot.nodes.prompts.request import make_call, voice_of
from moot.nodes.text.tokens import TokenCounter, cut_middle
from moot.state.config import DebateConfig, ProtocolSettings
from moot.state.conversation import ConvergenceCheck, ConversationState
from moot.state.entries import JsonObject

CONVERGENCE = "convergence"
"""Phase of the step that asks."""

PROMPT = load_prompt("convergence", "topic", home=__package__)
REPLY_TOKENS = 800


class TerminationConfig(ProtocolSettings):
    """When a council stops early."""

    key = "termination"

    type: Literal["fixed", "convergence"] = "fixed"
    """`fixed` runs every round; `convergence` asks the judge after each but the last."""
    threshold: float = Field(0.8, ge=0, le=1)
    """Share of agreement, 0 to 1, from which the debate stops."""


class Convergence(BaseModel):
    """What the judge may say. The reasoning comes first."""

    reasoning: str = Field(description="Where the proposals agree and where they do not.")
    in_dispute: list[str] = Field([], description="What is still in dispute, one point each.")
    agreement: float = Field(
        ge=0, le=1, description="Share of agreement: a fraction between 0 and 1, not a percentage."
    )


def check_convergence(
    state: ConversationState, config: DebateConfig, count: TokenCounter
) -> Flow[JsonObject]:
    """Ask how far the proposals agree; a check that tells no share ends nothing and is recorded."""
    budget, names = config.memory.budget, config.names()
    topic = cut_middle(state["topic"], budget.total // 2, count)
    frame = Block("system", {"role": "system", "content": PROMPT.render(topic=topic)}, label="problem")
    proposals = latest_proposals(state["full_transcript"]).values()
    pieces = [
        Block("messages", render_entry(entry, names), ids=(entry["id"],), label=f"proposal {entry['id']}")
        for entry in proposals
    ]
    last = Block("tail", {"role": "user", "content": "How far do these proposals agree?"}, label="question")
    view = fit(with_pieces([frame], pieces, last, budget.total, count), budget.total, count)
    hints: Hints = {"phase": CONVERGENCE, "topic": state["topic"], "debaters": list(names)}
    voice = voice_of(config, config.judge)
    call = make_call(voice, "evaluate", view, schema=Convergence, reply=REPLY_TOKENS, hints=hints)

    (reply,) = yield [call]
    said = found_in(Convergence, reply)
    check: ConvergenceCheck = {
        "round": state["step"]["round"],
        "agreement": said["agreement"] if said else None,
        "in_dispute": said["in_dispute"] if said else [],
    }
    error = f"convergence was not checked: {reply.error or 'the answer tells no share of agreement'}"
    return {"convergence": [check], **errors_update(state, "judge", [] if said else [error])}
