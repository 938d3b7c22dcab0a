"""Public interface for rubric plug-ins; every name here is stable.

A rubric is a `Rubric` of criteria. `register` adds it to this process. An installed package names a
`Rubric`, or a function that returns one, in an entry point of the group `moot.rubrics` instead.
`judge.rubric` selects it by name.
"""

from moot.config.rubrics import Criterion, Rubric, load_rubric, parse_rubric, register

__all__ = ["Criterion", "Rubric", "load_rubric", "parse_rubric", "register"]
