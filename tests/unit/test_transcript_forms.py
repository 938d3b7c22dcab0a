"""Transcripts in the forms that other programs write are read with their speakers and messages."""

from __future__ import annotations

import pytest

from moot.importers import parse_transcript
from tests.support.transcript_forms import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_form_is_read_with_its_speakers_and_messages(case: Case) -> None:
    read = parse_transcript(case.text, filename=case.file)
    names = {speaker.id: speaker.name for speaker in read.speakers}
    spoken = [(names[each.speaker], each.content) for each in read.messages if each.kind != "tool_result"]
    assert spoken == case.expected
    assert case.left_out in read.left_out
