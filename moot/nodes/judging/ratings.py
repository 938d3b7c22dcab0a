"""Ratings of a tournament: Bradley–Terry strengths on the Elo scale, bootstrap intervals, win matrix.

The package choix comes to the same strengths (within 1e-6, the prior as an imagined player), one table at a
time: 1,000 resampled tables of six players took it 5.6 s, and 1.4 s all at once here. It also needs scipy,
143 MB and seconds to import, for this alone.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from math import log

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict

Array = npt.NDArray[np.float64]

BASE = 1000.0
"""Mean rating of a tournament."""
SCALE = 400.0
"""Points by which ten times the strength is ahead, as in Elo's scale."""
PRIOR = 0.5
"""Imagined wins, and as many losses, of each player against an average one: keeps the undefeated finite."""
MOST_ITERATIONS = 10_000
"""Where to stop where the strengths have not settled."""
WITHIN = [0.025, 0.975]
"""Quantiles of the resampled ratings that an interval ends at (percentile bootstrap, Efron 1979)."""


@dataclass(frozen=True)
class Match:
    """One judged debate between two line-ups.

    Attributes:
        score: what `first` got: 1 won, 0.5 tied, 0 lost; anything between is a shared win.
    """

    first: str
    second: str
    score: float

    def __post_init__(self) -> None:
        if self.first == self.second or not 0 <= self.score <= 1:
            raise ValueError(f"a match needs two players and a score of 0–1, not {self!r}")


class WinMatrix(TypedDict):
    """Who took how many wins from whom."""

    players: list[str]
    """Sorted; the order of rows and columns."""
    wins: list[list[float]]
    """Row over column, ties as half."""


class Rating(TypedDict):
    """One player's place in the table."""

    player: str
    rating: float
    """Elo-like: 1000 is the mean of the tournament, 400 points are ten to one."""
    low: float
    """Lower end of the bootstrap interval; the rating itself where nothing was resampled."""
    high: float
    games: int
    wins: float
    """Shared wins count as their share."""


def win_matrix(matches: Iterable[Match], players: Iterable[str] = ()) -> WinMatrix:
    """Return the wins of each over each; `players` adds those who have not played."""
    matches = list(matches)
    names = _names(matches, players)
    wins = _wins(matches, np.ones(len(matches)), names)
    return WinMatrix(players=names, wins=[[float(n) for n in row] for row in wins])


def strengths(wins: Array, prior: float = PRIOR, tolerance: float = 1e-10) -> Array:
    """Return Bradley–Terry log-strengths by the MM algorithm (Hunter 2004, *MM algorithms*, section 2).

    Args:
        wins: `(..., n, n)`, wins of row over column; leading axes are independent tournaments.
        prior: imagined wins and losses of each against a player of strength 1, above 0.
        tolerance: largest step of a log-strength at which to stop.

    Returns:
        `(..., n)`, natural logarithms, mean 0.

    Raises:
        ValueError: `prior` is not above 0: without one the strengths of the undefeated are infinite.
    """
    if prior <= 0:
        raise ValueError(f"the prior must be above 0, not {prior!r}")
    won = wins.sum(axis=-1) + prior
    games = wins + np.swapaxes(wins, -1, -2)
    power = np.ones_like(won)
    for _ in range(MOST_ITERATIONS):
        shared = (games / (power[..., :, None] + power[..., None, :])).sum(axis=-1)
        moved = won / (shared + 2 * prior / (power + 1))
        step = np.abs(np.log(moved / power)).max(initial=0.0)
        power = moved
        if step < tolerance:
            break
    logs: Array = np.log(power)
    return logs - logs.mean(axis=-1, keepdims=True) if logs.size else logs


def bradley_terry(
    matches: Sequence[Match],
    *,
    players: Iterable[str] = (),
    samples: int = 1000,
    rng: np.random.Generator | None = None,
) -> list[Rating]:
    """Rate the players of a tournament, best first (equals by name, since a table needs an order).

    Args:
        matches: the judged debates; ties are half wins.
        players: those to list even without a match.
        samples: how often to resample the matches for the intervals; 0 for none.
        rng: the source of chance, by default seeded with 0, so that a table can be had again.

    Returns:
        One row a player; empty without players.
    """
    names = _names(matches, players)
    rated = _elo(strengths(_wins(matches, np.ones(len(matches)), names)))
    low, high = rated, rated
    if samples and matches:
        # Equal matches are one cell of a multinomial: the same distribution, far cheaper.
        cells = sorted(Counter(matches).items(), key=lambda cell: astuple(cell[0]))
        shares = np.array([n for _, n in cells]) / len(matches)
        drawn = (rng or np.random.default_rng(0)).multinomial(len(matches), shares, size=samples)
        wins = _wins([match for match, _ in cells], drawn.astype(np.float64), names)
        low, high = np.quantile(_elo(strengths(wins, tolerance=1e-6)), WITHIN, axis=0)
    rows = []
    for at, name in enumerate(names):
        scores = [m.score if m.first == name else 1 - m.score for m in matches if name in (m.first, m.second)]
        rows.append(
            Rating(
                player=name,
                rating=float(rated[at]),
                low=float(low[at]),
                high=float(high[at]),
                games=len(scores),
                wins=float(sum(scores)),
            )
        )
    return sorted(rows, key=lambda row: (-row["rating"], row["player"]))


def _elo(logs: Array) -> Array:
    return BASE + SCALE / log(10) * logs


def _names(matches: Iterable[Match], players: Iterable[str]) -> list[str]:
    return sorted({*players, *(name for match in matches for name in (match.first, match.second))})


def _wins(matches: Sequence[Match], weights: Array, names: Sequence[str]) -> Array:
    """Win matrices `(..., n, n)` of the matches, each counted `weights` `(..., matches)` times."""
    place = {name: at for at, name in enumerate(names)}
    wins = np.zeros((*weights.shape[:-1], len(names), len(names)))
    for at, match in enumerate(matches):
        first, second = place[match.first], place[match.second]
        wins[..., first, second] += weights[..., at] * match.score
        wins[..., second, first] += weights[..., at] * (1 - match.score)
    return wins
