"""The configuration as the state holds it."""

import json
from functools import lru_cache

from moot.state.at_sight import at_sight
from moot.state.config.debate_config import DebateConfig
from moot.state.conversation import StateValues
from moot.state.errors import InputError

KEPT = 32
"""Configurations kept parsed: one a debate that this process works on, and a few of its past."""


@lru_cache(maxsize=KEPT)
def _parse(canonical: str) -> DebateConfig:
    return DebateConfig.model_validate_json(canonical)


@at_sight(KEPT)
def _parsed(*stored: object) -> DebateConfig:
    keys = len(stored) // 2
    return _parse(json.dumps(dict(zip(stored[:keys], stored[keys:], strict=True)), sort_keys=True))


def frozen_config(state: StateValues) -> DebateConfig:
    """Return the state's configuration, validated once a process.

    The very same values as before are known at sight, for none is ever changed in place: nodes ask some
    thirty times a turn, and to write the configuration out, by which an equal one is known, takes 0.3 ms.

    Raises:
        InputError: the process that began the debate died before the state had one.
    """
    stored = state.get("config")
    if not stored:
        raise InputError("this debate never began, nothing of it was paid: delete it and start it again")
    return _parsed(*stored.keys(), *stored.values())
