"""Solver and scorer for Inspect (`inspect_ai`), whose logs and viewer then show Moot's debates."""

from pathlib import Path

from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from moot.api import aopen_debates
from moot.config import DebateConfig, stages
from moot.plugins.evals.items import QuestionItem, gold_answer, read_answer, topic_of


def _item(state: TaskState) -> QuestionItem:
    """Return a sample's question with the form of its answer."""
    choices = tuple(choice.value for choice in state.choices)
    target = state.target.text
    return QuestionItem(
        id=str(state.sample_id), question=state.input_text, choices=choices, answer=target or None
    )


@solver
def debate(config: DebateConfig | str | None = None, database: str = ":memory:") -> Solver:
    """Return a solver that has debaters answer a sample's question.

    The debate's settings choose its models, so Inspect's own model is not called. The log's metadata holds
    the debate's id, decision, turns and cost.

    Args:
        config: Settings of the debates, or the path of a configuration file. Default: two debaters.
        database: Database of the debates, as for `open_debates`. Default: a temporary one for each sample.

    Returns:
        The solver. It raises `MootError` if a debate fails.
    """
    settings = stages.read_config(Path(config)) if isinstance(config, str) else config or DebateConfig()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        async with aopen_debates(database) as debates:
            debate = await debates.astart(topic_of(_item(state)), settings)
            document = await debate.arun()
            row = debate.row
        verdict = document["verdict"] or {}
        state.output.completion = document["final_answer"]
        state.metadata["moot"] = {
            "debate": debate.id,
            "decision": verdict.get("decision", ""),
            "turns": row.turns,
            "cost_usd": row.cost_usd,
        }
        return state

    return solve


@scorer(metrics=[accuracy(), stderr()])
def debate_answer() -> Scorer:
    """Return a scorer that compares the line `Answer: …` of an answer with the sample's target.

    It reads choices, numbers and texts as `moot eval run` does. An unreadable answer is incorrect.
    """

    async def score(state: TaskState, target: Target) -> Score:
        item = _item(state)
        answer = read_answer(state.output.completion, item)
        is_correct = answer is not None and answer == gold_answer(item)
        return Score(
            value=CORRECT if is_correct else INCORRECT, answer=answer, explanation=state.output.completion
        )

    return score
