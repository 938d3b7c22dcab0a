"""Charts as inline SVG that takes its colours from the page, with no script, font or style of its own."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, TypeVar

from markupsafe import Markup

from moot.graph.reports.cast import People, Person
from moot.graph.reports.spending import Prompts
from moot.graph.reports.transcript_blocks import Fold

SECTIONS = ("system", "topic", "summary", "messages", "tail", "blackboard", "retrieved")
"""Sections of a prompt in its own order, the most stable first."""
_T = TypeVar("_T")
_DROPPED = ("script", "style", "desc", "title")


@dataclass(frozen=True)
class Size:
    """Width and height of a chart, in its own units, and the bars that it has room for."""

    width: int
    height: int
    bars: int
    labels: int
    """Labels that the horizontal axis has room for."""


WIDE = Size(720, 270, 60, 8)
NARROW = Size(340, 230, 24, 4)


def prompt_chart(prompts: Prompts, size: Size) -> Markup:
    """Draw the tokens of each prompt by section, or the means of neighbours, under a line at the budget."""
    groups = _neighbours(prompts.receipts, size.bars)
    ends = [(group[0]["seq"], group[-1]["seq"]) for group in groups]
    labels = [str(first) if first == last else f"{first}–{last}" for first, last in ends]
    series = {
        name: [fmean(each["sections"].get(name, 0) for each in group) for group in groups]
        for name in SECTIONS
    }
    label = "Tokens of the prompts by section, against the budget"
    return _stacked_bars(size, labels, series, label, prompts.budget)


def leading(people: People) -> list[Person]:
    """Return the debater with the most words of each colour, in the colours' order."""
    by_tone: dict[str, Person] = {}
    for person in people.values():
        if person.tone not in by_tone or person.words > by_tone[person.tone].words:
            by_tone[person.tone] = person
    return list(by_tone.values())


def floor_chart(blocks: Sequence[Fold], people: People, size: Size) -> Markup:
    """Draw who had the floor: words of the leading debaters through the debate."""
    messages = [message for block in blocks for message in block.messages if message.person.id in people]
    groups = _neighbours(messages, size.bars)
    labels = [group[0].label.lstrip("m0") or "0" for group in groups]
    series = {
        person.id: [
            sum(len(m.entry["content"].split()) for m in group if m.person.id == person.id)
            for group in groups
        ]
        for person in leading(people)
    }
    return _stacked_bars(size, labels, series, "Words of each debater through the debate")


def _neighbours(items: Sequence[_T], most: int) -> list[Sequence[_T]]:
    """Split items into at most so many groups of neighbours."""
    size = -(-len(items) // most) or 1
    return [items[start : start + size] for start in range(0, len(items), size)]


def _stacked_bars(
    size: Size,
    labels: Sequence[str],
    series: Mapping[str, Sequence[float]],
    label: str,
    budget: int | None = None,
) -> Markup:
    """Draw shapes and labels alone: no script, style, comment, tool tip or id."""
    import pygal

    # It has appended a finder for its plugins, which speaks a protocol that Python has dropped: on 3.11 each
    # later import that fails would warn.
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != pygal.__name__]
    top = max([budget or 0.0, *(sum(column) for column in zip(*series.values(), strict=True))])
    chart: Any = pygal.StackedBar(
        js=[],
        css=[],
        disable_xml_declaration=True,
        show_legend=False,
        width=size.width,
        height=size.height,
        margin=4,
        margin_top=10,
        margin_right=12,
        spacing=4,
        range=(0, top * 1.04 or 1),
        min_scale=3,
        max_scale=5,
        truncate_label=-1,
        show_minor_x_labels=False,
        value_formatter=lambda value: f"{value:,.0f}",
    )
    every = -(-len(labels) // size.labels) or 1
    # pygal takes labels by their text, so two bars of one name would both carry it
    chart.x_labels = [f"{name}{chr(0x200B) * (index % 2)}" for index, name in enumerate(labels)]
    chart.x_labels_major = [chart.x_labels[index] for index in range(0, len(labels), every)]
    if budget:
        chart.y_labels = [0, budget / 2, budget]
        chart.y_labels_major = [budget]
    for name, values in series.items():
        chart.add(name, values)

    def bare(root: Any) -> Any:
        root.attrib.pop("id", None)
        for parent in list(root.iter()):
            for child in list(parent):
                tag = child.tag if isinstance(child.tag, str) else ""
                if not tag or tag.rpartition("}")[2] in _DROPPED or child.get("class") == "tooltip":
                    parent.remove(child)
        root.set("role", "img")
        root.set("aria-label", label)
        return root

    chart.add_xml_filter(bare)
    return Markup(chart.render(is_unicode=True))  # noqa: S704  # serialised by ElementTree, which escapes
