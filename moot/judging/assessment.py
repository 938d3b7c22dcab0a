"""Assessment of a debate by its judges: one request for each judge and presentation order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from moot.calls.model_calls import CallGenerator, Hints
from moot.config import DebateConfig, PanelJudge
from moot.config.rubrics import Rubric
from moot.judging import judge_prompt as judge_prompts, orders, response_schema
from moot.judging.blinding import make_blinding
from moot.judging.judge_spec import JudgeSpec, judge_config
from moot.judging.panel import decision_of
from moot.judging.response_check import JudgeRequest, ResponseCheck
from moot.judging.rubrics import rubric_for
from moot.judging.transcript_selection import TranscriptSelector, is_argued
from moot.memory.background import background_entries
from moot.prompts.debate_context import DebateContext
from moot.prompts.request import MAX_IDS, make_call, model_params, schema_tokens
from moot.prompts.truncation import SHOWN_IN_PART
from moot.state import verdict as verdict_types
from moot.state.conversation import ConversationState
from moot.state.entries import Entry
from moot.text.terms import title_of

IDS_SHARE = 0.1
"""Maximum share of a judge's prompt for listing message ids, from 0 to 1. The reply's JSON schema contains
the ids."""


@dataclass(frozen=True)
class Assessment:
    """Result of judging a debate."""

    verdicts: list[verdict_types.Verdict]
    """Verdict of each judge in panel order, including failed verdicts."""
    decision: verdict_types.PanelVerdict
    """Verdict of the panel. Its status is `failed` if all judges failed."""


@dataclass(frozen=True)
class Judging:
    """Requests to a debate's judges. Each prompt is built once, when it is first needed."""

    debate: DebateContext
    judge_spec: JudgeSpec
    """Defaults of the protocol."""
    evidence: Sequence[Entry] | None = None
    """Messages to judge. `None`: all arguments of the debaters."""

    @cached_property
    def requests(self) -> list[JudgeRequest]:
        """One model request for each judge and presentation order."""
        return _judge_requests(self.debate, self.judge_spec, self.evidence)

    def assess(self) -> CallGenerator[Assessment]:
        """Ask the judges for verdicts, and combine them into the panel's verdict."""
        debate, state = self.debate, self.debate.state
        replies = yield [request.call for request in self.requests]
        verdicts_by_judge: dict[str, list[verdict_types.Verdict]] = {}
        for request, reply in zip(self.requests, replies, strict=True):
            response, check = request.response(reply), request.check
            order_verdict = (
                check.response_verdict(response, reply)
                if isinstance(response, response_schema.JudgeResponse)
                else request.failed(reply)
            )
            verdicts_by_judge.setdefault(check.judge, []).append(order_verdict)
        verdicts = [
            orders.reconcile(*both, names=debate.names, capped=self.judge_spec.solution)
            if len(both) == 2
            else both[0]
            for both in verdicts_by_judge.values()
        ]
        number = next_judging(state)
        for verdict in verdicts:
            verdict["judging"] = number
        judge_settings = debate.config.judge
        decision = decision_of(
            verdicts, judge_settings.rule, state.get("verdicts") or [], judge_settings.quorum
        )
        if question := decision["question"]:  # a later judge keeps the title of the debate
            earlier_verdict: verdict_types.PanelVerdict | None = state.get("verdict") or None
            question = (earlier_verdict["question"] if earlier_verdict else "") or question
            decision["question"] = title_of(state["topic"], question)
        return Assessment(verdicts, {**decision, "judging": number})

    @cached_property
    def budget(self) -> int:
        """Maximum number of tokens in the smallest prompt of a judge."""
        configs = judge_configs(self.debate, self.judge_spec).values()
        return min(config.memory.budget.total for _, config in configs)

    @cached_property
    def shows_whole(self) -> bool:
        """True if the judges' prompts show all messages in full."""
        transcript = self.debate.state["full_transcript"]
        evidence_ids = {
            entry["id"]
            for entry in (transcript if self.evidence is None else self.evidence)
            if is_argued(entry, list(self.debate.names))
        }
        return all(
            prompt
            and evidence_ids <= {*prompt.shown_ids}
            and not any(
                each["what"] == judge_prompts.EVIDENCE and each["why"] == SHOWN_IN_PART
                for each in prompt.omitted
            )
            for prompt in (request.call.prompt for request in self.requests)
        )


def next_judging(state: ConversationState) -> int:
    """Return the number of the next judging run of a debate, counted from 1."""
    decision = state.get("verdict")
    earlier_verdicts = [*(state.get("verdicts") or []), *([decision] if decision else [])]
    return 1 + max((verdict.get("judging") or 0 for verdict in earlier_verdicts), default=0)


