"""Prompts for judges, in which each side of the debate gets an equal share of the tokens."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import cast

from moot.calls.model_calls import Prompt, WireMessage
from moot.claims.blackboard import memory_tokens, render_blackboard
from moot.config.rubrics import Rubric
from moot.judging import judge_floor, transcript_selection
from moot.judging.blinding import Blinding
from moot.judging.judge_spec import JudgeSpec
from moot.memory.background import PASSAGES_SHARE, select_background, with_background
from moot.memory.summarizers.drafting import FRAME_TOKENS as SUMMARY_FRAME_TOKENS
from moot.memory.summarizers.rule_based import NOTICE_BELOW, Point, SummaryPoints, layout_points, render
from moot.prompts import truncation
from moot.prompts.debate_context import DebateContext
from moot.prompts.templates import break_fence, fenced, fenced_section, load_prompt_template, system_message
from moot.state.conversation import MemoryKind, Omission
from moot.state.entries import Entry, critique_labels, ids_in, traits_of
from moot.state.verdict import MessagesRead
from moot.text.plain_text import break_template_tokens, quoted
from moot.text.tokens import message_tokens, prompt_tokens

INDEPENDENT_ANSWERS = "independent answers to one question, whose authors saw no other author's answer"
"""Description of what is judged if debaters cannot read each other's messages. It replaces
`JudgeSpec.subject`."""
JUDGE = load_prompt_template("judge", "judged", "debaters", "rubric", "instruction", "naming")
VERDICT = load_prompt_template("verdict", "ending")
VERDICT_ALONE = load_prompt_template("verdict-alone", "ending")
VERDICT_SCORES = load_prompt_template("verdict-scores").render()
CONTEST = load_prompt_template("contest").render()

SCORES = (
    "- `scores` rates every debater on every criterion. Before each score, give its reason and the messages "
    "that support the reason."
)
BY_CRITERION = (
    "- `by_criterion` says for each criterion of the rubric how far your decision meets it, and why."
)
"""Instructions to score the debaters, for judges of a contest, and the decision, for judges of a solution."""
OPTIONS = (
    "- `decision` is exactly one of the question's options, word for word: {}. Write `undecided` only if "
    "what was said supports no option better than the others."
)
"""Instruction that limits a judge's decision to the options of the debated question."""

NAMING = "Refer to the debaters exactly by the names in the list above, never by a letter alone."
NAMING_UNBLINDED = (
    "In texts, refer to the debaters by their names. In fields that identify a debater, use the id in the "
    "list above."
)
"""Instructions for a judge who sees the debaters' names. `NAMING` applies if names are hidden from the
judge."""

FLOOR_PRIORITY, SUMMARY_PRIORITY, LEDGER_PRIORITY, EVIDENCE_PRIORITY, OTHERS_PRIORITY = 2, 3, 4, 5, 7
FLOOR_SHARE = 0.25
"""Maximum share of the tokens left by frame, topic and request for the quotations of all sides. It applies if
not all messages fit."""
EVIDENCE = "evidence"
"""Label of the messages to judge in a judge's prompt. The record of omitted messages uses it."""
EARLIER_EVIDENCE = "earlier messages"
"""Label of additional messages that fill the rest of a judge's prompt."""
FRAME_SHARE = 0.25
"""Maximum share of the prompt budget for the judge's instructions and rubric, from 0 to 1."""
LEDGER_SHARE = 0.1
"""Maximum share of a judge's prompt for the list of claims, from 0 to 1. It applies only if not all messages
fit. If they all fit, the list may use all tokens that they leave."""
ATTEMPTS = 4
"""Maximum number of attempts to shorten a text to its token limit. Labels that replace names can make the
text longer."""


