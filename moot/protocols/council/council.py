"""Council protocol, in which debaters propose, criticise and refine solutions, and a judge combines them.

A round has the phases propose, critique and refine. In round 1, critics criticise each proposal in a turn of
its own, all ordered pairs at the same time. From round 2 on, a debater's proposal is its last refinement, and
each critic compares all proposals in one turn. The council ends after the last round, or when the judge finds
that the proposals agree.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter

from moot.calls.model_calls import WireMessage
from moot.claims.ledger_rendering import board_text
from moot.config import DebateConfig
from moot.judging.draft_test import TEST, run_draft_test
from moot.judging.judge_spec import JudgeSpec
from moot.judging.rubrics import rubric_text
from moot.memory.cross_debate_memory import QUERY_CHARS, RetrievalQuery
from moot.memory.perspectives import latest_proposals, perspective_of
from moot.prompts import truncation
from moot.prompts.templates import fenced, load_prompt_template, role_of, unfenced
from moot.protocols import prompt_context, schedule
from moot.protocols.base import Protocol
from moot.protocols.council.convergence import CONVERGENCE, TerminationConfig, check_convergence
from moot.protocols.outcome import Proceedings
from moot.protocols.schedule import End, Phase, TurnCount, make_step, make_turn
from moot.protocols.suffix import SELF_CONTAINED, turn_suffix_block
from moot.state.conversation import ConversationState, MemoryKind, Step, Turn
from moot.state.entries import Entry, critique_labels
from moot.text.plain_text import all_done_reason, break_template_tokens, plain_line
from moot.text.tokens import prompt_tokens, truncate_middle

RULES = load_prompt_template("rules", "debaters", "scored", "language", home=__package__)
PROPOSE = load_prompt_template("propose", "place", "each", "words", "focus", home=__package__)
CRITIQUE = load_prompt_template("critique", "place", "target", "words", "focus", "before", home=__package__)
COMPARE = load_prompt_template("compare", "place", "targets", "words", "focus", "before", home=__package__)
REFINE = load_prompt_template("refine", "standing", "place", "words", "focus", home=__package__)

PROPOSAL_WORDS = 600
"""Maximum number of words in a proposal or a refined proposal. 600 words are about 80 for each part."""
CRITIQUE_WORDS = 300
"""Maximum number of words in a critique of one proposal."""
COMPARE_WORDS = 150
"""Maximum number of words in a comparison of proposals for each proposal, and for the points in dispute. 150
words are two flaws, or three points in dispute."""
ANSWER_WORDS = 200
"""Maximum number of words with which a refined proposal answers its critiques. 200 words are about 16 for
each of the six points of two critiques."""

ROUNDS = 3
"""Default number of rounds in a council debate."""

RUBRIC = "design"
"""Name of the default rubric for the judge of a council debate."""

SUBJECT = 0
"""Priority of the entry that a phase is about. 0 is the highest priority."""
GIVEN = 1
"""Priority of people's messages."""
OWN = 2
"""Priority of the debater's own messages and documents."""
RIVALS = 3
"""Priority of other debaters' proposals."""
EARLIER = 4
"""Priority of others' criticism and of earlier messages that match the search query."""
REPLACED = 5
"""Priority of the debater's replaced proposals and the criticism of them, unless a summary replaces them."""
ANSWERED = 6
"""Priority of others' criticism that the current proposals answer. It is dropped first."""

OWN_PERSPECTIVE = "own perspective"
"""Label of the prompt block with a debater's earlier proposals and the criticism of them. A summary may
replace these messages."""
UNLIMITED = 1_000_000_000
"""Token budget so large that no prompt block is shortened."""

_CRITICISED = (
    "Your current proposal and the criticism of it are shown above. Add a section with a heading of its own "
    "that answers every point of the criticism{concerns}, in at most {words} words. Name each point by its "
    'criticism\'s label and its number: {label}.3 is point 3 of criticism {label}. Write "adopted" and where '
    'the proposal now says it, or "rejected because" and the reason.'
)
_NOT_CRITICISED = "Your current proposal is shown above. Nobody criticised it in this round."
_ANSWERED = (
    "Your criticism of earlier proposals is shown above, too. The new proposals answer it under its label. "
    "Do not repeat a point that a new proposal resolves.\n\n"
)
_SETTLE = (
    "Begin with the points in dispute that are listed above. For each of them, say which side is right, "
    "which one fact would decide it, and who can find out this fact by which date.\n\n"
)
_IN_DISPUTE = "# Points in dispute after round {round}, as a neutral reader sees them"
_NO_PROPOSAL = (
    "You have no proposal yet. Write one that takes the criticism and proposals so far into account."
)


