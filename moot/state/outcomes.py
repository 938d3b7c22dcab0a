"""Who argued and who won, for `moot list`, which loads no state."""

from collections.abc import Mapping
from dataclasses import dataclass

from moot.state.conversation import StateValues
from moot.state.sql import DebateTable
from moot.state.verdict import NO_WINNER, PLACEHOLDER

ANSWER_CHARS = 200


@dataclass(frozen=True)
class ListedOutcome:
    """What is listed of a debate beside its row in the catalogue."""

    model: str = ""
    winner: str = ""
    """Display name, or what stands for it; `""` while nobody has won."""


class Outcomes(DebateTable):
    """Outcomes by debate; a debate of an earlier build has none until it goes on."""

    name = "moot_outcomes"
    columns = "debate TEXT PRIMARY KEY, model TEXT NOT NULL, winner TEXT NOT NULL"

    def note(self, debate: str, state: StateValues, update: StateValues) -> None:
        """Write down who argues and who has won, once a debate's state is updated like this."""
        config = update.get("config") or state.get("config") or {}
        outcome = ListedOutcome(
            config.get("model", ""), _winner(update.get("verdict", state.get("verdict")), config)
        )
        self._sql.execute(
            "INSERT INTO moot_outcomes VALUES (?, ?, ?) ON CONFLICT (debate) "
            "DO UPDATE SET model = excluded.model, winner = excluded.winner",
            (debate, outcome.model, outcome.winner),
        )

    def all(self) -> dict[str, ListedOutcome]:
        """Return the outcomes of all debates; none of a database that cannot be written."""
        if self._sql.read_only:
            return {}
        return {
            row[0]: ListedOutcome(*row[1:]) for row in self._sql.execute("SELECT * FROM moot_outcomes", ())
        }


def _winner(verdict: Mapping[str, object] | None, config: Mapping[str, object]) -> str:
    if not verdict or verdict.get("status") != "ok":
        return ""
    if verdict.get("placeholder"):
        return PLACEHOLDER
    names = {each["id"]: each["name"] for each in config.get("debaters") or []}  # type: ignore[attr-defined]  # a configuration's
    winner = str(verdict.get("winner") or "")
    if winner in names and len(names) == 1:  # who votes alone has an answer, and beats nobody
        return " ".join(str(verdict.get("solution_markdown") or "").split())[:ANSWER_CHARS]
    return NO_WINNER.get(winner) or names.get(winner, winner)