@dataclass(frozen=True)
class JudgeContext(DebateContext):
    """Data for a judge's prompt with one order of the debaters."""

    rubric: Rubric
    blinding: Blinding | None
    order: Sequence[str]
    """Ids of the debaters in presentation order."""
    selector: transcript_selection.TranscriptSelector
    """Selector that chooses the messages for the judge's prompt."""
    background: Collection[str] = frozenset()
    """Ids of the background messages, such as documents. Debaters' names in these messages are not replaced
    by labels."""

    def blind(self, text: str) -> str:
        """Replace names in a text with labels, or return the text unchanged if the judge sees names."""
        return self.blinding.blind_text(text) if self.blinding else text

    def label(self, debater: str) -> str:
        """Return a debater's neutral label, or the debater's id if names are not hidden from the judge."""
        return self.blinding.label_of(debater) if self.blinding else debater

    def cost(self, entry: Entry) -> int:
        """Return how many prompt tokens a message uses."""
        return message_tokens(_entry_message(self, entry), self.count)

    @cached_property
    def critique_labels(self) -> Mapping[str, str]:
        """Return the label of each critique, such as `2A`, keyed by the id of its transcript entry."""
        return critique_labels(self.state["full_transcript"])

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the names that the judge's prompt uses for the debaters, keyed by debater id."""
        return self.blinding.labels if self.blinding else self.names


def judge_prompt(context: JudgeContext, judge_spec: JudgeSpec, budget: int | None = None) -> Prompt:
    """Return a judge's prompt for one order. The default budget is `memory.budget.total`."""
    budget = context.config.memory.budget.total if budget is None else budget
    frame = _frame(context, judge_spec)
    ending = (
        judge_spec.instruction
        if judge_spec.solution
        else "\n".join(filter(None, (CONTEST, judge_spec.instruction)))
    )
    if context.config.options:
        options = quoted(map(break_template_tokens, context.config.options))
        ending = "\n".join(filter(None, (OPTIONS.format(options), ending)))
    request_text = VERDICT_SCORES
    if judge_spec.judging != "scores":
        scores = BY_CRITERION if judge_spec.solution else SCORES
        request_text = (VERDICT if judge_spec.interactive else VERDICT_ALONE).render(
            ending="\n".join(filter(None, (scores, ending)))
        )
    request_text = break_fence(request_text, context.config.fence)
    last = truncation.Block(
        "turn_suffix", {"role": "user", "content": request_text}, label="verdict asked for"
    )
    topic, budget_config = context.state["topic"], context.config.memory.budget
    shared_prefix = [
        frame,
        truncation.problem_block(
            topic, budget_config, context.config.fence, context.count, heading="# Topic"
        ),
    ]
    background = select_background(context, partial(_entry_message, context))

    floor: list[truncation.Block] = []
    if adoptions := judge_floor.adoption_text(context.state):
        message: WireMessage = {"role": "user", "content": f"# Adopted criticism\n{adoptions}"}
        floor = [truncation.Block("floor", message, FLOOR_PRIORITY, label="adopted criticism")]

    document_tokens = 0  # kept for passages of documents

    def remaining_tokens(*blocks: truncation.Block) -> int:
        fixed = [*shared_prefix, *background.shown_blocks, *floor, *blocks, last]
        return budget - document_tokens - prompt_tokens([block.message for block in fixed], context.count)

    # All messages whole come first, then the ledger. A summary stands only for messages that are left out.
    evidence = _evidence(context, remaining_tokens()) if context.selector.argued <= budget else []
    if context.selector.is_whole(key for block in evidence if block.whole is None for key in block.ids):
        # Scores need only the messages. The answer also rests on what the ledger says about them.
        notes = [] if judge_spec.judging == "scores" else _ledger(context, remaining_tokens(*evidence))
    else:
        # The floor and the messages come before documents, of which the most relevant passages stay.
        background = select_background(context, partial(_entry_message, context), brief=True)
        # The floor quotes what is left out. It shortens the messages to judge only if they do not fit anyway.
        remaining, judged = remaining_tokens(), context.selector.judged_tokens
        spare_tokens = remaining - judged if judged <= remaining else remaining
        floor += _floor(context, min(int(remaining * FLOOR_SHARE), spare_tokens))
        spare_tokens = remaining_tokens() - (judged if judged <= remaining else 0)
        if not background.is_whole:
            document_tokens = max(0, min(int(budget * PASSAGES_SHARE), spare_tokens))
        # Messages that a later one replaced come before the summary of them. If not even the messages to
        # judge fit (0), they share what the summaries leave.
        reserved_tokens = context.selector.reserved(remaining_tokens())
        notes = _judge_summary(context, remaining_tokens() - reserved_tokens)
        shown_ids = background.ids if background.is_whole else frozenset[str]()
        earlier = [] if reserved_tokens else _rolling_summary(context, remaining_tokens(*notes), shown_ids)
        notes += _ledger(
            context,
            min(
                int(budget_config.total * LEDGER_SHARE), remaining_tokens(*earlier, *notes) - reserved_tokens
            ),
        )
        evidence = _evidence(context, remaining_tokens(*earlier, *notes))
        if reserved_tokens:
            shown_ids |= {key for block in evidence for key in block.ids}
            earlier = _rolling_summary(context, remaining_tokens(*notes, *evidence), shown_ids)
        notes = [*earlier, *notes]
    if not judge_spec.interactive:
        evidence = _in_presentation_order(context, evidence)
    blocks = [*shared_prefix, *floor, *notes, *evidence, last]
    prompt = truncation.truncate_blocks(
        with_background(blocks, background.blocks),
        budget,
        context.count,
        passages=partial(background.passages, _query(context)),
    )
    omitted_entries = context.selector.unselected(
        key for block in (*blocks, *background.blocks) for key in block.ids
    )
    note: Omission = {
        "what": EVIDENCE,
        "why": "no room",
        "tokens": sum(entry["tokens"] for entry in omitted_entries),
        "count": len(omitted_entries),
    }
    return replace(prompt, omitted=(*prompt.omitted, note)) if omitted_entries else prompt