def council_prompt_blocks(ctx: prompt_context.PromptContext) -> list[truncation.Block]:
    """Return the blocks of a council prompt, such as the rules, problem, context and instruction.

    The context is what people provided, the subject of the phase, and the debater's own earlier messages. A
    refinement also shows the current proposals of the others, as far as tokens are left.
    """
    phase, round_no, speaker = ctx.step["phase"], ctx.step["round"], ctx.speaker.id
    memory, proposals = ctx.config.memory, latest_proposals(ctx.state["full_transcript"])
    subject: list[truncation.Block] = []
    own_blocks = (
        _subject(ctx, proposals[speaker], "own proposal", "# Your current proposal")
        if speaker in proposals
        else []
    )
    if phase == "critique":
        # In round 1, a critic must not argue for its own design, so its own proposal is not shown.
        subject = own_blocks if round_no > 1 else []
        subject += _criticisms(ctx, _critiques_of(ctx, round_no - 1, by=speaker), "earlier proposal", OWN)
        for target in ctx.turn["targets"]:
            heading = f"# {truncation.prompt_name(target, ctx.names)}'s proposal"
            subject += _subject(ctx, proposals[target], "proposal criticised", heading)
    elif phase == "refine":
        subject = own_blocks + _criticisms(
            ctx, _critiques_of(ctx, round_no, target=speaker), "proposal", SUBJECT
        )
    shown_ids = frozenset(key for block in subject for key in block.ids)
    past_blocks = [] if phase == "critique" else _own_perspective(ctx, shown_ids)
    user_blocks = [
        prompt_context.user_provided_block(ctx, entry, message=GIVEN, document=OWN)
        for entry in prompt_context.user_provided_entries(ctx)
    ]

    shared_prefix = [
        _rules_block(ctx),
        truncation.problem_block(ctx.state["topic"], memory.budget, ctx.config.fence, ctx.count),
    ]
    subject_texts = [unfenced(block.message["content"]) for block in subject if block.priority == SUBJECT]
    query = "\n".join([ctx.state["topic"], *subject_texts])
    turn_suffix = turn_suffix_block(
        ctx,
        contract="" if ctx.persona_first else _contract(ctx),
        instruction=council_instruction(ctx),
        query=query,
        hidden=SELF_CONTAINED,
    )
    return prompt_context.fill_with_earlier(
        ctx,
        shared_prefix,
        [*_other_proposals(ctx, proposals), *user_blocks, *past_blocks, *_disputes(ctx), *subject],
        turn_suffix,
        query=council_query(ctx),
        make_block=partial(_earlier_block, ctx),
        hidden=[entry for entry in ctx.state["full_transcript"] if not _may_show(ctx, entry)],
    )


def _disputes(ctx: prompt_context.PromptContext) -> list[truncation.Block]:
    """Return a prompt block that lists the points still in dispute."""
    checks = [each for each in ctx.state.get("convergence") or [] if each["round"] < ctx.step["round"]]
    points = checks[-1]["in_dispute"] if checks else []
    if not points:
        return []
    heading = _IN_DISPUTE.format(round=checks[-1]["round"])
    point_list = "\n".join(f"- {board_text(point, len(point))}" for point in points)
    text = fenced(point_list, ctx.config.fence, heading)
    return [truncation.Block("messages", {"role": "user", "content": text}, OWN, label="points in dispute")]


def council_query(ctx: prompt_context.PromptContext) -> RetrievalQuery:
    """Return the query for earlier messages: the start of the topic."""
    return RetrievalQuery(ctx.state["topic"][:QUERY_CHARS])


def _may_show(ctx: prompt_context.PromptContext, entry: Entry) -> bool:
    """Return True if a turn's prompt may show an earlier message.

    A proposal and a critique are independent of others' criticism. In a refinement, older versions of
    proposals are of no use.
    """
    return ctx.step["phase"] == "refine" and entry["kind"] == "critique"


