"""Baselines: independent answers to one question."""
