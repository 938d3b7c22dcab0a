"""A protocol of one's own in 40 lines: duels. Two debaters at a time, every pair once, then everybody closes.

Run it with `python examples/own_protocol.py`. It resumes, forks, is judged and drawn like any other.
"""

from itertools import combinations

from moot import DebateConfig, open_debates
from moot.nodes.protocols.protocol import End, Protocol, make_floor, make_step
from moot.nodes.protocols.protocol_table import register
from moot.nodes.views.scene import debate_blocks


class Duels(Protocol):
    """Every pair argues, two speeches each; who is next follows from the number of turns taken."""

    name = "duels"

    def next_step(self, state, config):
        """Return the next speech, the closings (all at once), or the end."""
        ids, taken = [debater.id for debater in config.debaters], state.get("turn_count", 0)
        speeches = [pair * 2 for pair in combinations(ids, 2)]
        duel, turn = divmod(taken, 4)
        if duel < len(speeches):
            speaker, opponent = speeches[duel][turn], speeches[duel][turn - 1]
            floor = make_floor(speaker, f"Argue against {opponent}, in 100 words.", targets=[opponent])
            return make_step("duel", duel + 1, [floor])
        if taken == 4 * len(speeches):
            floors = [make_floor(speaker, "Close: what did the duels teach you?") for speaker in ids]
            return make_step("closing", duel + 1, floors)
        return End("every pair has met")

    def view(self, scene):
        """Show the rules, the summary, what was said last, and the instruction."""
        return debate_blocks(scene)


register(Duels())
if __name__ == "__main__":
    debaters = [{"name": "Ada"}, {"name": "Bo"}, {"name": "Cy"}]
    with open_debates("duels.sqlite") as debates:
        config = DebateConfig(protocol="duels", debaters=debaters)
        print(debates.start("Is a hot dog a sandwich?", config).run()["verdict"]["winner"])
