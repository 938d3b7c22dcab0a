"""Readers for transcripts, chats and exported conversations in the forms that people have."""

from moot.plugins.importing.reader import (
    ParsedMessage,
    ParsedTranscript,
    Reader,
    SeveralConversations,
    Source,
)
from moot.plugins.importing.registry import ENDINGS, FORMATS
from moot.plugins.importing.transcript import ImportedTranscript, Speaker, parse_transcript, slugs

__all__ = [
    "ENDINGS",
    "FORMATS",
    "ImportedTranscript",
    "ParsedMessage",
    "ParsedTranscript",
    "Reader",
    "SeveralConversations",
    "Source",
    "Speaker",
    "parse_transcript",
    "slugs",
]
