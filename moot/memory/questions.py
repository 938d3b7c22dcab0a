"""Answer to a question about a debate, made by one model call with checked citations.

Without a model, the most relevant passages are the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from moot.calls.effects import CallGenerator
from moot.memory.question_prompt import (
    VERDICT_ID,
    JudgedResult,
    Place,
    QuestionPrompt,
    Splitting,
    by_message,
    key_of,
    named_seqs,
)
from moot.prompts.request import citation_type, make_call, model_params, narrow_schema
from moot.prompts.truncation import display_name
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, JsonObject, cited_id, entries_of, entry_id, message_count, seq_of
from moot.text.plain_text import sanitize_line

PASSAGE = Splitting(long=48, passage=48)
"""Limits for splitting messages into short passages of two or three sentences."""
PASSAGES = 5
NO_MODEL = "No model is configured. These are the most relevant passages."
NOTHING = "No model is configured, and no message shares a word with the question."
QUOTE_TRUNCATION_MARK = "[…]"


class AskAnswer(BaseModel):
    """Structured reply of the model to a question about a debate."""

    reasoning: str = Field(
        description="Facts about the question that are in the transcript, and facts that are missing from it."
    )
    answer: str = Field(description="The answer in Markdown, citing message ids in brackets.")
    citations: list[str] = Field(description="Ids of the messages that support the answer.")
    not_found: list[str] = Field(
        description="Parts of the question that the transcript does not answer. Empty if there are none."
    )


ANSWER_SCHEMA = narrow_schema(AskAnswer, {"citations": citation_type(())})
"""Schema of the model's structured reply to a question about a debate without a verdict. The message ids are
omitted, because a list of 200 takes 1,250 tokens of the prompt."""
JUDGED_SCHEMA = narrow_schema(AskAnswer, {"citations": citation_type((), [VERDICT_ID])})
"""Schema of the reply to a question about a judged debate, which can also cite the verdict."""


def answer_schema(shown: Sequence[str], result: JudgedResult | None = None) -> type[AskAnswer]:
    """Return the schema of an answer that can cite only messages shown in the prompt, and the verdict."""
    others = [VERDICT_ID] if result else []
    return narrow_schema(AskAnswer, {"citations": citation_type(shown, others)})


NO_ANSWER = AskAnswer(reasoning="", answer="", citations=[], not_found=["the model did not answer"])


@dataclass(frozen=True)
class DebateAnswer:
    """Answer to a question that a person asked about a debate."""

    text: str
    """Text of the answer as Markdown, or `""` if the transcript contains no answer."""
    citations: tuple[str, ...]
    """Ids of the existing messages that the answer cites, in order. `verdict` stands for the verdict."""
    not_found: tuple[str, ...]
    """Parts of the question that the transcript does not answer."""
    dropped: int
    """Number of citations that were removed because the cited message does not exist."""
    model: str
    usage: Mapping[str, Any]
    placeholder: bool = False
    """True if no model answered and the answer only quotes passages of the debate."""
    receipt: Mapping[str, Any] = field(default_factory=dict)
    """Record of the prompt's contents, such as its message ids and the tokens of each section. The record
    also lists omissions with reasons, unknown terms, and errors of the embedding model."""

    def to_markdown(self) -> str:
        """Return the answer as Markdown, including its citations and any unanswered parts of the question."""
        unsaid = "\n".join(["Not in the transcript:", *(f"- {each}" for each in self.not_found)])
        cited = f"From {', '.join(self.citations)}." if self.citations and not self.placeholder else ""
        return "\n\n".join(filter(None, [self.text, cited, unsaid if self.not_found else ""]))

    def to_json(self) -> JsonObject:
        """Return the answer as JSON-compatible data for a JSON file or an API response."""
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


def ask(
    state: ConversationState,
    config: DebateConfig,
    asked: QuestionPrompt,
    schema: type[AskAnswer] = ANSWER_SCHEMA,
) -> CallGenerator[DebateAnswer]:
    """Answer a question about the debate with one model call.

    Raises:
        ModelError: no model answered.
    """
    params, length = model_params(config, config.judge), config.memory.budget.reply
    (reply,) = yield [make_call(params, "ask", asked.prompt, schema=schema, reply=length)]
    data = reply.require().data
    said = AskAnswer.model_validate(data) if data else NO_ANSWER
    transcript, prompt = state["full_transcript"], asked.prompt
    others = [VERDICT_ID] if asked.result else []
    known, dropped = check_citations(said.citations, len(transcript), others)
    text, not_found = said.answer.strip(), said.not_found
    if reply.placeholder:
        not_found = list(asked.unknown)
        shown = [transcript[seq] for seq in (*asked.messages.whole, *asked.messages.cut)]
        named = named_seqs(asked.question, len(transcript))
        text, known = extract_for(asked.question, sorted(shown, key=itemgetter("seq")), config.names(), named)
        text = f"The verdict: {asked.result.decision}\n\n{text}" if asked.result else text
    return DebateAnswer(
        text=text,
        citations=known,
        not_found=tuple(filter(None, map(str.strip, not_found))),
        dropped=dropped,
        model=reply.model,
        usage=dict(reply.usage),
        placeholder=reply.placeholder,
        receipt={
            "budget": prompt.budget,
            "total_tokens": prompt.total_tokens,
            "sections": dict(prompt.sections),
            "message_ids": list(prompt.shown),
            "summary_version": int(state.get("rolling_summary", {}).get("version", 0)),
            "messages_read": message_count(entries_of(prompt.shown, transcript)),
            "messages_left_out": message_count(asked.messages.omitted(transcript)),
            "omitted": [*prompt.omitted, *asked.messages.notes(transcript)],
            "unknown_terms": list(asked.unknown),
            "embeddings_error": asked.failure,
        },
    )


def check_citations(
    cited: Iterable[str], entries: int, others: Sequence[str] = ()
) -> tuple[tuple[str, ...], int]:
    """Return the cited ids that exist, without duplicates, and the number of cited ids that do not exist.

    `others` are existing ids that are no entry's.
    """
    named = [cited_id(text) for text in cited]
    real = [key for key in named if key in others or ((seq := seq_of(key)) is not None and seq < entries)]
    return tuple(dict.fromkeys(real)), len(named) - len(real)


class Extract(NamedTuple):
    """Passages that answer a question, selected without a model and listed in transcript order."""

    text: str
    """Passages as a Markdown list that has one item per message."""
    ids: tuple[str, ...]


def extract_for(
    question: str, entries: Sequence[Entry], names: Mapping[str, str], asked_for: Sequence[int] = ()
) -> Extract:
    """Return the passages that best match a question.

    `asked_for` holds the `seq` of messages that the question names by id. If there are any, the passages are
    from these messages alone, starting with the first if none matches.
    """
    from moot.retrieval import EvidenceIndex, read_question, retrieve

    # The importance of an entry does not affect the rank of its passages.
    among = [entry for entry in entries if not asked_for or entry["seq"] in asked_for]
    chunks: list[Entry] = [{**chunk, "importance": 0} for entry in among for chunk in PASSAGE.chunks(entry)]
    index = EvidenceIndex(chunks, names=names)
    read = read_question(index, question)
    whose = {index.speakers[number] for number in read.speakers}
    others = {chunk["seq"] for chunk in chunks if whose and chunk["speaker"] not in whose}
    remaining = sum(index.tokens)
    keys = retrieve(index, read.about, budget=remaining, exclude=others, top=PASSAGES, neighbours=0).seqs
    keys = keys or tuple(chunk["seq"] for chunk in chunks[: PASSAGES if asked_for else 0])
    by_key = {chunk["seq"]: chunk for chunk in chunks}
    lines, ids = list[str](), list[str]()
    for seq, parts in by_message(keys):
        # A mark shows each omission in a message.
        words, after = list[str](), 0
        for part in parts:
            words += [QUOTE_TRUNCATION_MARK] if part > after else []
            words.append(sanitize_line(by_key[key_of(Place(seq, part))]["content"]))
            after = part + 1
        words += [QUOTE_TRUNCATION_MARK] if key_of(Place(seq, after)) in by_key else []
        who = sanitize_line(display_name(by_key[key_of(Place(seq, parts[0]))]["speaker"], names))
        lines.append(f"- [{entry_id(seq)}] {who}: {' '.join(words)}")
        ids.append(entry_id(seq))
    return Extract("\n".join([NO_MODEL, "", *lines]) if lines else NOTHING, tuple(ids))
