"""Tournaments: many debates at the same time, resumable, and the table that they come to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from moot.graph.tournament_config import Pairing, TournamentConfig, pairings
from moot.nodes.judging.agreement import rate_of
from moot.nodes.judging.ratings import Match, Rating, WinMatrix, bradley_terry, win_matrix
from moot.nodes.judging.sides import winning_side
from moot.state.entries import tokens_of
from moot.state.errors import DebateNotFound, MootError
from moot.state.verdict import TIE, Rate

if TYPE_CHECKING:
    from moot.graph.api import Debate, Debates


@dataclass(frozen=True)
class Played:
    """What came of one match."""

    id: str
    topic: str
    first: str
    second: str
    seed: int
    winner: str
    """A line-up, `tie`, or `""` where there is no verdict."""
    score: float | None
    """What the first side got: 1, 0.5 or 0; `None` without a verdict."""
    turns: int
    tokens: int
    cost_usd: float
    error: str = ""
    """Why there is no verdict; the next run tries again."""


@dataclass(frozen=True)
class Table:
    """Where a tournament stands."""

    name: str
    matches: list[Played]
    ratings: list[Rating]
    wins: WinMatrix
    first_side: Rate
    """How often the side that speaks first wins, of the matches with a winner."""
    tokens: int
    cost_usd: float

    @property
    def failed(self) -> list[Played]:
        """Matches without a verdict."""
        return [match for match in self.matches if match.score is None]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return {
            "name": self.name,
            "ratings": self.ratings,
            "win_matrix": self.wins,
            "first_side": self.first_side,
            "cost": {"tokens": self.tokens, "cost_usd": round(self.cost_usd, 6)},
            "matches": [asdict(match) for match in self.matches],
        }


Report = Callable[[Played, int, int], None]
"""`(match, how many are done, of how many)`: called as matches end, on the caller's thread."""


def play_tournament(
    debates: Debates,
    tournament: TournamentConfig,
    *,
    concurrency: int | None = None,
    report: Report | None = None,
) -> Table:
    """Play every match that has no verdict yet, so many at the same time, and return the table.

    Each match is a debate of the database under a name of its own, so a second run goes on where the first
    one stopped. An interruption pauses the debates under way.

    Args:
        debates: the database.
        tournament: what is played.
        concurrency: debates at the same time; `None` means the configured number.
        report: told of every match that has ended.

    Raises:
        ConfigError: a match's configuration cannot be used; nothing has been played.
    """
    wanted = _checked(debates, pairings(tournament))
    stop = threading.Event()
    done: dict[str, Played] = {}
    pool = ThreadPoolExecutor(max_workers=concurrency or tournament.concurrency)
    try:
        futures = [pool.submit(_play, debates, pairing, stop) for pairing in wanted]
        for future in as_completed(futures):
            played = future.result()
            done[played.id] = played
            if report is not None:
                report(played, len(done), len(wanted))
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
    return make_table(tournament, [done[pairing.id] for pairing in wanted])


def _checked(debates: Debates, wanted: Sequence[Pairing]) -> Sequence[Pairing]:
    from moot.graph.preflight import check_config

    for pairing in wanted:
        check_config(pairing.config, debates.environment)
    return wanted


def _play(debates: Debates, pairing: Pairing, stop: threading.Event) -> Played:
    error = ""
    try:
        debate = _debate_of(debates, pairing)
        _run(debate, stop)
    except MootError as failure:
        error = str(failure)
    return _result(debates, pairing, error)


def _debate_of(debates: Debates, pairing: Pairing) -> Debate:
    try:
        return debates.get(pairing.id)
    except DebateNotFound:
        return debates.start(pairing.topic, pairing.config, name=pairing.id)


def _run(debate: Debate, stop: threading.Event) -> None:
    """Run a debate to its verdict, unless it has one or the tournament is stopped."""
    if stop.is_set():
        return
    values = debate.state().values
    if debate.is_over() and (values.get("verdict") or {}).get("status") == "ok":
        return
    events = debate.stream(tokens=False)
    try:
        for _ in events:
            if stop.is_set():
                break
    finally:
        events.close()  # type: ignore[attr-defined]  # a generator


def _result(debates: Debates, pairing: Pairing, error: str) -> Played:
    winner, score = "", None
    turns = tokens = 0
    cost = 0.0
    try:
        document = debates.get(pairing.id).document()
    except DebateNotFound:
        document = {}
    if document:
        verdict, usage = document["verdict"] or {}, document["usage"]
        winner, score = _outcome(document, pairing)
        turns = debates.get(pairing.id).row.turns
        tokens, cost = tokens_of(usage), usage["cost_usd"]
        error = error or str(verdict.get("error") or "")
    if score is None:
        error = error or "stopped before its verdict"
    about = (pairing.id, pairing.topic, pairing.first, pairing.second, pairing.seed)
    return Played(*about, winner, score, turns, tokens, cost, error)


def _outcome(document: dict[str, Any], pairing: Pairing) -> tuple[str, float | None]:
    """Return the winning line-up and the first side's score; a synthesis is shared."""
    verdict = document["verdict"]
    if not verdict or verdict["status"] != "ok":
        return "", None
    side = winning_side(verdict, document["verdicts"], pairing.sides)
    if side == TIE:
        return TIE, 0.5
    return side, 1.0 if side == pairing.first else 0.0


def make_table(tournament: TournamentConfig, matches: Sequence[Played]) -> Table:
    """Rate the line-ups by the matches that have a verdict."""
    judged = [Match(m.first, m.second, m.score) for m in matches if m.score is not None]
    decided = [match.score for match in judged if match.score != 0.5]
    return Table(
        name=tournament.name,
        matches=list(matches),
        ratings=bradley_terry(judged, players=tournament.lineups),
        wins=win_matrix(judged, tournament.lineups),
        first_side=rate_of(sum(score == 1.0 for score in decided), len(decided)),
        tokens=sum(match.tokens for match in matches),
        cost_usd=sum(match.cost_usd for match in matches),
    )
