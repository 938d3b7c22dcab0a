"""The answer to a question about a debate: one structured call, its citations checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from pydantic import BaseModel, Field

from moot.nodes.calls import Flow, Hints
from moot.nodes.prompts.enumerated import cited, narrowed
from moot.nodes.prompts.request import make_call, voice_of
from moot.nodes.views.extract import extract_for
from moot.nodes.views.question_view import AskView, named_seqs
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState
from moot.state.entries import JsonObject, cited_id, seq_of


class AskAnswer(BaseModel):
    """What the model says to a question."""

    reasoning: str = Field(description="What in the record bears on the question, and what it lacks.")
    answer: str = Field(description="The answer, Markdown, with the ids of messages in brackets.")
    citations: list[str] = Field(description="Ids of the messages that the answer rests on.")
    not_found: list[str] = Field(description="What was asked and the record does not say; empty for nothing.")


@dataclass(frozen=True)
class DebateAnswer:
    """The answer to a question about a debate."""

    text: str
    """Markdown; `""` where nothing at all was found."""
    citations: tuple[str, ...]
    """Ids of existing messages, in the order cited."""
    not_found: tuple[str, ...]
    """What was asked and could not be found."""
    dropped: int
    """Citations of messages that do not exist."""
    model: str
    usage: Mapping[str, Any]
    placeholder: bool = False
    """Whether no model answered: the text is what was said, nobody read it."""
    receipt: Mapping[str, Any] = field(default_factory=dict)
    """What the view held: tokens by section, message ids, what was left out and why, terms nobody used, and
    why an embedding model was not used."""

    def to_markdown(self) -> str:
        """Return it for whoever reads messages alone."""
        unsaid = "\n".join(["The record does not say:", *(f"- {each}" for each in self.not_found)])
        cited = f"From {', '.join(self.citations)}." if self.citations and not self.placeholder else ""
        return "\n\n".join(filter(None, [self.text, cited, unsaid if self.not_found else ""]))

    def to_json(self) -> JsonObject:
        """Return it as JSON types."""
        return {
            "answer": self.text,
            "citations": list(self.citations),
            "not_found": list(self.not_found),
            "dropped_citations": self.dropped,
            "model": self.model,
            **({"placeholder": True} if self.placeholder else {}),
            "usage": dict(self.usage),
            "receipt": dict(self.receipt),
        }


def ask(state: ConversationState, config: DebateConfig, asked: AskView) -> Flow[DebateAnswer]:
    """Answer a question in one structured call.

    Raises:
        ModelError: no model answered.
    """
    voice, length = voice_of(config, config.judge), config.memory.budget.reply
    hints: Hints = {"topic": state["topic"], "fields": {"not_found": list(asked.unknown)}}
    schema = narrowed(AskAnswer, {"citations": cited(list(asked.view.shown))})
    (reply,) = yield [make_call(voice, "ask", asked.view, schema=schema, reply=length, hints=hints)]
    said = AskAnswer.model_validate(reply.require().data or _nothing())
    transcript = state["full_transcript"]
    known, dropped = check_citations(said.citations, len(transcript))
    text = said.answer.strip()
    if reply.placeholder:
        shown = [transcript[seq] for seq in (*asked.messages.whole, *asked.messages.cut)]
        named = named_seqs(asked.question, len(transcript))
        text, known = extract_for(asked.question, sorted(shown, key=itemgetter("seq")), config.names(), named)
    return DebateAnswer(
        text=text,
        citations=known,
        not_found=tuple(filter(None, map(str.strip, said.not_found))),
        dropped=dropped,
        model=reply.model,
        usage=dict(reply.usage),
        placeholder=reply.placeholder,
        receipt=_receipt(asked, state),
    )


def answering_model(config: DebateConfig) -> str:
    """Return the model that answers questions: the judge's."""
    return voice_of(config, config.judge).model


def _nothing() -> JsonObject:
    return {"reasoning": "", "answer": "", "citations": [], "not_found": ["the model gave no answer"]}


def check_citations(cited: Iterable[str], entries: int) -> tuple[tuple[str, ...], int]:
    """Return the distinct ids of existing messages, in order, and how many others were named."""
    named = [cited_id(text) for text in cited]
    real = [key for key in named if (seq := seq_of(key)) is not None and seq < entries]
    return tuple(dict.fromkeys(real)), len(named) - len(real)


def _receipt(asked: AskView, state: ConversationState) -> JsonObject:
    view = asked.view
    transcript = state["full_transcript"]
    return {
        "budget": view.budget,
        "total_tokens": view.total_tokens,
        "sections": dict(view.sections),
        "message_ids": list(view.shown),
        "summary_version": int(state.get("rolling_summary", {}).get("version", 0)),
        "messages_left_out": len(asked.messages.left_out(transcript)),
        "left_out": [*view.left_out, *asked.messages.notes(transcript)],
        "unknown_terms": list(asked.unknown),
        "embeddings_error": asked.failure,
    }
