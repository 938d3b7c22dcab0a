"""Configuration of a debate: the class `DebateConfig`, and the classes of its sections."""

from moot.config.debate_config import DebateConfig, LimitsConfig, differing_keys
from moot.config.model_settings import OFFLINE
from moot.config.participants import (
    INTERJECTION_SPEAKERS,
    RESERVED_IDS,
    SLUG,
    DebaterConfig,
    JudgeConfig,
    PanelJudge,
    can_interject,
    slug,
)
from moot.config.section import ProtocolSettings, Section

__all__ = [
    "INTERJECTION_SPEAKERS",
    "OFFLINE",
    "RESERVED_IDS",
    "SLUG",
    "DebateConfig",
    "DebaterConfig",
    "JudgeConfig",
    "LimitsConfig",
    "PanelJudge",
    "ProtocolSettings",
    "Section",
    "can_interject",
    "differing_keys",
    "slug",
]
