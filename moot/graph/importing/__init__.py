"""Transcripts of debates held elsewhere: JSON, JSON lines, CSV, plain text and Markdown."""

from moot.graph.importing.parse_result import ParsedSpeech
from moot.graph.importing.transcript import (
    ENDINGS,
    FORMATS,
    ImportedTranscript,
    Speaker,
    parse_transcript,
    slugs,
)

__all__ = ["ENDINGS", "FORMATS", "ImportedTranscript", "ParsedSpeech", "Speaker", "parse_transcript", "slugs"]
