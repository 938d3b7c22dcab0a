"""The configuration as the state holds it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from moot.state.config.debate_config import DebateConfig


@lru_cache(maxsize=32)
def _parse(canonical: str) -> DebateConfig:
    return DebateConfig.model_validate_json(canonical)


def frozen_config(state: Mapping[str, Any]) -> DebateConfig:
    """Return the state's configuration, validated once a process."""
    return _parse(json.dumps(state["config"], sort_keys=True))
