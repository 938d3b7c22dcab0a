"""Published judgements of GPT-4 on LLMBar, read as `recorded:FILE`, beside the published figures.

    python -m benchmarks.evaluation [--quick] [--data FOLDER]

LLMBar (Zeng et al. 2024, *Evaluating Large Language Models at Evaluating Instruction Following*, MIT licence)
has pairs of answers with an objective label, and the replies of GPT-4 as a judge in both orders.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from moot.evals.arms import read_arms
from moot.evals.items import read_items
from moot.evals.report import evaluation_report
from moot.evals.store import EvaluationRecord
from moot.state.entries import JsonObject

DEFAULT_DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "llmbar"
DATA = Path(os.environ.get("MOOT_LLMBAR", DEFAULT_DATA))
"""Folder with the data, which is not part of the project."""
PROMPTS = ("Vanilla_NoRules", "Swap")
_NAMES = {"1": "a", "2": "b"}


def judge_report(folder: Path, prompt: str) -> JsonObject:
    """Return the report's row for GPT-4 with a prompt on the subset `natural`."""
    published = json.loads((folder / f"natural_gpt4_{prompt}.result.json").read_text(encoding="utf-8"))
    items, results = [], []
    for number, row in enumerate(published):
        texts = {"input": row["input"], "a": row["output_1"], "b": row["output_2"]}
        items.append({"id": str(number), **texts, "better": _NAMES[str(row["label"])]})
        orders = row["results"][-1]  # `Swap` asks again where the first replies differ
        winners = [_NAMES.get(str(orders[f"swap = {swap}"]["winner"]), "tie") for swap in (False, True)]
        results.append({"id": str(number), "winners": winners})
    with tempfile.TemporaryDirectory() as place:
        for name, rows in (("natural.jsonl", items), ("gpt4.jsonl", results)):
            text = "".join(json.dumps(each) + "\n" for each in rows)
            (Path(place) / name).write_text(text, encoding="utf-8")
        pairs = read_items(Path(place) / "natural.jsonl")
        arms = read_arms([f"recorded:{Path(place) / 'gpt4.jsonl'}"], pairs, {})
    report = evaluation_report(EvaluationRecord("llmbar", pairs, tuple(arms), 1, ""), {})
    (row,) = report["arms"]
    first, second = row["accuracy_by_order"]
    return {**row, "accuracy_first": first, "accuracy_second": second}


def published_figures(folder: Path, prompt: str) -> Mapping[str, float]:
    """Return the published figures: accuracy in each order and averaged, agreement and κ of the orders."""
    stats = json.loads((folder / f"natural_gpt4_{prompt}.stats.json").read_text(encoding="utf-8"))

    def share(key: str) -> float:
        return float(stats[key].partition("=")[2].strip(" %")) / 100

    return {
        "accuracy": float(stats["correct_average"].rstrip("%")) / 100,
        "accuracy_first": share("correct_False"),
        "accuracy_second": share("correct_True"),
        "correct_in_both": 100 * share("correct_both"),
        "order_agreement": share("equal"),
        "kappa_orders": stats["kappa_agreement"],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print Moot's figures beside the published ones."""
    parser = argparse.ArgumentParser(description="Reproduce the published figures of LLMBar.")
    parser.add_argument("--quick", action="store_true", help="the same: it takes a second")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with LLMBar's files")
    given = parser.parse_args(arguments)
    if not given.data.is_dir():
        print(f"   LLMBar is not at {given.data}")
        return
    for prompt in PROMPTS:
        row = judge_report(given.data, prompt)
        for name, figure in published_figures(given.data, prompt).items():
            print(f"   {prompt}: {name} {row[name]:.4f} (published {figure:.4f})")


if __name__ == "__main__":
    main()
