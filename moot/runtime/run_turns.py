"""Turns of debaters: prompts, tool calls and questions to people."""

import json
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from moot.calls import effects, model_calls
from moot.config import DebaterConfig, memory_config
from moot.memory.cross_debate_memory import embedding_job
from moot.people import PersonQuestion, ask_people
from moot.prompts.request import make_call, model_params, with_section
from moot.prompts.templates import break_fences_in, unfenced
from moot.prompts.truncation import KEEP
from moot.protocols.prompt_context import PromptContext, assemble_prompt, topic_tokens
from moot.runtime.context import NodeContext
from moot.state.conversation import Turn
from moot.state.entries import PASSES, JsonObject, entry_id, message_id
from moot.tools import registry, tool


@dataclass(frozen=True)
class ModelTurnRequest:
    """Request for a debater's turn that a model takes."""

    context: NodeContext
    call: model_calls.ModelCall
    """Model call with which the turn begins. If the model uses tools, further calls follow."""

    @property
    def speaker(self) -> DebaterConfig:
        """Configuration of the debater whose turn it is."""
        return self.context.config.debater(
            self.context.state["step"]["turns"][self.call.call_index]["speaker"]
        )

    @property
    def tool_context(self) -> tool.ToolContext:
        """Data that the debater's tools may read."""
        permissions = self.context.permissions
        return tool.ToolContext(
            partial(registry.context_sandbox, permissions),
            self.context.state["full_transcript"],
            partial(permissions.authorize, "tool", "server"),
        )

    def with_shorter_prompt(self, call: model_calls.ModelCall, excess: int) -> model_calls.ModelCall:
        """Return the turn's first call with `excess` tokens fewer, after a server refused it."""
        context = self.context
        remaining_tokens = max(call.prompt_tokens - excess, memory_config.MINIMUM["total"])
        shortened_by = context.config.memory.budget.total - remaining_tokens
        prompt = turn_prompt(context, self.call.call_index, reserved_tokens=shortened_by)
        return replace(_with_prompt(self.call, prompt), shortened_by=shortened_by)

    def with_tool_results(
        self, exchanges: Sequence[tool.ToolExchange], *, may_call_tools: bool, shortened_by: int = 0
    ) -> model_calls.ModelCall:
        """Return the next model call of the turn, including the results of earlier tool calls.

        The token budget stays the same.
        """
        config, count = self.context.config, self.context.count
        # Tool calls, results and tool definitions may use half of the token budget for messages.
        remaining_tokens = config.memory.budget.messages // 2 - registry.functions_tokens(
            self.speaker.tools, count, self.context.tools
        )
        if may_call_tools:
            exchange_messages = tool.exchange_messages(exchanges, remaining_tokens, config.fence, count)
        else:  # as text, since many servers refuse tool messages in a request without tools
            exchange_messages = [tool.exchange_report(exchanges, remaining_tokens, config.fence, count)]
        exchange_tokens = tool.wire_tokens(exchange_messages, count)
        reserved_tokens = exchange_tokens + shortened_by
        prompt = turn_prompt(
            self.context,
            self.call.call_index,
            reserved_tokens=reserved_tokens,
            sends_functions=may_call_tools,
        )
        if exchange_messages:
            prompt = replace(
                prompt,
                messages=(*prompt.messages, *exchange_messages),
                layout=(*prompt.layout, *("tools" for _ in exchange_messages)),
                sections={**prompt.sections, "tools": exchange_tokens},
                total_tokens=prompt.total_tokens + exchange_tokens,
            )
        offset = self.call.call_index + sum(2 * len(exchange.calls) for exchange in exchanges)
        speech_id = entry_id(len(self.context.state["full_transcript"]) + offset)
        return replace(
            _with_prompt(self.call, prompt),
            shortened_by=shortened_by,
            tools=self.call.tools if may_call_tools else (),
            stream_as=self.call.stream_as
            and _stream_as(self.context, speech_id, self.call.stream_as.speaker),
        )


def _stream_as(context: NodeContext, entry: str, speaker: str) -> model_calls.StreamAs:
    return model_calls.StreamAs(entry, speaker, message_id(entry, *context.origin))


def _with_prompt(call: model_calls.ModelCall, prompt: model_calls.Prompt) -> model_calls.ModelCall:
    return replace(call, messages=prompt.messages, prompt_tokens=prompt.total_tokens, prompt=prompt)


@dataclass(frozen=True)
class HumanTurnRequest:
    """Request for a debater's turn that a person takes."""

    speaker: str
    """Id of the debater whose turn it is."""
    question: str
    """Text that the person reads before replying, ending with the instruction for the turn."""


def human_turn_request(context: NodeContext, turn: Turn) -> HumanTurnRequest:
    """Return the request that asks a person to take a turn."""
    protocol, ctx = context.protocol, PromptContext(context, turn)
    texts = [
        unfenced(block.message["content"])
        for block in protocol.prompt_blocks(ctx)
        if block.section in ("topic", "messages") and block.priority == KEEP
    ]
    instruction = protocol.instruction(ctx) or ctx.step["phase"]
    target_names = ", ".join(ctx.names[target] for target in ctx.turn["targets"] if target in ctx.names)
    request = f"{instruction} (Answering {target_names}.)" if target_names else instruction
    return HumanTurnRequest(ctx.turn["speaker"], "\n\n".join([*texts, request]))


