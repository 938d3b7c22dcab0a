"""Readers for forms of transcripts, one form or a family of forms in each module."""
