"""Evaluating: an evaluator on every debate, all at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moot.nodes.calls import Flow, ModelCall, Reply
from moot.nodes.judging.evaluation_scores import (
    Evaluation,
    EvaluatorOpinion,
    check_evaluation,
    failed_evaluation,
)
from moot.nodes.prompts.fitting import Block, View, fit
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.material import Piece, with_pieces
from moot.nodes.prompts.request import Voice, make_call
from moot.nodes.text.tokens import TokenCounter
from moot.state.config import DebateConfig
from moot.state.config.model_settings import ModelSettings

SYSTEM = load_prompt("evaluator")
ASK = load_prompt("evaluate")

TEMPERATURE = 0.1
"""Evaluators repeat themselves closely, and still are not stuck in one wording."""
REPLY_TOKENS = 2500
SYSTEM_SHARE = 0.25
"""Most of the budget that an evaluator's own system prompt may take."""


@dataclass(frozen=True)
class Evaluator:
    """Who scores."""

    id: str
    model: str
    name: str = ""
    system_prompt: str = ""
    """Stands for the built-in one."""
    user_prompt: str = ""
    """Stands for the layout of the material: `{problem}`, `{clarifications}`, `{final_solution}` and
    `{requirements_info}` are filled in."""
    settings: ModelSettings | None = None
    """How its model is reached, whoever else uses it; `None` leaves that to the configuration."""

    def own(self, config: DebateConfig) -> DebateConfig:
        """Return a configuration with this evaluator's settings of its model."""
        models = {**config.models, **({self.model: self.settings} if self.settings else {})}
        return config.model_copy(update={"models": models})


@dataclass(frozen=True)
class Subject:
    """An outcome to be scored, and the problem that it answers."""

    name: str
    """As tables call it."""
    problem: str
    solution: str
    clarifications: str = ""
    """What was asked back and answered, as text."""
    requirements: str = ""
    """What the judge found unmet, as text."""


def evaluate(
    subjects: Sequence[Subject], evaluator: Evaluator, config: DebateConfig, count: TokenCounter
) -> Flow[list[Evaluation]]:
    """Let one evaluator score every subject; return one evaluation a subject, failed ones too."""
    replies = yield [_call(subject, evaluator, config, count) for subject in subjects]
    return [_evaluation(evaluator, reply) for reply in replies]


def _evaluation(evaluator: Evaluator, reply: Reply) -> Evaluation:
    name = evaluator.name or evaluator.id
    if not reply.ok or reply.data is None:
        error = reply.error or "the evaluator gave no structured answer"
        return failed_evaluation(
            error, evaluator=evaluator.id, name=name, model=evaluator.model, usage=reply.usage
        )
    opinion = EvaluatorOpinion.model_validate(reply.data)
    return check_evaluation(opinion, evaluator=evaluator.id, name=name, model=reply.model, usage=reply.usage)


def _call(subject: Subject, evaluator: Evaluator, config: DebateConfig, count: TokenCounter) -> ModelCall:
    view = evaluation_view(subject, evaluator, config.memory.budget.total, count)
    voice = Voice(evaluator.model, TEMPERATURE, config.fallbacks, config.seed, REPLY_TOKENS)
    hints = {"topic": subject.problem, "debaters": [subject.name]}
    return make_call(voice, "evaluate", view, schema=EvaluatorOpinion, hints=hints)


def evaluation_view(subject: Subject, evaluator: Evaluator, budget: int, count: TokenCounter) -> View:
    """Assemble an evaluator's prompt within `budget`; the longest parts are cut in their middle."""
    from moot.nodes.prompts.rendering import cut_message

    text = evaluator.system_prompt or SYSTEM.render()
    system = cut_message({"role": "system", "content": text}, int(budget * SYSTEM_SHARE), count)
    pieces = [_custom(subject, evaluator)] if evaluator.user_prompt else _parts(subject)
    tail = Block("tail", {"role": "user", "content": ASK.render()}, label="what is asked")
    blocks = with_pieces([Block("system", system, label="evaluator")], pieces, tail, budget, count)
    return fit(blocks, budget, count)


def _parts(subject: Subject) -> list[Piece]:
    parts = {
        "Problem": subject.problem,
        "Clarifications": subject.clarifications,
        "Solution": subject.solution,
        "Found unmet by the judge of the debate": subject.requirements,
    }
    return [
        Piece({"role": "user", "content": f"# {heading}\n{text}"}, 0, heading.lower())
        for heading, text in parts.items()
        if text.strip()
    ]


def _custom(subject: Subject, evaluator: Evaluator) -> Piece:
    """Fill a prompt of the user's; what it is filled with is never read as a template."""
    import re

    values = {
        "problem": subject.problem,
        "clarifications": subject.clarifications or "(none)",
        "final_solution": subject.solution,
        "requirements_info": subject.requirements or "(none)",
    }
    pattern = re.compile(r"\{(" + "|".join(values) + r")\}")
    text = pattern.sub(lambda match: values[match[1]], evaluator.user_prompt)
    return Piece({"role": "user", "content": text}, 0, "evaluator's own prompt")
