"""The position ledger: where each debater stands, with bounded history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moot.nodes.blackboard.bounds import (
    ASPECTS,
    CHALLENGES,
    CONCESSIONS,
    EVIDENCE,
    HISTORY,
    RELATIONS,
    SHORT,
    SOURCES,
    keep_ends,
    keep_newest,
    noted,
)
from moot.nodes.blackboard.by_rule import split_source, with_source
from moot.nodes.blackboard.notes import OVERALL, Notes
from moot.nodes.text.likeness import likeness
from moot.state.blackboard import AspectPosition, LedgerRow, Relation, Shift
from moot.state.entries import seq_of

SAME = 0.6
"""Jaccard likeness of terms from which two statements are the same position."""


def empty_row() -> LedgerRow:
    """Return the row of somebody who has not spoken."""
    return {
        "stance": "",
        "aspects": {},
        "agreements": [],
        "disagreements": [],
        "concessions": [],
        "shifts": [],
        "superseded": [],
        "updated_round": 0,
    }


class LedgerDraft:
    """The ledger being updated: reads through to the state, remembers which fields changed."""

    def __init__(self, ledger: Mapping[str, LedgerRow]) -> None:
        self._ledger = ledger
        self.changed: dict[str, dict[str, Any]] = {}
        """Changed fields by debater, the update of the channel."""

    def row(self, debater: str) -> LedgerRow:
        """Return a debater's row with what changed in it so far."""
        known = self._ledger.get(debater) or empty_row()
        return {**empty_row(), **known, **self.changed.get(debater, {})}  # type: ignore[typeddict-item]  # fields of the row

    def set(self, debater: str, **fields: Any) -> None:
        """Change fields of a row; what is as it was is not written."""
        row = self.row(debater)
        new = {key: value for key, value in fields.items() if row[key] != value}  # type: ignore[literal-required]  # fields of the row
        if new or debater not in self._ledger:
            base: Mapping[str, Any] = {} if debater in self._ledger else empty_row()
            self.changed[debater] = {**base, **self.changed.get(debater, {}), **new}


def update_ledger(draft: LedgerDraft, notes: Notes, round_no: int) -> bool:
    """Enter one entry's notes; return whether a position shifted."""
    shift = _take_position(draft, notes, round_no)
    _enter_relations(draft, notes)
    for opposition in notes.oppositions:
        _challenge(draft, opposition.to, notes, opposition.claim)
    draft.set(notes.speaker, updated_round=round_no)
    return shift


def open_challenges(row: Mapping[str, Any]) -> list[str]:
    """Return all challenges to a debater that it has not answered."""
    return [text for aspect in (row.get("aspects") or {}).values() for text in aspect["challenged"]]


