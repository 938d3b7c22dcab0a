"""What evaluators score."""

from __future__ import annotations

from collections.abc import Mapping

CRITERIA: Mapping[str, str] = {
    "functional_completeness": "Functional Completeness",
    "performance_scalability": "Performance & Scalability",
    "security": "Security",
    "maintainability_evolvability": "Maintainability & Evolvability",
    "regulatory_compliance": "Regulatory Compliance",
    "testability": "Testability",
    "requirements_fulfillment": "Requirements Fulfillment",
}
"""Titles by id, in the order of every table. The ids are those of dialectic's evaluations."""

OVERALL, OVERALL_TITLE = "overall_score", "Overall Score"
LOWEST, HIGHEST = 1, 10
"""Ends of every scale."""
