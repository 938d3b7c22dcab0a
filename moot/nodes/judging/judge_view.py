"""What a judge sees: rubric, topic, summary, ledger and evidence, an equal share a side, within budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from moot.nodes.blackboard.digest import board_memory, render_blackboard
from moot.nodes.blackboard.folding import ledger_of
from moot.nodes.calls import View, WireMessage
from moot.nodes.judging.blinding import Blinding
from moot.nodes.judging.docket import Docket, Selection, is_argued, within_share
from moot.nodes.judging.opinions import JudgeBrief, reasons_each
from moot.nodes.judging.rubrics import Rubric
from moot.nodes.prompts.fitting import Block, cut_block, fit
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.material import pin_blocks, problem_block, with_pins
from moot.nodes.prompts.rendering import cut_message, render_entry
from moot.nodes.text.tokens import TokenCounter, message_tokens, prompt_tokens
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState, LeftOut, MemoryKind, Summary
from moot.state.entries import Entry

JUDGE = load_prompt("judge", "judged", "debaters", "rubric", "instruction")
VERDICT = load_prompt("verdict", "most", "ending")
VERDICT_ALONE = load_prompt("verdict-alone", "most", "ending")
CONTEST = load_prompt("contest").render()

SUMMARY_PRIORITY, LEDGER_PRIORITY, EVIDENCE_PRIORITY, OTHERS_PRIORITY = 3, 4, 5, 7
FRAME_SHARE = 0.25
"""Most of the whole budget that the rubric may take beside the topic: they are what is judged by."""
LEDGER_SHARE = 0.1
ATTEMPTS = 4
"""How often a selection that blinding has made too long is made again, smaller."""


@dataclass(frozen=True)
class Bench:
    """Everything that one judge's view is made from."""

    state: ConversationState
    config: DebateConfig
    rubric: Rubric
    blinding: Blinding | None
    order: Sequence[str]
    """Debaters in the order of presentation."""
    count: TokenCounter
    docket: Docket
    """What may be shown."""

    def hide(self, text: str) -> str:
        """Return a text as this judge may see it."""
        return self.blinding.blind_text(text) if self.blinding else text

    def label(self, debater: str) -> str:
        """Return what a debater is called before this judge."""
        return self.blinding.label_of(debater) if self.blinding else debater

    @property
    def labels(self) -> Mapping[str, str]:
        """Names to show, by debater."""
        return self.blinding.labels if self.blinding else self.config.names()


def judge_view(bench: Bench, brief: JudgeBrief) -> View:
    """Assemble the view of one judge in one order of presentation; never more than `memory.budget.total`."""
    budget = bench.config.memory.budget.total
    frame = _frame(bench, brief)
    ending = brief.wanted if brief.solution else "\n".join(filter(None, (CONTEST, brief.wanted)))
    each = reasons_each(len(bench.order))
    most = "the strongest of each" if each == 1 else f"at most {each} of each, the strongest first"
    asked = (VERDICT if brief.heard else VERDICT_ALONE).render(most=most, ending=ending)
    last = Block("tail", {"role": "user", "content": asked}, label="verdict asked for")
    ledger, summary = _ledger(bench), _summary(bench)
    topic, room = bench.hide(bench.state["topic"]), bench.config.memory.budget
    head = [frame, problem_block(topic, room, bench.count, heading="# Topic")]
    pins = pin_blocks(bench.state, bench.config, bench.count, partial(_entry_message, bench))

    def evidence(notes: Sequence[Block]) -> list[Block]:
        fixed = [block.message for block in (*head, *pins, *notes, last)]
        return _evidence(bench, budget - prompt_tokens(fixed, bench.count))

    # The ledger tells more than the messages do, unless all of it is by rule: then it is quotations of them.
    by_model = any(event["by"] != "rule" for event in ledger_of(bench.state).events)
    notes = ledger if bench.state.get("crux_cards") or by_model else []
    shown = evidence(notes) if bench.docket.argued <= budget else []
    if not bench.docket.is_whole(key for block in shown for key in block.ids):
        notes = [*summary, *ledger]
        shown = evidence(notes)
    blocks = [*head, *notes, *shown, last]
    view = fit(with_pins(blocks, pins), budget, bench.count)
    gone = bench.docket.beside(key for block in (*blocks, *pins) for key in block.ids)
    note: LeftOut = {
        "what": "evidence",
        "why": "no room",
        "tokens": sum(entry["tokens"] for entry in gone),
        "count": len(gone),
    }
    return replace(view, left_out=(*view.left_out, note)) if gone else view


