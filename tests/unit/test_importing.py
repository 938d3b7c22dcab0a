"""Transcripts in the formats that can be imported."""

from __future__ import annotations

import csv
import io
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from moot.importers import ImportedTranscript, parse_transcript
from moot.plugins.importing.registry import FORMATS
from moot.state.errors import InputError
from tests.support.report_documents import debate_document


def messages_of(transcript: ImportedTranscript) -> list[tuple[str, str]]:
    names = {speaker.id: speaker.name for speaker in transcript.speakers}
    return [(names[message.speaker], message.content) for message in transcript.messages]


EXPECTED = [("Ann", "Hello: there"), ("Bob", "Well, no")]


@pytest.mark.parametrize(
    ("text", "filename"),
    [
        ('[{"speaker": "Ann", "content": "Hello: there"}, {"speaker": "Bob", "text": "Well, no"}]', ""),
        (
            '{"messages": [{"role": "user", "name": "Ann", "content": "Hello: there"}, '
            '{"role": "assistant", "name": "Bob", "content": [{"type": "text", "text": "Well, no"}]}]}',
            "",
        ),
        ('{"speaker": "Ann", "content": "Hello: there"}\n{"speaker": "Bob", "content": "Well, no"}\n', ""),
        ('speaker,minute,text\nAnn,01:20,Hello: there\nBob,01:21,"Well, no"\n', ""),
        ('\ufeffText;Speaker\r\n"Hello: there";Ann\r\n"Well, no";Bob\r\n', "a.csv"),
        ("Ann\t01:20\tHello: there\nBob\t01:21\tWell, no\n", "a.tsv"),
        ("Ann,01:20,Hello: there\nBob,01:21,Well, no\n", "a.csv"),
        ("Ann: Hello: there\nBob: Well, no\n", ""),
        ("[00:01:20] Ann: Hello: there\n(01:21) Bob: Well, no\n", "a.txt"),
        ("Ann (00:01:20): Hello: there\nBob [01:21] : Well, no\n", ""),
        ("Ann:Hello: there\nBob:Well, no\n", ""),
        ("Ann：Hello: there\nBob：Well, no\n", ""),
        ("# Topic\n\n## Ann\n\nHello: there\n\n## Bob\n\nWell, no\n", ""),
        ("## Ann (01:20)\nHello: there\n\n## Bob (01:21)\nWell, no\n", ""),
        ("**Ann:** Hello: there\n\n**Bob**: Well, no\n", ""),
        ("**Ann (01:20):** Hello: there\n\n[01:21] **Bob**：Well, no\n", ""),
        ("# Topic\n\n- **Ann**: Hello: there\n- **Bob:** Well, no\n", ""),
        ("1. **Ann**: Hello: there\n2. **Bob**: Well, no\n", "a.md"),
        ("## Debate\n\n* **Ann**: Hello: there\n* **Bob**: Well, no\n", "a.md"),
    ],
    ids=[
        "json",
        "chat",
        "jsonl",
        "csv",
        "semicolons",
        "tabs",
        "no header",
        "txt",
        "times",
        "times after names",
        "no space",
        "full-width colons",
        "headings",
        "headings with times",
        "bold",
        "bold with times",
        "a list",
        "a numbered list",
        "a list under a heading",
    ],
)
def test_every_format_is_read_with_speakers_and_messages(text: str, filename: str) -> None:
    assert messages_of(parse_transcript(text, filename=filename)) == EXPECTED


@pytest.mark.parametrize(
    "text",
    [
        "speaker,minute,text\nAnn,01:20,Hi\nBob,:57,Ho\n",
        "(01:20) Ann: Hi\nBob (:57): Ho\n",
        "**Ann** (01:20): Hi\n[:57] **Bob:** Ho\n",
    ],
    ids=["csv", "txt", "md"],
)
def test_times_are_kept_as_written(text: str) -> None:
    read = parse_transcript(text)
    assert [message.time for message in read.messages] == ["01:20", ":57"]


