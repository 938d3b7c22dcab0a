"""Single: one model, once. The baseline that a debate must beat."""

from __future__ import annotations

from moot.nodes.judging.opinions import JudgeBrief
from moot.nodes.protocols.baselines.alone import PHASE, Alone, answers_since
from moot.nodes.protocols.protocol import End, make_floor, make_step
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState, Step


class Single(Alone):
    """The first debater answers; nobody judges."""

    name = "single"
    debaters = ({"id": "answerer", "name": "Answerer"},)
    brief = JudgeBrief(judged=False)
    bounded_by = ()
    answer_leads = "Answer"

    def next_step(self, state: ConversationState, config: DebateConfig) -> Step | End:
        """Give the floor once, and again when a person has spoken up since."""
        if answers_since(state["full_transcript"]):
            return End("the answer is given")
        return make_step(PHASE, state.get("round", 0) + 1, [make_floor(config.debaters[0].id)])

    def answer(self, state: ConversationState) -> str:
        """The last answer, as it was given."""
        given = answers_since(state["full_transcript"])
        return given[-1]["content"] if given else ""
