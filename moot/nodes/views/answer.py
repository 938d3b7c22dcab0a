"""The answer to a question about a debate: one structured call, its citations checked.

Where no model is configured, the passages that bear on the question stand for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from moot.nodes.calls import Flow, Hints
from moot.nodes.prompts.rendering import display_name
from moot.nodes.prompts.request import citation_type, make_call, narrow, voice_of
from moot.nodes.text.plain import inert
from moot.nodes.views.question_quotes import Place, Splitting, by_message, key_of
from moot.nodes.views.question_view import AskView, named_seqs
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, JsonObject, cited_id, entry_id, seq_of

PASSAGE = Splitting(long=48, passage=48)
"""Two or three sentences: a message of any length says more than what was asked."""
PASSAGES = 5
NO_MODEL = "No model is configured; this is what was said."
NOTHING = "No model is configured, and nothing was said that bears on the question."
CUT = "[…]"


class AskAnswer(BaseModel):
    """What the model says to a question."""

    reasoning: str = Field(description="What in the record bears on the question, and what it lacks.")
    answer: str = Field(description="The answer, Markdown, with the ids of messages in brackets.")
    citations: list[str] = Field(description="Ids of the messages that the answer rests on.")
    not_found: list[str] = Field(description="What was asked and the record does not say; empty for nothing.")


NO_ANSWER = AskAnswer(reasoning="", answer="", citations=[], not_found=["the model gave no answer"])


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
    schema = narrow(AskAnswer, {"citations": citation_type(asked.view.shown)})
    (reply,) = yield [make_call(voice, "ask", asked.view, schema=schema, reply=length, hints=hints)]
    data = reply.require().data
    said = AskAnswer.model_validate(data) if data else NO_ANSWER
    transcript, view = state["full_transcript"], asked.view
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
        receipt={
            "budget": view.budget,
            "total_tokens": view.total_tokens,
            "sections": dict(view.sections),
            "message_ids": list(view.shown),
            "summary_version": int(state.get("rolling_summary", {}).get("version", 0)),
            "messages_left_out": len(asked.messages.left_out(transcript)),
            "left_out": [*view.left_out, *asked.messages.notes(transcript)],
            "unknown_terms": list(asked.unknown),
            "embeddings_error": asked.failure,
        },
    )


def check_citations(cited: Iterable[str], entries: int) -> tuple[tuple[str, ...], int]:
    """Return the distinct ids of existing messages, in order, and how many others were named."""
    named = [cited_id(text) for text in cited]
    real = [key for key in named if (seq := seq_of(key)) is not None and seq < entries]
    return tuple(dict.fromkeys(real)), len(named) - len(real)


class Extract(NamedTuple):
    """Passages in the order of the transcript."""

    text: str
    """Markdown, one list item a message."""
    ids: tuple[str, ...]


def extract_for(
    question: str, entries: Sequence[Entry], names: Mapping[str, str], asked_for: Sequence[int] = ()
) -> Extract:
    """Return the passages of `entries` that match a question best, of the speakers whom it names if of any.

    Where it asks for messages by their ids, whose `seq` are `asked_for`, the passages are theirs alone, the
    first ones where none matches.
    """
    from moot.nodes.memory.retrieval import EvidenceIndex, read_question, recall

    # How much a message matters says nothing of its passages.
    among = [entry for entry in entries if not asked_for or entry["seq"] in asked_for]
    pieces: list[Entry] = [{**piece, "importance": 0} for entry in among for piece in PASSAGE.pieces(entry)]
    index = EvidenceIndex(pieces, names=names)
    read = read_question(index, question)
    whose = {index.speakers[number] for number in read.speakers}
    others = {piece["seq"] for piece in pieces if whose and piece["speaker"] not in whose}
    room = sum(index.tokens)
    keys = recall(index, read.about, budget=room, exclude=others, top=PASSAGES, neighbours=0).seqs
    keys = keys or tuple(piece["seq"] for piece in pieces[: PASSAGES if asked_for else 0])
    by_key = {piece["seq"]: piece for piece in pieces}
    lines, ids = list[str](), list[str]()
    for seq, parts in by_message(keys):
        # A mark stands wherever something of the message is left out.
        words, after = list[str](), 0
        for part in parts:
            words += [CUT] if part > after else []
            words.append(inert(by_key[key_of(Place(seq, part))]["content"]))
            after = part + 1
        words += [CUT] if key_of(Place(seq, after)) in by_key else []
        who = inert(display_name(by_key[key_of(Place(seq, parts[0]))]["speaker"], names))
        lines.append(f"- [{entry_id(seq)}] {who}: {' '.join(words)}")
        ids.append(entry_id(seq))
    return Extract("\n".join([NO_MODEL, "", *lines]) if lines else NOTHING, tuple(ids))