def test_quoted_csv_text_may_contain_line_breaks_and_quotes() -> None:
    read = parse_transcript('speaker,text\nAnn,"one\ntwo ""three"""\nBob,x\n')
    assert messages_of(read) == [("Ann", 'one\ntwo "three"'), ("Bob", "x")]


def test_last_csv_column_may_contain_unquoted_delimiters() -> None:
    assert messages_of(parse_transcript("speaker,text\nAnn,Well, well, no\n")) == [("Ann", "Well, well, no")]


@pytest.mark.parametrize(
    "text",
    [
        "speaker,text,votes\nAnn,hello,12\nBen,yo,3\n",
        "speaker,text,votes\nAnn,hello,12,\nBen,yo\n",
        "id,text,speaker,party\n1,hello,Ann,D\n2,yo,Ben,R\n",
        "Ann,hello,12\nBen,yo,3\n",
    ],
    ids=["after the text", "an empty cell too many", "around both", "no header"],
)
def test_additional_columns_are_ignored(text: str) -> None:
    assert messages_of(parse_transcript(text, format="csv")) == [("Ann", "hello"), ("Ben", "yo")]


@pytest.mark.parametrize(
    "text", ["speaker,text,votes\nAnn,a,1\nBen,b, c,2\n", "text,speaker\na,Ann\nb, c,Ben\n"]
)
def test_row_with_too_many_cells_is_refused_unless_its_text_is_last(text: str) -> None:
    with pytest.raises(InputError, match=r"line 3: .* put quotes around"):
        parse_transcript(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("00:10,Ann,hello\n00:20,Ben,yo\n", [("Ann", "hello", "00:10"), ("Ben", "yo", "00:20")]),
        ("1,Ann,hello\n2,Ben,yo\n", [("Ann", "hello", "1"), ("Ben", "yo", "2")]),
        ("Ann,hello,00:10\nBen,yo,00:20\n", [("Ann", "hello", "00:10"), ("Ben", "yo", "00:20")]),
        ("1,00:10,hello\n2,00:20,yo\n", [("1", "hello", "00:10"), ("2", "yo", "00:20")]),
        ("1,hello\n2,yo\n", [("1", "hello", ""), ("2", "yo", "")]),
        ("Ann,12:30\nBen,13:00\n", [("Ann", "12:30", ""), ("Ben", "13:00", "")]),
        (",Ann,a, b, and much more\n,Ben,yo\n", [("Ann", "a, b, and much more", ""), ("Ben", "yo", "")]),
    ],
    ids=[
        "time first",
        "minute first",
        "time last",
        "numbered",
        "numbered, no time",
        "times as text",
        "empty first column",
    ],
)
def test_columns_without_a_header_are_recognised_by_their_content(
    text: str, expected: list[tuple[str, str, str]]
) -> None:
    read = parse_transcript(text, format="csv")
    names = {speaker.id: speaker.name for speaker in read.speakers}
    assert [(names[one.speaker], one.content, one.time) for one in read.messages] == expected


def test_json_numbers_become_text_and_null_is_skipped() -> None:
    items = [
        {"speaker": 1, "text": 5},
        {"speaker": "B", "content": None, "text": 2.5},
        {"speaker": "B", "text": None},
        {
            "speaker": "B",
            "content": [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "c"}],
        },
    ]
    assert messages_of(parse_transcript(json.dumps(items))) == [("1", "5"), ("B", "2.5"), ("B", "c")]


@pytest.mark.parametrize("path", [["meeting_transcripts"], ["data", "speeches"]], ids=".".join)
def test_message_list_is_found_under_any_json_key(path: list[str]) -> None:
    messages: Any = [{"speaker": "Ann", "content": "a"}, {"speaker": "Ben", "content": "b"}]
    for key in reversed(path):
        messages = {key: messages}
    value = {"topic_list": [{"topic": "Start", "spans": [["0", "9"]]}], "queries": [], **messages}
    assert messages_of(parse_transcript(json.dumps(value))) == [("Ann", "a"), ("Ben", "b")]


