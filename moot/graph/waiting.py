"""Whether a debate is over, and why a run stopped before: a question to a person, or a wish to pause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moot.nodes.effects import is_pause
from moot.nodes.people.questions import Question, answers_any
from moot.nodes.protocols.limits import limit_reached
from moot.nodes.protocols.protocol_table import protocol_named
from moot.state.config.frozen import frozen_config
from moot.state.errors import DebatePaused, InputError, RunError, WaitingForPerson


def is_over(snapshot: Any) -> bool:
    """Return whether nothing is left to do at LangGraph's snapshot of a state.

    Its `next` alone does not tell: that is empty too where a process died between storing what a node wrote
    and the checkpoint after it. Such a step still has its task.
    """
    return not snapshot.tasks


def can_go_on(values: Mapping[str, Any]) -> bool:
    """Return whether more turns make a debate with this state go on once it is over: protocol and limits."""
    config = frozen_config(values)
    return protocol_named(config.protocol).goes_on and not limit_reached(values, config)


def check_extension(snapshot: Any) -> None:
    """Refuse more turns that would not be taken: another verdict would be paid for nothing.

    Raises:
        InputError: the debate cannot go on.
    """
    config = frozen_config(snapshot.values)
    if reached := limit_reached(snapshot.values, config):
        raise InputError(
            f"{reached}, so no turn would be taken: raise the limit in a configuration file, and go on with "
            "--config FILE --reconfigure"
        )
    if is_over(snapshot) and not protocol_named(config.protocol).goes_on:
        raise InputError(
            f"this debate is over, and protocol {config.protocol!r} takes no more turns after its end: "
            "ask about it with `moot ask`, or start another"
        )


def check_answer(questions: Sequence[Question], answer: Any) -> None:
    """Refuse an answer that answers nothing; `None` is no answer.

    Raises:
        InputError: nothing was asked, or no key of the answer is a question that was.
    """
    if answer is None:
        return
    if not questions:
        raise InputError("the debate waits for no answer: leave it out")
    if isinstance(answer, Mapping) and not answers_any(questions, answer):
        asked = ", ".join(question["id"] for question in questions)
        raise InputError(f"no key of the answer is a question that was asked: use {asked}")


def stopped_by(payloads: Sequence[Any]) -> RunError | None:
    """Return the error that says why a debate with these interrupts stands still, `None` without any."""
    if not payloads:
        return None
    if all(map(is_pause, payloads)):
        return DebatePaused("the debate is paused")
    return WaitingForPerson("the debate waits for a person's answer", questions=list(payloads))
