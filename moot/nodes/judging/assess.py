"""Judging: every judge of the panel, in every order of presentation, at the same time; then one decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moot.nodes.calls import Flow, Hints, ModelCall
from moot.nodes.judging.blinding import make_blinding
from moot.nodes.judging.docket import Docket, is_argued
from moot.nodes.judging.judge_view import Bench, judge_view
from moot.nodes.judging.opinion_check import OpinionCheck, Sitting
from moot.nodes.judging.opinions import JudgeBrief, JudgeOpinion, opinion_schema, opinion_tokens
from moot.nodes.judging.orders import presentation_orders, reconcile
from moot.nodes.judging.panel import decision_of
from moot.nodes.judging.rubrics import rubric_for
from moot.nodes.prompts.request import make_call, voice_of
from moot.nodes.text.tokens import TokenCounter
from moot.state.config import DebateConfig, JudgeSeat
from moot.state.conversation import ConversationState
from moot.state.entries import Entry
from moot.state.verdict import TIE, Decision, Verdict


@dataclass(frozen=True)
class Assessment:
    """What a panel made of a debate."""

    verdicts: list[Verdict]
    """One a judge, in the panel's order; also the failed ones."""
    decision: Decision
    """`status` is `failed` where no judge gave one."""


def assess(
    state: ConversationState,
    config: DebateConfig,
    count: TokenCounter,
    brief: JudgeBrief,
    evidence: Sequence[Entry] | None = None,
) -> Flow[Assessment]:
    """Let the panel judge, by what the protocol shows: everything where `evidence` is `None`."""
    sittings = _sittings(state, config, count, brief, evidence)
    replies = yield [sitting.call for sitting in sittings]
    passes: dict[str, list[Verdict]] = {}
    for sitting, reply in zip(sittings, replies, strict=True):
        opinion, check = sitting.opinion(reply), sitting.check
        said = (
            check.opinion_verdict(opinion, reply)
            if isinstance(opinion, JudgeOpinion)
            else sitting.failed(reply)
        )
        passes.setdefault(check.judge, []).append(said)
    verdicts = [
        reconcile(*both, names=config.names(), capped=brief.solution) if len(both) == 2 else both[0]
        for both in passes.values()
    ]
    number = next_judging(state)
    for verdict in verdicts:
        verdict["judging"] = number
    decision = decision_of(verdicts, config.judge.rule, state.get("verdicts") or [])
    return Assessment(verdicts, {**decision, "judging": number})


def next_judging(state: ConversationState) -> int:
    """Return the number of a debate's next judging: 1 more than its verdicts and its decision have."""
    decision = state.get("verdict")
    before = [*(state.get("verdicts") or []), *([decision] if decision else [])]
    return 1 + max((verdict.get("judging") or 0 for verdict in before), default=0)


def _sittings(
    state: ConversationState,
    config: DebateConfig,
    count: TokenCounter,
    brief: JudgeBrief,
    evidence: Sequence[Entry] | None,
) -> list[Sitting]:
    """Return every judge in every order; what they share is made once, for long debates are long to read."""
    transcript = state["full_transcript"]
    spoke = {entry["speaker"] for entry in transcript}
    debaters = [debater for debater in config.debaters if debater.id in spoke] or config.debaters
    sides = [debater.id for debater in debaters]
    lengths = dict.fromkeys(sides, 0)
    for entry in transcript:
        if is_argued(entry, sides):
            lengths[entry["speaker"]] += entry["tokens"]
    blinding = None
    if config.judge.blind:
        names = {debater.id: debater.name for debater in debaters}
        blinding = make_blinding(names, [entry["content"] for entry in transcript])
    fill = not state.get("judge_summary", {}).get("text")
    docket = Docket(transcript, sides, config.names(), evidence, fill=fill)
    swap = brief.swap if config.judge.swap is None else config.judge.swap
    sittings = []
    for seat in config.judge.seats():
        rubric = rubric_for(seat, config, brief.rubric)
        for index, order in enumerate(presentation_orders(sides, swap=swap)):
            shown = blinding and blinding.in_order(order)
            bench = Bench(state, config, rubric, shown, order, count, docket)
            call = _call(bench, seat, brief, index)
            shown_ids = set(call.hints["message_ids"])
            check = OpinionCheck(rubric, order, shown_ids, seat.id, lengths, config.names())
            sittings.append(Sitting(call, check, shown))
    return sittings


def _call(bench: Bench, seat: JudgeSeat, brief: JudgeBrief, index: int) -> ModelCall:
    view = judge_view(bench, brief)
    labels, criteria = [bench.label(debater) for debater in bench.order], bench.rubric.criteria
    hints: Hints = {
        "topic": bench.state["topic"],
        "debaters": labels,
        "criteria": [criterion.id for criterion in criteria],
        "message_ids": list(view.shown),
        "fields": {
            "scores": [
                {"debater": label, "criterion": each.id, "score": each.middle}
                for label in labels
                for each in criteria
            ],
            "winner": TIE,
            "confidence": 0,
        },
    }
    schema = opinion_schema(bench.rubric, labels, view.shown, solution=brief.solution)
    needed = opinion_tokens(len(labels), len(criteria), solution=brief.solution)
    reply = max(bench.config.judge.reply, needed)
    voice = voice_of(bench.config, seat)
    return make_call(voice, "judge", view, schema=schema, reply=reply, floor=index, hints=hints)