def _earlier_block(ctx: prompt_context.PromptContext, entry: Entry) -> truncation.Block:
    targets = [
        truncation.prompt_name(target, ctx.names) for target in entry["targets"] if target in ctx.names
    ]
    target_note = f" of {', '.join(targets)}" if targets else ""
    heading = f"(earlier {entry['kind']}{target_note}, round {entry['round']})"
    return prompt_context.entry_block(ctx, entry, EARLIER, "earlier message", heading)


def council_instruction(ctx: prompt_context.PromptContext) -> str:
    """Return the instruction for a council turn."""
    phase, round_no, speaker = ctx.step["phase"], ctx.step["round"], ctx.speaker.id
    focus, max_rounds = role_of(ctx.speaker).says(phase), max(round_no, ctx.config.rounds or ROUNDS)
    values = {"place": _place_of(round_no, max_rounds), "focus": focus}
    words = schedule.words_within(PROPOSAL_WORDS, ctx.config)
    match phase:
        case "propose":
            opening = "In it" if max_rounds == 1 else "In each round"
            task = PROPOSE.render(each=opening, words=words, **values)
        case "critique":
            names = [truncation.prompt_name(target, ctx.names) for target in ctx.turn["targets"]]
            before = _ANSWERED if _critiques_of(ctx, round_no - 1, by=speaker) else ""
            if round_no == 1:
                task = CRITIQUE.render(
                    target=names[0],
                    words=schedule.words_within(CRITIQUE_WORDS, ctx.config),
                    before=before,
                    **values,
                )
            else:
                before += _SETTLE if _disputes(ctx) else ""
                max_words = schedule.words_within(COMPARE_WORDS * (1 + len(names)), ctx.config)
                task = COMPARE.render(targets=_joined(names), words=max_words, before=before, **values)
        case _:
            labels = critique_labels(ctx.state["full_transcript"])
            received = _critiques_of(ctx, round_no, target=speaker)
            standing = (
                _CRITICISED.format(
                    concerns=" that concerns your proposal" if round_no > 1 else "",
                    label=labels[received[0]["id"]],
                    words=f"{int(words) * ANSWER_WORDS // PROPOSAL_WORDS // 10 * 10} of the {words}",
                )
                if received
                else _NOT_CRITICISED
            )
            if speaker not in latest_proposals(ctx.state["full_transcript"]):
                standing = _NO_PROPOSAL
            if _disputes(ctx):
                standing += " Take a side on each of the points in dispute that are listed above."
            task = REFINE.render(standing=standing, words=words, **values)
    instruction = "\n\n".join(filter(None, (task, ctx.turn["instruction"])))
    return schedule.with_agreement(instruction, ctx.config, answer=ctx.step["phase"] != "critique")


def _place_of(round_no: int, max_rounds: int) -> str:
    """Return a sentence about the current round, such as "This is the only round"."""
    if max_rounds == 1:
        return "This is the only round."
    return (
        f"This is round {round_no} of at most {max_rounds}"
        f"{', the last one' if round_no >= max_rounds else ''}."
    )


def _criticisms(
    ctx: prompt_context.PromptContext, critiques: Sequence[Entry], version: str, rank: int
) -> list[truncation.Block]:
    """Return prompt blocks with critiques, each under its label and the names of those whom it criticises.

    `version` says which version of the proposals the critiques are about, such as "earlier proposal".
    """
    labels, blocks = critique_labels(ctx.state["full_transcript"]), []
    for entry in critiques:
        title = "Your criticism" if entry["speaker"] == ctx.speaker.id else "Criticism"
        names = [f"{truncation.prompt_name(each, ctx.names)}'s" for each in _criticised(entry)]
        if ctx.speaker.id in _criticised(entry):
            names = ["your", *(name for name in names if name != f"{ctx.names[ctx.speaker.id]}'s")]
        heading = f"# {title} {labels[entry['id']]} of {_joined(names)} {version}{'s' * (len(names) > 1)}"
        blocks += _subject(ctx, entry, "critique", heading, rank)
    return blocks


