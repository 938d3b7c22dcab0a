"""The prompt for a question about a debate, with the messages that are selected for it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

from moot import retrieval
from moot.asking.quote import EntryLines, Quoted, quote, quote_cut
from moot.asking.unsaid_words import unsaid_words
from moot.calls.model_calls import Prompt, WireMessage
from moot.claims.blackboard import render_blackboard
from moot.claims.ledger_from_events import ledger_of
from moot.memory.cross_debate_memory import MemoryIndexes
from moot.memory.passages import Splitting
from moot.memory.summarizers.rule_based import SummaryPoints, layout_points, render
from moot.prompts import templates, truncation
from moot.prompts.debate_context import DebateContext
from moot.state import entries as entry_types
from moot.state.conversation import ConversationState, Omission
from moot.text import terms as text_terms
from moot.text.plain_text import sanitize_line
from moot.text.tokens import REPLY_PRIMING, TokenCounter, message_tokens, truncate_middle

ASK = templates.load_prompt_template("ask", "topic", "speakers", "verdict", "fence", "times")
_TIMES = (
    "A time in parentheses applies to its message and to all following messages until another time is given. "
)
VERDICT_ID = "verdict"
"""Id with which answers cite the verdict. The verdict is not in the transcript, so it has no message id."""
_VERDICT = f"The verdict of the judge, or of a vote, follows them. Its id is `{VERDICT_ID}`. "
_VERDICT_HEADING = f"# Verdict (id: {VERDICT_ID})"
QUESTION = templates.load_prompt_template("question", "question")
SUMMARY_SHARE = 0.125
"""Maximum share of the prompt's token budget for the summary."""
RECENT_SHARE = 0.15
"""Maximum share of the prompt's token budget for the latest messages. Retrieved messages get the rest of the
budget."""
FOCUS = 0.35
"""Minimum probability that a few messages contain the answer.

It is the result of `concentration`. A question with a lower result is treated as one about the whole
transcript. Of LoCoMo's questions about facts, 97 % reach it. Of twenty questions about a whole transcript,
such as "Who won?", asked of five conversations and seven meetings, 25 % reach it."""
NOT_BROAD = "the question is about certain messages"
"""Reason for omitting the debate's summary from a prompt."""
ASK_FRAME_SHARE = 0.2
"""Maximum share of the prompt's token budget for the instruction message. The same share applies to the
question."""
VERDICT_SHARE = 0.15
"""Maximum share of the prompt's token budget that the verdict may use."""
ASK_LEDGER_SHARE = 0.4
"""Maximum share of the summary's tokens for the debaters' positions."""


class JudgedResult(NamedTuple):
    """Result of a judged debate as text."""

    decision: str
    """Decision in one line. It names the winner if nothing was decided."""
    text: str
    """The verdict as Markdown."""


@dataclass(frozen=True)
class QuestionPrompt:
    """Prompt for a question about a debate, including the messages selected for it."""

    question: str
    prompt: Prompt
    messages: Quoted
    remaining: int
    """Number of prompt tokens that are available for messages of the debate."""
    unknown: tuple[str, ...]
    """Words in the question that do not occur in the transcript."""
    failure: str = ""
    """Error message of the embedding model, or `""` if the embedding succeeded."""
    result: JudgedResult | None = None
    """Verdict that the prompt shows, or `None` if the debate is not judged."""