def test_dialectics_debates_are_read_with_problem_and_solution() -> None:
    contributions = [
        {"agentId": "architect", "agentRole": "architect", "type": "proposal", "content": "Use queues."},
        {
            "agentId": "kiss",
            "agentRole": "kiss",
            "type": "critique",
            "content": "Why?",
            "targetAgentId": "architect",
        },
    ]
    value = {
        "problem": "Scale it",
        "rounds": [{"contributions": contributions}],
        "finalSolution": {"description": "Q", "tradeoffs": ["Messages may come twice."]},
    }
    read = parse_transcript(json.dumps(value))
    assert (read.topic, read.solution) == ("Scale it", "Q\n\n## Trade-offs\n\n- Messages may come twice.")
    kept = [(each.kind, each.round, each.target) for each in read.messages]
    assert kept == [("proposal", 1, ""), ("critique", 1, "architect")]
    assert messages_of(read) == [("architect", "Use queues."), ("kiss", "Why?")]


def test_moot_document_is_read_completely() -> None:
    document = debate_document()
    read = parse_transcript(json.dumps(document))
    assert read.document == document
    assert [speaker.name for speaker in read.speakers] == ["Ada Okafor", "Grace Lindqvist"]
    assert len(read.messages) == 4
    assert read.topic == "Should we split?"


def test_a_document_of_another_version_is_refused() -> None:
    with pytest.raises(InputError, match=r"moot\.debate/9"):
        parse_transcript('{"format": "moot.debate/9", "transcript": []}')


@pytest.mark.parametrize(
    "line",
    [
        "The point is this: no",
        "see http://example.org: there",
        "Note: later",
        "at 12:30 we met",
        "- Item: thing",
        "I said: no",
        "That is what he told us. Then: silence",
        "“Quote”: fine",
        "http://example.org/a",
        "Port:8080",
        "John 3:16 and John 3:17",
        "C:\\Users and C:/Users",
        "std::cout",
        "Thanks:)",
        "color:red",
        "Note:later",
        "The result of all this:bad",
        "他说：“不”",
        "結論：減税",
        "これまでの長い話を短くまとめると次のとおり：以上",
        "- **Cost**: high",
    ],
)
def test_colon_inside_a_message_starts_no_new_message(line: str) -> None:
    assert messages_of(parse_transcript(f"Ann: Hi\n{line}\nBob: Ho", format="txt")) == [
        ("Ann", f"Hi\n{line}"),
        ("Bob", "Ho"),
    ]


@pytest.mark.parametrize(
    "name", ["ANN", "Dr. Ann Lee", "ludwig van Beethoven", "Ann (moderator)", "张伟", "Speaker 2", "O'Neil"]
)
@pytest.mark.parametrize("colon", [": ", "：", " : "], ids=["plain", "full-width", "French"])
def test_a_name_before_a_colon_is_recognised(name: str, colon: str) -> None:
    text = f"{name}{colon}Hi\n{name}{colon}Ho"
    assert messages_of(parse_transcript(text, format="txt")) == [(name, "Hi"), (name, "Ho")]


def test_names_without_capitals_are_recognised_after_one_message() -> None:
    read = parse_transcript("議題：減税\n田中：賛成です。\n鈴木（司会）：反対です。\n", filename="a.txt")
    assert messages_of(read) == [("田中", "賛成です。"), ("鈴木（司会）", "反対です。")]
    assert read.topic == "減税"


@pytest.mark.parametrize("start", ["", "# Motion\n\n"], ids=["first", "after a heading"])
def test_bold_name_with_a_role_is_a_speaker_and_not_the_topic(start: str) -> None:
    read = parse_transcript(f"{start}**Ann** (moderator): a\n\n**Ben**: b\n", filename="a.md")
    assert messages_of(read) == [("Ann (moderator)", "a"), ("Ben", "b")]


