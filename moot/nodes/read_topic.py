"""Node `read_topic`: asks a model for the question with its options and criteria, and for the facts."""

from moot.calls import effects
from moot.judging.facts import asks_for_facts, facts_call, facts_text
from moot.judging.question import asked_of_topic, question_call, question_found, question_text
from moot.memory.window import TranscriptWriter
from moot.runtime.context import NodeContext
from moot.state.conversation import DebateQuestion
from moot.state.entries import Entry, JsonObject, is_program_note, traits_of


def topic_parts(context: NodeContext) -> tuple[str, ...]:
    """Return the names of the fields that a model finds in the topic before the first step.

    Return `()` if no model is asked: the topic is short and neither options nor criteria are needed, the
    debate continues a transcript, or it has begun.
    """
    state, config, protocol = context.state, context.config, context.protocol
    traits = [traits_of(entry) for entry in state["full_transcript"]]
    if _has_begun(context):
        return ()
    return asked_of_topic(
        config,
        state["topic"],
        protocol.judge_spec,
        extracts=context.extracts_claims,
        has_background=any(each.user_input == "document" for each in traits),
    )


def _has_begun(context: NodeContext) -> bool:
    state = context.state
    is_argued = any(traits_of(entry).argues for entry in state["full_transcript"])
    return bool(state.get("step") or state.get("question") or is_argued)


def _documents(context: NodeContext) -> list[Entry]:
    return [each for each in context.state["full_transcript"] if traits_of(each).user_input == "document"]


def wants_facts(context: NodeContext) -> bool:
    """Return True if a model must collect the facts of the material before the first step."""
    config, judge_spec, documents = context.config, context.protocol.judge_spec, _documents(context)
    is_given = not any(map(is_program_note, documents))  # otherwise the node has run
    needs_facts = asks_for_facts(config, context.state["topic"], judge_spec, has_background=bool(documents))
    return needs_facts and is_given and not _has_begun(context)


def read_topic(context: NodeContext) -> effects.NodeBody:
    """Find the question and the facts in the debate's topic and documents, and add them to the transcript."""
    state, config, topic, count = context.state, context.config, context.state["topic"], context.count
    parts, extracts = topic_parts(context), context.extracts_claims
    documents, needs_facts = _documents(context), wants_facts(context)
    calls = [question_call(config, topic, parts, documents, count, extracts=extracts)] if parts else []
    replies = yield [*calls, *([facts_call(config, topic, documents, count)] if needs_facts else [])]
    question: DebateQuestion = question_found(parts, replies[0]) if parts else {}
    failures = []
    if parts and not question and not replies[0].placeholder:
        failures.append(replies[0].error or "the reply has no question")
    facts = facts_text(replies[-1], topic, documents) if needs_facts else ""
    if needs_facts and not facts and not replies[-1].placeholder:
        failures.append(f"the facts were not collected: {replies[-1].error or 'the reply has none'}")
    update: JsonObject = {"question": question, **effects.errors_update(state, "read_topic", failures)}
    texts = [text for text in (question_text(question, topic), facts) if text]
    if texts:
        writer = TranscriptWriter(len(state["full_transcript"]), count, context.env.clock, *context.origin)
        for text in texts:
            writer.write("moot", "context", text)
        update |= yield from writer.enter()
    return update
