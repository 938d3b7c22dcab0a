"""The configuration of a debate: a section a file, the whole in `debate_config`."""

from moot.state.config.debate_config import DebateConfig, LimitsConfig, differing_keys
from moot.state.config.debaters import FLOOR_SPEAKERS, RESERVED_IDS, SLUG, DebaterConfig, may_speak, slug
from moot.state.config.judge_config import JudgeConfig, JudgeSeat
from moot.state.config.model_settings import OFFLINE
from moot.state.config.section import ProtocolSettings, Section

__all__ = [
    "FLOOR_SPEAKERS",
    "OFFLINE",
    "RESERVED_IDS",
    "SLUG",
    "DebateConfig",
    "DebaterConfig",
    "JudgeConfig",
    "JudgeSeat",
    "LimitsConfig",
    "ProtocolSettings",
    "Section",
    "differing_keys",
    "may_speak",
    "slug",
]
