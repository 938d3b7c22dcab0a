"""Protocol `pairwise`."""

from moot.config import DebateConfig
from moot.judging.judge_spec import JudgeSpec
from moot.protocols.base import Protocol
from moot.protocols.schedule import End, TurnCount
from moot.state.conversation import ConversationState

PAIRWISE_INSTRUCTION = (
    "The topic is an input, and the messages are answers to it. The winner is the answer that follows the "
    "input better: it does what is asked, and what it states is right. Ignore length, tone and order, unless "
    'the input asks for them. Choose "tie" only if no difference matters.'
)


class Pairwise(Protocol):
    """Protocol in which a judge compares the answers of the initial transcript in both orders."""

    name = "pairwise"
    debaters = ({"id": "candidate-1", "name": "Candidate 1"}, {"id": "candidate-2", "name": "Candidate 2"})
    min_debaters = 2
    judge_spec = JudgeSpec(
        instruction=PAIRWISE_INSTRUCTION, rubric="answers", interactive=False, reads_summary=False
    )
    can_continue = False
    shows_summary = False
    length_settings = ()
    win_text = "{} is better"

    def turns(self, config: DebateConfig) -> TurnCount:
        """Return zero, because no debater takes a turn."""
        return TurnCount(0, 0)

    def next_step(self, state: ConversationState, config: DebateConfig) -> End:
        """Return `End`, because debaters take no turns: a judge compares existing answers."""
        return End("the answers to compare are given")
