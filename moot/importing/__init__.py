"""Readers for transcripts in JSON, JSON lines, CSV, plain text and Markdown."""

from moot.importing.formats import ParsedMessage
from moot.importing.transcript import (
    ENDINGS,
    FORMATS,
    ImportedTranscript,
    Speaker,
    parse_transcript,
    slugs,
)

__all__ = [
    "ENDINGS",
    "FORMATS",
    "ImportedTranscript",
    "ParsedMessage",
    "Speaker",
    "parse_transcript",
    "slugs",
]
