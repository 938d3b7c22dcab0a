"""Answers to questions about a debate.

One model call answers, and its citations are checked. Without a model, the most relevant passages are the
answer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, NamedTuple

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables.config import RunnableConfig, merge_configs
from pydantic import BaseModel, Field

from moot.asking import select
from moot.calls.effects import BackgroundTask, LocalJob, LocalWork
from moot.calls.model_calls import CallGenerator, ModelCall, Reply, StreamAs
from moot.config.boundary import Capability, Permissions
from moot.config.model_settings import OFFLINE, RECORDED
from moot.memory.passages import Place, Splitting, by_message, key_of
from moot.models.registry import Models
from moot.prompts import debate_context, request as model_request, truncation
from moot.protocols.result import decision_line, verdict_text
from moot.retrieval import EvidenceIndex, read_question, retrieve
from moot.runtime.context import NodeContext
from moot.runtime.environment import Complete
from moot.runtime.fitting import fitted_context, until_prompts_fit
from moot.state import entries as entry_types
from moot.state.conversation import ConversationState
from moot.state.verdict import PanelVerdict
from moot.text.plain_text import sanitize_line

PASSAGE = Splitting(long=48, passage=48)
"""Limits for splitting messages into short passages of two or three sentences."""
MOST_PASSAGES = 5
"""Maximum number of passages that answer a question if no model is configured."""
MIN_REPLY = 750
"""Smallest limit of an answer's tokens: 200 words of reasoning and 200 of answer, at up to 1.8 tokens a word,
and the citations. `memory.budget.reply` is meant for messages of debaters, and may be smaller."""
NO_MODEL = "No model is configured. These are the most relevant passages."
NO_PASSAGE = "No model is configured, and no message shares a word with the question."
QUOTE_TRUNCATION_MARK = "[…]"


class AskAnswer(BaseModel):
    """A model's structured answer to a question about a debate."""

    reasoning: str = Field(
        description="Facts about the question that are in the transcript, and facts that are missing from it."
    )
    answer: str = Field(description="The answer in Markdown, citing message ids in brackets.")
    citations: list[str] = Field(description="Ids of the messages that support the answer.")
    not_found: list[str] = Field(
        description="Parts of the question that the transcript does not answer. Empty if there are none."
    )


def answer_schema(shown_ids: Sequence[str], *, is_judged: bool) -> type[AskAnswer]:
    """Return the schema of an answer that cites only these messages and, in a judged debate, the verdict."""
    others = [select.VERDICT_ID] if is_judged else []
    return model_request.narrow_schema(
        AskAnswer, {"citations": model_request.citation_type(shown_ids, others)}
    )


ANSWER_SCHEMA = answer_schema((), is_judged=False)
"""Schema of the model's answer to a question about a debate that has no verdict. The message ids are omitted,
because a list of 200 takes 1,250 tokens of the prompt."""
JUDGED_SCHEMA = answer_schema((), is_judged=True)
"""Schema of the model's answer to a question about a judged debate. The answer can also cite the verdict."""
EMPTY_ANSWER = AskAnswer(reasoning="", answer="", citations=[], not_found=["the model did not answer"])