def question_prompt(
    debate: DebateContext,
    question: str,
    index: retrieval.EvidenceIndex,
    *,
    budget: int | None = None,
    result: JudgedResult | None = None,
) -> QuestionPrompt:
    """Return the prompt for a question, including the summary, the verdict and relevant messages.

    The messages are selected for the question until the budget is full. A question about the whole transcript
    also gets the summary and the most recent messages. A question about certain messages gets more of them
    instead, because the summary and the most recent messages seldom answer it. If all messages fit, the
    summary is shown too.
    """
    state, config, count = debate.state, debate.config, debate.count
    total = config.memory.budget.total if budget is None else budget
    parsed_question, failure = retrieval.read_question(index, question), ""
    try:
        chances = retrieval.probabilities(index, parsed_question)
    except Exception as error:  # a failing embedding service must not fail the answer
        if index.vectors is None:
            raise
        failure = f"{type(error).__name__}: {error}"
        chances = retrieval.probabilities(index, parsed_question, semantic=False)
    share = int(total * ASK_FRAME_SHARE)
    question_text = QUESTION.render(
        question=templates.fenced(truncate_middle(question, max(8, share - 60), count), config.fence)
    )
    turn_suffix = truncation.Block(
        "turn_suffix",
        truncation.cut_message({"role": "user", "content": question_text}, share, count),
        label="question",
    )
    lines = entry_lines(debate)
    lines.share_counts(index)
    frame: WireMessage = {"role": "user", "content": lines.block("")}

    def remaining_beside(prefix: Sequence[truncation.Block]) -> int:
        fixed_messages = (*(block.message for block in prefix), frame, turn_suffix.message)
        return total - REPLY_PRIMING - sum(message_tokens(message, count) for message in fixed_messages)

    shared_prefix = _shared_prefix(debate, total, result)
    remaining = remaining_beside(shared_prefix)
    has_overview = lines.fit(index, remaining) or retrieval.concentration(index, chances) < FOCUS
    if (spare_tokens := remaining - lines.total(index)) > 0:
        shared_prefix = _shared_prefix(debate, total, result, spare_tokens=spare_tokens)
        remaining = remaining_beside(shared_prefix)
    if not has_overview:
        shared_prefix = _shared_prefix(debate, total, result, summarize=False)
        remaining = remaining_beside(shared_prefix)
    recent = recent_seqs(state, lines, total) if has_overview else []
    pins = (entry["seq"] for entry in truncation.pinned_entries(state))
    mentioned_seqs = named_seqs(question, len(state["full_transcript"]))
    select = partial(
        retrieval.select_evidence,
        index,
        parsed_question,
        chances=chances,
        costs=lines.key_cost,
        must_keep=lines.keys(recent),
        mentioned_seqs=lines.keys([*_seqs_asked_for(state, index, parsed_question, mentioned_seqs), *pins]),
    )
    quoted = _fill_remaining(select, lines, remaining)
    messages: WireMessage = {"role": "user", "content": lines.block(quoted.text)}
    message_blocks = (
        [truncation.Block("messages", messages, ids=quoted.ids, label="messages")] if len(index) else []
    )
    verdict_texts = [_VERDICT, *result] if result else []
    unknown = unsaid_words(
        parsed_question, debate.names, others=[*map(entry_types.entry_id, mentioned_seqs), *verdict_texts]
    )
    prompt = truncation.truncate_blocks([*shared_prefix, *message_blocks, turn_suffix], total, count)
    if (summary := str(state.get("rolling_summary", {}).get("text", ""))) and not has_overview:
        note: Omission = {"what": "summary", "why": NOT_BROAD, "tokens": count(summary), "count": 1}
        prompt = replace(prompt, omitted=(*prompt.omitted, note))
    return QuestionPrompt(question, prompt, quoted, remaining, unknown, failure, result)


def _seqs_asked_for(
    state: ConversationState,
    index: retrieval.EvidenceIndex,
    parsed_question: retrieval.RetrievalQuestion,
    mentioned_seqs: Sequence[int],
) -> set[int]:
    """Return the numbers of the messages to which a question refers.

    A question refers to the messages that it names by id. If the question also names a speaker, all messages
    of that speaker are included. Changes of position on the question's subject are included, each with the
    earlier position and the message it answers.
    """
    transcript, ledger = state["full_transcript"], ledger_of(state)
    speakers = {index.speakers[number] for number in parsed_question.speakers}
    seqs = set(mentioned_seqs)
    if mentioned_seqs and speakers:
        seqs |= {entry["seq"] for entry in transcript if entry["speaker"] in speakers}
    for change in ledger.changes:
        events = [change.event, *([change.before] if change.before else [])]
        claim = ledger.claims.get(change.event["claim"])
        words = text_terms.term_set(
            " ".join([claim["text"] if claim else "", *(each["quote"] for each in events)])
        )
        if words & parsed_question.terms.keys() and (not speakers or change.event["debater"] in speakers):
            event_seqs = list(entry_types.seqs_of(each["message_id"] for each in events))
            seqs |= {*event_seqs, max(1, event_seqs[0] - 1)}
    return seqs


def named_seqs(question: str, entries: int) -> list[int]:
    """Return the numbers of the existing messages whose ids occur in a question."""
    mentioned_seqs = map(entry_types.seq_of, entry_types.ids_in(question.lower()))
    return [seq for seq in dict.fromkeys(mentioned_seqs) if seq is not None and seq < entries]


def _fill_remaining(
    select: Callable[..., retrieval.SelectedEvidence], lines: EntryLines, remaining: int
) -> Quoted:
    """Quote as many messages that `select` selects as fit in `remaining` tokens."""
    evidence = select(budget=remaining)
    if evidence.oversize is not None:
        return quote_cut(evidence.oversize, lines, remaining)
    if evidence.omitted and any(lines.is_part(key) or lines.has_source_time(key) for key in evidence.seqs):
        # Passages side by side cost less than the sum of their single costs.
        saved_tokens = evidence.tokens - lines.size(lines.passages(evidence.seqs))
        more_evidence = select(budget=remaining + max(0, saved_tokens))
        evidence = more_evidence if lines.size(lines.passages(more_evidence.seqs)) <= remaining else evidence
    return quote(evidence.seqs, lines, remaining)


