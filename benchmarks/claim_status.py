"""Measure the accuracy of claim statuses on labelled sequences of claim events.

    python -m benchmarks.claim_status [--data FILE] [--json]

Each line of the file is a JSON object: `id`, `events`, `over`, `status`, `side`, `conditions`. An event has
`kind` and `debater`. It may have `condition`, `leans` and `option`. In these files the same text is the same
condition, and a debater's new condition replaces its earlier one. An event with the key `retracts` takes back
the event with that `id` or number, counted from 1.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from moot.claims.claim_status import ClaimStatus
from moot.claims.ledger_from_events import fold_events
from moot.state.claim_events import Claim, ClaimEvent, Retraction, StanceEvent, StanceKind

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "claim-status-cases.jsonl"
_CLAIM = "p001"


def read_cases(path: Path) -> list[dict[str, Any]]:
    """Return the cases of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def judge_case(case: Mapping[str, Any]) -> ClaimStatus:
    """Return the status that the program computes for a case."""
    claim = Claim(type="claim", id=_CLAIM, text="A statement", aspect="overall", seq=0)
    ledger = fold_events([claim, *_claim_events(case["events"])])
    return ledger.claim_status(_CLAIM, is_over=bool(case.get("over")))


def _claim_events(events: Sequence[Mapping[str, Any]]) -> Iterator[ClaimEvent]:
    """Yield the claim events of a case, each in a message of its own."""
    ids = {str(each.get("id", number)): f"e{number:03d}" for number, each in enumerate(events, 1)}
    conditions: dict[str, str] = {}
    for number, each in enumerate(events, 1):
        if retracted := each.get("retracts") or each.get("of"):
            of = ids.get(str(retracted), str(retracted))
            yield Retraction(type="retraction", of=of, why="", by="model")
        if each.get("kind") not in get_args(StanceKind):
            continue
        condition, who = str(each.get("condition") or ""), str(each["debater"])
        event = StanceEvent(
            type="event",
            id=f"e{number:03d}",
            kind=each["kind"],
            claim=_CLAIM,
            debater=who,
            message_id=f"m{number:06d}",
            quote=condition or each["kind"],
            condition=condition,
            ground=False,
            confidence=1.0,
            by=each.get("by", "model"),
        )
        if condition:
            event["condition_id"] = condition
            if conditions.get(who, condition) != condition:
                event["replaces"] = conditions[who]
            conditions[who] = condition
        if each.get("leans"):
            event["leans"] = each["leans"]
        if each.get("option"):
            event["option"] = each["option"]
        yield event


def is_right(case: Mapping[str, Any]) -> bool:
    """Return True if status, side and conditions are as the case's label says."""
    found = judge_case(case)
    wanted = (case["status"], case["side"], sorted(case["conditions"]))
    return (found.status, found.side, sorted(found.conditions)) == wanted


def main(argv: Sequence[str] | None = None) -> None:
    """Print how many cases have the status of their label."""
    parser = argparse.ArgumentParser(description="Measure claim statuses on labelled cases.")
    parser.add_argument("--data", type=Path, default=DATA, metavar="FILE", help="labelled cases, JSON Lines")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    cases = read_cases(options.data)
    wrong = [case["id"] for case in cases if not is_right(case)]
    result = {"right": len(cases) - len(wrong), "of": len(cases), "wrong": wrong}
    if options.json:
        print(json.dumps(result))
    else:
        print(
            f"{result['right']} of {result['of']} right" + (f"; wrong: {', '.join(wrong)}" if wrong else "")
        )


if __name__ == "__main__":
    main()
