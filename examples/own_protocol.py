"""A protocol of your own in one file: duels. Every pair of debaters argues once, then all of them close.

The file holds rules, prompts, default debaters and settings (`duels:` in a configuration). It imports public
names only. Run it with `python examples/own_protocol.py`. Plans, forks, the judge and reports work for it as
for a built-in protocol. An installed package does not call `register`: it names the class in an entry
point of the group `moot.protocols`.
"""

from itertools import combinations

from moot import DebateConfig, open_debates
from moot.protocols import (
    End,
    Protocol,
    ProtocolSettings,
    long_form_blocks,
    make_step,
    make_turn,
    register,
    rules_block,
    turn_suffix_block,
    window_blocks,
)


class DuelSettings(ProtocolSettings):
    """Length of duels."""

    key = "duels"
    messages: int = 2
    """Messages of each side in a duel."""
    words: int = 100
    """Maximum words of a message."""


class Duels(Protocol):
    """Duels of all pairs, one after the other. The number of turns taken determines the next speaker."""

    name, settings, length_settings = "duels", DuelSettings, ("duels.messages",)
    debaters = ({"name": "Ada"}, {"name": "Bo"}, {"name": "Cy"})

    def next_step(self, state, config):
        """Return the next turn of the duel, the closing turns (all at the same time), or the end."""
        duels, names, pairs = DuelSettings.of(config), config.names(), list(combinations(config.names(), 2))
        duel, turn = divmod(state.get("turn_count", 0), 2 * duels.messages)
        if duel < len(pairs):
            speaker, opponent = pairs[duel][turn % 2], pairs[duel][1 - turn % 2]
            asked = f"You duel with {names[opponent]}. Answer its strongest point, in {duels.words} words."
            return make_step("duel", duel + 1, [make_turn(speaker, asked, targets=[opponent])])
        if state["step"]["phase"] == "duel":
            turns = [make_turn(debater, "Close: what did you learn from the duels?") for debater in names]
            return make_step("closing", duel + 1, turns)
        return End("every pair has met")

    def prompt_blocks(self, ctx):
        """Show only the current duel in a duel, and the whole debate in a closing turn."""
        if ctx.step["phase"] == "closing":
            return long_form_blocks(ctx)
        duel = [entry for entry in ctx.window if entry["round"] == ctx.step["round"]]
        return [rules_block(ctx), *window_blocks(ctx, duel), turn_suffix_block(ctx)]


register(Duels())
if __name__ == "__main__":
    with open_debates("duels.sqlite") as debates:
        config = DebateConfig(protocol="duels")
        print(debates.start("Is a hot dog a sandwich?", config).run()["verdict"]["winner"])
