"""What people say from the floor while a debate runs, also from another process.

Rows wait in a table of the debate's database until the debate takes them up at a step's boundary. They are
never changed: the debate's own state holds the number of the last one it took up, so each is taken up exactly
once, whatever dies in between, and a fork from before hears it again.
"""

from dataclasses import dataclass

from moot.state.sql import DebateTable

_SAID, _PAUSE = "said", "pause"


@dataclass(frozen=True)
class Interjection:
    """One thing that a person said from the floor."""

    no: int
    """Counts the rows of a debate, from 1; grows in the order in which they were committed."""
    speaker: str
    """Slug: `moderator`, a debater's id, or a guest's."""
    content: str
    at: str
    """UTC time, ISO 8601."""


class FloorTable(DebateTable):
    """Interjections and wishes to pause, by debate."""

    name = "moot_floor"
    columns = """
        debate TEXT NOT NULL, no BIGINT NOT NULL, kind TEXT NOT NULL, speaker TEXT NOT NULL,
        content TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (debate, no)"""

    def say(self, debate: str, speaker: str, content: str, at: str) -> int:
        """Leave an interjection and return its number."""
        return self._add(debate, _SAID, speaker, content, at)

    def ask_to_pause(self, debate: str, at: str) -> None:
        """Ask whoever runs the debate to stop at the next step's boundary."""
        self._add(debate, _PAUSE, "", "", at)

    def said_since(self, debate: str, no: int) -> list[Interjection]:
        """Return the interjections after a number, in order."""
        rows = self._execute(
            "SELECT no, speaker, content, at FROM moot_floor WHERE debate = ? AND kind = ? AND no > ? "
            "ORDER BY no",
            (debate, _SAID, no),
        )
        return [Interjection(*row) for row in rows]

    def take_pause(self, debate: str) -> bool:
        """Return whether somebody asked for a pause, and forget it: whoever reads it stops or is dead."""
        asked = (debate, _PAUSE)
        if not self._execute("SELECT 1 FROM moot_floor WHERE debate = ? AND kind = ? LIMIT 1", asked):
            return False  # as before nearly every step, for which there is no need to write
        # Emptied, not deleted: numbers must not be given again.
        taken = "UPDATE moot_floor SET kind = '' WHERE debate = ? AND kind = ? RETURNING no"
        return bool(self._execute(taken, asked))

    def copy(self, source: str, target: str) -> None:
        """Give a copy of a debate what was said from its floor, under the same numbers."""
        self._execute(
            "INSERT INTO moot_floor (debate, no, kind, speaker, content, at) "
            "SELECT ?, no, kind, speaker, content, at FROM moot_floor "
            "WHERE debate = ? ON CONFLICT DO NOTHING",
            (target, source),
        )

    def _add(self, debate: str, kind: str, speaker: str, content: str, at: str) -> int:
        # Two processes may draw the same number: the second one finds it taken and draws again.
        while True:
            rows = self._execute(
                "INSERT INTO moot_floor (debate, no, kind, speaker, content, at) "
                "SELECT ?, COALESCE(MAX(no), 0) + 1, ?, ?, ?, ? FROM moot_floor "
                "WHERE debate = ? ON CONFLICT DO NOTHING RETURNING no",
                (debate, kind, speaker, content, at, debate),
            )
            if rows:
                return int(rows[0][0])
