"""Debaters that a model proposes for a question."""

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, Field

from moot.calls.model_calls import CallGenerator
from moot.config import DebateConfig, boundary, slug
from moot.config.participants import RESERVED_IDS, DebaterConfig, unique_slug, unreserved_name
from moot.models.endpoints import other_model
from moot.prompts.request import counter_of, make_call, many, model_params
from moot.prompts.templates import load_prompt_template
from moot.prompts.truncation import Block, truncate_blocks
from moot.runtime import background_loop, run_node
from moot.runtime.environment import Environment
from moot.state.entries import JsonObject, clean_text
from moot.state.errors import ModelError
from moot.text.plain_text import break_template_tokens, clip

PROPOSE = load_prompt_template("propose")
PROPOSAL_TOKENS = 400
"""Maximum number of tokens in a model's reply that proposes two debaters."""
PROPOSED_NAME_CHARS = 40
"""Maximum length of a proposed debater's name or role, in characters. Longer texts are truncated."""
STANCE_CHARS = 300
"""Maximum length of a proposed debater's stance, in characters. A longer stance is truncated."""


class ProposedDebater(BaseModel):
    """One debater that the model proposes."""

    name: str = Field("", description="First name.")
    role: str = Field("", description="Role of the debater, in at most six words.")
    stance: str = Field("", description="The debater's answer to the question, in one sentence.")


class ProposedDebaters(BaseModel):
    """Two proposed debaters who give different answers to the question."""

    debaters: many(ProposedDebater, 2, 2) = Field(default_factory=list)  # type: ignore[valid-type]  # checked by Pydantic


def propose_debaters(
    question: str, config: DebateConfig, environment: Environment, rejected: Sequence[DebaterConfig] = ()
) -> tuple[tuple[DebaterConfig, ...], float]:
    """Ask the model for two debaters with stances, and return them and the cost, or raise a `ModelError`.

    The user has already rejected the debaters in `rejected`, so the model is told to propose others.
    """

    async def ask() -> tuple[list[JsonObject], Mapping[str, float]]:
        try:
            result, handler = await run_node.run_to_end(
                _proposal(question, config, rejected), environment, boundary.Permissions.of_operator(config)
            )
            return result, handler.spent
        finally:
            await environment.aclose()

    proposals, usage = background_loop.call_from_sync(ask)
    debaters: list[DebaterConfig] = []
    taken_ids = set(RESERVED_IDS)
    for number, proposal in enumerate(proposals[:2], start=1):
        name, role = (
            clip(" ".join(clean_text(str(proposal[key])).split()), PROPOSED_NAME_CHARS)
            for key in ("name", "role")
        )
        stance = clip(" ".join(clean_text(str(proposal["stance"])).split()), STANCE_CHARS)
        if name and stance:
            debater_id = unique_slug(slug(name) or f"debater-{number}", taken_ids)
            taken_ids.add(debater_id)
            debaters.append(
                DebaterConfig(id=debater_id, name=unreserved_name(name), role=role, stance=stance)
            )
    if len(debaters) < 2 or debaters[0].name == debaters[1].name:
        raise ModelError(
            f"model {config.model!r} did not propose two debaters: name two debaters yourself, each with "
            "--debater NAME:ROLE:STANCE"
        )
    return tuple(debaters), float(usage.get("cost_usd", 0.0))


def _proposal(
    question: str, config: DebateConfig, rejected: Sequence[DebaterConfig]
) -> CallGenerator[list[JsonObject]]:
    params = model_params(config, config.debaters[0])
    others = "; ".join(f"{each.name}, {each.role}: {each.stance}" for each in rejected)
    instruction = f"{PROPOSE.render()} Propose other people and other stances than these: {others}"
    blocks = [
        Block(
            "system",
            {"role": "system", "content": instruction if rejected else PROPOSE.render()},
            label="instruction",
        ),
        Block("turn_suffix", {"role": "user", "content": break_template_tokens(question)}, label="question"),
    ]
    prompt = truncate_blocks(blocks, config.memory.budget.total, counter_of(params, config))
    (reply,) = yield [make_call(params, "evaluate", prompt, schema=ProposedDebaters, reply=PROPOSAL_TOKENS)]
    if reply.error:  # no debate is stored yet that could be resumed
        raise ModelError(reply.error.replace(other_model(), "choose another model with --model NAME"))
    proposal = ProposedDebaters.model_validate(reply.data or {})
    return [each.model_dump() for each in proposal.debaters]
