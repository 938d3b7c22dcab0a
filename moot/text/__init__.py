"""Tokens, terms and sentences of text in any script."""
