"""Judging again: any debate that is over, or a transcript in memory, by any judge or panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from moot.graph.preflight import check_config
from moot.graph.session import DebateSession, is_over
from moot.nodes.close import with_answer
from moot.nodes.driving.answering import Answering, Place, run_flow
from moot.nodes.driving.environment import Environment
from moot.nodes.driving.portal import call_from_sync
from moot.nodes.judge import assess_debate
from moot.nodes.judging.assess import Assessment
from moot.state.catalogue import row_amounts
from moot.state.config import DebateConfig, slug
from moot.state.config.config_files import make_config
from moot.state.conversation import ConversationState
from moot.state.errors import InputError
from moot.state.reducers import add_up
from moot.state.verdict import Decision, Verdict

PANEL_TEMPERATURE = 0.7
"""Of several judges of one model, who could not differ at 0."""


@dataclass(frozen=True)
class JudgingOptions:
    """What is judged otherwise than the debate's configuration says; `None` is as configured."""

    model: str | None = None
    """Model of every judge who names none."""
    rubric: str | dict[str, Any] | None = None
    """A shipped rubric's name, or a rubric's content."""
    panel: int | Sequence[str] | None = None
    """So many judges, or one for each of these models."""
    rule: str | None = None
    """How the panel decides: `mean`, `majority`, `ranked`, `approval` or `unanimous`."""
    swap: bool | None = None
    """Whether every judge judges in two orders."""
    blind: bool | None = None
    """Whether names are hidden."""
    configured: Mapping[str, Any] | None = None
    """A configuration whose `judge` and `models` count instead of the debate's; the other options win."""

    def applied_to(self, config: DebateConfig) -> DebateConfig:
        """Return a configuration with these options.

        Raises:
            ConfigError: it cannot be used.
        """
        config = self._reconfigured(config)
        given = {key: getattr(self, key) for key in ("model", "rubric", "rule", "swap", "blind")}
        judge = {**config.judge.model_dump(mode="json"), "enabled": True}
        judge |= {key: value for key, value in given.items() if value is not None}
        if self.panel is not None:
            judge["panel"] = _seats(self.panel, judge["temperature"])
        elif self.model is not None or self.rubric is not None:
            judge["panel"] = [_overridden(seat, given) for seat in judge["panel"]]
        return make_config({**config.to_json(), "judge": judge})

    def _reconfigured(self, config: DebateConfig) -> DebateConfig:
        if self.configured is None:
            return config
        old = config.to_json()
        new = {key: {**old[key], **(self.configured.get(key) or {})} for key in ("judge", "models")}
        return make_config({**old, **new})


