"""Check after a council's round: which criticism the proposals adopted, and how far they agree."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Literal

from pydantic import BaseModel, Field

from moot.calls.effects import errors_update
from moot.calls.model_calls import CallGenerator, Hints, WireMessage
from moot.claims.claim_extraction import find_quotation
from moot.claims.ledger_rendering import board_text
from moot.config import ProtocolSettings
from moot.judging.facts import fact_notes
from moot.judging.judge_floor import criticisms, names_label
from moot.memory.background import select_background
from moot.memory.perspectives import latest_proposals
from moot.prompts import truncation
from moot.prompts.request import make_call, many, model_params, narrow_schema, one_of, prompt_budget
from moot.prompts.structured_calls import structured_data
from moot.prompts.templates import fenced, load_prompt_template, system_message
from moot.protocols import prompt_context
from moot.state.conversation import AdoptedPoint, ConvergenceCheck
from moot.state.entries import Entry, JsonObject
from moot.text.terms import split_sentences
from moot.text.tokens import truncate_middle

CONVERGENCE = "convergence"
"""Name of the phase in which the judge measures how far the proposals agree."""

PROMPT = load_prompt_template("convergence", "topic", "adopted", home=__package__)
ADOPTED = load_prompt_template("adopted", home=__package__)
REPLY_TOKENS, POINT_TOKENS = 800, 60
"""Number of reply tokens for a convergence check, and for each point of criticism: a long sentence."""
POINT_CHARS = 400
"""Maximum length of a point of criticism in the prompt, in characters. All 93 points of the criticisms in two
sample councils are shorter."""
BACKGROUND = 1
"""Priority of the background. It is shortened before the proposals, whose priority is 0."""


class TerminationConfig(ProtocolSettings):
    """Settings for ending a council debate before its last round."""

    key = "termination"

    type: Literal["fixed", "convergence"] = "convergence"
    """Condition that ends a council debate. `convergence`: the judge finds after a round that the proposals
    agree, or the last round is over. `fixed`: the last round is over."""
    threshold: float = Field(0.8, ge=0, le=1)
    """Degree of agreement between the proposals, from 0 to 1, at which the council ends early."""


class Adopted(BaseModel):
    """Point of criticism that a proposal says it adopts."""

    proposal: str
    point: str
    sentence: str


class Convergence(BaseModel):
    """The judge's assessment of what a council's proposals adopted, and how closely they agree."""

    reasoning: str
    adopted: list[Adopted] = []
    in_dispute: list[str] = []
    """Points on which the proposals still disagree."""
    agreement: float = Field(ge=0, le=1)
    """Degree of agreement between the proposals, from 0 to 1."""


def check_convergence(debate: prompt_context.PromptSource) -> CallGenerator[JsonObject]:
    """Ask the judge what the proposals adopted and how far they agree, and return a state update.

    A point counts as adopted only with a sentence of the new proposal. If the call fails, an error is
    recorded and the council continues.
    """
    state, config, count = debate.state, debate.config, debate.count
    budget, names, round_no = config.memory.budget, debate.names, state["step"]["round"]
    topic = truncate_middle(state["topic"], budget.total // 2, count)
    proposals = {entry["id"]: entry for entry in latest_proposals(state["full_transcript"]).values()}
    points = [each for each in criticisms(state["full_transcript"]) if each.entry["round"] == round_no]
    text = PROMPT.render(topic=fenced(topic, config.fence), adopted=f" {ADOPTED.render()}" if points else "")
    frame = truncation.Block("system", system_message(text, config.fence), label="problem")
    proposal_blocks = [
        truncation.Block(
            "messages",
            truncation.render_entry(entry, names, config.fence),
            ids=(entry["id"],),
            label=f"proposal {entry['id']}",
        )
        for entry in proposals.values()
    ]
    schema: type[BaseModel] = Convergence
    if points:
        point_lines = "\n".join(f"- {each.label}: {board_text(each.point, POINT_CHARS)}" for each in points)
        message: WireMessage = {
            "role": "user",
            "content": fenced(point_lines, config.fence, "# Points of criticism"),
        }
        proposal_blocks.append(truncation.Block("messages", message, label="points of criticism"))
        row = narrow_schema(
            Adopted, {"proposal": one_of(proposals), "point": one_of(each.label for each in points)}
        )
        schema = narrow_schema(Convergence, {"adopted": many(row, 0, len(points) * (len(proposals) - 1))})
    question = truncation.Block(
        "turn_suffix", {"role": "user", "content": "How far do these proposals agree?"}, label="question"
    )
    remaining = prompt_budget(budget.total, schema, count)
    # The background states the requirements, and uses what the proposals leave. The table of facts, if there
    # is one, stands for it: a document of 2,800 tokens in each check was 3.4 % of a council's tokens.
    background, facts = (
        select_background(debate),
        {each["id"] for each in fact_notes(state["full_transcript"])},
    )
    shown_blocks = [block for block in background.shown_blocks if not facts or facts & {*block.ids}]
    background_blocks = [replace(block, priority=BACKGROUND) for block in shown_blocks]
    blocks = truncation.truncate_by_priority(
        [frame], [*background_blocks, *proposal_blocks], question, remaining, count
    )
    passages = None if facts else partial(background.passages, topic)
    prompt = truncation.truncate_blocks(blocks, remaining, count, passages=passages)
    hints: Hints = {"phase": CONVERGENCE, "debaters": list(names)}
    params, reply_tokens = model_params(config, config.judge), REPLY_TOKENS + POINT_TOKENS * len(points)
    call = make_call(params, "evaluate", prompt, schema=schema, reply=reply_tokens, hints=hints)

    (reply,) = yield [call]
    data = None if reply.placeholder else structured_data(Convergence, reply)
    check: ConvergenceCheck = {
        "round": round_no,
        "agreement": data["agreement"] if data else None,
        "in_dispute": data["in_dispute"] if data else [],
    }
    if data and points:
        check["adopted"] = list(_adoptions(data["adopted"], proposals, {each.label for each in points}))
    error = f"convergence was not checked: {reply.error or 'the reply has no share of agreement'}"
    return {
        "convergence": [check],
        **errors_update(state, "judge", [] if data or reply.placeholder else [error]),
    }


def _adoptions(
    rows: Iterable[JsonObject], proposals: Mapping[str, Entry], labels: Container[str]
) -> Iterator[AdoptedPoint]:
    """Yield each point that a proposal says it adopts, with the sentence that does it if there is one.

    A sentence that names the point only answers the criticism, so it does not count.
    """
    seen = set()
    for row in rows:
        key = row["proposal"], row["point"]
        if key in seen or row["proposal"] not in proposals or row["point"] not in labels:
            continue
        seen.add(key)
        content = proposals[row["proposal"]]["content"]
        span = find_quotation(row["sentence"], content)
        answers = (
            each
            for each in split_sentences(content)
            if span and each.start < span[1] and span[0] < each.start + len(each.text)
        )
        is_found = span and not any(names_label(each.text, row["point"]) for each in answers)
        sentence = content[slice(*span)] if span and is_found else ""
        yield AdoptedPoint(message_id=row["proposal"], point=row["point"], sentence=sentence)
