"""Estimate of a debate before it runs, made by running the real graph with stub replies.

`estimate` runs the debate twice, without a model, a network or a database. In the *agreeing* run nothing is
disputed and a council converges at once: it makes the fewest calls. In the *disputing* run all claims are
disputed, nothing converges and every crux room opens: it makes the most calls. The real nodes, protocols and
summarizers, plug-ins included, make the calls and the prompts.

A long debate runs shortened, and its middle rounds are extrapolated. The number of turns is then exact. Calls
and tokens are within 5 %, and calls for summaries within 20 %: `tests/unit/test_dry_run.py` compares
extrapolations with whole runs of 300 turns and of 16 rounds.
"""

from moot.debates.dry_run.estimates import (
    Estimate,
    ExpectedCost,
    dry_run,
    estimate,
    expected_cost,
    omission_warnings,
    with_plan,
)
from moot.debates.dry_run.stub_replies import DryRun, EndlessDebate, PlannedCall, Scenario, StubReplies

__all__ = [
    "DryRun",
    "EndlessDebate",
    "Estimate",
    "ExpectedCost",
    "PlannedCall",
    "Scenario",
    "StubReplies",
    "dry_run",
    "estimate",
    "expected_cost",
    "omission_warnings",
    "with_plan",
]
