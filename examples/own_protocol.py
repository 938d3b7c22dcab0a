"""A protocol of one's own in 50 lines: duels. Two debaters at a time, every pair once, then everybody closes.

It brings rules, a view, settings (`duels:` in a configuration), debaters, and a prompt, `duel.md` beside it.
Run it with `python examples/own_protocol.py`. It resumes, forks, is planned, judged and drawn like any other.
An installed package brings its protocols without `register`, by entry points of the group `moot.protocols`.
"""

from itertools import combinations
from pathlib import Path

from moot import DebateConfig, open_debates
from moot.nodes.prompts.library import load_prompt
from moot.nodes.protocols.protocol import End, Protocol, make_floor, make_step
from moot.nodes.protocols.protocol_table import register
from moot.nodes.views.head import rules_block
from moot.nodes.views.rolling import window_blocks
from moot.nodes.views.tail import debate_blocks, tail_block
from moot.state.config import ProtocolSettings

DUEL = load_prompt("duel", "opponent", "words", home=Path(__file__).parent)


class DuelSettings(ProtocolSettings):
    """How duels are fought."""

    key = "duels"
    speeches: int = 2
    """Speeches of each side in a duel."""
    words: int = 100
    """What a speech is asked to stay within."""


class Duels(Protocol):
    """Every pair argues; who is next follows from the number of turns taken."""

    name, settings, bounded_by = "duels", DuelSettings, ("duels.speeches",)
    debaters = ({"name": "Ada"}, {"name": "Bo"}, {"name": "Cy"})

    def next_step(self, state, config):
        """Return the next speech, the closings (all at once), or the end."""
        duels, pairs = DuelSettings.of(config), list(combinations(config.names(), 2))
        duel, turn = divmod(state.get("turn_count", 0), 2 * duels.speeches)
        if duel < len(pairs):
            speaker, opponent = pairs[duel][turn % 2], pairs[duel][1 - turn % 2]
            asked = DUEL.render(opponent=config.names()[opponent], words=str(duels.words))
            return make_step("duel", duel + 1, [make_floor(speaker, asked, targets=[opponent])])
        if state["step"]["phase"] == "duel":
            floors = [
                make_floor(debater, "Close: what did the duels teach you?") for debater in config.names()
            ]
            return make_step("closing", duel + 1, floors)
        return End("every pair has met")

    def view(self, scene):
        """Show a duellist this duel alone, and who closes what every view shows."""
        if scene.step["phase"] == "closing":
            return debate_blocks(scene)
        duel = [entry for entry in scene.window if entry["round"] == scene.step["round"]]
        return [rules_block(scene), *window_blocks(scene, duel), tail_block(scene)]


register(Duels())
if __name__ == "__main__":
    with open_debates("duels.sqlite") as debates:
        config = DebateConfig(protocol="duels")
        print(debates.start("Is a hot dog a sandwich?", config).run()["verdict"]["winner"])
