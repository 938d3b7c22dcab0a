"""Prompt templates, roles, prompt blocks and token budgets."""
