"""Run the benchmarks, and print each figure with its target.

    python -m benchmarks [--quick] [NAME …]

The exit code is 0 even if a figure misses its target. The tests check the targets.
"""

from __future__ import annotations

import argparse
import importlib
import time
import traceback
from collections.abc import Sequence

QUICK = {
    "retrieval": ("--quick",),
    "paraphrases": (),
    "prefix": ("--quick",),
    "budgets": ("--quick",),
    "attack": ("--quick",),
    "drift": ("--quick",),
    "policy_cpu": ("--quick",),
    "growth": ("--turns", "1000", "--plain-turns", "1000"),
    "council": ("--rounds", "1", "--latency", "0.05"),
    "commands": ("--quick",),
    "extraction": (),
    "summaries": ("--quick",),
    "escalate": ("--quick",),
    "overhead": (),
    "agreement": ("--quick",),
    "evaluation": ("--quick",),
}
"""Benchmarks in the order in which they run, with the arguments of `--quick`."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the named benchmarks, or all of them if none is named."""
    parser = argparse.ArgumentParser(description="Run the benchmarks.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"benchmarks to run: {', '.join(QUICK)} (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="run smaller versions, in about a minute")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - QUICK.keys())
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}: there are {', '.join(QUICK)}")
    for name in options.names or QUICK:
        _run(name, QUICK[name] if options.quick else ())


def _run(name: str, arguments: Sequence[str]) -> None:
    print(f"== {name}", flush=True)
    started = time.perf_counter()
    try:
        importlib.import_module(f"benchmarks.{name}").main(arguments)
    except Exception:  # the other benchmarks still run
        traceback.print_exc()
    print(f"   ({time.perf_counter() - started:.0f} s)\n", flush=True)


if __name__ == "__main__":
    main()
