"""Evaluation: finished debates scored against their problem, on seven criteria of a design."""
