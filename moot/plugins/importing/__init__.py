"""Readers for transcripts in JSON, JSON Lines, CSV, plain text and Markdown, and for context documents."""