def messages_read(context: JudgeContext, prompt: Prompt) -> MessagesRead:
    """Return how many of the debaters' messages a judge's prompt shows in full and in part."""
    argued = [
        entry
        for entry in context.state["full_transcript"]
        if transcript_selection.is_argued(entry, context.order)
    ]
    shown_ids, contents = set(prompt.shown_ids), {message["content"] for message in prompt.messages}
    shown_entries = [entry for entry in argued if entry["id"] in shown_ids]
    full = sum(_entry_message(context, entry)["content"] in contents for entry in shown_entries)
    return {"full": full, "part": len(shown_entries) - full, "of": len(argued)}


def _frame(context: JudgeContext, judge_spec: JudgeSpec) -> truncation.Block:
    budget = int(context.config.memory.budget.total * FRAME_SHARE)
    text = JUDGE.render(
        judged=judge_spec.subject if judge_spec.interactive else INDEPENDENT_ANSWERS,
        debaters="\n".join(f"- {_listed(context, debater)}" for debater in context.order),
        rubric=_rubric_lines(context.rubric),
        instruction=context.config.judge.instruction,
        naming=NAMING if context.blinding else NAMING_UNBLINDED,
    )
    text = break_fence(break_template_tokens(text), context.config.fence)
    message = system_message(text, context.config.fence)
    return truncation.cut_block("system", message, budget, context.count, label="rubric")


def _rubric_lines(rubric: Rubric) -> str:
    """Return the rubric's criteria, one per line. A scale that all criteria share is given once."""
    has_unequal_weights = len({criterion.weight for criterion in rubric.criteria}) > 1
    has_one_scale = len({(criterion.scale_min, criterion.scale_max) for criterion in rubric.criteria}) == 1
    lines = []
    for criterion in rubric.criteria:
        name = "" if criterion.name.casefold().replace(" ", "_") == criterion.id else criterion.name
        scale = "" if has_one_scale else f"{criterion.scale_min:g} to {criterion.scale_max:g}"
        facts = ", ".join(
            filter(None, (name, scale, f"weight {criterion.weight:g}" if has_unequal_weights else ""))
        )
        lines.append(f"- {criterion.id}: " + ". ".join(filter(None, (facts, criterion.description))))
    if has_one_scale:
        first = rubric.criteria[0]
        lines.insert(0, f"Scores are from {first.scale_min:g} to {first.scale_max:g}.")
    return "\n".join(lines)


def _listed(context: JudgeContext, debater: str) -> str:
    """Return a debater's item in the list of debaters, with id and name if names are not hidden."""
    label = context.label(debater)
    return label if context.blinding else f"{label}: {truncation.prompt_name(debater, context.labels)}"


