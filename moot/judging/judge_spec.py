"""Default settings of a protocol for its judge."""

from dataclasses import dataclass

from moot.state import verdict as verdict_types


@dataclass(frozen=True)
class JudgeSpec:
    """Default settings for the judge of a debate protocol."""

    instruction: str = ""
    """Additional instruction for the judge, placed at the end of the prompt."""
    judging: verdict_types.Judging = "contest"
    """Judging mode, such as `contest` or `design`, which determines the fields of a verdict."""
    subject: str = "a debate"
    """Phrase that completes the sentence "You judge …" in the judge's prompt. It is used if `interactive` is
    true."""
    rubric: str = "debate"
    swap: bool = True
    """True if each judge gives one verdict for each order of the debaters."""
    interactive: bool = True
    """True if the debaters can read each other's messages."""
    judged: bool = True
    """True if debates with this protocol are judged."""

    @property
    def solution(self) -> bool:
        """Return True if the judge's verdict includes a solution.

        The judge then also checks whether it meets the requirements.
        """
        return self.judging in verdict_types.SOLVED
