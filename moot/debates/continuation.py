"""Functions that resume and judge stored debates, and the exceptions for a run that stops early."""

from asyncio import CancelledError
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from langchain_core.messages import AIMessageChunk
from langgraph.types import Command, StateSnapshot

from moot.calls.effects import BackgroundTask, is_pause
from moot.config import DebateConfig, boundary, config_files, participants, slug, stages
from moot.config.debate_config import frozen_config, read_stored, runnable_config
from moot.config.model_settings import is_built_in, recording_in
from moot.debates.config_checks import check_config, check_judges
from moot.debates.events import Event, TokenEvent
from moot.debates.session import DebateSession, Values, is_over
from moot.judging.assessment import Assessment
from moot.models.attempt import RETRACTS
from moot.nodes.close import result_update
from moot.people import PersonQuestion, questions_in, reply_error
from moot.protocols.registry import find_protocol, limit_reached, protocol_named
from moot.protocols.result import with_final_answer
from moot.protocols.schedule import make_step
from moot.runtime import background_loop
from moot.runtime.context import node_context
from moot.runtime.environment import Environment
from moot.runtime.fitting import fitted_context, until_prompts_fit
from moot.runtime.run_node import JournalPosition, run_to_end
from moot.runtime.telemetry import within_langsmith_root
from moot.state.conversation import CallReceipt, ConversationState, EndReason, StateValues, Step, step_number
from moot.state.entries import JsonObject, ModelFacts
from moot.state.errors import DebatePaused, InputError, WaitingForPerson, advise, option
from moot.state.reducers import ENTRY, add_totals
from moot.state.verdict import PanelVerdict, Verdict
from moot.storage.catalogue import row_usage


def run_on(session: DebateSession, *, turns: int | None, answer: object, tokens: bool) -> Iterator[Event]:
    """Resume a debate and yield its events, as described in `Debate.stream`."""
    with _run(session, turns, answer) as leased_session:
        yield from background_loop.iterate_from_sync(
            lambda: _events(leased_session, answer, tokens=tokens), holds=_is_entry
        )
    if session.extensions:  # a replay is extended at the same points as the original
        more_turns, *rest = session.extensions
        yield from run_on(replace(session, extensions=(*rest,)), turns=more_turns, answer=None, tokens=tokens)


async def arun_on(
    session: DebateSession, *, turns: int | None, answer: object, tokens: bool
) -> AsyncGenerator[Event, None]:
    """Resume a debate asynchronously, and yield its events as described in `Debate.stream`."""
    async with (
        background_loop.enter_in_thread(_run(session, turns, answer)) as leased_session,
        aclosing(
            background_loop.iterate_from_async(
                lambda: _events(leased_session, answer, tokens=tokens), holds=_is_entry
            )
        ) as events,
    ):
        async for event in events:
            yield event
    if session.extensions:
        more_turns, *rest = session.extensions
        extended = replace(session, extensions=(*rest,))
        async for event in arun_on(extended, turns=more_turns, answer=None, tokens=tokens):
            yield event


def _is_entry(event: Event) -> bool:
    """Return True for a new entry, after which the debate pauses until the next event is requested."""
    return bool(event["event"] == "entry")


@contextmanager
def _run(session: DebateSession, turns: int | None, answer: object) -> Iterator[DebateSession]:
    """Run a debate in a `with` block, which holds the lease, and record how the run ended."""
    with session.writing() as leased_session:
        _prepare_run(leased_session, turns, answer)
        try:
            yield leased_session
        except (KeyboardInterrupt, GeneratorExit, CancelledError):
            if not is_over(leased_session.state()):  # the run may have ended before its caller stopped
                leased_session.note_status("paused")
            raise
        # The exception tells the caller why the run stopped.
        snapshot = leased_session.state()
        if is_over(snapshot):  # a killed run may have stored the last writes without the status
            if leased_session.records.find(leased_session.thread).status != snapshot.values["status"]:
                leased_session.note_status(snapshot.values["status"])
        elif payloads := [each.value for each in snapshot.interrupts]:
            if all(map(is_pause, payloads)):
                leased_session.note_status("paused")
                raise DebatePaused("the debate is paused")
            leased_session.note_status("waiting")
            raise WaitingForPerson("the debate is waiting for a person's reply", questions=payloads)


async def _events(session: DebateSession, answer: object, *, tokens: bool) -> AsyncIterator[Event]:
    root = session.roots.pop(session.thread, None)
    with within_langsmith_root(root):
        async for event in _stream(session, answer, tokens=tokens):
            yield event


