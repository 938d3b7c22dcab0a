"""Default settings of a protocol for its judge, and the size of a judge's prompt."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from moot.config import DebateConfig, PanelJudge
from moot.prompts.request import ModelParams, model_params
from moot.state import verdict as verdict_types
from moot.state.entries import ModelFacts


@dataclass(frozen=True)
class JudgeSpec:
    """Default settings for the judge of a debate protocol."""

    instruction: str = ""
    """Additional instruction for the judge, placed at the end of the prompt."""
    judging: verdict_types.Judging = "contest"
    """Judging mode, such as `contest` or `design`, which determines the fields of a verdict."""
    subject: str = "a debate"
    """Phrase that completes the sentence "You judge …" in the judge's prompt. It is used if `interactive` is
    true."""
    rubric: str = "debate"
    swap: bool = True
    """True if each judge gives one verdict for each order of the debaters."""
    interactive: bool = True
    """True if the debaters can read each other's messages."""
    judged: bool = True
    """True if debates with this protocol are judged."""
    reads_summary: bool = True
    """True if the judge's prompt shows the rolling summary. If no prompt shows the summary, none is made."""

    @property
    def solution(self) -> bool:
        """Return True if the judge writes a solution, and checks whether it meets requirements."""
        return self.judging in verdict_types.SOLVED


MAX_PROMPT_TOKENS = 32_000
"""Maximum size of a judge's prompt that the model's context alone allows. It holds a council of 23 messages
and a document of 2,500 words whole, which needs 2 % more tokens than a prompt of 8,000."""
CONTEXT_SHARE = 0.25
"""Share of the model's context that a judge's prompt may use without a higher `memory.budget.total`."""


NO_FACTS: Mapping[str, ModelFacts] = MappingProxyType({})


def context_size(config: DebateConfig, params: ModelParams, facts: Mapping[str, ModelFacts]) -> int | None:
    """Return the smallest known context size of a model and its fallbacks. `None`: unknown.

    The size is in Moot's tokens: the size in the model's own tokens, divided by the learned ratio of the two.
    """
    sizes = []
    for name in (params.model, *params.fallbacks):
        known = facts.get(name, {})
        size = min(filter(None, (known.get("limit"), config.settings(name).context_size)), default=0)
        sizes.append(int(size / known.get("ratio", 1.0)))
    return min(filter(None, sizes), default=None)


def judge_config(
    config: DebateConfig,
    panel_judge: PanelJudge,
    reply: int,
    facts: Mapping[str, ModelFacts] = NO_FACTS,
) -> DebateConfig:
    """Return the configuration with the token budget of a judge's prompt.

    The budget is `memory.budget.total`, or a quarter of the model's context up to `MAX_PROMPT_TOKENS` if that
    is more. Prompt and reply never exceed the context. The shares of the prompt's parts grow with the budget.
    """
    budget, size = config.memory.budget, context_size(config, model_params(config, panel_judge), facts)
    if not size:
        return config
    goal = max(budget.total, min(MAX_PROMPT_TOKENS, int(size * CONTEXT_SHARE)))
    total = min(goal, max(size - reply, size // 2))  # else the reply is cut
    if total == budget.total:
        return config
    parts = {
        name: int(getattr(budget, name) * total / budget.total) for name in ("system", "summary", "messages")
    }
    judge_budget = budget.model_copy(update={"total": total, **parts})
    return config.model_copy(update={"memory": config.memory.model_copy(update={"budget": judge_budget})})
