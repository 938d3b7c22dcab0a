"""Prompt templates, prompt blocks and token budgets."""
