"""Tournaments: many debates at the same time, resumable, and the table that they come to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from moot.graph.many import run_many
from moot.graph.tournament_config import Pairing, TournamentConfig, pairings
from moot.nodes.judging.agreement import rate_of
from moot.nodes.judging.decision import winning_side
from moot.nodes.judging.ratings import Match, Rating, WinMatrix, bradley_terry, win_matrix
from moot.state.entries import tokens_of
from moot.state.errors import DebateNotFound
from moot.state.verdict import TIE, Decision, Rate

if TYPE_CHECKING:
    from moot.graph.api import Debates


@dataclass(frozen=True)
class MatchResult:
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
class Standings:
    """Where a tournament stands."""

    name: str
    matches: list[MatchResult]
    ratings: list[Rating]
    wins: WinMatrix
    first_side: Rate
    """How often the side that speaks first wins, of the matches with a winner."""
    tokens: int
    cost_usd: float

    @property
    def failed(self) -> list[MatchResult]:
        """Matches without a verdict."""
        return [match for match in self.matches if match.score is None]

    def to_json(self) -> dict[str, object]:
        """Return it as JSON types."""
        return {
            "name": self.name,
            "ratings": self.ratings,
            "win_matrix": self.wins,
            "first_side": self.first_side,
            "cost": {"tokens": self.tokens, "cost_usd": round(self.cost_usd, 6)},
            "matches": [asdict(match) for match in self.matches],
        }


Report = Callable[[MatchResult, int, int], None]
"""`(match, how many are done, of how many)`: called as matches end, on the caller's thread."""


def play_tournament(
    debates: Debates,
    tournament: TournamentConfig,
    *,
    concurrency: int | None = None,
    report: Report | None = None,
) -> Standings:
    """Play every match that has no verdict yet, so many at the same time, and return the table.

    Each match is a debate of the database under a name of its own, so a second run goes on where the first
    one stopped. An interruption pauses the debates under way.

    Raises:
        ConfigError: a match's configuration cannot be used; nothing has been played.
    """
    from moot.graph.preflight import check_config, check_judges
    from moot.state.config.boundary import Claim

    wanted = pairings(tournament)
    for pairing in wanted:
        config = pairing.config
        check_config(Claim.of_operator(config), debates.environment)
        check_judges(config, map(config.model_of, config.debaters), debates.environment)
    done: dict[str, MatchResult] = {}
    for pairing, error in run_many(debates, wanted, concurrency or tournament.concurrency):
        done[pairing.id] = _result(debates, pairing, error)
        if report is not None:
            report(done[pairing.id], len(done), len(wanted))
    return make_table(tournament, [done[pairing.id] for pairing in wanted])


def _result(debates: Debates, pairing: Pairing, error: str) -> MatchResult:
    winner, score, turns, tokens, cost = "", None, 0, 0, 0.0
    try:
        debate = debates.get(pairing.id)
    except DebateNotFound:
        pass
    else:
        document, turns = debate.document(), debate.row.turns
        tokens, cost = tokens_of(document["usage"]), document["usage"]["cost_usd"]
        verdict: Decision | None = document["verdict"]
        if verdict and verdict["status"] == "ok":
            winner = winning_side(verdict, document["verdicts"], pairing.sides)
            score = 0.5 if winner == TIE else float(winner == pairing.first)
        elif verdict:
            error = error or verdict["error"]
    if score is None:
        error = error or "stopped before its verdict"
    about = (pairing.id, pairing.topic, pairing.first, pairing.second, pairing.seed)
    return MatchResult(*about, winner, score, turns, tokens, cost, error)


def make_table(tournament: TournamentConfig, matches: Sequence[MatchResult]) -> Standings:
    """Rate the line-ups by the matches that have a verdict."""
    judged = [Match(m.first, m.second, m.score) for m in matches if m.score is not None]
    decided = [match.score for match in judged if match.score != 0.5]
    return Standings(
        name=tournament.name,
        matches=list(matches),
        ratings=bradley_terry(judged, players=tournament.lineups),
        wins=win_matrix(judged, tournament.lineups),
        first_side=rate_of(sum(score == 1.0 for score in decided), len(decided)),
        tokens=sum(match.tokens for match in matches),
        cost_usd=sum(match.cost_usd for match in matches),
    )