async def _stream(session: DebateSession, answer: object, *, tokens: bool) -> AsyncIterator[Event]:
    stream = session.graph.astream(
        None if answer is None else Command(resume=answer),
        session.run_config,
        stream_mode=["custom", "messages"] if tokens else ["custom"],
        durability="sync",
    )
    payload: Any  # depends on the mode
    async for mode, payload in stream:
        if mode == "custom":
            yield payload
        elif isinstance(chunk := payload[0], AIMessageChunk):
            entry = payload[1].get(ENTRY)
            event: TokenEvent = {
                "event": "token",
                "id": entry,
                "speaker": chunk.name or "",
                "text": chunk.text,
            }
            if chunk.response_metadata.get(RETRACTS):
                event["replaces"] = True
            yield event


def _prepare_run(session: DebateSession, turns: int | None, answer: object) -> None:
    """Add the requested turns, and remove a failed verdict, so that the judge can decide again."""
    snapshot = session.caught_up()
    runnable_config(
        snapshot.values
    )  # raises if there is no configuration, for which `open` would use the defaults
    session.permissions(snapshot.values).authorize()
    if answer is not None and (problem := reply_error(questions_at(snapshot), answer)):
        raise InputError(problem)
    if turns:
        _check_extension(session, snapshot)
    else:
        _check_replies(session, snapshot)
    session.records.inbox.consume_pause(session.thread)  # resuming overrides an earlier pause request
    values, next_nodes = snapshot.values, snapshot.next
    following: Sequence[str] = () if next_nodes else ("plan",)
    update: dict[str, object] = {}
    if turns or (is_over(snapshot) and verdict_failed(values)):
        update = {"verdict": {}, "solution": "", "status": "running"}
    if turns:
        turn_count, configured_turns = values["turn_count"], frozen_config(values).total_turns()
        start = turn_count if is_over(snapshot) else max(configured_turns, turn_count)
        # The caller wants these turns, whether or not the debaters agree.
        update["config"] = {**values["config"], "turns": start + turns, "stop": []}
        if set(next_nodes) & {"judge", "close"}:
            following = ("plan",)  # the debate no longer ends here
    if next_nodes == ("turn",) and _failures_reach_a_limit(session, values):
        update, following = {**update, "status": "running"}, ("plan",)  # `plan` ends it
    if update and turns and is_over(snapshot):
        session.update_after("open", update)  # summarizes first what nobody was going to read before
    elif update:
        session.update(update, following)
    if next_nodes or update:
        session.note_status("running")


def _failures_reach_a_limit(session: DebateSession, values: Values) -> bool:
    """Return True if usage that the totals in the state do not include yet reaches a limit."""
    config = frozen_config(values)
    current_values = session.records.with_pending_usage(session.thread, values)
    return bool(limit_reached(current_values, config)) and not limit_reached(values, config)


def model_after_recording(config: DebateConfig, default: str | None) -> str | None:
    """Return the `default` model if it takes over when the recorded replies of a debate have run out.

    `None`: it is missing or built-in, or the debate uses no recording.
    """
    if default is None or is_built_in(default) or not recording_in(config.model_names()):
        return None
    return default


def _own_model() -> str:
    """Return the advice to continue a debate with recorded replies with another model."""
    setup = "run `moot setup` once (and restart `moot serve`), or add --model NAME"
    return f"continue with your own model: {advise(setup, 'change it with `Debate.reconfigure`')}"


def check_fork(values: Values, config: DebateConfig, turns: int | None) -> None:
    """Raise an `InputError` if a fork could not continue: its model only replays, or a limit is reached.

    `turns` are added to those of the state `values`. `None`: those that the configuration allows.
    """
    if turns:
        _check_more_turns(values, config)
    else:
        _check_fork_model(config)


def _check_replies(session: DebateSession, snapshot: StateSnapshot) -> None:
    """Raise an error if an unfinished fork uses a model that can only replay replies."""
    if not is_over(snapshot) and session.records.find(session.thread).parent:
        _check_fork_model(frozen_config(snapshot.values))


def _check_fork_model(config: DebateConfig) -> None:
    """Raise an error if a fork's model only replays: it takes a new course, which no recording fits."""
    if recorded_model := recording_in(config.model_names()):
        raise InputError(
            f"the model {recorded_model!r} can only replay a recorded debate and cannot reply in a fork of "
            f"that debate: {_own_model()}"
        )


def _check_more_turns(values: Values, config: DebateConfig) -> None:
    """Raise an error if recorded replies or a limit prevent more turns."""
    if recorded_model := recording_in(config.model_names()):
        raise InputError(f"the model {recorded_model!r} has no more recorded turns: {_own_model()}")
    if limit := limit_reached(values, config):
        way = advise("in a file, and continue with --config FILE --reconfigure", "with `Debate.reconfigure`")
        raise InputError(f"{limit.reason}, so the debate takes no more turns: raise the limit {way}")


