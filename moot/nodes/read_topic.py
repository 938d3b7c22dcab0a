"""Node `read_topic`: asks a model for the debated question, its options and its criteria."""

from moot.calls import effects
from moot.judging.question import asked_of_topic, question_call, question_found, question_text
from moot.memory.window import TranscriptWriter
from moot.runtime.context import NodeContext
from moot.state.entries import JsonObject, traits_of


def topic_parts(context: NodeContext) -> tuple[str, ...]:
    """Return the names of the fields that a model finds in the topic before the first step.

    Return `()` if no model is asked: the topic is short and neither options nor criteria are needed, the
    debate continues a transcript, or it has begun.
    """
    state, config, protocol = context.state, context.config, context.protocol
    traits = [traits_of(entry) for entry in state["full_transcript"]]
    if state.get("step") or state.get("question") or any(each.argues for each in traits):
        return ()
    return asked_of_topic(
        config,
        state["topic"],
        protocol.judge_spec,
        extracts=context.extracts_claims,
        has_background=any(each.user_input == "document" for each in traits),
    )


def read_topic(context: NodeContext) -> effects.NodeBody:
    """Find the question in the debate's topic, and add it to the transcript."""
    state, config, topic = context.state, context.config, context.state["topic"]
    parts, extracts = topic_parts(context), context.extracts_claims
    background = [each for each in state["full_transcript"] if traits_of(each).user_input == "document"]
    (reply,) = yield [question_call(config, topic, parts, background, context.count, extracts=extracts)]
    question = question_found(parts, reply)
    has_failed = not question and not reply.placeholder
    failures = [reply.error or "the reply has no question"] if has_failed else []
    update: JsonObject = {"question": question, **effects.errors_update(state, "read_topic", failures)}
    if text := question_text(question, topic):
        following, clock = len(state["full_transcript"]), context.env.clock
        writer = TranscriptWriter(following, context.count, clock, *context.origin)
        writer.write("moot", "context", text)
        update |= yield from writer.enter()
    return update
