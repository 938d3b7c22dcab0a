"""Judging again: any debate that is over, or a transcript in memory, by any judge or panel."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from moot.graph.preflight import check_config, check_judges
from moot.graph.session import DebateSession, is_over
from moot.nodes.close import outcome_message, with_answer
from moot.nodes.driving.answering import JournalPlace, run_to_end
from moot.nodes.driving.environment import Environment
from moot.nodes.driving.portal import call_from_sync
from moot.nodes.judge import assess_debate
from moot.state.catalogue import row_amounts
from moot.state.config import DebateConfig, slug
from moot.state.config.boundary import Claim, Reach, reaches
from moot.state.config.config_files import make_config
from moot.state.config.debaters import free_id
from moot.state.conversation import CallReceipt, ConversationState, StateValues, step_no
from moot.state.entries import JsonObject
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
    rubric: str | JsonObject | None = None
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

    def to_json(self) -> JsonObject:
        """Return what was given, as JSON types, for the receipts of what it is asked by."""
        given = {key: value for key, value in vars(self).items() if value is not None}
        if self.configured:
            given["configured"] = {key: self.configured.get(key) or {} for key in ("judge", "models")}
        return given

    def applied_to(self, config: DebateConfig) -> DebateConfig:
        """Return a configuration with these options.

        Raises:
            ConfigError: it cannot be used.
        """
        old = config.to_json()
        for key in ("judge", "models"):
            old[key] = {**old[key], **((self.configured or {}).get(key) or {})}
        given = {key: getattr(self, key) for key in ("model", "rubric", "rule", "swap", "blind")}
        given = {key: value for key, value in given.items() if value is not None}
        judge = {**make_config(old).judge.model_dump(mode="json"), **given, "enabled": True}
        if isinstance(self.panel, int):
            if self.panel < 1:
                raise InputError(f"--panel {self.panel}: give at least 1 judge")
            warmth = max(judge["temperature"] or 0.0, PANEL_TEMPERATURE) if self.panel > 1 else None
            numbers = range(1, self.panel + 1)
            judge["panel"] = [{"id": f"judge-{number}", "temperature": warmth} for number in numbers]
        elif self.panel is not None:
            seats: dict[str, str] = {}
            for model in self.panel:
                seats[free_id(slug(model) or "judge", seats)] = model
            judge["panel"] = [{"id": id_, "model": model} for id_, model in seats.items()]
        else:
            # A configured judge takes the model and rubric that were asked for.
            freed = dict.fromkeys(given.keys() & {"model", "rubric"})
            judge["panel"] = [{**seat, **freed} for seat in judge["panel"]]
        return make_config({**old, "judge": judge})


@dataclass(frozen=True)
class Judgement:
    """What a panel made of a debate."""

    topic: str
    config: JsonObject
    """The configuration that it was judged by."""
    verdict: Decision
    """`status` is `failed` where no judge gave one."""
    verdicts: list[Verdict]
    """One a judge, failed ones too."""
    usage: Mapping[str, float]
    calls: Sequence[CallReceipt] = ()
    """Numbered on from the debate's."""
    stored: bool = False

    @property
    def failed(self) -> bool:
        """Whether there is no decision."""
        return self.verdict["status"] == "failed"

    def to_json(self) -> dict[str, object]:
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
    values: StateValues,
    options: JudgingOptions,
    environment: Environment,
    place: JournalPlace | None = None,
    granted: Collection[Reach] = (),
) -> Judgement:
    """Judge the state of a debate, without writing anything but the journal where `place` has one.

    What the state's configuration names outside is foreign but for what was `granted`; the options are the
    operator's, with what they name.

    Raises:
        ConfigError: the options cannot be used.
        InputError: nobody argued.
    """
    config = options.applied_to(DebateConfig.model_validate(values["config"]))
    own = reaches(options.applied_to(DebateConfig()))
    claim = Claim(config, {*granted, *own}, environment.harmless)
    check_config(claim, environment)
    argued = [entry for entry in values["full_transcript"] if entry["speaker"] in config.names()]
    check_judges(config, [entry["model"] for entry in argued], environment)
    if not argued:
        raise InputError("no debater has said anything yet, so there is nothing to judge")
    flow = assess_debate(cast(ConversationState, values), config, environment.count_for(config))
    made, asked = call_from_sync(run_to_end, flow, environment, claim, place)
    calls, usage = asked.numbered_receipts(values.get("calls") or []), asked.spent
    for call in calls:
        call["options"] = options.to_json()
    return Judgement(values["topic"], config.to_json(), made.decision, made.verdicts, usage, calls)


def judge_debate(session: DebateSession, options: JudgingOptions, *, dry_run: bool = False) -> Judgement:
    """Judge a stored debate again and, unless it is a `dry_run`, store what came of it.

    Every judge's verdict is appended to `verdicts`; the decision becomes `verdict`, unless it failed and
    there is one already.

    Raises:
        InputError: the debate is not over, which a dry run need not be.
        ConfigError: the options cannot be used.
        DebateBusy: another process writes the debate.
    """
    environment, granted = session.environment, session.records.grants.of(session.thread)
    if dry_run:
        return judge_values(session.state().values, options, environment, granted=granted)
    with session.writing() as held:
        snapshot = held.caught_up()
        if not is_over(snapshot):
            raise InputError(
                f"debate {session.name!r} is not over: go on with `moot resume {session.name}`, "
                "or judge it as it stands with --dry-run"
            )
        values = cast(ConversationState, snapshot.values)
        step = step_no(values)
        # A crash repeats no call; a second judging makes new ones.
        number = len(values.get("verdicts") or []) + len(values.get("errors") or [])
        anchor = snapshot.config["configurable"]["checkpoint_id"]
        place = JournalPlace(held.records, session.thread, step, f"rejudge-{number}", anchor)
        judgement = judge_values(snapshot.values, options, environment, place, granted)
        decision = judgement.verdict
        update: dict[str, object] = {
            "verdicts": judgement.verdicts,
            "usage": judgement.usage,
            "calls": judgement.calls,
        }
        if not judgement.failed or not values.get("verdict"):
            update["verdict"] = decision
        if decision["solution_markdown"]:
            update["solution"] = with_answer(values, decision["solution_markdown"])
        if judgement.failed:
            update["errors"] = [{"step": step, "node": "judge", "error": decision["error"]}]
        update["messages"] = [outcome_message({**values, **update})]
        held.update(update)
        spent = row_amounts(add_up(values.get("usage") or {}, [judgement.usage]))
        held.records.outcomes.note(session.thread, values, update)
        held.records.catalogue.update(session.thread, **spent, updated_at=environment.clock())
    return replace(judgement, stored=True)
