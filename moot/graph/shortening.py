"""Debates of at most so many speeches, whatever it is that bounds their protocol."""

from moot.graph.cli.usual_config import merged
from moot.nodes.protocols.protocol_table import protocol_named
from moot.nodes.protocols.stand_in import forecast
from moot.state.config import DebateConfig
from moot.state.config.config_files import make_config
from moot.state.errors import ConfigError


def shortened(config: DebateConfig, most: int) -> DebateConfig:
    """Return a configuration whose debate takes at most so many speeches: itself where it does.

    What the protocol says it is bounded by is lowered, one setting after the other, as little as will do.

    Raises:
        ConfigError: even the shortest debate by these rules takes more.
    """
    if _speeches(config) <= most:
        return config
    for setting in protocol_named(config.protocol).bounded_by or ():
        data = config.to_json()
        section, _, name = setting.rpartition(".")
        value = (data[section] if section else data)[name]
        if not isinstance(value, int | None):
            continue
        for number in range(min(value or most, most), 0, -1):
            shorter = make_config(merged(data, {setting: number}))
            if _speeches(shorter) <= most:
                return shorter
        config = shorter
    raise ConfigError(
        f"a debate by protocol {config.protocol!r} takes up to {_speeches(config)} speeches at its shortest, "
        f"more than {most}: give more turns, or another protocol"
    )


def _speeches(config: DebateConfig) -> int:
    planned = forecast(config)
    if planned is None:
        raise ConfigError(f"nobody knows how long a debate by protocol {config.protocol!r} is: give no turns")
    if planned.turns is not None:
        return planned.turns
    return sum(each.calls * each.times_at_most for each in planned.batches if each.purpose == "turn")
