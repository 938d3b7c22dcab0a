"""Readers for transcripts in JSON, JSON lines, CSV, plain text and Markdown."""

from moot.plugins.importing.formats import ParsedMessage
from moot.plugins.importing.transcript import (
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