def _overridden(seat: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configured judge who takes the model and rubric that were asked for."""
    freed = {key: None for key in ("model", "rubric") if given[key] is not None}
    return {**seat, **freed}


def _seats(panel: int | Sequence[str], temperature: float | None) -> list[dict[str, Any]]:
    if isinstance(panel, int):
        if panel < 1:
            raise InputError(f"--panel {panel}: give at least 1 judge")
        warmth = {"temperature": max(temperature or 0.0, PANEL_TEMPERATURE)} if panel > 1 else {}
        return [{"id": f"judge-{number}", **warmth} for number in range(1, panel + 1)]
    taken: dict[str, int] = {}
    seats = []
    for model in panel:
        name = slug(model)[:36] or "judge"
        taken[name] = taken.get(name, 0) + 1
        seats.append({"id": name if taken[name] == 1 else f"{name}-{taken[name]}", "model": model})
    return seats


@dataclass(frozen=True)
class Judgement:
    """What a panel made of a debate."""

    topic: str
    config: dict[str, Any]
    """The configuration that it was judged by."""
    verdict: Decision
    """`status` is `failed` where no judge gave one."""
    verdicts: list[Verdict]
    """One a judge, failed ones too."""
    usage: dict[str, float]
    stored: bool = False

    @property
    def failed(self) -> bool:
        """Whether there is no decision."""
        return bool(self.verdict["status"] == "failed")

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return {
            "topic": self.topic,
            "verdict": self.verdict,
            "verdicts": self.verdicts,
            "agreement": self.verdict.get("agreement") or {},
            "usage": self.usage,
            "stored": self.stored,
        }


def judge_values(
    values: Mapping[str, Any],
    options: JudgingOptions,
    environment: Environment,
    place: Place | None = None,
) -> Judgement:
    """Judge the state of a debate, without writing anything but the journal where `place` has one.

    Raises:
        ConfigError: the options cannot be used.
        InputError: nobody argued.
    """
    frozen = DebateConfig.model_validate(values["config"])
    config = options.applied_to(frozen)
    check_config(config, environment)
    if not any(entry["speaker"] in config.names() for entry in values["full_transcript"]):
        raise InputError("no debater has said anything yet, so there is nothing to judge")
    assessment, usage = call_from_sync(_assess, values, config, environment, place or Place())
    return Judgement(values["topic"], config.to_json(), assessment.decision, assessment.verdicts, usage)


async def _assess(
    values: Mapping[str, Any], config: DebateConfig, environment: Environment, place: Place
) -> tuple[Assessment, dict[str, float]]:
    state = cast(ConversationState, values)
    answering = Answering(environment, config, place)
    flow = assess_debate(state, config, environment.count_for(config))
    return await run_flow(flow, answering), answering.spent.totals


def judge_debate(session: DebateSession, options: JudgingOptions, *, dry_run: bool = False) -> Judgement:
    """Judge a stored debate again and store what came of it.

    Every judge's verdict is appended to `verdicts`; the decision becomes `verdict`, unless it failed and
    there is one already.

    Args:
        session: of a debate that is over; with `dry_run` any.
        options: what is judged otherwise than configured.
        dry_run: whether nothing is written.

    Raises:
        InputError: the debate is not over.
        ConfigError: the options cannot be used.
        DebateBusy: another process writes the debate.
    """
    environment = session.environment
    if dry_run:
        return judge_values(session.state().values, options, environment)
    with session.writing():
        snapshot = session.caught_up()
        if not is_over(snapshot):
            raise InputError(
                f"debate {session.name!r} is not over: go on with `moot resume {session.name}`, "
                "or judge it as it stands with --dry-run"
            )
        place = _place(session, snapshot)
        judgement = judge_values(snapshot.values, options, environment, place)
        _store(session, snapshot.values, judgement)
    return replace(judgement, stored=True)


def _place(session: DebateSession, snapshot: Any) -> Place:
    """Return where the calls stand: a crash repeats none of them, a second judging makes new ones."""
    values = snapshot.values
    number = len(values.get("verdicts") or []) + len(values.get("errors") or [])
    anchor = snapshot.config["configurable"]["checkpoint_id"]
    step = int((values.get("step") or {}).get("no", 0))
    return Place(session.records, session.thread, step, f"rejudge-{number}", anchor)


def _store(session: DebateSession, values: Mapping[str, Any], judgement: Judgement) -> None:
    decision = judgement.verdict
    update: dict[str, Any] = {"verdicts": judgement.verdicts, "usage": judgement.usage}
    if not judgement.failed or not values.get("verdict"):
        update["verdict"] = decision
    if decision["solution_markdown"]:
        update["solution"] = with_answer(cast(ConversationState, values), decision["solution_markdown"])
    if judgement.failed:
        step = int((values.get("step") or {}).get("no", 0))
        update["errors"] = [{"step": step, "node": "judge", "error": decision["error"]}]
    # Written as by `close`, after which nothing follows: the debate stays over.
    session.update_after("close", update)
    session.records.catalogue.update(
        session.thread, **_spent(values, judgement), updated_at=session.environment.clock()
    )


def _spent(values: Mapping[str, Any], judgement: Judgement) -> dict[str, Any]:
    return row_amounts(add_up(values.get("usage") or {}, [judgement.usage]))
