"""Council: a design debate; everybody criticises everybody, then refines, and a judge writes the solution.

Propose, critique (all ordered pairs at once) and refine make a round; from the second on, a proposal is the
debater's last refinement. It ends after the last round, or once the judge finds that the proposals agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from moot.nodes.calls import Flow
from moot.nodes.judging.opinions import JudgeBrief
from moot.nodes.memory.perspective import latest_proposals
from moot.nodes.prompts.fitting import Block
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.rendering import display_name
from moot.nodes.protocols.council.convergence import (
    CONVERGENCE,
    REPLY_TOKENS,
    TerminationConfig,
    check_convergence,
)
from moot.nodes.protocols.council.council_views import (
    CRITIQUE_WORDS,
    PROPOSAL_WORDS,
    ROUNDS,
    RUBRIC,
    council_instruction,
    council_view,
)
from moot.nodes.protocols.protocol import (
    TOKENS_PER_WORD,
    Course,
    End,
    Outlay,
    Protocol,
    make_floor,
    make_step,
)
from moot.nodes.text.plain import all_done
from moot.nodes.text.tokens import TokenCounter
from moot.nodes.views.scene import Scene
from moot.state.config import DebateConfig
from moot.state.conversation import ConvergenceCheck, ConversationState, Floor, StateValues, Step
from moot.state.entries import Entry, EntryKind, JsonObject

WANTED = load_prompt("wanted", home=__package__)

CHECK_TOKENS = 270
"""What an answer on convergence has: 200 words."""
KINDS: Mapping[str, EntryKind] = {"propose": "proposal", "critique": "critique", "refine": "refinement"}
"""Phases of a round, in order, and the kind of entry that each makes."""


class Council(Protocol):
    """Debaters propose, criticise and refine.

    A judge is asked once, not in two orders: it writes a solution, and there is no winner to favour.
    """

    name = "council"
    least_debaters = 2
    minutes_after = "refine"
    settings = TerminationConfig
    debaters = (
        {"id": "architect", "name": "Architect", "role": "architect"},
        {"id": "performance", "name": "Performance", "role": "performance"},
        {"id": "testing", "name": "Testing", "role": "testing"},
    )
    brief = JudgeBrief(wanted=WANTED.render(), solution=True, rubric=RUBRIC, swap=False)
    perspectives = True
    shows_summary = False
    entry_kinds = KINDS
    won = "{}'s proposal, as it stands"
    answer_leads = "Solution"
    bounded_by = ("rounds",)

    def next_step(self, state: ConversationState, config: DebateConfig) -> Step | End:
        """Go from phase to phase, and from round to round until the debate is over.

        `turns`, which a debate that is taken up again gets, adds rounds until so many utterances are reached.
        """
        phase, round_no = _last_phase(state["full_transcript"])
        everybody = [make_floor(debater) for debater in config.names()]
        if not phase:
            return make_step("propose", 1, everybody)
        if phase == "propose":
            return _critiques(state, config, round_no)
        if phase == "critique":
            return make_step("refine", round_no, everybody)

        following, termination = _critiques(state, config, round_no + 1), TerminationConfig.of(config)
        if state.get("turn_count", 0) < (config.turns or 0):
            return following
        if round_no >= (config.rounds or ROUNDS):
            return End(all_done(round_no, "round", "done"))
        if termination.type == "convergence":
            checks = {each["round"]: each["agreement"] for each in state.get("convergence", [])}
            if round_no not in checks:
                return make_step(CONVERGENCE, round_no, [], kind="judge")
            found, wanted = checks[round_no], termination.threshold
            if found is not None and found >= wanted:
                return End(f"the proposals converged in round {round_no}: {found:.2f} of {wanted:.2f}")
        return following

    def view(self, scene: Scene) -> Sequence[Block]:
        """The problem always; what else, the phase decides."""
        return council_view(scene)

    def instruction(self, scene: Scene) -> str:
        """What the phase asks, with what the speaker's role minds in it."""
        return council_instruction(scene)

    def stand_in(
        self, state: ConversationState, config: DebateConfig, floor: Floor, error: str
    ) -> str | None:
        """Go on without the floor: a critique is missing, or a debater's last proposal stands."""
        names = config.names()
        speaker = display_name(floor["speaker"], names)
        if floor["targets"]:
            targets = ", ".join(display_name(target, names) for target in floor["targets"])
            return f"The critique of {targets} by {speaker} is missing: its call failed."
        last = latest_proposals(state["full_transcript"]).get(floor["speaker"])
        kind = KINDS[state["step"]["phase"]]
        stands = f"its last one, [{last['id']}], stands" if last else "it has none so far"
        return f"{speaker} gave no {kind}, for its call failed; {stands}."

    def look(self, state: ConversationState, config: DebateConfig, count: TokenCounter) -> Flow[JsonObject]:
        """Ask how far the proposals agree."""
        return check_convergence(state, config, count)

    def evidence(self, state: ConversationState) -> list[Entry] | None:
        """The final proposals; the final round's critiques too, unless the judge has its own summary."""
        transcript = state["full_transcript"]
        shown = list(latest_proposals(transcript).values())
        if not state.get("judge_summary", {}).get("text"):
            shown += _critiques_of_last_round(transcript)
        return sorted(shown, key=lambda entry: entry["seq"])

    def final_round(self, state: ConversationState) -> list[Entry]:
        """The last round's critiques and refinements."""
        transcript = state["full_transcript"]
        critiques = _critiques_of_last_round(transcript)
        proposals = [e for e in latest_proposals(transcript).values() if e["kind"] == "refinement"]
        return sorted([*critiques, *proposals], key=lambda entry: entry["seq"])

    words = MappingProxyType(
        {"propose": PROPOSAL_WORDS, "critique": CRITIQUE_WORDS, "refine": PROPOSAL_WORDS}
    )

    def shown_tokens(self, phase: str, config: DebateConfig) -> float:
        """The proposal that is criticised, or one's own and the critiques of it."""
        received = {"critique": 1, "refine": len(config.debaters)}.get(phase, 0)
        return received and TOKENS_PER_WORD * (PROPOSAL_WORDS + (received - 1) * CRITIQUE_WORDS)

    def is_decided(self, config: DebateConfig) -> bool:
        """Unless it may converge."""
        return TerminationConfig.of(config).type == "fixed"

    def suppose(
        self, state: ConversationState, config: DebateConfig, course: Course
    ) -> tuple[StateValues, Sequence[Outlay]]:
        """Proposals agree wholly on the shortest course, and nobody can tell on any other."""
        if state["step"]["phase"] != CONVERGENCE:
            return {}, ()
        agreement = 1.0 if course == "least" else None
        check: ConvergenceCheck = {"round": state["round"], "agreement": agreement, "in_dispute": []}
        material = len(config.debaters) * PROPOSAL_WORDS * TOKENS_PER_WORD
        asked = Outlay("evaluate", CONVERGENCE, 1, material, CHECK_TOKENS, REPLY_TOKENS, frame=150.0)
        return {"convergence": [check]}, [asked]


def _last_phase(transcript: Sequence[Entry]) -> tuple[str, int]:
    """Return the phase and round that the transcript ends in, `("", 0)` before the first."""
    for entry in reversed(transcript):
        if entry["phase"] in KINDS:
            return entry["phase"], entry["round"]
    return "", 0


def _critiques_of_last_round(transcript: Sequence[Entry]) -> list[Entry]:
    _, round_no = _last_phase(transcript)
    return [entry for entry in transcript if entry["kind"] == "critique" and entry["round"] == round_no]


def _critiques(state: ConversationState, config: DebateConfig, round_no: int) -> Step:
    """Return one floor for each ordered pair of a critic and a target that has a proposal."""
    proposals = latest_proposals(state["full_transcript"])
    floors = [
        make_floor(critic, targets=[target])
        for target in config.names()
        for critic in config.names()
        if critic != target and target in proposals
    ]
    return make_step("critique", round_no, floors)