@pytest.mark.parametrize(
    "form", ["## {}\n\n{}\n\n", "**{}:** {}\n\n", "{}: {}\n"], ids=["headings", "bold", "lines"]
)
def test_bold_list_items_belong_to_the_message(form: str) -> None:
    listed = "Hi\n- **Cost**: high\n- **Time**: low"
    read = parse_transcript(form.format("Ann", listed) + form.format("Ben", "Ho"), filename="a.md")
    assert messages_of(read) == [("Ann", listed), ("Ben", "Ho")]


def test_text_before_the_first_message_is_the_topic() -> None:
    assert parse_transcript("Topic: Should we split?\n\nAnn: Hi\nBob: Ho").topic == "Should we split?"
    assert parse_transcript("# Should we split?\n\n## Ann\nHi\n\n## Bob\nHo").topic == "Should we split?"


def test_file_name_is_the_fallback_topic() -> None:
    assert (
        parse_transcript("Ann: Hi\nBob: Ho", filename="/x/first_big-debate.txt").topic == "first big debate"
    )


def test_deeper_headings_and_headings_in_code_belong_to_the_message() -> None:
    read = parse_transcript("## Ann\n### Detail\n```\n## not Bob\n```\n## Bob\nHi")
    assert messages_of(read) == [("Ann", "### Detail\n```\n## not Bob\n```"), ("Bob", "Hi")]


@pytest.mark.parametrize(
    ("text", "options", "where", "advice"),
    [
        ("", {}, "line 1", "empty"),
        ("no names here", {}, "line 1", "NAME: text"),
        ("x", {"format": "pdf"}, "pdf", "json, jsonl, csv, txt, md"),
        ('[\n{"speaker": "Ann",\n]', {}, "line 3", "correct the JSON"),
        ('{"speaker": "Ann", "text": "x"}\n{oops}\n', {}, "line 2", "correct the JSON"),
        ('{"speaker": "Ann", "text": "x"}\n\n{"text": "x"}\n', {}, "line 3", "add the key `speaker`"),
        ('[{"speaker": "Ann"}]', {}, "entry 1", "add the key `content`"),
        (
            '[{"speaker": "A", "text": 5}, {"speaker": "A", "text": true}]',
            {},
            "entry 2",
            "must be text, not true",
        ),
        ('[{"speaker": "A", "text": {"words": 5}}]', {}, "entry 1", "must be text, not {"),
        ("[1]", {}, "entry 1", "speaker and content"),
        ('{"a": 1}', {}, "line 1", "utterances"),
        (
            '{"a": [{"who": "A", "text": "x"}], "b": {"c": [{"who": "B", "text": "y"}]}}',
            {},
            "(a, b.c)",
            "put the messages in a list under one of the keys",
        ),
        ("3", {"format": "json"}, "line 1", "list of messages"),
        ("[" * 100_000, {}, "line 1", "the JSON is nested too deeply"),
        ('speaker,text\nAnn,x\nBob,"open\n', {}, "line 3", "double the quotes"),
        ("speaker,minute,text\nAnn,1:00,x\nBob,1:01\n", {}, "line 3", "2 columns instead of 3"),
        ("speaker,text\n ,x\n", {}, "line 2", "fill in column 1"),
        ("Ann,1,x\nBen,2\n", {"format": "csv"}, "line 2", "other rows have 3"),
        ("alone\nalone\n", {"format": "csv"}, "line 1", "speaker,minute,text"),
        (",\n,\n", {"format": "csv"}, "line 1", "no messages"),
        ("[]", {}, "line 1", "no messages"),
    ],
)
def test_import_errors_name_the_place_and_the_fix(
    text: str, options: dict[str, Any], where: str, advice: str
) -> None:
    with pytest.raises(InputError) as caught:
        parse_transcript(text, **options)
    assert where in str(caught.value)
    assert advice in str(caught.value)


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("a,b\n1,2\n", "a, b"),
        ("Id,City,Population\n1,Oslo,700000\n2,Rome,2800000\n", "Id, City, Population"),
        ("name,remark\nAnn,I agree.\nBen,I do not.\n", "name, remark"),
        ("city;country\nOslo;Norway\nRome;Italy\n", "city, country"),
    ],
    ids=["letters", "numbers below", "no text", "only words"],
)
def test_unknown_columns_are_refused_with_the_columns_found_and_needed(table: str, columns: str) -> None:
    with pytest.raises(InputError, match=rf"line 1: the table has the columns {columns}, .*`speaker.text`"):
        parse_transcript(table, filename="x.csv")


