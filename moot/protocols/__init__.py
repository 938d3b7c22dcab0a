"""Public and stable interface for protocol plug-ins.

A protocol is a subclass of `Protocol`. `register` adds it to this process. An installed package names the
class in an entry point of the group `moot.protocols` instead. `examples/own_protocol.py` is a complete one.
"""

from moot.calls.model_calls import CallGenerator, ModelCall, Reply
from moot.config import DebateConfig, ProtocolSettings
from moot.judging.judge_spec import JudgeSpec
from moot.prompts.structured_calls import structured_call, structured_data
from moot.prompts.templates import PromptTemplate, load_prompt_template
from moot.prompts.truncation import Block
from moot.protocols.base import Protocol
from moot.protocols.long_form_prompt import long_form_blocks, summary_blocks, window_blocks
from moot.protocols.outcome import Proceedings
from moot.protocols.prompt_context import PromptContext, entry_block, rules_block, topic_block
from moot.protocols.registry import register
from moot.protocols.schedule import (
    ConsultModels,
    End,
    Phase,
    TurnCount,
    make_step,
    make_turn,
    phase_table,
    with_agreement,
)
from moot.protocols.suffix import turn_suffix_block
from moot.state.conversation import ConversationState, Step, Turn
from moot.state.entries import Entry, EntryKind
from moot.text.tokens import TokenCounter

__all__ = [
    "Block",
    "CallGenerator",
    "ConsultModels",
    "ConversationState",
    "DebateConfig",
    "End",
    "Entry",
    "EntryKind",
    "JudgeSpec",
    "ModelCall",
    "Phase",
    "Proceedings",
    "PromptContext",
    "PromptTemplate",
    "Protocol",
    "ProtocolSettings",
    "Reply",
    "Step",
    "TokenCounter",
    "Turn",
    "TurnCount",
    "entry_block",
    "load_prompt_template",
    "long_form_blocks",
    "make_step",
    "make_turn",
    "phase_table",
    "register",
    "rules_block",
    "structured_call",
    "structured_data",
    "summary_blocks",
    "topic_block",
    "turn_suffix_block",
    "window_blocks",
    "with_agreement",
]
