"""Files that are refused instead of read with wrong speakers."""

# ruff: noqa: E501  # one line of a file may be longer than a line of code

from __future__ import annotations

import json
import random
import time
from contextlib import suppress

import pytest
from hypothesis import given, settings, strategies as st

from moot.importers import (
    ParsedMessage,
    ParsedTranscript,
    Reader,
    SeveralConversations,
    parse_transcript,
)
from moot.plugins.importing import registry
from moot.plugins.importing.encoding import decode
from moot.state.errors import InputError, UserError
from tests.support.transcript_forms import CASES, Case

REFUSED = {
    "settings of lower-case words": ("a.yaml", "name: depot\nport: 2\nname: depot2\nport: 3\n", "settings with values"),
    "log": ("a.log", "INFO: up\nERROR: down\nINFO: up again.\n", "are fields"),
    "Kialo": ("a.txt", "1. Close the bridge.\n1.1. Pro: It is old.\n1.1.1. Con: It was repaired.\n1.2. Con: It is used.\n", "outline of arguments"),
    "Kialo in German": ("a.txt", "Titel: Brücke?\n\n1. Schließen.\n1.1. Dafür: Alt.\n1.2. Dagegen: Genutzt.\n", "outline of arguments"),
    "Argdown": ("a.txt", "[Close]: Close the bridge.\n  - <Use>: It is used.\n  + <Age>: It is old.\n", "Argdown"),
    "AIF": ("a.json", json.dumps({"nodes": [{"nodeID": "1", "text": "Mira : close", "type": "L"}], "edges": [], "locutions": []}), "AIF"),
    "e-mail": ("a.txt", "From: Mira <m@example.org>\nTo: Tomas\nSubject: Bridge\n\nHello.\n", "fields"),
    "numbered steps": ("a.txt", "Step 1: Stir.\nStep 2: Bake.\nStep 3: Eat.\n", "numbered parts"),
    "a list of four remarks": ("a.txt", "Cost: high\nTime: low\nRisk: none\nStaff: two\n", "only once"),
    "one speaker": ("a.txt", "Mira: One.\nMira: Two.\n", "only speaker"),
    "HTML": ("a.html", "<p>Mira: Open.</p>\n<p>Tomas: No.</p>\n", "."),
    "settings": ("a.txt", "host: localhost\nport: 8080\n", "."),
    "prose": ("a.txt", "The bridge was built in 1932. It is long: two miles.\nNobody knows why.\n", "."),
    "subtitles without speakers": ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nThe bridge is old.\n", "who speaks"),
    "WebVTT without speakers": ("a.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\nThe bridge is old.\n", "who speaks"),
    "speech recognition without speakers": ("a.json", json.dumps({"text": "x", "segments": [{"start": 0, "end": 1, "text": "x"}]}), "diarization"),
    "damaged WebVTT": ("a.vtt", "WEBVTT\n\n00:01.000 -> 00:02.000\nMira: Open.\n\nfoo\nTomas: No.\n", "."),
    "rich text": ("a.rtf", "{\\rtf1 Mira: Open.\\par Tomas: No.}", "RTF"),
    "records": ("a.txt", "Name: Ann Lee\nPhone: 12 34\n\nName: Bob Ray\nPhone: 56 78\n", "records with the same fields"),
    "calendar": ("a.ics", "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:x\nEND:VEVENT\nEND:VCALENDAR\n", "calendar"),
    "chapters": ("a.md", "# Guide\n\n## Install\n\nDo.\n\n## Usage\n\nRun.\n\n## License\n\nMIT\n", "only once"),
    "columns that may both be speakers": ("a.csv", "North,Mira,Open it.\nNorth,Tomas,No.\nSouth,Mira,Why?\nSouth,Tomas,Snow.\n", "several columns"),
    "a lower header": ("a.csv", "Mira,Open it.\nspeaker,text\nTomas,No.\n", "move it to the top"),
    "a contents table": ("a.csv", "Oslo,Norway\nRome,Italy\nParis,France\nBern,Switzerland\n", "only once"),
}  # fmt: skip


