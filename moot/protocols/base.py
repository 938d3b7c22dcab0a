"""Base class of protocols: the union of their three roles."""

from moot.protocols import outcome, schedule, view


class Protocol(schedule.Schedule, view.View, outcome.Outcome):
    """Base class for debate protocols.

    A protocol chooses the steps (`Schedule`), makes the prompts (`View`) and decides the debate (`Outcome`).
    A simple one defines only `name` and `next_step`. Every other member has a default.
    """
