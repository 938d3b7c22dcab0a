"""Verdict fields: their empty values, how several verdicts are combined, and their display."""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import Any, cast, get_origin

from moot.state import verdict as verdict_types
from moot.text.plain_text import count_noun
from moot.text.terms import same_statement


@dataclass(frozen=True)
class ShownLine:
    """One displayed line of a verdict field, with the ids of the messages that it cites."""

    text: str
    citations: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShownField:
    """Non-empty verdict field, formatted for display."""

    name: str
    label: str
    lines: tuple[ShownLine, ...]
    single: bool
    """True if the field is displayed on one line with its label. False if the field is displayed as a
    list."""
    percent: int | None = None
    """Confidence as a number from 0 to 100, or `None` if the field is not a confidence."""
    lead: bool = False
    """True if the field belongs to the short answer at the top of screens and reports."""
    note: str = ""
    """Sentences beside the number of a confidence. The line has them, too."""

    @property
    def text(self) -> str:
        """Return all lines of this verdict field as one text, joined with semicolons."""
        return "; ".join(line.text for line in self.lines)


def empty_value(field: verdict_types.VerdictField) -> Any:
    """Return the empty value of a verdict field, such as `""` or `[]`."""
    if field.kind is str:
        return ""
    return cast(Any, get_origin(field.kind))() if get_origin(field.kind) in (list, dict) else None


def combine(field: verdict_types.VerdictField, verdicts: Sequence[Mapping[str, Any]], how: str) -> Any:
    """Combine the values of one field from several verdicts.

    `how` is `first`, `union` or `mean`.
    """
    values = [each.get(field.name) for each in verdicts]
    filled_values = [value for value in values if value not in (None, "", [], {})]
    if not filled_values:
        return empty_value(field)
    if how == "mean":
        return float(round(fmean(filled_values)))
    if how != "union" or isinstance(filled_values[0], str):
        return deepcopy(filled_values[0])
    if isinstance(filled_values[0], Mapping):
        return dict(chain.from_iterable(value.items() for value in reversed(filled_values)))
    return stated_once(chain.from_iterable(filled_values))


def stated_once(statements: Iterable[Any]) -> list[Any]:
    """Return statements without duplicates: the first of two, with the citations of both."""
    unique_statements: list[Any] = []
    for statement in statements:
        original = next((known for known in unique_statements if _same(known, statement)), None)
        if original is None:
            unique_statements.append(deepcopy(statement))
        elif isinstance(original, dict):
            _merge(original, statement)
    return unique_statements


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, str):
        return one == other or same_statement(one, other)
    if "text" in one:
        return same_statement(one["text"], other["text"])
    # Two verdicts word the same move differently, so debater and message identify the move.
    places = [[each.get(key) for key in ("debater", "stated_in")] for each in (one, other)]
    return one == other or bool(one.get("stated_in") and places[0] == places[1])


def _merge(original: dict[str, Any], duplicate: Mapping[str, Any]) -> None:
    if "citations" in original:
        original["citations"] = list(dict.fromkeys([*original["citations"], *duplicate["citations"]]))
    if "major" in original:  # keep the longer wording, and mark it as major if either of the two is
        original["text"] = max(original["text"], duplicate["text"], key=len)
        original["major"] |= duplicate["major"]


def shown(
    verdict: verdict_types.Verdict,
    names: Mapping[str, str],
    *sections: verdict_types.Section,
    headline: str = "",
    winner_label: str = "",
) -> list[ShownField]:
    """Return the verdict fields that have a value, in display order.

    Fields of newer versions may be missing. `sections` are title and answer by default. `headline` is the
    text for the winner, by default its name, and `winner_label` its label.
    """
    fields: list[ShownField] = []
    decision, argued_best = verdict.get("decision", ""), argued_best_text(verdict, names)
    for verdict_field in verdict_types.shown_fields(*(sections or ("title", "answer"))):
        value = cast(Mapping[str, Any], verdict).get(verdict_field.name)
        if verdict_field.name == "decision" and value and headline.startswith(value):
            value = headline  # the headline also names the winner
        elif verdict_field.name == "winner" and value and argued_best:
            value = argued_best
        elif verdict_field.name == "winner" and verdict.get("solution_markdown") and decision:
            value = headline if value not in verdict_types.NO_WINNER else ""
        elif verdict_field.name == "winner" and value:
            value = headline or verdict_types.NO_WINNER.get(value, "").capitalize() or names.get(value, value)
            value = "" if decision and value.startswith(decision) else value
        note = confidence_note(verdict) if verdict_field.name == "confidence" else ""
        lines = tuple(_lines(value, names, f". {note}" if note else ""))
        if lines:
            is_headline = verdict_field.name == "winner" or (
                verdict_field.name == "decision" and value == headline
            )
            label = winner_label if is_headline and winner_label else verdict_field.label
            if verdict_field.name == "winner" and argued_best:
                label = "Argued best"
            if verdict_field.name == "winner_confidence" and verdict["winner"] in verdict_types.NO_WINNER:
                label = "Confidence in this result"
            percent = round(min(max(value, 0.0), 100.0)) if isinstance(value, int | float) else None
            is_single = not isinstance(value, list | dict)
            # Who argued best is not the decision, so it is no part of the short answer beside one.
            lead = verdict_field.lead and not (argued_best and verdict_field.name.startswith("winner"))
            fields.append(ShownField(verdict_field.name, label, lines, is_single, percent, lead, note))
    if not decision:
        fields.sort(key=lambda field: (field.name != "question", not field.name.startswith("winner")))
    return fields


