"""Tokens and money: each prompt against its budget, and the whole against the plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from moot.graph.reports.fields import as_count, as_dict, as_dicts, as_number, as_text, grouped

SECTIONS = ("system", "summary", "messages", "tail", "blackboard", "retrieved")
"""Sections of a prompt in its own order, the most stable first."""


@dataclass(frozen=True)
class Bar:
    """The mean prompt of neighbouring turns."""

    label: str
    sections: tuple[float, ...]
    """Tokens of each of `SECTIONS`."""


@dataclass(frozen=True)
class Omission:
    """What prompts left out, for one reason."""

    what: str
    why: str
    times: int
    tokens: int


@dataclass(frozen=True)
class Prompts:
    """All receipts taken together."""

    count: int
    budget: float | None
    largest: float
    mean: float
    over: int
    """Prompts above their budget: none, if Moot keeps its promise."""
    omissions: tuple[Omission, ...]
    _receipts: tuple[dict[str, Any], ...]

    def bars(self, most: int) -> list[Bar]:
        """Average the receipts in at most `most` groups of neighbours."""
        size = -(-len(self._receipts) // most) or 1
        starts = range(0, len(self._receipts), size)
        return [_bar(self._receipts[start : start + size]) for start in starts]


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


def read_prompts(document: dict[str, Any]) -> Prompts:
    """Sum the receipts up."""
    receipts = as_dicts(document.get("receipts"))
    memory = as_dict(as_dict(document.get("config")).get("memory"))
    limit = as_number(as_dict(memory.get("budget")).get("total"))
    budgets = [_budget(receipt) or limit for receipt in receipts]
    totals = [_total(receipt) for receipt in receipts]
    return Prompts(
        count=len(receipts),
        budget=max((budget for budget in budgets if budget is not None), default=limit),
        largest=max(totals, default=0.0),
        mean=sum(totals) / len(totals) if totals else 0.0,
        over=sum(1 for total, budget in zip(totals, budgets, strict=True) if budget and total > budget),
        omissions=_omissions(receipts),
        _receipts=tuple(receipts),
    )


def read_usage(document: dict[str, Any]) -> tuple[Figure, ...]:
    """Name what the debate used: calls, tokens, cached share, cost."""
    usage = as_dict(document.get("usage"))
    prompt, cached = as_count(usage.get("prompt_tokens")), as_count(usage.get("cached_tokens"))
    cost = as_number(usage.get("cost_usd"))
    figures = [
        Figure("Model calls", grouped(usage.get("calls"))),
        Figure("Prompt tokens", grouped(usage.get("prompt_tokens"))),
        Figure("Reply tokens", grouped(usage.get("completion_tokens"))),
        Figure("Cached share", f"{100 * cached / prompt:.0f} %" if prompt else "–", f"{cached:,} tokens"),
        Figure("Cost", f"${cost:,.4f}" if cost else "–", "" if cost else "no prices configured"),
    ]
    return tuple(figures) if usage else ()


def read_plan(document: dict[str, Any]) -> tuple[Comparison, ...]:
    """Compare what was planned with what was used, for the amounts that have both, bounds included."""
    planned, usage = as_dict(document.get("planned")), as_dict(document.get("usage"))
    rows = []
    for key, value in planned.items():
        amount, bound = _amount(key)
        expected, actual = as_number(value), as_number(usage.get(amount))
        told = bound and value == planned.get(amount)
        if expected is not None and actual is not None and not told:
            name = ", ".join(filter(None, (amount, bound))).replace("_", " ").capitalize()
            rows.append(Comparison(name, expected, actual))
    return tuple(rows)


def _amount(key: str) -> tuple[str, str]:
    """Return which amount a planned figure is, and which bound of it, `""` for the amount itself."""
    for bound in ("at_least", "at_most"):
        if key.endswith(f"_{bound}"):
            return key.removesuffix(f"_{bound}"), bound
    return key, ""


def _budget(receipt: dict[str, Any]) -> float | None:
    raw = receipt.get("budget")
    return as_number(raw.get("total") if isinstance(raw, dict) else raw)


def _total(receipt: dict[str, Any]) -> float:
    total = as_number(receipt.get("total_tokens"))
    return sum(_section(receipt, name) for name in SECTIONS) if total is None else total


def _section(receipt: dict[str, Any], name: str) -> float:
    return as_number(as_dict(receipt.get("sections")).get(name)) or 0.0


def _bar(receipts: Sequence[dict[str, Any]]) -> Bar:
    def mean(of: Callable[[dict[str, Any]], float]) -> float:
        return sum(map(of, receipts)) / len(receipts)

    first, last = (as_text(receipts[index].get("seq")) for index in (0, -1))
    sections = tuple(mean(lambda receipt, name=name: _section(receipt, name)) for name in SECTIONS)  # type: ignore[misc]  # bound per name
    return Bar(first if first == last else f"{first}–{last}", sections)


def _omissions(receipts: list[dict[str, Any]]) -> tuple[Omission, ...]:
    times: Counter[tuple[str, str]] = Counter()
    tokens: Counter[tuple[str, str]] = Counter()
    for item in (item for receipt in receipts for item in as_dicts(receipt.get("left_out"))):
        key = (_sort_of(as_text(item.get("what"))), as_text(item.get("why")))
        times[key] += 1
        tokens[key] += as_count(item.get("tokens"))
    return tuple(Omission(*key, times[key], tokens[key]) for key, _ in tokens.most_common(12))


def _sort_of(what: str) -> str:
    """Return the sort of thing for a message id, so that thousands of messages make one row."""
    return "messages" if what[:1] == "m" and what[1:].isdecimal() else what
