"""View of a protocol: what the prompts of its turns show."""

from collections.abc import Sequence

from moot.config import DebateConfig
from moot.config.section import ProtocolSpec
from moot.memory.cross_debate_memory import RetrievalQuery
from moot.prompts.truncation import Block
from moot.protocols.long_form_prompt import long_form_blocks
from moot.protocols.prompt_context import PromptContext, rules_block
from moot.state.conversation import ConversationState, Turn


class View(ProtocolSpec):
    """Role of a protocol that makes the prompts. By default, a prompt shows the debate in the long form."""

    shows_summary: bool = True
    """True if the debaters' prompts show the rolling summary. If only a judge reads the summary, it is
    made without a model."""
    retrieves_transcript: bool = False
    """True if retrieval also searches messages that are still in the window. It then searches the whole
    transcript."""
    extracts_by_default: bool = False
    """True if a model extracts claims when `blackboard.extraction` has its default value `auto`."""

    def prompt_blocks(self, ctx: PromptContext) -> Sequence[Block]:
        """Return the blocks of a turn's prompt in display order."""
        return long_form_blocks(ctx)

    def rules(self, ctx: PromptContext) -> Block:
        """Return the block with the rules of the debate, which precede the questions to a person."""
        return rules_block(ctx)

    def query(self, ctx: PromptContext) -> RetrievalQuery:
        """Return the query used to retrieve earlier messages and background for a turn."""
        return ctx.query

    def instruction(self, ctx: PromptContext) -> str:
        """Return the instruction for the model or person who takes the turn."""
        return ctx.turn["instruction"]

    def fallback_entry(
        self, state: ConversationState, config: DebateConfig, turn: Turn, error: str
    ) -> str | None:
        """Return a notice that replaces the message of a failed turn.

        Return `None` to stop the run. If every turn of a step fails, the run stops in any case. The debate is
        saved.
        """
        return None
