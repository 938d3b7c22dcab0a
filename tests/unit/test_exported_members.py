from __future__ import annotations

from importlib import import_module
from types import FunctionType

import pytest

import moot
from moot.protocols.outcome import Outcome
from moot.protocols.schedule import Schedule
from moot.protocols.view import View
from moot.state import errors

PUBLIC = {
    "moot.protocols": {
        *("Block", "CallGenerator", "ConsultModels", "ConversationState", "DebateConfig", "End", "Entry"),
        *("EntryKind", "JudgeSpec", "ModelCall", "PromptContext", "PromptTemplate", "Protocol"),
        *("ProtocolSettings", "Reply", "Step", "TokenCounter", "Turn", "TurnCount", "entry_block"),
        *("load_prompt_template", "long_form_blocks", "make_step", "make_turn", "register", "rules_block"),
        *("structured_call", "structured_data", "summary_blocks", "topic_block", "turn_suffix_block"),
        *("window_blocks", "with_agreement", "Phase", "Proceedings", "phase_table"),
    },
    "moot.summarizers": {
        *("Draft", "Entry", "ModelCall", "Reply", "Summarizer", "SummaryFailed", "SummaryGenerator"),
        *("SummaryRequest", "messages_text", "register", "summary_call"),
    },
    "moot.tools": {"Entry", "Tool", "ToolContext", "ToolFailed", "register"},
    "moot.importers": {
        *("ImportedTranscript", "LeftOut", "ParsedMessage", "ParsedSummary", "ParsedTranscript", "Reader"),
        *("SeveralConversations", "Source", "Speaker", "choose_conversation", "converted_suffixes"),
        *("parse_json", "parse_transcript", "read_documents", "read_upload", "speakers_by_word"),
        "transcript_suffixes",
    },
    "moot.storage.servers": {
        *("DISK_FULL", "DatabaseServer", "DebateQueue", "Permit", "Row", "Sql", "Statement", "Value"),
        *("database_servers", "server_of"),
    },
    "moot.rubrics": {"Criterion", "Rubric", "load_rubric", "parse_rubric", "register"},
}
"""Names that plug-ins import. Removing a name breaks plug-ins. A new name must stay."""


def test_public_names_are_sorted_and_exist() -> None:
    assert moot.__all__ == sorted(moot.__all__)
    for name in moot.__all__:
        assert getattr(moot, name) is not None


@pytest.mark.parametrize("module", PUBLIC)
def test_plugin_modules_export_the_expected_documented_names(module: str) -> None:
    public = import_module(module)
    assert public.__all__ == sorted(public.__all__)
    assert set(public.__all__) == PUBLIC[module]
    for name in public.__all__:
        member = getattr(public, name)
        assert member.__doc__ or not isinstance(member, type | FunctionType), name


@pytest.mark.parametrize(("role", "members"), [(Schedule, 8), (View, 8), (Outcome, 16)])
def test_a_role_of_a_protocol_can_be_held_in_the_head(role: type, members: int) -> None:
    assert sum(not name.startswith("_") for name in {**vars(role), **role.__annotations__}) <= members


def test_every_error_class_is_public() -> None:
    error_classes = {
        name
        for name, each in vars(errors).items()
        if isinstance(each, type) and each.__module__ == errors.__name__
    }
    assert error_classes <= set(moot.__all__)