def make_turn_requests(context: NodeContext) -> list[ModelTurnRequest | HumanTurnRequest]:
    """Return a request to a model or a person for each turn of the current step."""
    state, config, turns = context.state, context.config, context.state["step"]["turns"]
    # Entries of tool calls precede the message of their turn. So the entry ids after the first turn with
    # tools are unknown until its calls are done, and later turns cannot be streamed under their ids.
    tool_turns = (position for position, turn in enumerate(turns) if config.debater(turn["speaker"]).tools)
    live_count = next(tool_turns, len(turns)) + 1
    requests: list[ModelTurnRequest | HumanTurnRequest] = []
    duplicates = Counter[str]()
    sent_digests = {receipt["digest"] for receipt in (state.get("receipts") or [])[-RECENT_REQUESTS:]}
    for index, turn in enumerate(turns):
        speaker = config.debater(turn["speaker"])
        if speaker.is_human:
            requests.append(human_turn_request(context, turn))
            continue
        prompt, speech_id = turn_prompt(context, index), entry_id(len(state["full_transcript"]) + index)
        call = make_call(
            model_params(config, speaker),
            "turn",
            prompt,
            tools=tuple(
                break_fences_in(function, config.fence)
                for function in registry.functions_of(speaker.tools, context.tools)
            ),
            stream_as=_stream_as(context, speech_id, speaker.id) if index < live_count else None,
            call_index=index,
            hints=_hints(context, turn),
        )
        # Equal requests of a debate get different seeds, so that they are independent samples.
        repeats = duplicates[call.digest]
        sample = replace(call, seed=(call.seed or 0) + repeats) if repeats else call
        while sample.digest in sent_digests:
            repeats += 1
            sample = replace(call, seed=(call.seed or 0) + repeats)
        duplicates[call.digest] = repeats + 1
        requests.append(ModelTurnRequest(context, sample))
    return requests


def turn_prompt(
    context: NodeContext, index: int, *, reserved_tokens: int = 0, sends_functions: bool = True
) -> model_calls.Prompt:
    """Return the prompt for one turn of the current step.

    With `sends_functions`, it counts the definitions of the speaker's tools.
    """
    protocol, config, count = context.protocol, context.config, context.count
    turn, phase = context.state["step"]["turns"][index], context.state["step"]["phase"]
    speaker_tools, budget = config.debater(turn["speaker"]).tools, config.memory.budget
    speaker_tool_tokens = registry.functions_tokens(speaker_tools, count, context.tools)
    total = budget.total - speaker_tool_tokens - reserved_tokens
    row = protocol.phases.get(phase)
    if phase_budget := budget.phases.get(phase, row.budget if row else None):
        topic = topic_tokens(context.state["topic"], config, count)
        total = min(total, phase_budget + topic + context.background.tokens)
    ctx = PromptContext(context, turn, total, context.memories, context.largest_tools_tokens)
    prompt = assemble_prompt(
        ctx, protocol.prompt_blocks(ctx), protocol.query(ctx), is_cached=protocol.shows_summary
    )
    is_sent = speaker_tools and sends_functions
    return with_section(prompt, "functions", speaker_tool_tokens) if is_sent else prompt


def turn_embedding_job(context: NodeContext) -> effects.LocalJob | None:
    """Return a job that computes the step's embeddings, or `None` if none are needed."""
    if context.memories.embeddings is None or not context.config.memory.retrieval.enabled:
        return None
    protocol, state = context.protocol, context.state
    queries = [protocol.query(PromptContext(context, turn)) for turn in state["step"]["turns"]]
    everything = protocol.retrieves_transcript
    return embedding_job(
        state, context.memories, context.names, queries, context.count, everything=everything
    )


def _hints(context: NodeContext, turn: Turn) -> model_calls.Hints:
    state, names = context.state, context.names
    return {
        "phase": state["step"]["phase"],
        "round": state["step"]["round"],
        "speaker": names[turn["speaker"]],
        "role": context.config.debater(turn["speaker"]).role,
        "targets": [names.get(target, target) for target in turn["targets"]],
    }


RECENT_REQUESTS = 512
"""Number of recent requests with which a new request is compared. Identical requests of a debate get
different seeds. A step takes at most 256 replies."""
ARGUMENT_CHARS = 1000
"""Maximum length of a tool call's arguments in prompts, in characters. Longer arguments are cut to half of
this length."""


@dataclass(frozen=True)
class TurnResult:
    """Result of one debater's turn."""

    reply: model_calls.Reply
    """Final reply of the turn, which contains the debater's message or an error."""
    exchanges: tuple[tool.ToolExchange, ...] = ()
    """Tool calls that the debater made during the turn, with their results."""
    call: model_calls.ModelCall | None = None
    """Model call that produced the final reply. `None`: the turn of a person."""

    @property
    def calls(self) -> int:
        """Number of tool calls that the debater made during the turn."""
        return sum(len(exchange.calls) for exchange in self.exchanges)


