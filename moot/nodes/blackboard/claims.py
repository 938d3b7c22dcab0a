"""Contested claims and their life: active → in_crux_room → resolved | abandoned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moot.nodes.blackboard.bounds import CLAIMS, SOURCES, keep_ends
from moot.nodes.blackboard.notes import Accord, Notes, Opposition
from moot.nodes.text.likeness import likeness
from moot.state.blackboard import Claim, ClaimStatus
from moot.state.progress import Room

SAME_CLAIM = 0.4
"""Likeness from which a pair's new dispute is one that it has already."""
CONCEDED = 0.1
"""Likeness that a concession needs with a claim to settle it."""
ABANDONED_AFTER = 8
"""Rounds without contest after which an active claim is abandoned."""

OPEN: tuple[ClaimStatus, ...] = ("active", "in_crux_room")


class ClaimsDraft:
    """The claims being updated: remembers what changed; `None` removes one."""

    def __init__(self, claims: Mapping[str, Claim]) -> None:
        self.claims: dict[str, Claim] = dict(claims)
        self.changed: dict[str, Claim | None] = {}

    def put(self, claim: Claim) -> None:
        """Enter or replace a claim."""
        self.claims[claim["id"]] = self.changed[claim["id"]] = claim

    def remove(self, claim_id: str) -> None:
        """Take a claim off the board."""
        del self.claims[claim_id]
        self.changed[claim_id] = None


def update_claims(draft: ClaimsDraft, notes: Notes, round_no: int, names: Mapping[str, str]) -> list[str]:
    """Enter one entry's disputes and concessions; return the ids of claims that are new."""
    for accord in notes.concessions:
        outcome = f"{names.get(notes.speaker, notes.speaker)} conceded: {accord.text}"
        _concede(draft, notes, accord, outcome)
    new = [
        claim_id
        for number, opposition in enumerate(notes.oppositions)
        if (claim_id := _contest(draft, notes, opposition, round_no, number))
    ]
    _make_room(draft, round_no)
    return [claim_id for claim_id in new if claim_id in draft.claims]


def enter_room(draft: ClaimsDraft, room: Room | None) -> None:
    """Note that a claim is in a crux room, once somebody has spoken there."""
    claim = draft.claims.get(room["claim"]) if room else None
    if room and claim and claim["status"] == "active":
        draft.put({**claim, "status": "in_crux_room", "room": room["id"]})


def abandon_open(draft: ClaimsDraft) -> None:
    """Abandon what nobody took up before the last words were said."""
    for claim in list(draft.claims.values()):
        if claim["status"] == "active":
            draft.put({**claim, "status": "abandoned", "resolution": "the debate ended without settling it"})


def sides_text(claim: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Return who asserts a claim and who denies it."""
    asserting, denying = (names.get(who, who) for who in claim["between"])
    return f"{asserting} asserts, {denying} denies"


def _is_between(claim: Claim, one: str, other: str) -> bool:
    return sorted(claim["between"]) == sorted((one, other))


def _contest(
    draft: ClaimsDraft, notes: Notes, opposition: Opposition, round_no: int, number: int
) -> str | None:
    """Enter a dispute: a new claim, or one more message of a claim that the pair has; return a new id."""
    known = _same(draft, notes.speaker, opposition)
    if known is not None:
        draft.put(_touched(known, notes, opposition, round_no))
        return None
    claim_id = f"c{notes.entry['seq']:06d}-{number + 1}"
    draft.put(
        {
            "id": claim_id,
            "claim": opposition.claim,
            "between": [notes.speaker, opposition.to],
            "status": "active",
            "round": round_no,
            "message_ids": [notes.message_id],
            "aspect": notes.aspect,
            "confidence": opposition.confidence,
            "specific": opposition.specific,
            "touched": round_no,
            "room": "",
            "resolution": "",
            "card": "",
        }
    )
    return claim_id


def _touched(claim: Claim, notes: Notes, opposition: Opposition, round_no: int) -> Claim:
    """Return a claim contested once more: what is repeated is surer."""
    return {
        **claim,
        "message_ids": keep_ends([*claim["message_ids"], notes.message_id], SOURCES),
        "confidence": round(max(claim["confidence"], opposition.confidence), 2),
        "specific": claim["specific"] or opposition.specific,
        "touched": round_no,
    }


def _same(draft: ClaimsDraft, speaker: str, opposition: Opposition) -> Claim | None:
    text = opposition.claim
    rivals = [
        claim
        for claim in draft.claims.values()
        if claim["status"] in OPEN and _is_between(claim, speaker, opposition.to)
    ]
    best = max(rivals, key=lambda claim: (likeness(claim["claim"], text), claim["id"]), default=None)
    return best if best is not None and likeness(best["claim"], text) >= SAME_CLAIM else None


def _concede(draft: ClaimsDraft, notes: Notes, accord: Accord, outcome: str) -> None:
    """Settle the active claim that a concession is about; a claim in a room is the room's to settle."""
    rivals = [
        claim
        for claim in draft.claims.values()
        if claim["status"] == "active" and _is_between(claim, notes.speaker, accord.to)
    ]
    best = max(rivals, key=lambda claim: (likeness(claim["claim"], accord.text), claim["id"]), default=None)
    if best is not None and likeness(best["claim"], accord.text) >= CONCEDED:
        draft.put({**best, "status": "resolved", "resolution": outcome})


def _make_room(draft: ClaimsDraft, round_no: int) -> None:
    """Abandon what nobody contests any more; of too many claims, take settled and then stale ones away."""
    for claim in list(draft.claims.values()):
        if claim["status"] == "active" and round_no - claim["touched"] >= ABANDONED_AFTER:
            draft.put({**claim, "status": "abandoned", "resolution": "nobody contested it any more"})
    surplus = len(draft.claims) - CLAIMS
    if surplus > 0:
        for claim in sorted(draft.claims.values(), key=_dispensable)[:surplus]:
            draft.remove(claim["id"])


def _dispensable(claim: Claim) -> tuple[Any, ...]:
    """Sort what may leave the board first: settled without a card, settled, active, in a room."""
    order = {"abandoned": 0, "resolved": 1, "active": 2, "in_crux_room": 3}[claim["status"]]
    return (bool(claim["card"]), order, claim["touched"], claim["id"])