def judge_configs(
    debate: DebateContext, judge_spec: JudgeSpec
) -> dict[PanelJudge, tuple[Rubric, DebateConfig]]:
    """Return each judge's rubric, and the configuration with the token budget of its prompt."""
    config, question, facts = debate.config, debate.state.get("question"), debate.state.get("model_facts")
    rubrics = {each: rubric_for(each, config, judge_spec.rubric, question) for each in config.judge.judges()}
    return {
        panel_judge: (
            rubric,
            judge_config(config, panel_judge, reply_tokens(config, judge_spec, rubric), facts or {}),
        )
        for panel_judge, rubric in rubrics.items()
    }


def _judge_requests(
    debate: DebateContext, judge_spec: JudgeSpec, evidence: Sequence[Entry] | None
) -> list[JudgeRequest]:
    """Return one model request for each judge and presentation order. Shared parts are computed once."""
    state, config, transcript = debate.state, debate.config, debate.state["full_transcript"]
    speakers = {entry["speaker"] for entry in transcript}
    debaters = [debater for debater in config.debaters if debater.id in speakers] or config.debaters
    sides = [debater.id for debater in debaters]
    lengths = dict.fromkeys(sides, 0)
    for entry in transcript:
        if is_argued(entry, sides):
            lengths[entry["speaker"]] += entry["tokens"]
    background = judge_prompts.background_of(transcript, debate.names)
    blinding = None
    if config.judge.blind:
        names = {debater.id: debater.name for debater in debaters}
        texts = [entry["content"] for entry in transcript]
        blinding = make_blinding(names, texts, [state["topic"], *(entry["content"] for entry in background)])
    # Every prompt shows the background right after the topic, so it is not selected once more.
    background_ids = {entry["id"] for entry in background_entries(debate)}
    material = [entry for entry in transcript if entry["id"] not in background_ids]
    selector = TranscriptSelector(material, sides, debate.names, evidence)
    swap = judge_spec.swap if config.judge.swap is None else config.judge.swap
    user_ids = frozenset(entry["id"] for entry in background)
    judged_configs = judge_configs(debate, judge_spec)
    requests: list[JudgeRequest] = []
    for panel_judge, (rubric, judged_config) in judged_configs.items():
        for index, order in enumerate(orders.presentation_orders(sides, swap=swap)):
            order_blinding = blinding and blinding.in_order(order)
            context = judge_prompts.JudgeContext(
                state, judged_config, debate.count, rubric, order_blinding, order, selector, user_ids
            )
            if not requests:  # the labels of all judges have the same length
                selector.measure(
                    context.cost, max(each.memory.budget.total for _, each in judged_configs.values())
                )
            # The answer of a debate does not depend on who is shown first, so the second order only scores
            # again. Where the winner is the better answer, both orders are asked the same question.
            scores_only = index > 0 and judge_spec.interactive
            spec = replace(judge_spec, judging="scores") if scores_only else judge_spec
            requests.append(_request(context, panel_judge, spec, index, lengths))
    return requests


def _request(
    context: judge_prompts.JudgeContext,
    panel_judge: PanelJudge,
    judge_spec: JudgeSpec,
    index: int,
    lengths: Mapping[str, int],
) -> JudgeRequest:
    """Return the request to a judge for one presentation order. Its prompt is built once."""
    labels, total = [context.label(debater) for debater in context.order], context.config.memory.budget.total

    def schema_for(ids: Sequence[str]) -> type[response_schema.JudgeResponse]:
        return response_schema.response_schema(
            context.rubric, labels, ids, judging=judge_spec.judging, options=context.config.options
        )

    # The schema counts towards the budget. The tokens for all ids that it may list are reserved before the
    # prompt is built. It then lists the ids that the prompt shows.
    bare_schema, all_ids = schema_for(()), [entry["id"] for entry in context.state["full_transcript"]]
    bare_tokens = schema_tokens(bare_schema, context.count)
    ids_tokens = schema_tokens(schema_for(all_ids[:MAX_IDS]), context.count) - bare_tokens
    reserved_tokens = bare_tokens + min(ids_tokens, int(total * IDS_SHARE))
    prompt = judge_prompts.judge_prompt(context, judge_spec, max(total // 2, total - reserved_tokens))
    schema = schema_for(prompt.citable)
    if schema_tokens(schema, context.count) > reserved_tokens:
        schema = bare_schema
    hints: Hints = {"debaters": labels, "message_ids": list(prompt.citable)}
    reply = reply_tokens(context.config, judge_spec, context.rubric)
    params = model_params(context.config, panel_judge)
    call = make_call(params, "judge", prompt, schema=schema, reply=reply, call_index=index, hints=hints)
    check = ResponseCheck(
        context.rubric,
        context.order,
        set(prompt.citable),
        panel_judge.id,
        lengths,
        context.names,
        context.config.options,
        judge_prompts.messages_read(context, prompt),
        frozenset(all_ids),
    )
    return JudgeRequest(call, check, context.blinding)


def reply_tokens(config: DebateConfig, judge_spec: JudgeSpec, rubric: Rubric) -> int:
    """Return the number of tokens to reserve for a judge's reply."""
    needed_tokens = response_schema.response_tokens(
        len(config.debaters), len(rubric.criteria), judging=judge_spec.judging
    )
    return max(config.judge.reply, needed_tokens)
