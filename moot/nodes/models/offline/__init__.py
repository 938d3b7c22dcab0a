"""The built-in model: deterministic, without a network, arguing from the topic's own words."""

from moot.nodes.models.offline.model import OfflineModel

__all__ = ["OfflineModel"]
