"""What a protocol asks of its judges."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class JudgeBrief:
    """What a protocol wants of its judge where the configuration does not say."""

    wanted: str = ""
    """What the verdict must hold beyond the rubric, and how it ends where a solution is asked for."""
    solution: bool = False
    """Whether a solution is asked for, and held against what was required; else a judge is asked for none."""
    rubric: str = "debate"
    swap: bool = True
    """Whether the order of presentation can decide: then every judge judges twice."""
    heard: bool = True
    """Whether those who are judged heard each other."""
    judged: bool = True
    """Whether there is anything to judge."""
