"""Transcripts in the forms that other programs write, with the speakers and messages in them."""

from tests.support.transcript_forms.assistants import ASSISTANTS, FRAMEWORKS
from tests.support.transcript_forms.case import Case
from tests.support.transcript_forms.chats import CHATS
from tests.support.transcript_forms.meetings import MEETINGS, SUBTITLES
from tests.support.transcript_forms.plain import PLAIN

CASES = [*SUBTITLES, *MEETINGS, *CHATS, *ASSISTANTS, *FRAMEWORKS, *PLAIN]

__all__ = ["CASES", "Case"]