def _joined(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _other_proposals(
    ctx: prompt_context.PromptContext, proposals: Mapping[str, Entry]
) -> list[truncation.Block]:
    """Return prompt blocks with the other debaters' proposals, or `[]` outside the phase `refine`.

    Before each proposal stands the criticism of the previous round, which the proposal answers. After it
    stands the criticism of this round, which shows which parts of the proposal not to adopt. A critique of
    the speaker's own proposal stands elsewhere. A critique of several proposals stands at the last one.
    """
    round_no, blocks = ctx.step["round"], []
    for target, proposal in proposals.items() if ctx.step["phase"] == "refine" else ():
        if target == ctx.speaker.id:
            continue
        earlier, current = (
            [each for each in _critiques_of(ctx, number, target=target) if _stands_at(each, target, ctx)]
            for number in (round_no - 1, round_no)
        )
        heading = f"# {truncation.prompt_name(target, ctx.names)}'s current proposal"
        blocks += _criticisms(ctx, earlier, "earlier proposal", ANSWERED)
        blocks.append(prompt_context.entry_block(ctx, proposal, RIVALS, "rival proposal", heading))
        blocks += _criticisms(ctx, current, "current proposal", EARLIER)
    return blocks


def _stands_at(critique: Entry, target: str, ctx: prompt_context.PromptContext) -> bool:
    return _criticised(critique)[-1] == target and ctx.speaker.id not in _criticised(critique)


def _subject(
    ctx: prompt_context.PromptContext, entry: Entry, label: str, heading: str, rank: int = SUBJECT
) -> list[truncation.Block]:
    """Return prompt blocks that show a debater's message, such as a proposal.

    Tool calls precede it in prompts that the message is about.
    """
    tools = prompt_context.tool_blocks(ctx, entry, rank) if rank <= OWN else []
    return [*tools, prompt_context.entry_block(ctx, entry, rank, label, heading)]


def _criticised(critique: Entry) -> list[str]:
    """Return the ids of the debaters whose proposals a critique, or the notice in its place, is about."""
    # The first target of a notice is the debater whose message is missing.
    return critique["targets"][critique["kind"] == "notice" :]


def _critiques_of(
    ctx: prompt_context.PromptContext, round_no: int, *, target: str = "", by: str = ""
) -> list[Entry]:
    """Return a round's critiques of or by a debater, and a notice for each critique that is missing."""
    return [
        entry
        for entry in ctx.state["full_transcript"]
        if entry["kind"] in ("critique", "notice")
        and entry["phase"] == "critique"
        and entry["round"] == round_no
        and (not target or target in _criticised(entry))
        and by in ("", entry["speaker"])
    ]


def _own_perspective(ctx: prompt_context.PromptContext, shown_ids: frozenset[str]) -> list[truncation.Block]:
    """Return a prompt block with the speaker's earlier proposals and their critiques.

    The speaker's perspective summary replaces the messages that it covers. The list is empty if there is
    nothing to show.
    """
    perspective = perspective_of(ctx.state, ctx.speaker.id)
    entries = [entry for entry in perspective.entries if entry["id"] not in shown_ids]
    parts = [fenced(perspective.summary, ctx.config.fence, "Summary:")] if perspective.summary else []
    for entry in entries:
        title = f"Your {entry['kind']} of round {entry['round']}, now replaced: "
        if entry["kind"] == "critique":
            title = "Criticism of it by "
        parts.append(title + truncation.render_entry(entry, ctx.names, ctx.config.fence)["content"])
    text = "\n\n".join(filter(None, parts))
    if not text:
        return []
    content = f"# Your earlier proposals and the criticism of them\n{text}"
    message: WireMessage = {"role": "user", "content": content}
    ids = tuple(entry["id"] for entry in entries)
    perspective_memory: dict[MemoryKind, int] = {"perspective": ctx.count(perspective.summary)}
    memory = perspective_memory if perspective.summary else {}
    rank = OWN if perspective.summary else REPLACED
    return [truncation.Block("summary", message, rank, ids, label=OWN_PERSPECTIVE, memory=memory)]


def _rules_block(ctx: prompt_context.PromptContext) -> truncation.Block:
    language = f"- Write in {plain_line(ctx.config.language)}." if ctx.config.language else ""
    text = RULES.render(
        debaters=prompt_context.members_text(ctx.config),
        scored=rubric_text(ctx.config, RUBRIC, ctx.state.get("question")),
        language=language,
    )
    contract = truncate_middle(_contract(ctx), ctx.config.memory.budget.system // 2, ctx.count)
    return prompt_context.rules_block(ctx, rules=break_template_tokens(text), contract=contract)


def _contract(ctx: prompt_context.PromptContext) -> str:
    speaker = ctx.speaker
    prompt = speaker.system_prompt or role_of(speaker).says("system")
    return prompt_context.contract_text(speaker.model_copy(update={"system_prompt": prompt}))


JUDGED = "a council of the debaters below, who looked for the best solution together"
WANTED = load_prompt_template("wanted", home=__package__)


def _past_tokens(debate: prompt_context.PromptSource, debater: str) -> int:
    """Return how many tokens of past messages fit into a debater's next refinement prompt.

    The past messages are those that the debater's perspective summary can replace. They compete with the
    criticism of the debater's own proposal. The criticism of the next round is not known yet, so the
    criticism of this round is counted instead.
    """
    state, budget = debate.state, debate.config.memory.budget
    refining = debate.with_state({**state, "step": {**state["step"], "phase": "refine"}})
    ctx = prompt_context.PromptContext(refining, make_turn(debater), total=UNLIMITED)
    blocks = [
        block
        for block in council_prompt_blocks(ctx)
        if block.priority < EARLIER and block.label != OWN_PERSPECTIVE
    ]
    used_tokens = prompt_tokens([block.message for block in blocks], ctx.count) + ctx.background.tokens
    return budget.phases.get("refine", budget.total) - used_tokens


PHASES = schedule.phase_table(
    Phase("propose", ("critique",), "proposal", reflects=False),
    Phase("critique", ("refine",), "critique", reflects=False),
    Phase(
        "refine",
        (CONVERGENCE,),
        "refinement",
        extracts=lambda config: True,
        reflects=False,
        past_tokens=_past_tokens,
    ),
    Phase(CONVERGENCE, ("critique", schedule.OVER), reflects=False, assess=check_convergence),
    Phase(TEST, (schedule.OVER,), reflects=False, assess=run_draft_test),
)
"""Course of a council debate. After a round, the judge checks what was adopted and measures the convergence.
After the verdict, the members test it."""
TURN_PHASES = schedule.turn_phases(PHASES)


class Council(Protocol):
    """Protocol in which debaters propose solutions, criticise other proposals, and refine their own.

    The judge is asked in one presentation order only: it writes a solution and has no winner to favour.
    """

    name = "council"
    min_debaters = 2
    settings = TerminationConfig
    debaters = (
        {"id": "architect", "name": "Architect", "role": "architect"},
        {"id": "performance", "name": "Performance", "role": "performance"},
        {"id": "testing", "name": "Testing", "role": "testing"},
    )
    judge_spec = JudgeSpec(
        instruction=WANTED.render(), judging="design", subject=JUDGED, rubric=RUBRIC, swap=False
    )
    shows_summary = False
    retrieves_transcript = True
    phases = PHASES
    win_text = "{}'s proposal, as it stands"
    answer_heading = "Solution"
    length_settings = ("rounds",)

    def next_step(self, state: ConversationState, config: DebateConfig) -> Step | End:
        """Return the next step of a council debate, or `End` if the debate is over.

        A continued debate has `turns`: it runs more rounds until that number of messages is reached.
        """
        phase, round_no = _last_phase(state["full_transcript"])
        all_turns = [make_turn(debater) for debater in config.names()]
        if not phase:
            return make_step("propose", 1, all_turns)
        if phase == "propose":
            return _critiques(state, config, round_no)
        if phase == "critique":
            return make_step("refine", round_no, all_turns)

        critique_step, termination = _critiques(state, config, round_no + 1), TerminationConfig.of(config)
        is_last = round_no >= (config.rounds or ROUNDS)
        may_converge = termination.type == "convergence" and not is_last
        checks = {each["round"]: each["agreement"] for each in state.get("convergence", [])}
        if round_no not in checks:
            return make_step(CONVERGENCE, round_no, [], kind="judge")
        if state.get("turn_count", 0) < (config.turns or 0):
            return critique_step
        if is_last:
            return End(all_done_reason(round_no, "round", "done"))
        if may_converge:
            agreement, threshold = checks[round_no], termination.threshold
            if agreement is not None and agreement >= threshold:
                figures = f"agreement {agreement:.2f}, wanted {threshold:.2f}"
                return End(f"the proposals converged in round {round_no}: {figures}")
        return critique_step

    def prompt_blocks(self, ctx: prompt_context.PromptContext) -> Sequence[truncation.Block]:
        """Return the blocks of a turn's prompt, including the problem and the context for the phase."""
        return council_prompt_blocks(ctx)

    def rules(self, ctx: prompt_context.PromptContext) -> truncation.Block:
        """Return the block with the rules of the council and the rubric of its judge."""
        return _rules_block(ctx)

    def query(self, ctx: prompt_context.PromptContext) -> RetrievalQuery:
        """Return the start of the topic as the query for earlier messages."""
        return council_query(ctx)

    def instruction(self, ctx: prompt_context.PromptContext) -> str:
        """Return the instruction for the turn's phase and the debater's role."""
        return council_instruction(ctx)

    def fallback_entry(
        self, state: ConversationState, config: DebateConfig, turn: Turn, error: str
    ) -> str | None:
        """Return a notice that replaces the message of a failed turn."""
        names = config.names()
        speaker = truncation.display_name(turn["speaker"], names)
        if turn["targets"]:
            targets = ", ".join(truncation.display_name(target, names) for target in turn["targets"])
            return f"The critique of {targets} by {speaker} is missing: its call failed."
        last = latest_proposals(state["full_transcript"]).get(turn["speaker"])
        kind = PHASES[state["step"]["phase"]].kind
        validity_note = f"Its last one, [{last['id']}], stays valid." if last else "It has no proposal yet."
        return f"The {kind} of {speaker} is missing: its call failed. {validity_note}"

    def proceedings(self, state: ConversationState, config: DebateConfig) -> Proceedings:
        """Return the final proposals with the last round's critiques that no summary covers."""
        transcript = state["full_transcript"]
        proposals = list(latest_proposals(transcript).values())
        critiques = _critiques_of_last_round(transcript)
        refinements = [entry for entry in proposals if entry["kind"] == "refinement"]
        entries = proposals if state.get("judge_summary", {}).get("text") else [*proposals, *critiques]
        by_seq = itemgetter("seq")
        final_round = sorted([*critiques, *refinements], key=by_seq)
        return Proceedings(self.judge_spec, sorted(entries, key=by_seq), final_round)

    def turns(self, config: DebateConfig) -> TurnCount:
        """Return the total number of proposals, critiques and refinements."""
        people = len(config.debaters)
        first_round = people + people * people  # a proposal, people - 1 critiques and a refinement each
        missing = (config.turns or 0) - first_round
        # Each later round has a critique and a refinement of each debater.
        rounds = max(config.rounds or ROUNDS, 1 - (-missing // (2 * people)))
        turns = first_round + (rounds - 1) * 2 * people
        return TurnCount(turns, turns)


def _last_phase(transcript: Sequence[Entry]) -> tuple[str, int]:
    """Return the phase and round of the last council message, or `("", 0)` if there is none."""
    for entry in reversed(transcript):
        if entry["phase"] in TURN_PHASES:
            return entry["phase"], entry["round"]
    return "", 0


def _critiques_of_last_round(transcript: Sequence[Entry]) -> list[Entry]:
    _, round_no = _last_phase(transcript)
    return [entry for entry in transcript if entry["kind"] == "critique" and entry["round"] == round_no]


def _critiques(state: ConversationState, config: DebateConfig, round_no: int) -> Step:
    """Return a step in which every debater criticises all other debaters' proposals.

    In round 1, each proposal has a turn of its own. Later, a critic compares the proposals in one turn.
    """
    proposals, names = latest_proposals(state["full_transcript"]), config.names()
    targets = {critic: [each for each in names if each != critic and each in proposals] for critic in names}
    if round_no > 1:
        turns = [make_turn(critic, targets=several) for critic, several in targets.items() if several]
    else:
        pairs = [(critic, each) for each in names for critic in names if each in targets[critic]]
        turns = [make_turn(critic, targets=[target]) for critic, target in pairs]
    return make_step("critique", round_no, turns)
