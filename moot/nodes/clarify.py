"""Node `clarify`: before the first round debaters ask questions, and a person answers them."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from moot.calls.effects import NodeBody, errors_update
from moot.calls.model_calls import Hints, ModelCall, Reply, WireMessage
from moot.config import DebateConfig, DebaterConfig
from moot.memory.window import TranscriptWriter
from moot.people import QUESTIONS_TOKENS, PersonQuestion, ask_people
from moot.prompts.request import make_call, many, model_params, narrow_schema, prompt_budget
from moot.prompts.templates import break_fence, load_prompt_template, shipped_role
from moot.prompts.truncation import KEEP, Block, render_entry, truncate_blocks
from moot.protocols.prompt_context import PromptContext, contract_text, topic_block
from moot.protocols.schedule import make_step, make_turn
from moot.runtime.context import NodeContext
from moot.state.conversation import ConversationState, Step
from moot.state.entries import JsonObject, clean_text, traits_of
from moot.text.plain_text import break_template_tokens

CLARIFY = load_prompt_template("clarify", "instruction", "most", "known")
INSTRUCTION = load_prompt_template("clarify_instruction")

CLARIFY_PHASE = "clarify"
CLARIFICATION_CHARS = 1000
NO_ANSWER = "(no answer)"
EARLIER_PRIORITY = 5
"""Priority of people's documents and earlier answers in a prompt. If the prompt is too long, blocks with
higher numbers are left out first."""


class ClarifyingQuestions(BaseModel):
    """Reply in which a debater asks a person clarifying questions before the debate starts."""

    model_config = ConfigDict(extra="ignore")

    questions: list[str] = Field(
        description="Questions for the person, most important first. The list may be empty."
    )


def clarification_step(state: ConversationState, config: DebateConfig) -> Step | None:
    """Return the step of clarifying questions, or `None` if they are disabled or already asked."""
    settings, progress = config.clarifications, state.get("clarifications", {})
    asked_rounds = progress.get("rounds", 0)
    if (
        not settings.enabled
        or state.get("turn_count")
        or progress.get("settled")
        or asked_rounds >= settings.rounds
    ):
        return None
    turns = [make_turn(debater.id) for debater in config.debaters if not debater.is_human]
    return make_step(CLARIFY_PHASE, 0, turns, kind="clarify") if turns else None


def clarify(context: NodeContext) -> NodeBody:
    """Ask a person the debaters' clarifying questions, and record the answers in the transcript."""
    state, config = context.state, context.config
    debaters = [config.debater(turn["speaker"]) for turn in state["step"]["turns"]]
    replies: list[Reply] = yield [_call(context, debater) for debater in debaters]
    questions = _questions(context, debaters, replies)
    rounds = state.get("clarifications", {}).get("rounds", 0) + 1
    update: JsonObject = {"clarifications": {"rounds": rounds, "settled": not questions}}
    update |= errors_update(state, "clarify", [reply.error for reply in replies])
    if not questions:
        return update
    answers = yield from ask_people("clarifications", rounds, questions)
    writer = TranscriptWriter(
        len(state["full_transcript"]), context.count, context.env.clock, *context.origin, phase=CLARIFY_PHASE
    )
    for question in questions:
        question_entry = writer.write(question["debater"], "question", question["question"], targets=["user"])
        writer.write("user", "answer", answers[question["id"]] or NO_ANSWER, targets=[question_entry["id"]])
    return {**update, **(yield from writer.enter())}


def _call(context: NodeContext, debater: DebaterConfig) -> ModelCall:
    """Return the model call in which a debater writes clarifying questions."""
    state, config, count = context.state, context.config, context.count
    max_questions = config.clarifications.max_per_debater
    ctx = PromptContext(context, make_turn(debater.id))
    provided_entries = (state["full_transcript"][seq] for seq in state.get("user_provided", ()))
    earlier_entries = [
        entry for entry in provided_entries if traits_of(entry).user_input in ("document", "answer")
    ]
    role = shipped_role(debater)
    built_in = "\n".join(filter(None, (INSTRUCTION.render(), role.says("clarify") if role else "")))
    has_answers = any(entry["kind"] == "answer" for entry in earlier_entries)
    answers_note = "The answers so far are shown above. Ask only what they leave open." if has_answers else ""
    instruction = break_template_tokens(debater.clarification_prompt) or built_in
    task = CLARIFY.render(instruction=instruction, most=str(max_questions), known=answers_note)
    contract = "" if ctx.persona_first else contract_text(debater)
    content = break_fence(f"{contract}\n\n{task}".lstrip(), config.fence)
    turn_suffix: WireMessage = {"role": "user", "content": content}
    blocks = [
        context.protocol.rules(ctx),
        topic_block(state["topic"], config, count),
        *(
            Block(
                "messages",
                render_entry(entry, ctx.names, config.fence),
                EARLIER_PRIORITY,
                ids=(entry["id"],),
                label="earlier",
            )
            for entry in earlier_entries
        ),
        Block("turn_suffix", turn_suffix, KEEP, label="contract and instruction"),
    ]
    schema = narrow_schema(ClarifyingQuestions, {"questions": many(str, 0, max_questions)})
    prompt = truncate_blocks(blocks, prompt_budget(config.memory.budget.total, schema, count), count)
    hints: Hints = {"speaker": debater.name}
    params = model_params(config, debater)
    return make_call(params, "clarify", prompt, schema=schema, reply=QUESTIONS_TOKENS, hints=hints)


def _questions(
    context: NodeContext, debaters: Sequence[DebaterConfig], replies: Sequence[Reply]
) -> list[PersonQuestion]:
    """Return the new questions without duplicates, numbered after those of earlier rounds."""
    earlier_questions = [entry for entry in context.state["full_transcript"] if entry["kind"] == "question"]
    seen_texts = {entry["content"].casefold() for entry in earlier_questions}
    questions: list[PersonQuestion] = []
    for debater, reply in zip(debaters, replies, strict=True):
        number = sum(entry["speaker"] == debater.id for entry in earlier_questions)
        raw_questions = reply.data.get("questions", []) if reply.ok and reply.data else []
        texts = [
            text
            for item in raw_questions
            if (text := " ".join(clean_text(str(item)).split())[:CLARIFICATION_CHARS])
        ]
        for text in texts[: context.config.clarifications.max_per_debater]:
            if text.casefold() in seen_texts:
                continue
            seen_texts.add(text.casefold())
            number += 1
            key = f"{debater.id}.{number}"
            questions.append(PersonQuestion(id=key, debater=debater.id, name=debater.name, question=text))
    return questions