def run_turns(turns: Sequence[ModelTurnRequest]) -> effects.BackgroundTask[list[TurnResult]]:
    """Run all turns of a step with their tool calls concurrently, and return the results."""
    if not turns:
        return []
    replies: list[model_calls.Reply] = yield [request.call for request in turns]
    results = [TurnResult(reply, call=request.call) for request, reply in zip(turns, replies, strict=True)]

    for _ in range(model_calls.MAX_SHORTENINGS):
        too_long = {
            index: result for index, result in enumerate(results) if result.reply.excess and result.call
        }
        next_calls = [
            turns[index].with_shorter_prompt(result.call or turns[index].call, result.reply.excess)
            for index, result in too_long.items()
        ]
        replies = (yield next_calls) if next_calls else []
        for index, call, reply in zip(too_long, next_calls, replies, strict=True):
            results[index] = TurnResult(reply, call=call)

    while pending := [index for index, request in enumerate(turns) if _wants_tools(request, results[index])]:
        jobs = [
            _job(turns[index], call, allowed=position < _calls_left(turns[index], results[index]))
            for index in pending
            for position, call in enumerate(results[index].reply.tool_calls)
        ]
        outputs = iter((yield effects.LocalWork(jobs)))
        for index in pending:
            tool_outputs = [next(outputs) for _ in results[index].reply.tool_calls]
            exchange = _exchange(turns[index], results[index], tool_outputs)
            results[index] = replace(results[index], exchanges=(*results[index].exchanges, exchange))
        next_calls = [
            turns[index].with_tool_results(
                results[index].exchanges,
                may_call_tools=_calls_left(turns[index], results[index]) > 0,
                shortened_by=last_call.shortened_by if (last_call := results[index].call) else 0,
            )
            for index in pending
        ]
        for index, call, reply in zip(pending, next_calls, (yield next_calls), strict=True):
            results[index] = replace(results[index], reply=reply, call=call)

    for index, result in enumerate(results):
        if result.reply.ok and not result.reply.text.strip():
            failed_reply = replace(result.reply, error="the model called tools instead of writing a message")
            results[index] = replace(result, reply=failed_reply)
    return results


def _wants_tools(request: ModelTurnRequest, result: TurnResult) -> bool:
    has_tool_calls = result.reply.ok and bool(result.reply.tool_calls)
    return has_tool_calls and bool(request.speaker.tools) and _calls_left(request, result) > 0


def _calls_left(request: ModelTurnRequest, result: TurnResult) -> int:
    return request.speaker.tool_call_limit - result.calls


def _job(request: ModelTurnRequest, call: JsonObject, *, allowed: bool) -> effects.LocalJob:
    name, arguments, speaker = str(call["name"]), call["args"], request.speaker
    key = json.dumps([name, arguments, allowed], sort_keys=True, default=str)
    if not allowed:
        return effects.LocalJob(
            key, lambda: f"error: the limit of {speaker.tool_call_limit} tool calls in one turn is reached"
        )
    if name not in speaker.tools:
        return effects.LocalJob(
            key, lambda: f"error: there is no tool {name[:60]!r}: use {', '.join(speaker.tools)}"
        )
    return effects.LocalJob(
        key,
        partial(
            tool.run_tool, registry.get_tool(name, request.context.tools), arguments, request.tool_context
        ),
    )


def _exchange(request: ModelTurnRequest, result: TurnResult, outputs: Sequence[str]) -> tool.ToolExchange:
    calls: list[tool.ToolCall] = []
    pairs = zip(result.reply.tool_calls, outputs, strict=True)
    for number, (call, output) in enumerate(pairs, result.calls + 1):
        name = call["name"] if call["name"] in request.speaker.tools else "unknown_tool"
        arguments = json.dumps(call["args"], ensure_ascii=False, sort_keys=True)
        if len(arguments) > ARGUMENT_CHARS:
            arguments = json.dumps({"cut": arguments[: ARGUMENT_CHARS // 2]})
        calls.append(tool.ToolCall(f"call_{number}", name, arguments, output))
    return tool.ToolExchange(result.reply, tuple(calls))


def run_human_turns(
    context: NodeContext, turns: Sequence[HumanTurnRequest]
) -> Generator[effects.Effect, Any, list[str]]:
    """Ask all people who have a turn in this step in one interrupt, and return their messages."""
    if not turns:
        return []
    state, names = context.state, context.names
    turn_counts = Counter(receipt["speaker"] for receipt in state.get("receipts") or [])
    questions: list[PersonQuestion] = []
    for request in turns:
        turn_counts[request.speaker] += 1
        question_id, name = f"{request.speaker}.{turn_counts[request.speaker]}", names[request.speaker]
        questions.append(
            PersonQuestion(id=question_id, debater=request.speaker, name=name, question=request.question)
        )
    replies = yield from ask_people("turn", state["step"]["round"], questions)
    return [replies[question["id"]] or PASSES["person"] for question in questions]