def _check_extension(session: DebateSession, snapshot: StateSnapshot) -> None:
    """Raise an error if no more turns can be added to the debate."""
    config = frozen_config(snapshot.values)
    _check_more_turns(session.records.with_pending_usage(session.thread, snapshot.values), config)
    if is_over(snapshot) and not protocol_named(config.protocol).can_continue:
        raise InputError(
            f"the debate is finished, and protocol {config.protocol!r} allows no more turns: ask about the "
            f"debate with {advise('`moot ask`', '`Debate.ask`', 'the tool `ask`')}, or start a new debate"
        )


def can_go_on(values: Values) -> bool:
    """Return True if more turns can be added to a debate that has ended."""
    config = frozen_config(values)
    protocol = find_protocol(config.protocol)  # `None` if the plug-in is not installed here
    return bool(protocol and protocol.can_continue) and not limit_reached(values, config)


def verdict_failed(values: Values) -> bool:
    """Return True if the judges failed to reach a verdict. A resumed debate is then judged again."""
    return bool((values.get("verdict") or {}).get("status") == "failed")


def questions_at(snapshot: StateSnapshot) -> list[PersonQuestion]:
    """Return the questions in a state snapshot that a person has not answered yet."""
    return questions_in([each.value for each in snapshot.interrupts])


PANEL_TEMPERATURE = 0.7
"""Minimum sampling temperature for judges that use the same model. At 0, they would return equal verdicts."""


@dataclass(frozen=True)
class JudgingOptions:
    """Options for judging a debate again. `None` keeps the debate's configured value."""

    model: str | None = None
    """Model for every judge, except those for which `panel` names a model. It replaces the models in the
    debate's configuration."""
    rubric: str | JsonObject | None = None
    """Name of a built-in rubric, or a complete rubric as a JSON object."""
    panel: int | Sequence[str] | None = None
    """Number of judges, or a list with one model name per judge."""
    rule: str | None = None
    """Rule that combines the verdicts of several judges into one decision. It is `mean`, `majority`,
    `ranked`, `approval` or `unanimous`."""
    swap: bool | None = None
    """True if each judge judges the debate once in each order of the debaters."""
    blind: bool | None = None
    """True if judges do not see the debaters' names."""
    configured: Mapping[str, Any] | None = None
    """Configuration whose `judge` and `models` settings override those of the debate. The other judging
    options take precedence over these settings."""

    def to_json(self) -> JsonObject:
        """Return the judging options that are not `None` as a JSON object."""
        options = {key: value for key, value in vars(self).items() if value is not None}
        if self.configured:
            options["configured"] = {key: self.configured.get(key) or {} for key in ("judge", "models")}
        return options

    def applied_to(self, config: DebateConfig) -> DebateConfig:
        """Return a copy of the debate configuration with these judging options applied.

        Raises:
            ConfigError: An option is invalid.
            InputError: The number of judges is below 1.
        """
        settings = config.to_json()
        for key in ("judge", "models"):
            settings[key] = {**settings[key], **((self.configured or {}).get(key) or {})}
        options = {key: getattr(self, key) for key in ("model", "rubric", "rule", "swap", "blind")}
        options = {key: value for key, value in options.items() if value is not None}
        judge = {
            **config_files.make_config(settings).judge.model_dump(mode="json"),
            **options,
            "enabled": True,
        }
        if isinstance(self.panel, int):
            if self.panel < 1:
                raise InputError(f"{option('panel')} {self.panel} is too low: use at least 1 judge")
            temperature = max(judge["temperature"] or 0.0, PANEL_TEMPERATURE) if self.panel > 1 else None
            numbers = range(1, self.panel + 1)
            judge["panel"] = [{"id": f"judge-{number}", "temperature": temperature} for number in numbers]
        elif self.panel is not None:
            judges: dict[str, str] = {}
            for model in self.panel:
                judges[participants.unique_slug(slug(model) or "judge", judges)] = model
            judge["panel"] = [{"id": id_, "model": model} for id_, model in judges.items()]
        else:
            # The given model and rubric replace those of each configured judge.
            cleared = dict.fromkeys(options.keys() & {"model", "rubric"})
            judge["panel"] = [{**spec, **cleared} for spec in judge["panel"]]
        return config_files.make_config({**settings, "judge": judge}).with_fence(config.fence)


