"""A debate's baselines: the same question, model and tokens, without anybody answering anybody."""

from collections.abc import Mapping

from moot.graph.api import Debate, Debates
from moot.nodes.protocols.stand_in import forecast
from moot.state.catalogue import handle
from moot.state.config import DebateConfig
from moot.state.config.model_settings import RECORDED
from moot.state.errors import DebateNotFound, InputError

BASELINES = ("single", "vote")
KEPT = ("model", "fallbacks", "temperature", "seed", "language", "memory", "judge", "limits", "models")
"""What a baseline takes over from its debate's configuration."""
FEWEST, MOST = 2, 256
"""What `vote.answers` takes."""


def baseline_of(debates: Debates, debate: Debate, protocol: str) -> Debate:
    """Return a debate's baseline, `NAME-single` or `NAME-vote`; made where it is not there, to be run.

    A single answer takes what one call takes; of a vote there are as many answers as the debate's tokens pay:
    each takes what the single answer took, where that has been given, else what is expected.
    """
    name = handle(debate.id, debate.name)
    if made := _found(debates, f"{name}-{protocol}"):
        return made
    values, old = debate.state().values, debate.config().to_json()
    if old["model"].startswith(RECORDED):
        raise InputError(f"{name}: a recording answers what it was asked alone; compare a debate of a model")
    given = {**{key: old[key] for key in KEPT}, "protocol": protocol, "topic": values["topic"]}
    if protocol == "vote":
        single = _found(debates, f"{name}-{BASELINES[0]}")
        each = single.row.tokens if single and single.is_over() else _expected(given, 3) - _expected(given, 2)
        answers = round(debate.row.tokens / (each or 1))
        given["vote"] = {"answers": min(MOST, max(FEWEST, answers))}
    documents = values.get("context_documents") or []
    config = DebateConfig.model_validate(given)
    return debates.start(values["topic"], config, name=f"{name}-{protocol}", documents=documents)


def _found(debates: Debates, name: str) -> Debate | None:
    try:
        return debates.get(name)
    except DebateNotFound:
        return None


def _expected(given: Mapping[str, object], answers: int) -> int:
    """Return the tokens that a vote of so many answers is expected to take."""
    planned = forecast(DebateConfig.model_validate({**given, "vote": {"answers": answers}}))
    assert planned is not None  # noqa: S101  # a vote ends
    return planned.expected(lambda batch: batch.prompt) + planned.expected(lambda batch: batch.reply)
