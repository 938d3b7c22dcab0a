"""Prompts as Markdown files with named placeholders, checked when they are loaded."""