def _floor(context: JudgeContext, max_tokens: int) -> list[truncation.Block]:
    """Return the prompt block with quotations of all sides, using at most `max_tokens` tokens."""
    labels = {debater: context.labels[debater] for debater in context.order if debater in context.labels}
    argued = [
        entry
        for entry in context.state["full_transcript"]
        if transcript_selection.is_argued(entry, context.order)
    ]
    for chars, max_changes in judge_floor.LEVELS:
        lines, cited = judge_floor.floor_lines(context, argued, labels, chars=chars, max_changes=max_changes)
        if not cited:
            return []
        text = "\n".join(label + context.blind(quotation) for label, quotation in lines).strip()
        message: WireMessage = {
            "role": "user",
            "content": fenced(text, context.config.fence, judge_floor.HEADING),
        }
        if message_tokens(message, context.count) <= max_tokens:
            break
    if max_tokens < transcript_selection.MIN_MESSAGE_TOKENS:
        return []
    block = truncation.cut_block(
        "floor", message, max_tokens, context.count, label="quotations of all sides", priority=FLOOR_PRIORITY
    )
    return [replace(block, growth="spare", cites=tuple(cited))]


def _judge_summary(context: JudgeContext, remaining: int) -> list[truncation.Block]:
    """Return the prompt block with the summary of the final round, using at most `remaining` tokens."""
    summary = context.state.get("judge_summary")
    text = context.blind(summary["text"]) if summary else ""
    return _summary_block(context, "judge's summary", "# Summary of the final round", text, remaining)


def _rolling_summary(
    context: JudgeContext, remaining: int, shown_ids: frozenset[str]
) -> list[truncation.Block]:
    """Return the summary's block, without the quoted points of messages in `shown_ids`."""
    summary = context.state.get("rolling_summary")
    text = summary["text"] if summary else ""
    points = cast(SummaryPoints, (summary and summary.get("points")) or {})
    if text and "shown" in points and render(points, context.names) == text:
        max_tokens = min(context.config.memory.budget.summary, remaining) - SUMMARY_FRAME_TOKENS
        # The headings of the points use the judge's labels, because a name may be an everyday word.
        rest: list[Point] = [
            {**point, "text": context.blind(point["text"])}
            for point in points["points"]
            if not shown_ids.issuperset(point["message_ids"])
        ]
        pool: SummaryPoints = {**points, "points": rest}
        names = {**context.names, **context.labels}
        layout = layout_points(pool, max_tokens=max_tokens, count=context.count, names=names)
        text = render(layout, names) if rest else ""
    else:
        text = context.blind(text)
    return _summary_block(context, "rolling summary", "# Summary of earlier messages", text, remaining)


def _summary_block(
    context: JudgeContext, label: MemoryKind, heading: str, text: str, remaining: int
) -> list[truncation.Block]:
    """Return a list with the block of a summary, or `[]` if it is empty or cannot fit."""
    max_tokens = min(context.config.memory.budget.summary, remaining)
    if not text or max_tokens < NOTICE_BELOW:
        return []
    message: WireMessage = {"role": "user", "content": fenced(text, context.config.fence, heading)}
    block = truncation.cut_block(
        "summary", message, max_tokens, context.count, label=label, priority=SUMMARY_PRIORITY, memory=label
    )
    cites = tuple(dict.fromkeys(ids_in(block.message["content"])))
    return [replace(block, growth="spare", cites=cites)]


def _ledger(context: JudgeContext, budget: int) -> list[truncation.Block]:
    """Return the block of the recorded claims, with debaters in presentation order."""
    names = {debater: context.labels[debater] for debater in context.order if debater in context.labels}
    labels: dict[str, str] = {}
    if context.blinding:
        # The ledger's own lines name debaters by placeholders, because a name may be an everyday word.
        labels = {
            f"{context.config.fence}{number}z": context.label(debater) for number, debater in enumerate(names)
        }
        names = dict(zip(names, labels, strict=True))
    text, remaining = "", budget
    for _ in range(ATTEMPTS):  # labels may be longer than names
        text = render_blackboard(context.state, "", max_tokens=remaining, count=context.count, names=names)
        blinded_text = context.blind(text)
        for placeholder, label in labels.items():
            blinded_text = blinded_text.replace(placeholder, label)
        full_message: WireMessage = {
            "role": "user",
            "content": fenced_section(blinded_text, context.config.fence),
        }
        excess = prompt_tokens([full_message], context.count) - budget
        if excess <= 0:
            break
        remaining -= excess
    if not text:
        return []
    message = truncation.cut_message(full_message, budget, context.count)
    ledger_tokens = memory_tokens(text, context.state, context.count)
    return [truncation.Block("ledger", message, LEDGER_PRIORITY, label="ledger", memory=ledger_tokens)]