@pytest.mark.parametrize(
    ("messages", "topic"),
    [
        (["Should we migrate? We have two weeks.", "Yes."], "Should we migrate?"),
        (["Plan the migration. Name the risks.", "First, copy."], "Plan the migration."),
        (["", "Hello"], "openai"),
    ],
    ids=["question", "request", "no text"],
)
@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_first_sentence_of_the_user_is_the_topic_of_a_chat_without_one(
    messages: list[str], topic: str, form: str
) -> None:
    chat = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": messages[0]},
        {"role": "assistant", "content": messages[1]},
    ]
    text = json.dumps(chat) if form == "json" else "\n".join(map(json.dumps, chat))
    assert parse_transcript(text, filename=f"openai.{form}").topic == topic


def test_chat_keeps_its_own_topic() -> None:
    chat = {"topic": "Trams?", "messages": [{"role": "user", "content": "Shall we build a tram?"}]}
    assert parse_transcript(json.dumps(chat), filename="openai.json").topic == "Trams?"


@settings(max_examples=200, deadline=None)
@given(
    text=st.text(),
    format=st.sampled_from([None, *FORMATS]),
    filename=st.sampled_from(["", "a.csv", "b.json"]),
)
def test_arbitrary_text_is_read_or_refused_with_an_input_error(
    text: str, format: str | None, filename: str
) -> None:
    with suppress(InputError):
        read = parse_transcript(text, format=format, filename=filename)
        assert {message.speaker for message in read.messages} == {speaker.id for speaker in read.speakers}


words = st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=30).filter(
    lambda text: bool(text.strip())
)


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(st.tuples(st.sampled_from(["Ann", "Bob", "Zoë"]), words), min_size=1, max_size=8))
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_output_of_a_csv_writer_is_read_back(delimiter: str, rows: list[tuple[str, str]]) -> None:
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter).writerows([("speaker", "text"), *rows])
    expected = [(name, text.strip()) for name, text in rows]
    assert messages_of(parse_transcript(file.getvalue(), format="csv")) == expected


DEBATES = Path(__file__).parents[3] / "shared" / "data" / "debates"


@pytest.mark.skipif(not DEBATES.is_dir(), reason="the televised debates are not part of the project")
@pytest.mark.parametrize(
    ("part", "count", "speakers"),
    [("1st_presidential", 789, 3), ("vice_presidential", 327, 3), ("town_hall", 222, 18)],
)
def test_televised_debates_are_read_completely(part: str, count: int, speakers: int) -> None:
    path = next(DEBATES.glob(f"*{part}*.csv"))
    read = parse_transcript(path.read_text(encoding="utf-8"), filename=path.name)
    assert (len(read.messages), len(read.speakers)) == (count, speakers)


MEETINGS = DEBATES.parent / "qmsum-val"


