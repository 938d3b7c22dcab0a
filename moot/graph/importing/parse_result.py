"""What a reader of one format hands back, and the names that fields go by."""

from dataclasses import dataclass

SPEAKER_KEYS = ("speaker", "name", "author", "agentId", "agent", "from", "who", "role")
CONTENT_KEYS = ("content", "text", "message", "utterance", "speech", "body", "value")
TIME_KEYS = ("at", "minute", "time", "timestamp", "start", "created_at")
CLOCK = r"\d{0,2}(?::\d{2}){1,2}(?:[.,]\d+)?"
"""A time of the clock or of a recording: `01:20`, `:57`, `01:10:43`."""


@dataclass(frozen=True)
class ParsedSpeech:
    """One thing that was said."""

    speaker: str
    """The speaker's id; before speakers are told apart, the name that the transcript writes."""
    content: str
    at: str = ""
    """Time or minute as the transcript gives it, `""` where it gives none."""


@dataclass(frozen=True)
class ParsedTranscript:
    """A transcript before its speakers are told apart."""

    utterances: list[ParsedSpeech]
    topic: str = ""
    solution: str = ""
