"""All benchmarks, one block each, with the target beside the figure.

    python -m benchmarks [--quick] [NAME …]

Whatever they find, the exit code is 0: they measure; tests hold the targets.
"""

from __future__ import annotations

import argparse
import importlib
import time
import traceback
from collections.abc import Sequence

QUICK = {
    "retrieval": ("--quick",),
    "prefix": ("--quick",),
    "budgets": ("--quick",),
    "attack": ("--quick",),
    "drift": ("--quick",),
    "policy_cpu": ("--quick",),
    "growth": ("--turns", "1000", "--plain-turns", "1000"),
    "council": ("--rounds", "1", "--latency", "0.05"),
    "commands": ("--quick",),
    "minutes": (),
    "summaries": ("--quick",),
    "escalate": ("--quick",),
    "overhead": (),
    "agreement": ("--quick",),
    "evaluation": ("--quick",),
}
"""Benchmarks in the order of their running, with what makes each a matter of seconds."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmarks that are named, all without a name."""
    parser = argparse.ArgumentParser(description="Measure Moot.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(QUICK)}")
    parser.add_argument("--quick", action="store_true", help="small sizes, for a smoke test")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.names) - QUICK.keys())
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}: there are {', '.join(QUICK)}")
    for name in given.names or QUICK:
        _run(name, QUICK[name] if given.quick else ())


def _run(name: str, arguments: Sequence[str]) -> None:
    print(f"== {name}", flush=True)
    started = time.perf_counter()
    try:
        importlib.import_module(f"benchmarks.{name}").main(arguments)
    except Exception:  # the others are still worth running
        traceback.print_exc()
    print(f"   ({time.perf_counter() - started:.0f} s)\n", flush=True)


if __name__ == "__main__":
    main()
