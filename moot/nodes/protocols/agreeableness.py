"""How readily debaters agree: one setting, said in words."""

from moot.state.config import DebateConfig

_BANDS = (
    (
        0.2,
        "Give no ground where you have an answer, and look for the fault in what you hear.",
    ),
    (0.4, "Be hard to convince: concede only what is proven."),
    (0.6, "Hold what nobody has answered, and give up what somebody has."),
    (0.8, "Look for common ground: say first what you can accept, then what you cannot."),
    (1.0, "Seek agreement: adopt what you can of the others' views, and press only what you must."),
)


def with_agreement(instruction: str, config: DebateConfig) -> str:
    """Return an instruction with what is configured about agreeing."""
    intensity = config.agreement_intensity
    if intensity is None:
        return instruction
    return f"{instruction}\n\n{next(text for most, text in _BANDS if intensity <= most)}"
