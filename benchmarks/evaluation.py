"""Compute the figures of published judgements on LLMBar, and compare them with the published figures.

    python -m benchmarks.evaluation [--quick] [--data FOLDER]

LLMBar (Zeng et al. 2024, *Evaluating Large Language Models at Evaluating Instruction Following*, MIT licence)
has pairs of answers with an objective label, and the replies of models as judges in both orders. The
benchmark reads every `*.result.json` of the folder with its `*.stats.json`, whatever the subset, the judge
and the prompt.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from moot.judging.orders import cohen_kappa
from moot.plugins.evals.arms import read_arms
from moot.plugins.evals.items import read_items
from moot.plugins.evals.report import evaluation_report
from moot.plugins.evals.results import EvaluationRecord
from moot.state.entries import JsonObject

DEFAULT_DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "llmbar"
DATA = Path(os.environ.get("MOOT_LLMBAR", DEFAULT_DATA))
"""Folder with the data, which is not part of the project."""
RESULT, STATS = ".result.json", ".stats.json"
_NAMES = {"1": "a", "2": "b"}


def published_runs(folder: Path) -> list[str]:
    """Return the names of all judged sets in a folder, such as `natural_gpt4_Swap`."""
    names = [path.name.removesuffix(RESULT) for path in folder.glob(f"*{RESULT}")]
    return sorted(name for name in names if (folder / f"{name}{STATS}").is_file())


def judge_report(folder: Path, name: str) -> JsonObject:
    """Return the report's row for one judged set, with the names of the published figures."""
    published = json.loads((folder / f"{name}{RESULT}").read_text(encoding="utf-8"))
    items, results = [], []
    for number, row in enumerate(published):
        texts = {"input": row["input"], "a": row["output_1"], "b": row["output_2"]}
        items.append({"id": str(number), **texts, "better": _NAMES[str(row["label"])]})
        orders = row["results"][-1]  # `Swap` asks again where the first replies differ
        winners = [_NAMES.get(str(orders[f"swap = {swap}"]["winner"]), "tie") for swap in (False, True)]
        results.append({"id": str(number), "winners": winners})
    with tempfile.TemporaryDirectory() as place:
        for file, rows in (("pairs.jsonl", items), ("judge.jsonl", results)):
            text = "".join(json.dumps(each) + "\n" for each in rows)
            (Path(place) / file).write_text(text, encoding="utf-8")
        pairs = read_items(Path(place) / "pairs.jsonl")
        arms = read_arms([f"recorded:{Path(place) / 'judge.jsonl'}"], pairs, {})
    report = evaluation_report(EvaluationRecord("llmbar", pairs, tuple(arms), 1, ""), {})
    (row,) = report["arms"]
    first, second = row["accuracy_by_order"]
    return {
        **row,
        "accuracy_first": first,
        "accuracy_second": second,
        "correct_in_both": row["correct_in_both"] / row["both_orders"],
        "kappa_as_published": _kappa_as_published([each["winners"] for each in results]),
    }


def _kappa_as_published(winners: Sequence[Sequence[str]]) -> float | None:
    """Return the κ of the orders as LLMBar counts it: a reply without a winner is one for the second answer.

    It differs from the report's `kappa_orders` only if there are such replies.
    """
    first, second = (["a" if pair[order] == "a" else "b" for pair in winners] for order in (0, 1))
    return cohen_kappa(first, second)


def published_figures(folder: Path, name: str) -> Mapping[str, float]:
    """Return the published figures: accuracy in each order and averaged, agreement and κ of the orders."""
    stats = json.loads((folder / f"{name}{STATS}").read_text(encoding="utf-8"))

    def share(key: str) -> float:
        return float(stats[key].rpartition("=")[2].strip(" %")) / 100

    return {
        "accuracy": share("correct_average"),
        "accuracy_first": share("correct_False"),
        "accuracy_second": share("correct_True"),
        "correct_in_both": share("correct_both"),
        "order_agreement": share("equal"),
        "kappa_as_published": stats["kappa_agreement"],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print Moot's figures beside the published figures."""
    parser = argparse.ArgumentParser(description="Reproduce the published figures of LLMBar.")
    parser.add_argument("--quick", action="store_true", help="no effect: the benchmark takes about a second")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with LLMBar's files")
    options = parser.parse_args(arguments)
    names = published_runs(options.data)
    if not names:
        print(f"   LLMBar is not at {options.data}")
    for name in names:
        row = judge_report(options.data, name)
        for figure, published in published_figures(options.data, name).items():
            print(f"   {name}: {figure} {row[figure]:.4f} (published {published:.4f})")


if __name__ == "__main__":
    main()