def without_challenges(
    ledger: Mapping[str, LedgerRow], debaters: Sequence[str], sources: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return the update by which challenges from these messages no longer stand against these debaters."""
    draft = LedgerDraft(ledger)
    for who in debaters:
        aspects = {}
        for name, aspect in draft.row(who)["aspects"].items():
            met = [text for text in aspect["challenged"] if split_source(text)[1] in sources]
            aspects[name] = _without(aspect, met)
        if who in ledger:
            draft.set(who, aspects=aspects)
    return draft.changed


def _take_position(draft: LedgerDraft, notes: Notes, round_no: int) -> bool:
    row = draft.row(notes.speaker)
    known = row["aspects"].get(notes.aspect)
    before = known["position"] if known else ""
    after = notes.shift or (notes.position if notes.firm or not before else "") or before
    change: Shift = {
        "aspect": notes.aspect,
        "from": noted(before, SHORT),
        "to": noted(after, SHORT),
        "round": round_no,
        "message_id": notes.message_id,
    }
    changed = bool(before) and after != before
    # Who says it has changed its mind has, however like the words: "not" is no term.
    shifted = changed and bool(notes.shift)
    moved = shifted or (changed and likeness(before, after) < SAME)
    aspects = {
        name: _without(aspect, notes.answered)
        for name, aspect in row["aspects"].items()
        if name != notes.aspect
    }
    aspects[notes.aspect] = _aspect(known, after, notes, stated=after != before)
    draft.set(
        notes.speaker,
        stance=notes.stance or (after if notes.aspect == OVERALL else row["stance"] or after),
        aspects=dict(list(aspects.items())[-ASPECTS:]),
        superseded=keep_ends([*row["superseded"], change], HISTORY) if moved else row["superseded"],
        shifts=keep_ends([*row["shifts"], change], HISTORY) if shifted else row["shifts"],
    )
    return shifted


def _aspect(known: AspectPosition | None, position: str, notes: Notes, *, stated: bool) -> AspectPosition:
    old = _without(known, notes.answered) if known else _empty_aspect()
    sources = [*old["message_ids"], *([notes.message_id] if stated else [])]
    evidence = [*old["evidence"], *(with_source(text, notes.message_id) for text in notes.evidence)]
    return {
        **old,
        "position": position,
        "evidence": _kept_evidence(evidence, last_challenged(old)),
        "message_ids": keep_ends(sources, SOURCES),
    }


def _empty_aspect() -> AspectPosition:
    return {"position": "", "evidence": [], "challenged": [], "met": [], "message_ids": []}


def _kept_evidence(evidence: Sequence[str], challenged: int) -> list[str]:
    """Return the evidence that stays: what was there to be challenged makes no room for what came since."""
    distinct = keep_newest(evidence, len(evidence))
    disputed = [text for text in distinct if said_in(text) < challenged]
    fresh = [text for text in distinct if said_in(text) >= challenged]
    return [*keep_ends(disputed, EVIDENCE), *keep_newest(fresh, EVIDENCE)]


def last_challenged(aspect: Mapping[str, Any]) -> int:
    """Return the `seq` of the last message that challenged an aspect, answered or not; -1 for none."""
    return max((said_in(text) for text in (*aspect["challenged"], *aspect.get("met", ()))), default=-1)


def said_in(text: str) -> int:
    """Return the `seq` of the message that a noted text comes from, -1 where that is unknown."""
    seq = seq_of(split_source(text)[1])
    return -1 if seq is None else seq


def _without(aspect: AspectPosition, met: Sequence[str]) -> AspectPosition:
    """Return an aspect whose challenges `met` stand no more; that they were made is kept."""
    found = [text for text in aspect["challenged"] if text in met]
    if not found:
        return aspect
    left = [text for text in aspect["challenged"] if text not in met]
    return {**aspect, "challenged": left, "met": keep_newest([*aspect.get("met", ()), *found], CHALLENGES)}


def _enter_relations(draft: LedgerDraft, notes: Notes) -> None:
    row = draft.row(notes.speaker)
    agreements = [_relation(a.to, a.text, "", notes) for a in (*notes.agreements, *notes.concessions) if a.to]
    disagreements = [_relation(o.to, o.claim, o.strength, notes) for o in notes.oppositions]
    concessions = [with_source(accord.text, notes.message_id) for accord in notes.concessions]
    draft.set(
        notes.speaker,
        agreements=keep_ends([*row["agreements"], *agreements], RELATIONS),
        disagreements=keep_ends([*row["disagreements"], *disagreements], RELATIONS),
        concessions=keep_ends([*row["concessions"], *concessions], CONCESSIONS),
    )


def _relation(to: str, on: str, strength: Any, notes: Notes) -> Relation:
    return {"with": to, "on": noted(on, SHORT), "strength": strength, "message_id": notes.message_id}


def _challenge(draft: LedgerDraft, debater: str, notes: Notes, text: str) -> None:
    """Note an unanswered challenge on the challenged debater's row, under the aspect it concerns."""
    aspects = dict(draft.row(debater)["aspects"])
    name = notes.aspect if notes.aspect in aspects else next(reversed(aspects), notes.aspect)
    aspect = aspects.get(name) or _empty_aspect()
    challenged = [*aspect["challenged"], with_source(text, notes.message_id)]
    aspects[name] = {**aspect, "challenged": keep_newest(challenged, CHALLENGES)}
    draft.set(debater, aspects=aspects)