@dataclass(frozen=True)
class DebateAnswer:
    """Answer to a person's question about a debate."""

    text: str
    """Text of the answer as Markdown, or `""` if the transcript contains no answer."""
    citations: tuple[str, ...]
    """Ids of the existing messages that the answer cites, in order. `verdict` stands for the verdict."""
    not_found: tuple[str, ...]
    """Parts of the question that the transcript does not answer."""
    dropped: int
    """Number of citations that were removed from the answer because the cited message does not exist."""
    model: str
    usage: Mapping[str, Any]
    placeholder: bool = False
    """True if no model answered, so that the answer only quotes passages."""
    receipt: Mapping[str, Any] = field(default_factory=dict)
    """Record of what the prompt contains, such as its message ids and the tokens per section. The record
    also lists omissions with reasons, unknown terms, and errors of the embedding model."""

    def to_markdown(self) -> str:
        """Return the answer as Markdown, including its citations and any unanswered parts of the question."""
        unsaid = "\n".join(["Not in the transcript:", *(f"- {each}" for each in self.not_found)])
        cited = f"From {', '.join(self.citations)}." if self.citations and not self.placeholder else ""
        return "\n\n".join(filter(None, [self.text, cited, unsaid if self.not_found else ""]))

    def to_json(self) -> entry_types.JsonObject:
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
    debate: debate_context.DebateContext,
    request: select.QuestionPrompt,
    schema: type[AskAnswer] = ANSWER_SCHEMA,
) -> CallGenerator[DebateAnswer]:
    """Answer a question about the debate with one call. If no model answers: `ModelError`."""
    state, config = debate.state, debate.config
    params = model_request.model_params(config, config.judge)
    length = max(MIN_REPLY, config.memory.budget.reply)
    (reply,) = yield [model_request.make_call(params, "ask", request.prompt, schema=schema, reply=length)]
    data = reply.require().data
    response = AskAnswer.model_validate(data) if data else EMPTY_ANSWER
    transcript, prompt = state["full_transcript"], request.prompt
    others = [select.VERDICT_ID] if request.result else []
    citations, dropped = check_citations(response.citations, len(transcript), others)
    text, not_found = response.answer.strip(), response.not_found
    if reply.placeholder:
        not_found = list(request.unknown)
        quoted_entries = [transcript[seq] for seq in (*request.messages.full_seqs, *request.messages.cut)]
        mentioned_seqs = select.named_seqs(request.question, len(transcript))
        text, citations = extract_for(
            request.question, sorted(quoted_entries, key=itemgetter("seq")), debate.names, mentioned_seqs
        )
        text = f"The verdict: {request.result.decision}\n\n{text}" if request.result else text
    return DebateAnswer(
        text=text,
        citations=citations,
        not_found=tuple(filter(None, map(str.strip, not_found))),
        dropped=dropped,
        model=reply.model,
        usage=dict(reply.usage),
        placeholder=reply.placeholder,
        receipt={
            "budget": prompt.budget,
            "total_tokens": prompt.total_tokens,
            "sections": dict(prompt.sections),
            "message_ids": list(prompt.shown_ids),
            "summary_version": int(state.get("rolling_summary", {}).get("version", 0)),
            "messages_read": entry_types.message_count(entry_types.entries_of(prompt.shown_ids, transcript)),
            "messages_left_out": entry_types.message_count(request.messages.omitted(transcript)),
            "omitted": [*prompt.omitted, *request.messages.notes(transcript)],
            "unknown_terms": list(request.unknown),
            "embeddings_error": request.failure,
        },
    )


def check_citations(
    cited: Iterable[str], entries: int, others: Sequence[str] = ()
) -> tuple[tuple[str, ...], int]:
    """Return the cited ids that exist, and how many others were cited.

    Duplicates are removed. `others` are valid ids of something other than a transcript entry, such as the
    verdict.
    """
    cited_ids = [entry_types.cited_id(text) for text in cited]
    existing_ids = [
        key
        for key in cited_ids
        if key in others or ((seq := entry_types.seq_of(key)) is not None and seq < entries)
    ]
    return tuple(dict.fromkeys(existing_ids)), len(cited_ids) - len(existing_ids)


class Extract(NamedTuple):
    """Passages that answer a question, selected without a model and listed in transcript order."""

    text: str
    """Passages as a Markdown list that has one item per message."""
    ids: tuple[str, ...]


def extract_for(
    question: str,
    entries: Sequence[entry_types.Entry],
    names: Mapping[str, str],
    asked_for: Sequence[int] = (),
) -> Extract:
    """Return the passages that best match a question.

    `asked_for` holds the `seq` of messages that the question names by id. If there are any, the passages are
    from these messages alone, starting with the first if none matches.
    """
    # The importance of an entry does not affect the rank of its passages.
    candidates = [entry for entry in entries if not asked_for or entry["seq"] in asked_for]
    chunks: list[entry_types.Entry] = [
        {**chunk, "importance": 0} for entry in candidates for chunk in PASSAGE.chunks(entry)
    ]
    index = EvidenceIndex(chunks, names=names)
    parsed_question = read_question(index, question)
    speakers = {index.speakers[number] for number in parsed_question.speakers}
    excluded_seqs = {chunk["seq"] for chunk in chunks if speakers and chunk["speaker"] not in speakers}
    remaining = sum(index.tokens)
    keys = retrieve(
        index,
        parsed_question.text_to_embed,
        budget=remaining,
        exclude=excluded_seqs,
        top=MOST_PASSAGES,
        neighbours=0,
    ).seqs
    keys = keys or tuple(chunk["seq"] for chunk in chunks[: MOST_PASSAGES if asked_for else 0])
    by_key = {chunk["seq"]: chunk for chunk in chunks}
    lines, ids = list[str](), list[str]()
    for seq, parts in by_message(keys):
        # A mark shows each omission in a message.
        words, next_part = list[str](), 0
        for part in parts:
            words += [QUOTE_TRUNCATION_MARK] if part > next_part else []
            words.append(sanitize_line(by_key[key_of(Place(seq, part))]["content"]))
            next_part = part + 1
        words += [QUOTE_TRUNCATION_MARK] if key_of(Place(seq, next_part)) in by_key else []
        speaker = sanitize_line(
            truncation.display_name(by_key[key_of(Place(seq, parts[0]))]["speaker"], names)
        )
        lines.append(f"- [{entry_types.entry_id(seq)}] {speaker}: {' '.join(words)}")
        ids.append(entry_types.entry_id(seq))
    return Extract("\n".join([NO_MODEL, "", *lines]) if lines else NO_PASSAGE, tuple(ids))


