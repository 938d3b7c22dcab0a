"""`clarify`: before the first round debaters ask, a person answers."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from moot.nodes.calls import Hints, ModelCall, Reply, WireMessage
from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import Body, errors_update
from moot.nodes.memory.window import Scribe
from moot.nodes.people.questions import QUESTIONS_TOKENS, PersonQuestion, ask_people
from moot.nodes.prompts.fitting import KEEP, Block, fit
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.rendering import render_entry
from moot.nodes.prompts.request import make_call, many, narrow, voice_of
from moot.nodes.protocols.protocol import make_floor, make_step
from moot.nodes.roles.role import shipped_role
from moot.nodes.views.head import contract_text, rules_block, topic_block
from moot.nodes.views.scene import Scene
from moot.state.config import DebateConfig, DebaterConfig
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationState, Step
from moot.state.entries import JsonObject, clean_text, kind_of

CLARIFY = load_prompt("clarify", "instruction", "most", "known")
INSTRUCTION = load_prompt("clarify_instruction")

PHASE = "clarify"
QUESTION_CHARS = 1000
NO_ANSWER = "(no answer)"
EARLIER = 5
"""Priority of earlier questions and answers; context documents go before them."""


class Asked(BaseModel):
    """What a debater wants to know."""

    model_config = ConfigDict(extra="ignore")

    questions: list[str] = Field(
        description="Questions to the person, the most important first; may be empty."
    )


def clarification_step(state: ConversationState, config: DebateConfig) -> Step | None:
    """Return the step in which debaters ask, `None` once they have, or where they may not."""
    wanted, so_far = config.clarifications, state.get("clarifications", {})
    asked = so_far.get("rounds", 0)
    if not wanted.enabled or state.get("turn_count") or so_far.get("settled") or asked >= wanted.rounds:
        return None
    floors = [make_floor(debater.id) for debater in config.debaters if not debater.is_human]
    return make_step(PHASE, 0, floors, kind="clarify") if floors else None


def clarify(state: ConversationState, context: NodeContext) -> Body:
    """Collect the debaters' questions, put them to a person, and record both."""
    config = frozen_config(state)
    asking = [config.debater(floor["speaker"]) for floor in state["step"]["floors"]]
    replies: list[Reply] = yield [_call(state, context, debater) for debater in asking]
    questions = _questions(state, config, asking, replies)
    rounds = state.get("clarifications", {}).get("rounds", 0) + 1
    update: JsonObject = {"clarifications": {"rounds": rounds, "settled": not questions}}
    update |= errors_update(state, "clarify", [reply.error for reply in replies])
    if not questions:
        return update
    answers = yield from ask_people("clarifications", rounds, questions)
    count = context.env.count_for(config)
    scribe = Scribe(len(state["full_transcript"]), count, context.env.clock, phase=PHASE)
    for question in questions:
        asked = scribe.write(question["debater"], "question", question["question"], targets=["user"])
        scribe.write("user", "answer", answers[question["id"]] or NO_ANSWER, targets=[asked["id"]])
    return {**update, **(yield from scribe.enter())}


def _call(state: ConversationState, context: NodeContext, debater: DebaterConfig) -> ModelCall:
    """Ask a debater, with rules and topic, context documents and earlier answers."""
    config = frozen_config(state)
    count, most = context.env.count_for(config), config.clarifications.max_per_debater
    scene = Scene(state, config, make_floor(debater.id), count)
    earlier = [entry for entry in scene.window if kind_of(entry).gift in ("document", "answer")]
    role = shipped_role(debater)
    built_in = "\n".join(filter(None, (INSTRUCTION.render(), role.says("clarify") if role else "")))
    known = "The answers so far are above: ask only what they leave open." if earlier else ""
    instruction = debater.clarification_prompt or built_in
    asked = CLARIFY.render(instruction=instruction, most=str(most), known=known)
    last: WireMessage = {"role": "user", "content": f"{contract_text(debater)}\n\n{asked}"}
    blocks = [
        rules_block(scene),
        topic_block(state["topic"], config, count),
        *(
            Block("messages", render_entry(entry, scene.names), EARLIER, ids=(entry["id"],), label="earlier")
            for entry in earlier
        ),
        Block("tail", last, KEEP, label="contract and instruction"),
    ]
    view = fit(blocks, config.memory.budget.total, count)
    hints: Hints = {"speaker": debater.name, "topic": state["topic"], "fields": {"questions": 1}}
    schema = narrow(Asked, {"questions": many(str, 0, most)})
    voice = voice_of(config, debater)
    return make_call(voice, "clarify", view, schema=schema, reply=QUESTIONS_TOKENS, hints=hints)


def _questions(
    state: ConversationState,
    config: DebateConfig,
    asking: Sequence[DebaterConfig],
    replies: Sequence[Reply],
) -> list[PersonQuestion]:
    """Return what is asked, grouped by debater, numbered on from earlier rounds; nothing twice."""
    before = [entry for entry in state["full_transcript"] if entry["kind"] == "question"]
    seen = {entry["content"].casefold() for entry in before}
    questions: list[PersonQuestion] = []
    for debater, reply in zip(asking, replies, strict=True):
        number = sum(entry["speaker"] == debater.id for entry in before)
        said = reply.data.get("questions", []) if reply.ok and reply.data else []
        fresh = [text for item in said if (text := " ".join(clean_text(str(item)).split())[:QUESTION_CHARS])]
        for text in fresh[: config.clarifications.max_per_debater]:
            if text.casefold() in seen:
                continue
            seen.add(text.casefold())
            number += 1
            key = f"{debater.id}.{number}"
            questions.append(PersonQuestion(id=key, debater=debater.id, name=debater.name, question=text))
    return questions
