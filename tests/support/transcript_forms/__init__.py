"""Transcripts in the forms that other programs write, with the speakers and messages in them."""

from tests.support.transcript_forms.assistants import ASSISTANTS, FRAMEWORKS
from tests.support.transcript_forms.case import Case
from tests.support.transcript_forms.chats import CHATS
from tests.support.transcript_forms.meetings import MEETINGS, SUBTITLES
from tests.support.transcript_forms.plain import PLAIN
from tests.support.transcript_forms.variants import VARIANTS

CASES = [*SUBTITLES, *MEETINGS, *CHATS, *ASSISTANTS, *FRAMEWORKS, *PLAIN, *VARIANTS]

__all__ = ["CASES", "Case"]