def _evidence(context: JudgeContext, remaining: int) -> list[truncation.Block]:
    """Return the blocks with the messages to judge, in at most `remaining` tokens."""
    query, limit = _query(context), remaining
    for _ in range(ATTEMPTS):
        selection = context.selector.select(query, limit)
        blocks = _evidence_blocks(context, selection)
        excess = sum(message_tokens(block.message, context.count) for block in blocks) - remaining
        if excess <= 0:
            break
        limit -= excess
    return blocks


def _query(context: JudgeContext) -> str:
    return " ".join([context.state["topic"], *(criterion.name for criterion in context.rubric.criteria)])


def _in_presentation_order(
    context: JudgeContext, blocks: Sequence[truncation.Block]
) -> list[truncation.Block]:
    """Sort independent answers in the order in which the judge sees the debaters.

    Messages of a debate keep the order of the transcript, because they reply to each other.
    """
    names = [debater for debater in context.names if debater in context.order]
    if list(context.order) == names:
        return list(blocks)
    entries = context.state["full_transcript"]
    places = {
        entry["id"]: context.order.index(entry["speaker"])
        for entry in entries
        if transcript_selection.is_argued(entry, context.order)
    }
    return sorted(blocks, key=lambda block: max((places.get(key, -1) for key in block.ids), default=-1))


def _evidence_blocks(
    context: JudgeContext, selection: transcript_selection.Selection
) -> list[truncation.Block]:
    messages = {
        item.entry["id"]: truncation.cut_message(
            _entry_message(context, item.entry), item.remaining, context.count
        )
        for item in selection.messages
    }
    if selection.share is not None:
        # Truncate messages that exceed their side's share because of blinding.
        for side in context.order:
            side_ids = [
                item.entry["id"]
                for item in selection.messages
                if transcript_selection.is_argued(item.entry, [side])
            ]
            costs = {key: message_tokens(messages[key], context.count) for key in side_ids}
            limits = transcript_selection.fair_shares(costs, selection.share)
            for key in side_ids:
                message = messages.pop(key)
                if key in limits:
                    messages[key] = truncation.cut_message(message, limits[key], context.count)
    blocks = []
    for item in selection.messages:
        key, full_message = item.entry["id"], _entry_message(context, item.entry)
        if key in messages:
            shown_message = messages[key]
            priority = (
                EVIDENCE_PRIORITY
                if transcript_selection.is_argued(item.entry, context.order)
                else OTHERS_PRIORITY
            )
            label = EARLIER_EVIDENCE if item.entry in context.selector.earlier else EVIDENCE
            original = full_message if shown_message != full_message else None
            blocks.append(
                truncation.Block(
                    "messages", shown_message, priority, (key,), label=label, whole=original, growth="spare"
                )
            )
    return blocks


def background_of(transcript: Sequence[Entry], debaters: Collection[str]) -> list[Entry]:
    """Return the topic, documents and the like, in which names are not replaced by labels."""
    first_seq = next((entry["seq"] for entry in transcript if entry["speaker"] in debaters), len(transcript))
    return [
        entry
        for entry in transcript
        if traits_of(entry).user_input in ("topic", "document")
        or (entry["seq"] < first_seq and traits_of(entry).by == "person")
    ]


def _entry_message(context: JudgeContext, entry: Entry) -> WireMessage:
    note = truncation.critique_note(entry, context.critique_labels, context.labels)
    if entry["kind"] in ("proposal", "refinement"):
        is_first = entry["kind"] == "proposal"
        version = "first proposal" if is_first else f"revised proposal of round {entry['round']}"
        note = f"({version}, replaced since)" if entry in context.selector.earlier else "(final proposal)"
    is_background = entry["id"] in context.background
    content = entry["content"] if is_background else context.blind(entry["content"])
    time = context.blind(entry["at"]) if entry.get("dated") else entry["at"]
    message = truncation.render_entry(
        {**entry, "content": content, "at": time}, context.labels, context.config.fence, note
    )
    return {"role": message["role"], "content": message["content"]}  # the field `name` would tell who spoke
