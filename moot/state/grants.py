"""What operators granted single debates: the reaches of the configurations that they themselves gave them."""

from collections.abc import Iterable

from moot.state.config.boundary import Reach
from moot.state.sql import DebateTable


class Grants(DebateTable):
    """Reaches by debate; no request and no document writes here."""

    name = "moot_grants"
    columns = """
        debate TEXT NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (debate, kind, value)"""

    def of(self, debate: str) -> frozenset[Reach]:
        """Return what a debate was granted."""
        rows = self._sql.execute("SELECT kind, value FROM moot_grants WHERE debate = ?", (debate,))
        return frozenset(Reach(kind, value) for kind, value in rows)

    def add(self, debate: str, reached: Iterable[Reach]) -> None:
        """Grant a debate more."""
        for reach in reached:
            self._sql.execute(
                "INSERT INTO moot_grants VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (debate, *reach)
            )
