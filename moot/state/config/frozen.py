"""The configuration as the state holds it."""

import json
from functools import lru_cache

from moot.state.config.debate_config import DebateConfig
from moot.state.conversation import StateValues
from moot.state.errors import InputError

KEPT = 32
"""Configurations kept parsed: one a debate that this process works on, and a few of its past."""

_by_object: dict[int, tuple[object, DebateConfig]] = {}


@lru_cache(maxsize=KEPT)
def _parse(canonical: str) -> DebateConfig:
    return DebateConfig.model_validate_json(canonical)


def frozen_config(state: StateValues) -> DebateConfig:
    """Return the state's configuration, validated once a process.

    The very same object as before is known at sight, for no channel's value is ever changed in place: nodes
    ask some thirty times a turn, and to write the configuration out, by which an equal one is known, takes
    0.3 ms. A route gets a copy of the state's values, so that is done once a turn.

    Raises:
        InputError: the process that began the debate died before the state had one.
    """
    stored = state.get("config")
    if not stored:
        raise InputError("this debate never began, nothing of it was paid: delete it and start it again")
    seen, config = _by_object.get(id(stored), (None, None))
    if config is None or seen is not stored:
        config = _parse(json.dumps(stored, sort_keys=True))
        if len(_by_object) >= KEPT:
            _by_object.clear()
        _by_object[id(stored)] = stored, config
    return config
