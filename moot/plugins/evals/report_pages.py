"""Report of an evaluation as tables, as Markdown and as an HTML page with a chart."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import ceil, floor, log10
from pathlib import Path

from markupsafe import Markup

from moot.plugins.evals.report import evaluation_report, item_rows, p_text
from moot.plugins.evals.results import EvaluationRecord, ItemOutcome
from moot.reports.html import template_environment
from moot.reports.markdown import as_page, plain
from moot.reports.markdown_html import Prose
from moot.state.entries import JsonObject
from moot.text.plain_text import count_noun


@dataclass(frozen=True)
class Plot:
    """Size of a chart and edges of its plot area, in SVG units."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int


WIDE = Plot(640, 380, 56, 616, 16, 326)
"""Size of a chart on a screen."""
NARROW = Plot(340, 340, 50, 326, 16, 286)
"""Size of a chart on a phone. The phone shows the chart's text without scaling it."""
LABEL_WIDTH, LABEL_HEIGHT = 110, 15
CHARACTER_WIDTH = 7
"""Approximate width of a label character in SVG units."""
ARM_HEADING = (
    "arm",
    "items",
    "right",
    "accuracy (95 %)",
    "tokens",
    "calls",
    "US$",
    "median s",
)


class ReportTable:
    """A table in an evaluation report, with all cells stored as text."""

    def __init__(self, title: str, heading: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self.title, self.heading, self.rows = title, heading, rows

    @property
    def numeric(self) -> list[bool]:
        """Flags of the table's columns, True for each column with numbers.

        Columns with numbers are right-aligned.
        """
        return [_is_numeric(cells) for cells in zip(*self.rows, strict=True)]

    def markdown(self) -> str:
        """Return the title and the table as Markdown."""
        rows = [f"| {' | '.join(map(plain, line))} |" for line in (self.heading, *self.rows)]
        rows.insert(1, f"|{'|'.join(' ---: ' if numeric else ' --- ' for numeric in self.numeric)}|")
        table = "\n".join(rows)
        return f"## {plain(self.title)}\n\n{table}" if self.title else table


def _is_numeric(cells: Sequence[str]) -> bool:
    """Return True if a column contains numbers, and otherwise only dashes.

    Only the beginning of each cell is checked.
    """
    starts = [cell.lstrip("+−<. ")[:1] for cell in cells]
    return any(start.isdigit() for start in starts) and all(each.isdigit() or each == "–" for each in starts)


def _render(name: str, **values: object) -> Markup:
    """Render a template of this plug-in, which escapes every text as the templates of reports do."""
    text = (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")
    return Markup(template_environment().from_string(text).render(values))  # noqa: S704  # see above


def tables_html(tables: Sequence[ReportTable]) -> Markup:
    """Render tables with their titles as HTML."""
    return _render("evaluation-tables.html.j2", tables=tables)


def report_tables(report: JsonObject) -> list[ReportTable]:
    """Return the non-empty tables of a report in display order."""
    return [table for table in _tables(report) if table.rows]


def _tables(report: JsonObject) -> Iterator[ReportTable]:
    arms = report["arms"]
    has_ratings = any("rating" in row for row in arms)
    if any(row["answers"] for row in arms) or not has_ratings:
        yield ReportTable("", ARM_HEADING, [_arm_cells(row) for row in arms])
    differences = [_difference_cells(row["arm"], row["difference"]) for row in arms if row["difference"]]
    titles = ["arm", "points (95 %)", "better", "worse", "p", "test"]
    yield ReportTable(f"Differences to {report['baseline']}", titles, differences)
    if has_ratings:
        titles = ["arm", "rating (95 %)", "won", "met"]
        yield ReportTable("Ratings (Bradley–Terry)", titles, [_rating_cells(row) for row in arms])
    preferences = [
        (row["first"], row["second"], _percent(row["share"]), _range(row), p_text(row["p_value"]))
        for row in report["preferences"]
    ]
    yield ReportTable("Preferences", ("first", "second", "first preferred", "95 %", "p"), preferences)
    judge_rows = [row for row in arms if "order_agreement" in row]
    titles = ["judge", "by order", "right in both", "same in both", "κ of orders", "κ with people"]
    yield ReportTable("Judges", titles, [_judge_cells(row) for row in judge_rows])
    changes = [
        (row["arm"], str(each["round"]), str(each["right_to_wrong"]), str(each["wrong_to_right"]))
        for row in arms
        for each in row.get("changes", ())
    ]
    titles = ["arm", "round", "right → wrong", "wrong → right"]
    yield ReportTable("What discussion changed", titles, changes)
    vote_changes = [
        (row["arm"], str(row["discussed"]), _percent(row["vote_changed"]))
        for row in arms
        if row.get("vote_changed") is not None
    ]
    yield ReportTable("", ("arm", "debates", "vote changed"), vote_changes)
    if difficulty := report["difficulty"]:
        names = [row["arm"] for row in arms]
        rows = [
            (each["agreement"], str(each["answers"]), *(_percent(each["accuracy"][name]) for name in names))
            for each in difficulty["levels"]
        ]
        title = f"Accuracy by agreement of the first answers of {difficulty['arm']}"
        yield ReportTable(title, ("first answers", "answers", *names), rows)
    reliability = [
        (row["arm"], _coefficient(row.get("alpha_judges")), _coefficient(row.get("alpha_seeds")))
        for row in arms
        if "alpha_judges" in row or "alpha_seeds" in row
    ]
    titles = ["arm", "α of judges", "α of seeds"]
    yield ReportTable("Agreement (Krippendorff's α)", titles, reliability)
    kappas = [
        (row["arm"], each["first"], each["second"], str(each["n"]), _coefficient(each["kappa"]))
        for row in arms
        for each in row.get("kappa_judges", ())
    ]
    yield ReportTable("Agreement of judges (Cohen's κ)", ("arm", "judge", "judge", "choices", "κ"), kappas)
    groups = [
        (row["group"] or "(none)", row["arm"], str(row["items"]), _percent(row["accuracy"]), _range(row))
        for row in report["groups"]
    ]
    yield ReportTable("Groups", ("group", "arm", "items", "accuracy", "95 %"), groups)
    confidences = [
        (row["arm"], str(row["stated"]), f"{row['brier']:.3f}", f"{row['ece']:.3f}")
        for row in arms
        if row["stated"]
    ]
    yield ReportTable("Stated confidence", ("arm", "answers", "Brier", "ECE"), confidences)
    bins = [
        (each["model"], f"{confidence:g}", f"{accuracy:g}", str(answers))
        for each in report["calibration"]
        for (confidence, accuracy), answers in zip(each["pairs"], each["answers"], strict=True)
    ]
    titles = ["model", "stated", "measured", "answers"]
    yield ReportTable("Calibration in percent, for the setting calibration", titles, bins)
    unreadable = [
        (row["item"], row["arm"], str(row["seed"]), " · ".join(row["texts"])[:120])
        for row in report["unreadable"]
    ]
    yield ReportTable("Answers that could not be read", ("item", "arm", "seed", "text"), unreadable)


def _arm_cells(row: JsonObject) -> tuple[str, ...]:
    accuracy = f"{_percent(row['accuracy'])} ({_range(row)})" if row["answers"] else "–"
    return (
        row["arm"],
        str(row["items"]),
        f"{row['correct']:g}",
        accuracy,
        f"{row['tokens']:,}",
        f"{row['calls']:,}",
        f"{row['cost_usd']:.4f}" if row["cost_usd"] else "–",
        "–" if row["seconds"] is None else f"{row['seconds']:.1f}",
    )


def _difference_cells(arm: str, row: JsonObject) -> tuple[str, ...]:
    points = f"{row['points']:+.1f} ({row['low']:+.1f} to {row['high']:+.1f})".replace("-", "−")
    return arm, points, str(row["better"]), str(row["worse"]), p_text(row["p_value"]), row["test"]


def _rating_cells(row: JsonObject) -> tuple[str, ...]:
    if "rating" not in row:
        return row["arm"], "–", "–", "–"
    rating = f"{row['rating']:.0f} ({row['rating_low']:.0f} to {row['rating_high']:.0f})"
    return row["arm"], rating, f"{row['won']:g}", str(row["met"])


def _judge_cells(row: JsonObject) -> tuple[str, ...]:
    return (
        row["arm"],
        " · ".join(map(_percent, row["accuracy_by_order"])),
        f"{row['correct_in_both']} of {row['both_orders']}",
        _percent(row["order_agreement"]),
        _coefficient(row["kappa_orders"]),
        _coefficient(row["kappa_people"]),
    )


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _coefficient(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _range(row: JsonObject) -> str:
    if row["low"] == row["high"]:  # all values are equal, so a bootstrap says nothing
        return "–"
    return f"{100 * row['low']:.1f} to {100 * row['high']:.1f}"


def summary_line(report: JsonObject) -> str:
    """Return one line with the evaluation set, its size and the baseline."""
    item_set = report["set"]
    seeds = f", {count_noun(report['seeds'], 'seed')}" if report["seeds"] > 1 else ""
    return (
        f"{item_set['name']}: {count_noun(item_set['items'], 'item')}{seeds}. Baseline: {report['baseline']}."
    )


def report_markdown(report: JsonObject) -> str:
    """Return the report as Markdown with conclusions, tables and notes."""
    tables = [table.markdown() for table in report_tables(report)]
    parts = [f"# {plain(report['name'])}", _lead(report), *tables, _notes_text(report)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _lead(report: JsonObject) -> str:
    sentences = [f"**{plain(sentence)}**" for sentence in report["headline"]]
    findings = "\n".join(f"- {plain(finding)}" for finding in report["findings"])
    return "\n\n".join(filter(None, [*sentences, findings, plain(summary_line(report))]))


def further_html(report: JsonObject) -> Markup:
    """Return the notes and all tables except the first as HTML.

    The first table compares the configurations.
    """
    return tables_html(report_tables(report)[1:]) + Prose({}).block(_notes_text(report), base=2)


def _notes_text(report: JsonObject) -> str:
    notes = "\n".join(f"- {plain(note)}" for note in report["notes"])
    return f"## Notes\n\n{notes}" if notes else ""


def report_html(report: JsonObject) -> str:
    """Return the report as one self-contained HTML page with a chart of accuracy against cost."""
    figures = chart(report) + tables_html(report_tables(report))
    body = f"# {plain(report['name'])}\n\n{_notes_text(report)}"
    return as_page(body, report["name"], "Evaluation", figures=figures, lead=_lead(report))


def evaluation_page(
    evaluation: EvaluationRecord, outcomes: dict[tuple[str, str, int], ItemOutcome], baseline: str
) -> JsonObject:
    """Return an evaluation for the live page: the report's data, its chart and tables as HTML, and its items.

    Raises:
        InputError: No arm has the name of the baseline.
    """
    report = evaluation_report(evaluation, outcomes, baseline)
    return {
        "report": report,
        "chart": str(chart(report)),
        "tables": str(further_html(report)),
        "items": item_rows(evaluation, outcomes),
    }


def chart(report: JsonObject) -> Markup:
    """Draw a chart of each configuration's accuracy against its mean cost per answer.

    The cost is in US dollars, or in tokens if no arm has a cost.
    """
    rows = [row for row in report["arms"] if row["answers"] and row["accuracy"] is not None]
    if not rows:
        return Markup()
    unit = "cost_usd" if any(row["cost_usd"] for row in rows) else "tokens"
    mean_costs = [row[unit] / row["answers"] for row in rows]
    curve = [(point[unit], point["accuracy"]) for point in report["vote_curve"]]
    values = [bound for row in rows for bound in (row["low"], row["high"])] + [y for _, y in curve]
    x_ticks = _ticks(0.0, max([*mean_costs, *(x for x, _ in curve)]) or 1.0)
    y_ticks = _ticks(100 * min(values), min(100 * max(values), 100.0))

    def drawn(plot: Plot) -> JsonObject:
        def x_of(value: float) -> float:
            return round(plot.left + (plot.right - plot.left) * value / x_ticks[-1], 1)

        def y_of(share: float) -> float:
            height = (100 * share - y_ticks[0]) / (y_ticks[-1] - y_ticks[0])
            return round(plot.bottom - (plot.bottom - plot.top) * height, 1)

        points = []
        for row, mean_cost in zip(rows, mean_costs, strict=True):
            x, is_flipped = x_of(mean_cost), mean_cost > x_ticks[-1] / 2
            max_chars = int((x if is_flipped else plot.width - x) / CHARACTER_WIDTH) - 1
            name = row["arm"] if len(row["arm"]) <= max_chars else f"{row['arm'][: max_chars - 1]}…"
            heights = {"y": row["accuracy"], "low": row["low"], "high": row["high"]}
            heights = {key: y_of(share) for key, share in heights.items()}
            is_baseline = row["arm"] == report["baseline"]
            points.append({"name": name, "x": x, "flip": is_flipped, "baseline": is_baseline, **heights})
        _place_labels(points)
        return {
            **asdict(plot),
            "points": points,
            "curve": [{"x": x_of(x), "y": y_of(y)} for x, y in curve],
            "x_ticks": [{"at": x_of(value), "text": f"{value:,.{decimals}f}"} for value in x_ticks],
            "y_ticks": [{"at": y_of(value / 100), "text": f"{value:.0f} %"} for value in y_ticks],
        }

    decimals = max(0, 1 - floor(log10(x_ticks[1]))) if unit == "cost_usd" else 0
    return _render(
        "evaluation-chart.html.j2",
        plots={"wide": drawn(WIDE), "narrow": drawn(NARROW)},
        label="Accuracy of each arm, with its 95 % interval, against its mean cost per answer",
        x_title="tokens per answer" if unit == "tokens" else "US$ per answer",
        answers=len(curve),
    )


def _ticks(low: float, high: float) -> list[float]:
    """Return about five evenly spaced round values that cover the range from `low` to `high`."""
    rough = max(high - low, 1e-9) / 4
    power = 10.0 ** floor(log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [step * number for number in range(first, max(last, first + 1) + 1)]


def _place_labels(points: Sequence[JsonObject]) -> None:
    """Move the labels of chart points vertically so that the labels do not overlap."""
    placed_points: list[JsonObject] = []
    for point in sorted(points, key=lambda each: (each["y"], each["x"])):
        neighbour_ys = [
            each["text_y"]
            for each in placed_points
            if each["flip"] == point["flip"] and abs(each["x"] - point["x"]) < LABEL_WIDTH
        ]
        point["text_y"] = max([point["y"] - 6, *(y + LABEL_HEIGHT for y in neighbour_ys)])
        placed_points.append(point)
