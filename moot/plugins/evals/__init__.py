"""Evaluation of debates, votes, judges and line-ups."""