@pytest.mark.parametrize(("file", "text", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_transcript_is_refused_with_the_reason(file: str, text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        parse_transcript(text, filename=file)


def test_a_refusal_shows_the_first_messages_and_how_to_import_them_anyway() -> None:
    text = "Cost: high\nTime: low\nRisk: none\nStaff: two\n"
    with pytest.raises(InputError, match=r"(?s)Cost: high\n.*Risk: none\n.*--format txt"):
        parse_transcript(text)
    assert len(parse_transcript(text, format="txt").speakers) == 4


def test_several_conversations_are_listed_and_one_is_chosen_by_number_or_title() -> None:
    def conversation(title: str) -> dict[str, object]:
        messages = [{"sender": "human", "text": title}, {"sender": "assistant", "text": "No."}]
        return {"uuid": title, "name": title, "chat_messages": messages}

    text = json.dumps([conversation("Bridge"), conversation("Harbour")])
    with pytest.raises(SeveralConversations, match="1 'Bridge', 2 'Harbour'"):
        parse_transcript(text)
    for choice in ("2", "harbour"):
        assert parse_transcript(text, conversation=choice).messages[0].content == "Harbour"
    with pytest.raises(SeveralConversations):
        parse_transcript(text, conversation="3")


def test_a_guessed_encoding_is_reported() -> None:
    assert parse_transcript("Mira: März\nTomas: Nein\n".encode("cp1252")).encoding == "cp1252"
    assert parse_transcript("Mira: März\nTomas: Nein\n".encode()).encoding == ""


def test_a_preview_counts_messages_by_speaker_and_says_what_is_left_out() -> None:
    chat = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Safe?"}]},
        {"role": "assistant", "content": "No."},
    ]
    preview = parse_transcript(json.dumps(chat)).preview(1)
    assert preview["speakers"] == [{"name": "user", "messages": 1}, {"name": "assistant", "messages": 1}]
    assert preview["first_messages"] == [{"speaker": "user", "content": "Safe?", "time": ""}]
    assert preview["notes"][-1] == "1 system message, 1 attachment left out"


def test_a_reader_of_another_package_is_tried_first(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [ParsedMessage("Mira", "Open."), ParsedMessage("Tomas", "No.")]
    reader = Reader(
        "minutes", "text", lambda source: ParsedTranscript(messages) if "#!" in source.text else None
    )
    monkeypatch.setattr(registry, "installed_readers", lambda: [reader])
    assert parse_transcript("#!minutes").reader == "minutes"
    assert parse_transcript("Ann: a\nBob: b\n").reader == "plain text"


def _names(text: str | bytes, file: str) -> set[str]:
    """Return the names that are read, or none if the file is refused."""
    with suppress(UserError):
        return {speaker.name.casefold() for speaker in parse_transcript(text, filename=file).speakers}
    return set()


@pytest.fixture
def no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "installed_readers", list)  # looking for plug-ins takes most of the time


@pytest.mark.usefixtures("no_plugins")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_lines_in_another_order_never_give_other_speakers(case: Case) -> None:
    text = case.text if isinstance(case.text, str) else decode(case.text)[0]
    right = _names(case.text, case.file)
    for seed in range(12):
        order, lines = random.Random(seed), text.split("\n")
        order.shuffle(lines)
        if seed % 2:
            lines = lines[: len(lines) * 3 // 4]
        assert _names("\n".join(lines), case.file) <= right


@pytest.mark.usefixtures("no_plugins")
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_files_are_read_or_refused_with_a_user_error(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(CASES))
    raw = case.text.encode() if isinstance(case.text, str) else case.text
    start = data.draw(st.integers(0, len(raw)))
    damaged = raw[:start] + data.draw(st.binary(max_size=8)) + raw[start + data.draw(st.integers(0, 40)) :]
    with suppress(UserError):
        parse_transcript(damaged, filename=case.file)


def _grown(case: Case, times: int) -> str:
    text = case.text if isinstance(case.text, str) else decode(case.text)[0]
    first, _, rest = text.partition("\n")
    return f"{first}\n" + rest * times


@pytest.mark.slow
@pytest.mark.usefixtures("no_plugins")
@pytest.mark.parametrize(
    "case", [each for each in CASES if "\n" in str(each.text)], ids=lambda case: case.name
)
def test_time_grows_linearly_with_the_file(case: Case) -> None:
    def seconds(times: int) -> float:
        text, started = _grown(case, times), time.thread_time()
        _names(text, case.file)
        return time.thread_time() - started

    short = min(seconds(40) for _ in range(2))
    assert seconds(320) < max(0.3, 24 * short)  # 8 times the file may take 24 times as long
