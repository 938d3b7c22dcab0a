"""Transcripts of debates held elsewhere: JSON, JSON lines, CSV, plain text and Markdown."""

from moot.graph.importing.parse_result import ParsedSpeech
from moot.graph.importing.transcript import (
    FORMATS,
    ImportedTranscript,
    Speaker,
    parse_transcript,
    slugs,
)

__all__ = ["FORMATS", "ImportedTranscript", "ParsedSpeech", "Speaker", "parse_transcript", "slugs"]
