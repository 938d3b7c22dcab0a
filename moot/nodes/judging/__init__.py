"""Judging without a model: rubrics, verdicts, blinding, orders, decisions, agreement, calibration."""