def entry_lines(debate: DebateContext) -> EntryLines:
    """Return a renderer that formats a debate's messages for a question-answering prompt."""
    splitting = Splitting.within(debate.config.memory.budget.total)
    return EntryLines(debate.state["full_transcript"], debate.config, debate.count, splitting)


def ask_index(debate: DebateContext, memories: MemoryIndexes) -> retrieval.EvidenceIndex:
    """Return a search index over the passages of all messages, for answering questions about a debate."""
    splitting = Splitting.within(debate.config.memory.budget.total)
    use = f"ask {splitting.long}"
    transcript, embeddings = debate.state["full_transcript"], memories.embeddings
    return memories.indexes.of(
        memories.debate, use, transcript, debate.names, embeddings, split=splitting.chunks
    )


def _shared_prefix(
    debate: DebateContext,
    total: int,
    result: JudgedResult | None,
    *,
    summarize: bool = True,
    spare_tokens: int = 0,
) -> list[truncation.Block]:
    """Return the first messages of a prompt for a question about a debate.

    The messages contain the instruction and, if available, the debaters' positions, the summary and the
    verdict.

    `summarize=False` omits the summary. The positions and the summary may also use `spare_tokens`, which the
    messages leave.
    """
    state, config, count = debate.state, debate.config, debate.count
    share = int(total * ASK_FRAME_SHARE)
    speakers = sanitize_line(", ".join(dict.fromkeys(debater.name for debater in config.debaters)))
    text = ASK.render(
        topic=templates.fenced(truncate_middle(state["topic"], share // 3, count), config.fence),
        speakers=templates.break_fence(truncate_middle(speakers, share // 3, count), config.fence),
        verdict=_VERDICT if result else "",
        fence=config.fence,
        times=_TIMES if any(map(truncation.source_time, state["full_transcript"])) else "",
    )
    message = truncation.cut_message(templates.system_message(text, config.fence), share, count)
    shared_prefix = [truncation.Block("system", message, label="instruction")]

    share, names = int(total * SUMMARY_SHARE) + spare_tokens, debate.names
    max_tokens = int((share - spare_tokens - 16) * ASK_LEDGER_SHARE) + spare_tokens
    board = render_blackboard(state, "", max_tokens=max_tokens, count=count, names=names)
    size = share - 16 - count(board) - 8 - 2 * templates.FENCE_TOKENS
    summary = _summary_text(state, size, names, count) if summarize else ""
    text = "\n\n".join(
        filter(
            None,
            [
                templates.fenced(summary, config.fence, "# Summary") if summary else "",
                templates.fenced_section(board, config.fence),
            ],
        )
    )
    if text:
        message = truncation.cut_message({"role": "user", "content": text}, share, count)
        shared_prefix.append(
            truncation.Block("summary", message, truncation.SUMMARY, label="summary and ledger")
        )
    if result:
        verdict: WireMessage = {
            "role": "user",
            "content": templates.fenced(result.text, config.fence, _VERDICT_HEADING),
        }
        max_tokens = int(total * VERDICT_SHARE)
        shared_prefix.append(
            truncation.Block("verdict", truncation.cut_message(verdict, max_tokens, count), label="verdict")
        )
    return shared_prefix


def _summary_text(
    state: ConversationState, remaining: int, names: Mapping[str, str], count: TokenCounter
) -> str:
    """Return the rolling summary in at most `remaining` tokens."""
    summary = state.get("rolling_summary", {})
    text = str(summary.get("text", ""))
    if not text or remaining <= 0 or count(text) <= remaining:
        return text if remaining > 0 else ""
    points: Any = summary.get("points")
    if points and str(summary.get("method", "")).startswith("rule-based"):
        return _summary_shortener(points, names, count)(remaining)
    return truncate_middle(text, remaining, count)


@entry_types.memoize_by_identity(8)  # all questions about a state show the same summary
def _summary_shortener(
    points: SummaryPoints, names: Mapping[str, str], count: TokenCounter
) -> Callable[[int], str]:
    """Return a function that shortens a rule-based summary to a given number of tokens."""

    @lru_cache(maxsize=8)
    def shorten(remaining: int) -> str:
        return render(layout_points(points, max_tokens=remaining, count=count, names=names), names)

    return shorten


def recent_seqs(state: ConversationState, lines: EntryLines, total: int) -> list[int]:
    """Return the numbers of the newest messages that fit in `RECENT_SHARE` of the prompt's tokens."""
    remaining, seqs = int(total * RECENT_SHARE), list[int]()
    for entry in reversed(state["full_transcript"]):
        if entry["tokens"] > remaining or not entry_types.traits_of(entry).in_prompts:
            break
        remaining -= lines.cost(entry["seq"])
        if remaining < 0:
            break
        seqs.append(entry["seq"])
    return seqs
