"""Numbers with their nouns, as every screen, prompt and report writes them."""


def amount(number: int, noun: str) -> str:
    """Return a number with its noun: `1 round`, `1,200 turns`, `2 entries`."""
    if number == 1:
        return f"1 {noun}"
    ending = "es" if noun.endswith(("ch", "s", "x")) else "s"
    return f"{number:,} {noun.removesuffix('y')}ies" if noun.endswith("ry") else f"{number:,} {noun}{ending}"


def all_done(number: int, noun: str, done: str) -> str:
    """Return why a debate ended: `all 3 rounds are done`, `the one round is done`."""
    return f"the one {noun} is {done}" if number == 1 else f"all {number} {noun}s are {done}"