def _frame(bench: Bench, brief: JudgeBrief) -> Block:
    budget = int(bench.config.memory.budget.total * FRAME_SHARE)
    alone = "independent answers to one question, whose writers saw no other's"
    text = JUDGE.render(
        judged="a debate" if brief.heard else alone,
        debaters="\n".join(f"- {bench.label(debater)}" for debater in bench.order),
        rubric="\n".join(
            f"- {c.id}: {c.name}, {c.scale_min:g} to {c.scale_max:g}, weight {c.weight:g}. {c.description}"
            for c in bench.rubric.criteria
        ),
        instruction=bench.config.judge.instruction,
    )
    whole: WireMessage = {"role": "system", "content": text}
    return cut_block("system", whole, budget, bench.count, label="rubric")


def _summary(bench: Bench) -> list[Block]:
    blocks = []
    summaries: tuple[tuple[MemoryKind, Summary | None, str], ...] = (
        ("rolling summary", bench.state.get("rolling_summary"), "# Summary of the earlier debate"),
        ("judge's summary", bench.state.get("judge_summary"), "# Summary of the final round"),
    )
    for label, summary, heading in summaries:
        if summary and (text := summary["text"]):
            whole: WireMessage = {"role": "user", "content": bench.hide(f"{heading}\n{text}")}
            room, rank = bench.config.memory.budget.summary, SUMMARY_PRIORITY
            block = cut_block("summary", whole, room, bench.count, label=label, priority=rank, memory=label)
            blocks.append(block)
    return blocks


def _ledger(bench: Bench) -> list[Block]:
    """Return where the debaters stand, in the order of presentation."""
    names = bench.config.names()
    budget = int(bench.config.memory.budget.total * LEDGER_SHARE)
    names = {debater: names[debater] for debater in bench.order if debater in names}
    text, room = "", budget
    for _ in range(ATTEMPTS):  # labels may be longer than names, and a message is more than its text
        text = render_blackboard(bench.state, "", max_tokens=room, count=bench.count, names=names)
        over = prompt_tokens([{"role": "user", "content": bench.hide(text)}], bench.count) - budget
        if over <= 0:
            break
        room -= over
    if not text:
        return []
    message = cut_message({"role": "user", "content": bench.hide(text)}, budget, bench.count)
    held = board_memory(text, bench.state, bench.count)
    return [Block("ledger", message, LEDGER_PRIORITY, label="ledger", memory=held)]


def _evidence(bench: Bench, room: int) -> list[Block]:
    """Return messages in the order they were said: all of them where they fit, else an equal share a side."""
    query = " ".join([bench.state["topic"], *(criterion.name for criterion in bench.rubric.criteria)])
    wanted = room
    for _ in range(ATTEMPTS):
        selection = bench.docket.select(query, wanted)
        blocks = _evidence_blocks(bench, selection)
        over = sum(message_tokens(block.message, bench.count) for block in blocks) - room
        if over <= 0:
            break
        wanted -= over
    return blocks


def _evidence_blocks(bench: Bench, selection: Selection) -> list[Block]:
    shown = {
        one.entry["id"]: cut_message(_entry_message(bench, one.entry), one.room, bench.count)
        for one in selection.shown
    }
    if selection.share is not None:
        # What blinding has made longer than a side's share is cut.
        for side in bench.order:
            own = [one.entry["id"] for one in selection.shown if is_argued(one.entry, [side])]
            costs = {key: message_tokens(shown[key], bench.count) for key in own}
            rooms = within_share(costs, selection.share)
            for key in own:
                message = shown.pop(key)
                if key in rooms:
                    shown[key] = cut_message(message, rooms[key], bench.count)
    return [
        Block(
            "messages",
            shown[one.entry["id"]],
            EVIDENCE_PRIORITY if is_argued(one.entry, bench.order) else OTHERS_PRIORITY,
            (one.entry["id"],),
            label="evidence",
        )
        for one in selection.shown
        if one.entry["id"] in shown
    ]


def _entry_message(bench: Bench, entry: Entry) -> WireMessage:
    about = ", ".join(bench.label(target) for target in entry["targets"] if target in bench.order)
    heading = (
        f"(critique of {about}, round {entry['round']})\n" if entry["kind"] == "critique" and about else ""
    )
    if entry["kind"] in ("proposal", "refinement"):
        earlier = f"proposal of round {entry['round']}, replaced since"
        heading = f"({earlier if entry in bench.docket.earlier else 'final proposal'})\n"
    message = render_entry({**entry, "content": heading + bench.hide(entry["content"])}, bench.labels)
    return {"role": message["role"], "content": message["content"]}  # the wire's name would tell who spoke
