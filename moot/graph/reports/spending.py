"""Tokens and money: each prompt against its budget, and the whole against the plan."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from moot.graph.documents import DebateDocument
from moot.graph.documents.document import Usage
from moot.graph.reports.wording import group_digits
from moot.state.conversation import LeftOut, Receipt
from moot.state.entries import seq_of


class Prompts:
    """All receipts taken together."""

    def __init__(self, receipts: Sequence[Receipt]) -> None:
        self.receipts = receipts
        budgets = [receipt["budget"] for receipt in receipts]
        totals = [receipt["total_tokens"] for receipt in receipts]
        self.budget = max(budgets, default=None)
        """The largest one."""
        self.largest = max(totals, default=0)
        self.mean = fmean(totals) if totals else 0.0
        self.over = sum(total > budget for total, budget in zip(totals, budgets, strict=True))
        """Prompts above their budget: none, if Moot keeps its promise."""
        times: Counter[tuple[str, str]] = Counter()
        tokens: Counter[tuple[str, str]] = Counter()
        for receipt in receipts:
            for note in receipt["left_out"]:
                # Thousands of messages make one row.
                key = ("messages" if seq_of(note["what"]) is not None else note["what"], note["why"])
                times[key] += 1
                tokens[key] += note["tokens"]
        self.omissions: Sequence[LeftOut] = [
            {"what": key[0], "why": key[1], "tokens": total, "count": times[key]}
            for key, total in tokens.most_common(12)
        ]
        """What was left out most, for one reason each."""


@dataclass(frozen=True)
class Figure:
    """One number with its name."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """A planned amount beside what was used."""

    name: str
    planned: float
    actual: float

    @property
    def ratio(self) -> str:
        """Actual over planned, in percent."""
        return f"{100 * self.actual / self.planned:.0f} %" if self.planned else "–"

    def share(self, value: float) -> int:
        """Length of a bar for `value`, in percent of the longer one."""
        return round(100 * value / (max(self.planned, self.actual) or 1))


def read_usage(usage: Usage) -> tuple[Figure, ...]:
    """Name what the debate used: calls, tokens, cached share, cost."""
    prompt, cached, cost = usage["prompt_tokens"], usage["cached_tokens"], usage["cost_usd"]
    return (
        Figure("Model calls", group_digits(usage["calls"])),
        Figure("Prompt tokens", group_digits(prompt)),
        Figure("Reply tokens", group_digits(usage["completion_tokens"])),
        Figure("Cached share", f"{100 * cached / prompt:.0f} %" if prompt else "–", f"{cached:,} tokens"),
        Figure("Cost", f"${cost:,.4f}" if cost else "–", "" if cost else "no prices configured"),
    )


def read_plan(document: DebateDocument) -> tuple[Comparison, ...]:
    """Compare what was planned with what was used, for the amounts that have both, bounds included."""
    planned = document.get("planned", {})
    used = {key: amount for key, amount in document["usage"].items() if isinstance(amount, int | float)}
    rows = []
    for key, value in planned.items():
        bound = next((each for each in ("at_least", "at_most") if key.endswith(f"_{each}")), "")
        amount = key.removesuffix(f"_{bound}")
        if amount in used and isinstance(value, int | float) and not (bound and value == planned.get(amount)):
            name = ", ".join(filter(None, (amount, bound))).replace("_", " ").capitalize()
            rows.append(Comparison(name, value, used[amount]))
    return tuple(rows)