@dataclass(frozen=True)
class Judgement:
    """Result of judging a debate."""

    topic: str
    config: JsonObject
    """Configuration of the debate as JSON, including the judging options."""
    verdict: PanelVerdict
    """Combined verdict of the whole panel of judges. Its `status` is `failed` if no judge returned a
    verdict."""
    verdicts: list[Verdict]
    """Verdicts of the individual judges, including failed ones."""
    usage: Mapping[str, float]
    calls: Sequence[CallReceipt] = ()
    """Records of the judges' model calls. Their numbering continues that of the debate's own calls."""
    stored: bool = False

    @property
    def failed(self) -> bool:
        """True if judging failed."""
        return self.verdict["status"] == "failed"

    def to_json(self) -> dict[str, object]:
        """Return the judging result as a JSON object."""
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
    place: JournalPosition | None = None,
    granted: Collection[boundary.Capability] = (),
) -> Judgement:
    """Judge a debate from its state values, without storing the result.

    Only the replies to the judges' model calls may be stored, in the journal.

    Capabilities that the stored configuration requests are denied unless `granted` contains them. Options
    come from the operator and are trusted.

    Raises:
        ConfigError: An option is invalid, or the debate needs a permission.
        InputError: The debate has no messages of debaters, or the number of judges is below 1.
    """
    option_capabilities = boundary.capabilities_of(options.applied_to(DebateConfig()))
    changed_config = options.applied_to(read_stored(values["config"]))
    permissions = stages.authorize(
        changed_config,
        environment.default_config(),
        {*granted, *option_capabilities},
        environment.safe_capabilities,
    )
    config = permissions.config
    check_config(permissions, environment)
    debater_entries = [entry for entry in values["full_transcript"] if entry["speaker"] in config.names()]
    check_judges(config, [entry["model"] for entry in debater_entries], environment)
    if not debater_entries:
        raise InputError("the debate has no messages from debaters yet, so there is nothing to judge")
    context = node_context(environment, cast(ConversationState, values), permissions)
    config = config.with_fence(context.config.fence)
    context = replace(context, config=config, count=environment.token_counter_for(config))

    def judge(facts: Mapping[str, ModelFacts]) -> BackgroundTask[Assessment]:
        return fitted_context(context, facts, "judge").judging.assess()

    flow = until_prompts_fit(judge, values.get("model_facts") or {})
    assessment, handler = background_loop.call_from_sync(run_to_end, flow, environment, permissions, place)
    calls, usage = handler.numbered_receipts(values.get("calls") or []), handler.spent
    for call in calls:
        call["options"] = options.to_json()
    return Judgement(
        values["topic"], config.to_json(), assessment.decision, assessment.verdicts, usage, calls
    )


def judge_debate(session: DebateSession, options: JudgingOptions, *, dry_run: bool = False) -> Judgement:
    """Judge a stored debate, and store the result unless `dry_run` is True.

    The verdict of each judge is added to `verdicts`. The decision replaces `verdict`, unless it failed and
    the debate has a verdict. A debate that is paused or waits for a person ends with this verdict.

    Raises:
        InputError: The debate never started or has no messages of debaters, or the number of judges is
            below 1.
        ConfigError: An option is invalid, or the debate needs a permission.
        DebateBusy: Another process writes the debate.
    """
    environment, granted = session.environment, session.records.grants.of(session.thread)
    if dry_run:
        values = session.state().values
        return judge_values(values, options, environment, session.beside_graph, granted)
    with session.writing() as leased_session:
        snapshot = leased_session.caught_up()
        runnable_config(snapshot.values)  # raises if nothing of the debate is stored
        ends = not is_over(snapshot)
        values = cast(ConversationState, snapshot.values)
        step = step_number(values)
        # After a crash, no model call is repeated. A second `moot judge` command makes new calls.
        number = len(values.get("verdicts") or []) + len(values.get("errors") or [])
        base_checkpoint = snapshot.config["configurable"]["checkpoint_id"]
        place = JournalPosition(
            leased_session.records, session.thread, step, f"rejudge-{number}", base_checkpoint
        )
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
            update["solution"] = with_final_answer(values, decision["solution_markdown"])
        if judgement.failed:
            update["errors"] = [{"step": step, "node": "judge", "error": decision["error"]}]
        ends = ends and not judgement.failed
        if ends:
            update |= {"step": _last_step(values), "status": "done", "current_speaker": ""}
        judged_values = {**values, **update}
        update |= result_update(judged_values, session.thread, base_checkpoint)
        if ends:
            leased_session.update_after("close", update)
            leased_session.note_status("done")
        else:
            leased_session.update(update)
        usage = row_usage(add_totals(values.get("usage") or {}, [judgement.usage]))
        leased_session.records.results.note(session.thread, values, update)
        leased_session.records.imports.delete_if_replaced(
            session.thread, values["verdict"] if "verdict" not in update else decision
        )
        leased_session.records.catalogue.update(session.thread, **usage, updated_at=environment.clock())
    return replace(judgement, stored=True)


def _last_step(values: ConversationState) -> Step:
    """Return the last step of a debate whose verdict a person asked for before the end."""
    step = make_step("closing", values.get("round", 0), [], kind="close")
    reason = "a person asked for the verdict before the end"
    end_reason: EndReason = {"cause": "person", "setting": "", "reason": reason}
    entry_count = len(values["full_transcript"])
    return {**step, "number": step_number(values) + 1, "entry_count": entry_count, "end_reason": end_reason}