@pytest.mark.skipif(not MEETINGS.is_dir(), reason="the meetings are not part of the project")
def test_meeting_transcripts_are_read_unchanged() -> None:
    path = MEETINGS / "Bed002.json"
    turns = json.loads(path.read_text(encoding="utf-8"))["meeting_transcripts"]
    read = parse_transcript(path.read_text(encoding="utf-8"), filename=path.name)
    spoken = [(turn["speaker"], turn["content"].strip()) for turn in turns if turn["content"].strip()]
    assert messages_of(read) == spoken


def _nested_content(opening: str, closing: str, levels: int) -> str:
    return f'[{{"speaker": "A", "content": {opening * levels}"x"{closing * levels}}}]'


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"text":', "}")], ids=["lists", "objects"])
def test_nested_content_of_a_message_is_read_as_its_text(opening: str, closing: str) -> None:
    assert messages_of(parse_transcript(_nested_content(opening, closing, 50))) == [("A", "x")]


@pytest.mark.parametrize(
    ("opening", "closing", "levels"),
    [("[", "]", 100_000), ('{"text":', "}", 100_000)],
    ids=["list", "object"],
)
def test_too_deeply_nested_content_is_refused(opening: str, closing: str, levels: int) -> None:
    with pytest.raises(InputError, match=r"is nested too deeply: write .* as text"):
        parse_transcript(_nested_content(opening, closing, levels))


def test_a_lone_surrogate_in_a_name_or_a_message_is_replaced() -> None:
    read = parse_transcript('[{"speaker": "A\\ud800nn", "content": "x\\udfff"}]')
    assert [(one.speaker, one.content) for one in read.messages] == [("a-nn", "x?")]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("13/03/2024, 09:41 - Hidden\n13/03/2024, 09:42 - Ann Lee: Yes.\n", "2024-03-13T09:42:00"),
        ("[12.03.2024, 09:41:12] Ann: Yes.\n", "2024-03-12T09:41:12"),
        ("3/31/24, 9:41 PM - Ann: Yes.\n", "2024-03-31T21:41:00"),
        ("03/02/24, 09:41 - Ann: Yes.\n", "03/02/24, 09:41"),
        ("03/02/24, 09:41 - Ann: Yes.\n02/03/24, 09:41 - Bob: No.\n", "2024-02-03T09:41:00"),
        ("24/2/3 上午9:41 - Ann: Yes.\n", "24/2/3 上午9:41"),
        ("2024-03-12T09:41:00Z Ann: Yes.\n", "2024-03-12T09:41:00Z"),
        ("[9:41 AM] Ann: Yes.\n", "9:41 AM"),
        ("09:41 Ann: Yes.\n", "09:41"),
    ],
    ids=[
        "day above 12",
        "dots",
        "month of the second number above 12",
        "ambiguous",
        "in order only as days first",
        "short year first",
        "ISO 8601",
        "no date",
        "time only",
    ],
)
def test_times_of_chats_become_dates_if_day_and_month_are_certain(text: str, time: str) -> None:
    assert parse_transcript(text).messages[0].time == time


def test_time_in_square_brackets_is_not_parsed_as_json() -> None:
    first, _ = parse_transcript("[09:41] Ann: Yes.\n[09:42] Bob: No.\n").messages
    assert (first.speaker, first.time, first.content) == ("ann", "09:41", "Yes.")


def test_a_speaker_named_with_and_without_a_place_is_one_speaker() -> None:
    text = "The SPEAKER: Order.\nMs HOLT (North) (10:05): Open.\nMr REYES (South): No.\nMs HOLT: Why?\n"
    names = [speaker.name for speaker in parse_transcript(text, filename="a.txt").speakers]
    assert names == ["The SPEAKER", "Ms HOLT", "Mr REYES (South)"]


def test_code_in_a_message_names_no_speakers() -> None:
    text = "Ann: Look:\n```yaml\nName: Foo Bar\nPort: Two\n```\nBob: No.\nAnn: Why?\n"
    read = parse_transcript(text)
    assert [each.speaker for each in read.messages] == ["ann", "bob", "ann"]
    assert "Port: Two" in read.messages[0].content
