"""Judging: every judge of the panel, in every order of presentation, at the same time; then one decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from moot.nodes.calls import Flow, ModelCall, Reply
from moot.nodes.judging.blinding import Blinding, make_blinding
from moot.nodes.judging.brief import JudgeBrief
from moot.nodes.judging.docket import Docket, is_argued
from moot.nodes.judging.judge_view import Bench, judge_view
from moot.nodes.judging.opinions import JudgeOpinion, check_opinion, failed_verdict, next_judging
from moot.nodes.judging.orders import presentation_orders, reconcile
from moot.nodes.judging.panel_decision import decision_of
from moot.nodes.judging.rubrics import Rubric, load_rubric, parse_rubric
from moot.nodes.prompts.request import make_call, voice_of
from moot.nodes.text.tokens import TokenCounter
from moot.state.config import DebateConfig, JudgeSeat
from moot.state.conversation import ConversationState
from moot.state.entries import Entry
from moot.state.verdict import Decision, Verdict


@dataclass(frozen=True)
class Assessment:
    """What a panel made of a debate."""

    verdicts: list[Verdict]
    """One a judge, in the panel's order; also the failed ones."""
    decision: Decision
    """`status` is `failed` where no judge gave one."""


@dataclass(frozen=True)
class _Hearing:
    """What all judges of a debate share, made once: long debates are read once only."""

    state: ConversationState
    config: DebateConfig
    count: TokenCounter
    brief: JudgeBrief
    sides: Sequence[str]
    """Debaters who spoke, in speaking order."""
    blinding: Blinding | None
    docket: Docket
    known_ids: frozenset[str] | set[str]
    lengths: Mapping[str, int]
    """Tokens spoken, by debater."""

    def blinding_for(self, order: Sequence[str]) -> Blinding | None:
        """Return the blinding whose labels follow an order of presentation."""
        if self.blinding is None:
            return None
        return replace(self.blinding, labels=dict(zip(order, self.blinding.labels.values(), strict=True)))


@dataclass(frozen=True)
class _Sitting:
    """One judge in one order of presentation."""

    seat: JudgeSeat
    bench: Bench
    call: ModelCall


def assess(
    state: ConversationState,
    config: DebateConfig,
    count: TokenCounter,
    brief: JudgeBrief,
    evidence: Sequence[Entry] | None = None,
) -> Flow[Assessment]:
    """Let the panel judge.

    Args:
        state: of the debate.
        config: whose panel, rubrics and rule count.
        count: of the judges' prompts.
        brief: what the protocol asks where `config` does not say.
        evidence: what the protocol shows its judge; `None` for everything.
    """
    hearing = _hearing(state, config, count, brief, evidence)
    seats = config.judge.seats()
    sittings = [sitting for seat in seats for sitting in _sittings(hearing, seat)]
    replies = yield [sitting.call for sitting in sittings]
    passes: dict[str, list[Verdict]] = {seat.id: [] for seat in seats}
    for sitting, reply in zip(sittings, replies, strict=True):
        passes[sitting.seat.id].append(_verdict(hearing, sitting, reply))
    number = next_judging(state)
    verdicts = [reconcile(*both) if len(both) == 2 else both[0] for both in passes.values()]
    for verdict in verdicts:
        verdict["judging"] = number
    decision = decision_of(verdicts, config.judge.rule, state.get("verdicts") or [])
    return Assessment(verdicts, {**decision, "judging": number})


def rubric_for(seat: JudgeSeat, config: DebateConfig, brief: JudgeBrief) -> Rubric:
    """Return a judge's rubric: its own, the configuration's, or the protocol's.

    Raises:
        ConfigError: there is no such rubric.
    """
    given = seat.rubric or config.judge.rubric
    return rubric_of(given or brief.rubric)


def rubric_of(given: str | dict[str, Any]) -> Rubric:
    """Return the rubric that a configuration names or holds.

    Raises:
        ConfigError: there is none.
    """
    return parse_rubric(given, "judge.rubric") if isinstance(given, dict) else load_rubric(given)


def _hearing(
    state: ConversationState,
    config: DebateConfig,
    count: TokenCounter,
    brief: JudgeBrief,
    evidence: Sequence[Entry] | None,
) -> _Hearing:
    transcript = state["full_transcript"]
    sides = _debaters(state, config)
    people = [{"id": debater.id, "name": debater.name} for debater in config.debaters if debater.id in sides]
    texts = [entry["content"] for entry in transcript] if config.judge.blind else []
    lengths = dict.fromkeys(sides, 0)
    for entry in transcript:
        if is_argued(entry, sides):
            lengths[entry["speaker"]] += entry["tokens"]
    return _Hearing(
        state,
        config,
        count,
        brief,
        sides,
        make_blinding(people, "", texts) if config.judge.blind else None,  # type: ignore[arg-type]  # by shape
        Docket(transcript, sides, config.names(), evidence),
        {entry["id"] for entry in transcript},
        lengths,
    )


def _sittings(hearing: _Hearing, seat: JudgeSeat) -> list[_Sitting]:
    config = hearing.config
    rubric = rubric_for(seat, config, hearing.brief)
    swap = hearing.brief.swap if config.judge.swap is None else config.judge.swap
    sittings = []
    for index, order in enumerate(presentation_orders(hearing.sides, swap=swap)):
        blinding = hearing.blinding_for(order)
        bench = Bench(hearing.state, config, rubric, blinding, order, hearing.count, hearing.docket)
        sittings.append(_Sitting(seat, bench, _call(bench, seat, hearing.brief.wanted, index)))
    return sittings


def _debaters(state: ConversationState, config: DebateConfig) -> list[str]:
    """Return the debaters who spoke, in speaking order."""
    spoke = {entry["speaker"] for entry in state["full_transcript"]}
    return [debater.id for debater in config.debaters if debater.id in spoke] or list(config.names())


def _call(bench: Bench, seat: JudgeSeat, wanted: str, index: int) -> ModelCall:
    config = bench.config
    view = judge_view(bench, wanted=wanted)
    labels = [bench.label(debater) for debater in bench.order]
    return make_call(
        voice_of(config, seat),
        "judge",
        view,
        schema=JudgeOpinion,
        floor=index,
        hints={
            "topic": bench.state["topic"],
            "debaters": labels,
            "criteria": [criterion.id for criterion in bench.rubric.criteria],
            "message_ids": list(view.shown),
        },
    )


def _verdict(hearing: _Hearing, sitting: _Sitting, reply: Reply) -> Verdict:
    bench = sitting.bench
    if not reply.ok or reply.data is None:
        error = reply.error or "the judge gave no structured answer"
        return failed_verdict(
            sitting.seat.id, error, model=sitting.call.model, rubric=bench.rubric.name, order=bench.order
        )
    data = bench.blinding.unblind_data(reply.data) if bench.blinding else reply.data
    return check_opinion(
        JudgeOpinion.model_validate(data),
        list(bench.order),
        hearing.known_ids,
        bench.rubric,
        judge=sitting.seat.id,
        model=reply.model,
        order=bench.order,
        lengths=hearing.lengths,
        usage=reply.usage,
    )