def with_stream(complete: Complete, handler: BaseCallbackHandler) -> Complete:
    """Return a function that makes calls like `complete`, and passes the replies' tokens to a handler."""

    async def stream(call: ModelCall, models: Models, *, config: RunnableConfig | None = None) -> Reply:
        call = replace(call, stream_as=StreamAs("answer", call.purpose))
        return await complete(call, models, config=merge_configs(config, {"callbacks": [handler]}))

    return stream


def permissions_for_answer(permissions: Permissions, model: str | None = None) -> Permissions:
    """Return the permissions for answering questions about a debate.

    `model` answers the questions. Without it, the judge's model answers them, or the offline model if the
    debate is recorded.
    """
    is_recording = model_request.model_params(permissions.config, permissions.config.judge).model.startswith(
        RECORDED
    )
    answer_model = model or (OFFLINE if is_recording else None)
    if not answer_model:
        return permissions
    judge = permissions.config.judge.model_copy(update={"model": answer_model})
    granted = {*permissions.granted, Capability("model", model)} if model else permissions.granted
    return replace(
        permissions, config=permissions.config.model_copy(update={"judge": judge}), granted=granted
    )


def answer_question(context: NodeContext, question: str) -> BackgroundTask[DebateAnswer]:
    """Answer a question about a debate from its transcript. If no model replies: `ModelError`."""

    def answer(facts: Mapping[str, entry_types.ModelFacts]) -> BackgroundTask[DebateAnswer]:
        return _answer(fitted_context(context, facts, "ask"), question)

    return (yield from until_prompts_fit(answer, context.state.get("model_facts") or {}))


def _answer(context: NodeContext, question: str) -> BackgroundTask[DebateAnswer]:
    prompts: list[select.QuestionPrompt] = []

    def assemble() -> str:
        prompts.append(_question_prompt(context, question))
        return ""

    # This runs in a worker thread, because it may wait for an embedding model. The journal does not store the
    # prompt, so the prompt is assembled again after a resume.
    yield LocalWork([LocalJob(question, assemble)])
    question_prompt = prompts[0] if prompts else _question_prompt(context, question)
    count = context.count
    # The schema lists the ids of the shown messages if the ids fit into the remaining tokens.
    schema = JUDGED_SCHEMA if question_prompt.result else ANSWER_SCHEMA
    is_judged = question_prompt.result is not None
    listing_schema = answer_schema(question_prompt.prompt.shown_ids, is_judged=is_judged)
    extra_tokens = model_request.schema_tokens(listing_schema, count) - model_request.schema_tokens(
        schema, count
    )
    fits = question_prompt.prompt.total_tokens + extra_tokens <= context.config.memory.budget.total
    return (yield from ask(context, question_prompt, listing_schema if fits else schema))


def _question_prompt(context: NodeContext, question: str) -> select.QuestionPrompt:
    """Return the prompt for a question. The first one indexes the transcript, which takes a while."""
    index = select.ask_index(context, context.memories)
    result = _judged_result(context.state)
    schema = JUDGED_SCHEMA if result else ANSWER_SCHEMA
    budget = model_request.prompt_budget(context.config.memory.budget.total, schema, context.count)
    question_prompt = select.question_prompt(context, question, index, budget=budget, result=result)
    return replace(
        question_prompt, prompt=model_request.with_schema(question_prompt.prompt, schema, context.count)
    )


def _judged_result(state: ConversationState) -> select.JudgedResult | None:
    """Return the verdict of a judge or a vote, or `None` if the debate was not decided."""
    verdict: PanelVerdict | None = state.get("verdict") or None
    if not verdict or verdict["status"] != "ok" or verdict.get("placeholder"):
        return None
    return select.JudgedResult(decision_line(state), verdict_text(verdict, state))