def argued_best_text(verdict: verdict_types.Verdict, names: Mapping[str, str]) -> str:
    """Return who argued best, if a verdict has a decision too, or `""`."""
    winner = verdict["winner"]
    if not verdict.get("decision") or verdict["judge"] == verdict_types.COUNT or not winner:
        return ""
    if verdict.get("solution_markdown"):
        return ""
    total = verdict["totals"].get(winner)
    name = names.get(winner, winner) + ("" if total is None else f" ({total:.0f})")
    if winner in verdict_types.NO_WINNER:
        name = "no single debater"
    return f"{name}. This is not the decision."


def _lines(value: Any, names: Mapping[str, str], after_number: str = "") -> Iterable[ShownLine]:
    if value is None or value == "":
        return
    if isinstance(value, str):
        yield ShownLine(value)
    elif isinstance(value, int | float):
        yield ShownLine(f"{round(min(max(value, 0.0), 100.0))} of 100{after_number}")
    elif isinstance(value, Mapping):
        for key, text in value.items():
            if text:
                yield ShownLine(f"{names.get(key, key)}: {text}")
    else:
        for item in value:
            yield ShownLine(item) if isinstance(item, str) else _row_line(item, names)


def _row_line(item: Mapping[str, Any], names: Mapping[str, str]) -> ShownLine:
    """Return the displayed line of a row, whose keys tell its type."""
    if "before" in item:
        name, cause = names.get(item["debater"], item["debater"]), item["caused_by"]
        change = f"from “{item['before']}” to “{item['after']}”" if item["before"] else item["after"]
        cited = cause or item["stated_in"]
        return ShownLine(f"{name}: {change}{', after' if cause else ''}", (cited,) if cited else ())
    if "outcome" in item:
        because = f": {item['because']}" if item["because"] else ""
        return ShownLine(f"{item['option']} ({item['outcome']}){because}", tuple(item["citations"]))
    if "met" in item:
        because = f": {item['because']}" if item["because"] else ""
        return ShownLine(f"{item['criterion'].replace('_', ' ')}, {item['met']}{because}")
    if "if_yes" in item:
        return ShownLine(check_text(item))
    return ShownLine(f"{'major: ' if item.get('major') else ''}{item['text']}")


def debaters_confidence(test: verdict_types.DraftTest | None) -> str:
    """Return the range of probabilities with which debaters expect the decision to hold, or `""`."""
    chances = sorted(test["probabilities"].values()) if test else []
    return " to ".join(dict.fromkeys(f"{chance:.0f}" for chance in (*chances[:1], *chances[-1:])))


def confidence_note(verdict: verdict_types.Verdict) -> str:
    """Return sentences that say what a verdict's confidence means, or `""` if nothing is known.

    They tell the debaters' own probabilities, their answers before and after, and what would raise it.
    """
    decided = cast(verdict_types.PanelVerdict, verdict)
    spread, answers = debaters_confidence(decided.get("test")), decided.get("answers")
    sentences = [f"The debaters: {spread}."] if spread else []
    if answers:
        openings, end = (
            f"{answers['debaters']} equal" if count == 1 else f"{count} different"
            for count in (answers["openings"], answers["end"])
        )
        sentences.append(f"Their answers: {openings} in the openings, {end} at the end.")
    if cause := decided.get("raised_by"):
        sentences.append(f"It would rise most by this: {cause.rstrip('.')}.")
    return " ".join(sentences)


def confidence_of(verdict: verdict_types.Verdict) -> int | None:
    """Return a verdict's confidence from 0 to 100, or `None` for a tie without a decision."""
    confidence = verdict["confidence"]
    if confidence is None or (verdict["winner"] == verdict_types.TIE and not verdict.get("decision")):
        return None
    return round(min(max(confidence, 0.0), 100.0))


CHECK_PARTS = {"how": "How", "who": "Who", "cost": "Cost", "by": "By", "if_yes": "If yes", "if_no": "If no"}
"""Labels of the parts of an open check, in display order."""


def check_text(check: Mapping[str, str]) -> str:
    """Return an open check as one line of text."""
    parts = [f"{label}: {check[key].rstrip('.')}." for key, label in CHECK_PARTS.items() if check[key]]
    return " ".join([check["question"], *parts])


def changed_text(verdict: verdict_types.Verdict) -> str:
    """Return a sentence with the numbers of ignored or changed scores and citations, or `""`."""
    counts = (
        (verdict["dropped_scores"], "score", "ignored (no debater's, unknown criterion, or given twice)"),
        (verdict["clamped_scores"], "score", "outside the scale, set to its nearest end"),
        (verdict["dropped_citations"], "citation", "ignored (not shown to the judge)"),
    )
    corrections = [f"{count_noun(count, noun)} {change}" for count, noun, change in counts if count]
    return f"Corrected in the judge's reply: {'; '.join(corrections)}." if corrections else ""
