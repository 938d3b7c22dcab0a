"""Transcripts in the forms that other programs write, with their speakers and messages."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from moot.plugins.importing import parse_transcript

A, B = "Mira Holt", "Tomas Reyes"
TALK = [(A, "The bridge stays open."), (B, "It is not safe."), (A, "Then repair it.")]
SHORT = TALK[:2]
CHAT = [("user", "Is the bridge safe?"), ("assistant", "Not in winter.")]


@dataclass(frozen=True)
class Case:
    """A file and the messages in it."""

    name: str
    file: str
    text: str | bytes
    expected: list[tuple[str, str]]
    left_out: str = ""
    """A part of the line about what is left out."""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _lines(*values: Any) -> str:
    return "\n".join(map(_json, values)) + "\n"


SUBTITLES = [
    Case(
        "Teams WebVTT with voices",
        "a.vtt",
        "WEBVTT\n\n3f2a/7-0\n00:00:01.120 --> 00:00:04.000\n<v Mira Holt>The bridge stays open.</v>\n\n"
        "3f2a/8-0\n00:00:05.000 --> 00:00:07.000\n<v Tomas Reyes>It is not safe.</v>\n\n"
        "3f2a/8-1\n00:00:08.000 --> 00:00:09.000\n<v Mira Holt>Then repair it.</v>\n",
        TALK,
    ),
    Case(
        "WebVTT with a note, a style and tags",
        "a.vtt",
        "WEBVTT - recording\n\nSTYLE\n::cue { color: red }\n\nNOTE made by hand\n\n"
        "00:01.000 --> 00:04.000 align:start\nMira Holt: The <i>bridge</i> stays open.\n\n"
        "00:05.000 --> 00:07.000\nTomas Reyes: It is not safe.\n",
        SHORT,
    ),
    Case(
        "WebVTT in which only a new speaker is named",
        "a.vtt",
        "WEBVTT\n\n00:01.000 --> 00:04.000\nMira Holt: The bridge\n\n00:04.000 --> 00:05.000\nstays open.\n\n"
        "00:05.000 --> 00:07.000\nTomas Reyes: It is not safe.\n",
        [(A, "The bridge\nstays open."), (B, "It is not safe.")],
    ),
    Case(
        "SubRip with dashes and two speakers in a cue",
        "a.srt",
        "1\n00:00:01,000 --> 00:00:04,000\n- Mira Holt: The bridge stays open.\n- Tomas Reyes: It is not safe.\n\n"
        "2\n00:00:05,000 --> 00:00:07,000\nMIRA: x\n\n3\n00:00:08,000 --> 00:00:09,000\nMIRA: y\n",
        [*SHORT, ("MIRA", "x\ny")],
    ),
    Case(
        "SubRip without numbers, with brackets",
        "a.srt",
        "00:00:01,000 --> 00:00:04,000\n(Mira Holt): The bridge stays open.\n\n"
        "00:00:05,000 --> 00:00:07,000\n(Tomas Reyes): It is not safe.\n",
        SHORT,
    ),
    Case(
        "subtitles of broadcasts",
        "a.srt",
        "1\n00:00:01,000 --> 00:00:04,000\n>> MIRA HOLT: The bridge stays open.\n\n"
        "2\n00:00:05,000 --> 00:00:07,000\n>> TOMAS REYES: It is not safe.\n",
        [("MIRA HOLT", SHORT[0][1]), ("TOMAS REYES", SHORT[1][1])],
    ),
    Case(
        "Advanced SubStation with names",
        "a.ass",
        "[Script Info]\nScriptType: v4.00+\n\n[Events]\n"
        "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
        "Dialogue: 0,0:00:01.00,0:00:04.00,Default,Mira Holt,0,0,0,,The bridge stays open.\n"
        "Dialogue: 0,0:00:05.00,0:00:07.00,Default,Tomas Reyes,0,0,0,,It is not safe.\n",
        SHORT,
    ),
    Case(
        "YouTube's form",
        "a.sbv",
        "0:00:01.000,0:00:04.000\nMira Holt: The bridge stays open.\n\n"
        "0:00:05.000,0:00:07.000\nTomas Reyes: It is not safe.\n",
        SHORT,
    ),
]
MEETINGS = [
    Case(
        "Otter with a header",
        "a.txt",
        "Harbour sync\nTue, Feb 3, 2026 9:41AM • 12:04\nSUMMARY KEYWORDS\nbridge, winter\nSPEAKERS\nMira Holt, Tomas Reyes\n\n"
        "Mira Holt  00:02\nThe bridge stays open.\n\nTomas Reyes  00:10\nIt is not safe.\n\nMira Holt  01:02:15\nThen repair it.\n",
        TALK,
    ),
    Case(
        "Otter with unknown speakers",
        "a.txt",
        "Unknown Speaker  0:01\nThe bridge stays open.\n\nSpeaker 2  0:04\nIt is not safe.\n\nTranscribed by https://otter.ai\n",
        [("Unknown Speaker", SHORT[0][1]), ("Speaker 2", SHORT[1][1])],
        "1 footer",
    ),
    Case(
        "Teams text without blank lines",
        "a.txt",
        "Mira Holt started transcription\n\nMira Holt   0:03\nThe bridge stays open.\nTomas Reyes   0:08\nIt is not safe.\n"
        "Mira Holt   0:12\nThen repair it.\n\nMira Holt stopped transcription\n",
        TALK,
        "2 system messages",
    ),
    Case(
        "Teams text with a range of times above the name",
        "a.txt",
        "0:0:2.100 --> 0:0:5.500\nMira Holt\nThe bridge stays open.\n\n0:0:6.0 --> 0:0:8.20\nTomas Reyes\nIt is not safe.\n",
        SHORT,
    ),
    Case(
        "name and time on two lines",
        "a.txt",
        "Mira Holt\n00:02\nThe bridge stays open.\n\nTomas Reyes\n00:10\nIt is not safe.\n",
        SHORT,
    ),
    Case(
        "time and name in brackets with a colon",
        "a.txt",
        "[00:00:02] Mira Holt:\nThe bridge stays open.\n\n[00:00:10] Tomas Reyes:\nIt is not safe.\n",
        SHORT,
    ),
    Case(
        "time, dash and name",
        "a.txt",
        "00:02 - Mira Holt\nThe bridge stays open.\n\n00:10 - Tomas Reyes\nIt is not safe.\n",
        SHORT,
    ),
    Case(
        "Google Meet in German",
        "a.txt",
        "Teilnehmer\nMira Holt, Tomas Reyes\n\nTranskript\n\n00:00:00\n\nMira Holt: The bridge stays open.\n"
        "Tomas Reyes: It is not safe.\n00:05:00\n\nMira Holt: Then repair it.\nDas Meeting wurde nach 00:06:10 beendet 👋\n"
        "Dieses Transkript wurde automatisch erstellt.\n",
        TALK,
        "header or footer",
    ),
    Case(
        "Zoom chat on one line",
        "a.txt",
        "09:41:02\t From Mira Holt to Everyone : The bridge stays open.\n09:42:10\t From Tomas Reyes to Everyone : It is not safe.\n",
        SHORT,
    ),
    Case(
        "Zoom chat in German",
        "a.txt",
        "09:41:02 Von Mira Holt an Alle:\n\tThe bridge stays open.\n09:42:10 Von Tomas Reyes an Alle:\n\tIt is not safe.\n",
        SHORT,
    ),
    Case(
        "Zoom chat in Spanish with a private message",
        "a.txt",
        "09:41:02 De Mira Holt a Todos:\n\tThe bridge stays open.\n09:42:10 De Tomas Reyes a Mira Holt (Mensaje directo):\n\tIt is not safe.\n",
        SHORT,
    ),
    Case(
        "Zoom cloud chat",
        "a.txt",
        "00:01:02\tMira Holt:\tThe bridge stays open.\n00:01:09\tTomas Reyes:\tIt is not safe.\n",
        SHORT,
    ),
    Case(
        "Deepgram without utterances",
        "a.json",
        _json(
            {
                "results": {
                    "channels": [
                        {
                            "alternatives": [
                                {
                                    "transcript": "x",
                                    "words": [
                                        {
                                            "word": "open",
                                            "punctuated_word": "Open",
                                            "start": 0.1,
                                            "speaker": 0,
                                        },
                                        {"word": "it", "punctuated_word": "it.", "start": 0.4, "speaker": 0},
                                        {"word": "no", "punctuated_word": "No.", "start": 1.4, "speaker": 1},
                                    ],
                                }
                            ]
                        }
                    ]
                }
            }
        ),
        [("0", "Open it."), ("1", "No.")],
    ),
    Case(
        "Deepgram paragraphs",
        "a.json",
        _json(
            {
                "results": {
                    "channels": [
                        {
                            "alternatives": [
                                {
                                    "paragraphs": {
                                        "paragraphs": [
                                            {
                                                "sentences": [
                                                    {"text": "Open", "start": 0},
                                                    {"text": "it.", "start": 1},
                                                ],
                                                "speaker": 0,
                                                "start": 0,
                                            },
                                            {
                                                "sentences": [{"text": "No.", "start": 2}],
                                                "speaker": 1,
                                                "start": 2,
                                            },
                                        ]
                                    }
                                }
                            ]
                        }
                    ]
                }
            }
        ),
        [("0", "Open it."), ("1", "No.")],
    ),
    Case(
        "AssemblyAI",
        "a.json",
        _json(
            {
                "text": "x",
                "utterances": [
                    {
                        "speaker": "A",
                        "text": "Open it.",
                        "start": 10,
                        "words": [{"text": "Open", "start": 10, "speaker": "A"}],
                    },
                    {"speaker": "B", "text": "No.", "start": 900, "words": []},
                ],
                "words": [],
            }
        ),
        [("A", "Open it."), ("B", "No.")],
    ),
    Case(
        "Rev AI",
        "a.json",
        _json(
            {
                "monologues": [
                    {
                        "speaker": 0,
                        "elements": [
                            {"type": "text", "value": "Open", "ts": 0.2},
                            {"type": "punct", "value": " "},
                            {"type": "text", "value": "it"},
                            {"type": "punct", "value": "."},
                        ],
                    },
                    {
                        "speaker": 1,
                        "elements": [
                            {"type": "text", "value": "No", "ts": 3.0},
                            {"type": "punct", "value": "."},
                        ],
                    },
                ]
            }
        ),
        [("0", "Open it."), ("1", "No.")],
    ),
    Case(
        "Amazon with labels at the words",
        "a.json",
        _json(
            {
                "jobName": "j",
                "results": {
                    "transcripts": [{"transcript": "x"}],
                    "items": [
                        {
                            "type": "pronunciation",
                            "start_time": "0.1",
                            "speaker_label": "spk_0",
                            "alternatives": [{"content": "Open"}],
                        },
                        {"type": "punctuation", "speaker_label": "spk_0", "alternatives": [{"content": "."}]},
                        {
                            "type": "pronunciation",
                            "start_time": "2.1",
                            "speaker_label": "spk_1",
                            "alternatives": [{"content": "No"}],
                        },
                    ],
                },
            }
        ),
        [("spk_0", "Open."), ("spk_1", "No")],
    ),
    Case(
        "Amazon with labels in segments",
        "a.json",
        _json(
            {
                "results": {
                    "speaker_labels": {
                        "segments": [
                            {
                                "start_time": "0.1",
                                "speaker_label": "spk_0",
                                "items": [{"start_time": "0.1", "speaker_label": "spk_0"}],
                            },
                            {
                                "start_time": "2.1",
                                "speaker_label": "spk_1",
                                "items": [{"start_time": "2.1", "speaker_label": "spk_1"}],
                            },
                        ]
                    },
                    "items": [
                        {"type": "pronunciation", "start_time": "0.1", "alternatives": [{"content": "Open"}]},
                        {"type": "punctuation", "alternatives": [{"content": "."}]},
                        {"type": "pronunciation", "start_time": "2.1", "alternatives": [{"content": "No"}]},
                    ],
                }
            }
        ),
        [("spk_0", "Open."), ("spk_1", "No")],
    ),
]
WHATSAPP = [
    Case(name, "chat.txt", text, SHORT, "")
    for name, text in {
        "American iPhone": "[2/3/26, 9:41:02\u202fPM] Mira Holt: The bridge stays open.\n[2/3/26, 9:42:10\u202fPM] Tomas Reyes: It is not safe.\n",
        "American Android": "2/3/26, 9:41\u202fPM - Mira Holt: The bridge stays open.\n2/13/26, 9:42\u202fPM - Tomas Reyes: It is not safe.\n",
        "German Android": "03.02.26, 09:41 - Mira Holt: The bridge stays open.\n03.02.26, 09:42 - Tomas Reyes: It is not safe.\n",
        "Danish": "[03.02.2026 kl. 09.41.02] Mira Holt: The bridge stays open.\n[03.02.2026 kl. 09.42.10] Tomas Reyes: It is not safe.\n",
        "Finnish": "3.2.2026 klo 9.41 - Mira Holt: The bridge stays open.\n3.2.2026 klo 9.42 - Tomas Reyes: It is not safe.\n",
        "Spanish": "3/2/26, 9:41 p. m. - Mira Holt: The bridge stays open.\n3/2/26, 9:42 p. m. - Tomas Reyes: It is not safe.\n",
        "Korean": "2026년 2월 3일 오후 9:41, Mira Holt : The bridge stays open.\n2026년 2월 3일 오후 9:42, Tomas Reyes : It is not safe.\n",
        "Japanese": "2026/02/03 9:41 - Mira Holt: The bridge stays open.\n2026/02/03 9:42 - Tomas Reyes: It is not safe.\n",
        "Chinese": "2026/2/3 上午9:41 - Mira Holt: The bridge stays open.\n2026/2/3 上午9:42 - Tomas Reyes: It is not safe.\n",
        "Arabic": "\u200f٣/٢/٢٠٢٦، ٩:٤١ ص - Mira Holt: The bridge stays open.\n\u200f٣/٢/٢٠٢٦، ٩:٤٢ ص - Tomas Reyes: It is not safe.\n",
        "Dutch": "03-02-2026 09:41 - Mira Holt: The bridge stays open.\n03-02-2026 09:42 - Tomas Reyes: It is not safe.\n",
        "Swedish": "2026-02-03 09:41 - Mira Holt: The bridge stays open.\n2026-02-03 09:42 - Tomas Reyes: It is not safe.\n",
    }.items()
]
CHATS = [
    *WHATSAPP,
    Case(
        "WhatsApp with attachments, a new group and many lines",
        "chat.txt",
        "\u200e[03/02/2026, 09:40:02] Mira Holt: \u200eMira Holt created this group\n"
        "[03/02/2026, 09:41:02] ~ Mira Holt: The bridge stays open.\nBy all means: it does.\n"
        "[03/02/2026, 09:42:10] Tomas Reyes: \u200eimage omitted\n[13/02/2026, 09:43:10] Tomas Reyes: It is not safe.\n",
        [(A, "The bridge stays open.\nBy all means: it does."), SHORT[1]],
        "2 attachment",
    ),
    Case(
        "WhatsApp on Android with media and an event",
        "chat.txt",
        "13/02/2026, 09:40 - Mira Holt added Tomas Reyes\n13/02/2026, 09:41 - Mira Holt: The bridge stays open.\n"
        "13/02/2026, 09:41 - Mira Holt: <Media omitted>\n13/02/2026, 09:42 - Tomas Reyes: It is not safe.\n",
        SHORT,
        "1 system message, 1 attachment",
    ),
    Case(
        "Signal or Skype",
        "a.txt",
        "[2026-02-03 09:41:02] Mira Holt: The bridge stays open.\n[2026-02-03 09:42:02] Tomas Reyes: It is not safe.\n",
        SHORT,
    ),
    Case(
        "time before the name",
        "a.txt",
        "9:41 AM Mira Holt: The bridge stays open.\n9:42 AM Tomas Reyes: It is not safe.\n",
        SHORT,
    ),
    Case(
        "Slack paste with times on their own lines",
        "a.txt",
        "Mira Holt\n  9:41 AM\nThe bridge stays open.\n\nTomas Reyes\n  9:42 AM\nIt is not safe.\n",
        SHORT,
    ),
    Case(
        "Slack paste with brackets",
        "a.txt",
        "Mira Holt [9:41 AM]\nThe bridge stays open.\n\nTomas Reyes [9:42 AM]\nIt is not safe.\n",
        SHORT,
    ),
    Case(
        "Slack paste in German",
        "a.txt",
        "Mira Holt  09:41 Uhr\nThe bridge stays open.\n\nTomas Reyes  09:42 Uhr\nIt is not safe.\n",
        SHORT,
    ),
    Case(
        "Slack API, newest first",
        "a.json",
        _json(
            {
                "ok": True,
                "messages": [
                    {"type": "message", "user": "U2", "text": "It is not safe.", "ts": "1770000060.1"},
                    {
                        "type": "message",
                        "subtype": "bot_message",
                        "username": "bot",
                        "text": "Tick &lt;1&gt;",
                        "ts": "1770000050.1",
                    },
                    {
                        "type": "message",
                        "user": "U1",
                        "text": "The bridge stays open.",
                        "ts": "1770000000.1",
                        "files": [{"id": "F"}],
                        "user_profile": {"real_name": "", "display_name": "mira"},
                    },
                ],
            }
        ),
        [("mira", SHORT[0][1]), ("bot", "Tick <1>"), ("U2", SHORT[1][1])],
        "1 attachment",
    ),
    Case(
        "Discord API, newest first",
        "a.json",
        _json(
            [
                {
                    "id": "2",
                    "type": 0,
                    "content": "It is not safe.",
                    "author": {"id": "9", "username": "tomas", "global_name": None},
                    "timestamp": "2026-02-03T09:42:00Z",
                    "attachments": [{"id": "1"}],
                },
                {
                    "id": "1",
                    "type": 7,
                    "content": "",
                    "author": {"id": "8", "username": "mira"},
                    "timestamp": "2026-02-03T09:40:00Z",
                },
                {
                    "id": "3",
                    "type": 0,
                    "content": "The bridge stays open.",
                    "author": {"id": "8", "username": "mira", "global_name": "Mira Holt"},
                    "timestamp": "2026-02-03T09:41:00Z",
                },
            ]
        ),
        [SHORT[0], ("tomas", SHORT[1][1])],
        "1 system message, 1 attachment",
    ),
    Case(
        "Discord text export",
        "a.txt",
        "=" * 62
        + "\nGuild: Harbour\nChannel: general\nTopic: bridge\n"
        + "=" * 62
        + "\n\n[03-Feb-26 09:41 AM] mira\nThe bridge stays open.\n\n"
        "{Attachments}\nhttps://example.org/a.png\n\n[2/3/2026 9:42 AM] tomas (pinned)\nIt is not safe.\n\n"
        + "=" * 62
        + "\nExported 2 message(s)\n"
        + "=" * 62
        + "\n",
        [("mira", SHORT[0][1]), ("tomas", SHORT[1][1])],
        "1 attachment",
    ),
    Case(
        "Discord paste",
        "a.txt",
        "mira — Today at 9:41 AM\nThe bridge stays open.\ntomas — Today at 9:42 AM\nIt is not safe.\n",
        [("mira", SHORT[0][1]), ("tomas", SHORT[1][1])],
    ),
    Case(
        "Telegram export",
        "result.json",
        _json(
            {
                "name": "Harbour",
                "type": "private_group",
                "id": 1,
                "messages": [
                    {
                        "id": 1,
                        "type": "service",
                        "date": "2026-02-03T09:40:00",
                        "actor": "Mira Holt",
                        "action": "create_group",
                        "text": "",
                    },
                    {
                        "id": 2,
                        "type": "message",
                        "date": "2026-02-03T09:41:00",
                        "from": "Mira Holt",
                        "from_id": "user1",
                        "text": ["The ", {"type": "bold", "text": "bridge"}, " stays open."],
                    },
                    {
                        "id": 3,
                        "type": "message",
                        "date": "2026-02-03T09:42:00",
                        "from": "Tomas Reyes",
                        "from_id": "user2",
                        "text": "It is not safe.",
                        "photo": "p.jpg",
                    },
                ],
            }
        ),
        SHORT,
        "1 system message, 1 attachment",
    ),
    Case(
        "Telegram paste",
        "a.txt",
        "Mira Holt, [03.02.2026 09:41]\nThe bridge stays open.\n\nTomas Reyes, [03.02.2026 09:42]\nIt is not safe.\n",
        SHORT,
    ),
    Case(
        "GitHub issue with comments",
        "a.json",
        _json(
            {
                "title": "Close the bridge?",
                "body": "The bridge stays open.",
                "author": {"login": "mira"},
                "createdAt": "2026-02-03T09:41:00Z",
                "comments": [
                    {
                        "author": {"login": "tomas"},
                        "body": "It is not safe.",
                        "createdAt": "2026-02-03T09:42:00Z",
                    }
                ],
            }
        ),
        [("mira", SHORT[0][1]), ("tomas", SHORT[1][1])],
    ),
    Case(
        "GitHub comments of the API",
        "a.json",
        _json(
            [
                {"user": {"login": "mira", "id": 1}, "body": "The bridge stays open.", "created_at": "x"},
                {"user": {"login": "tomas", "id": 2}, "body": "It is not safe.", "created_at": "y"},
            ]
        ),
        [("mira", SHORT[0][1]), ("tomas", SHORT[1][1])],
    ),
    Case(
        "GitHub paste",
        "a.txt",
        "mira commented on Feb 3, 2026\nContributor\n\nThe bridge stays open.\n\ntomas commented 2 days ago\n\nIt is not safe.\n",
        [("mira", SHORT[0][1]), ("tomas", SHORT[1][1])],
    ),
    Case(
        "gh issue view",
        "a.txt",
        "title:\tClose the bridge?\nstate:\tOPEN\nauthor:\tmira\ncomments:\t1\n--\nThe bridge stays open.\n--\n"
        "author:\ttomas\nassociation:\tnone\nedited:\tfalse\nstatus:\tnone\n--\nIt is not safe.\n--\n",
        [("mira", SHORT[0][1]), ("tomas", SHORT[1][1])],
    ),
    Case(
        "Reddit thread",
        "a.json",
        _json(
            [
                {
                    "kind": "Listing",
                    "data": {
                        "children": [
                            {
                                "kind": "t3",
                                "data": {
                                    "title": "Close it?",
                                    "selftext": "The bridge stays open.",
                                    "author": "mira",
                                    "created_utc": 1770000000.0,
                                },
                            }
                        ]
                    },
                },
                {
                    "kind": "Listing",
                    "data": {
                        "children": [
                            {
                                "kind": "t1",
                                "data": {
                                    "author": "tomas",
                                    "body": "It is &gt; not safe.",
                                    "replies": {
                                        "kind": "Listing",
                                        "data": {
                                            "children": [
                                                {
                                                    "kind": "t1",
                                                    "data": {
                                                        "author": "mira",
                                                        "body": "Then repair it.",
                                                        "replies": "",
                                                    },
                                                }
                                            ]
                                        },
                                    },
                                },
                            },
                            {"kind": "more", "data": {"count": 7}},
                        ]
                    },
                },
            ]
        ),
        [("mira", SHORT[0][1]), ("tomas", "It is > not safe."), ("mira", "Then repair it.")],
        "7 hidden comments",
    ),
    Case(
        "Reddit paste",
        "a.txt",
        "u/mira\n•\n3h ago\nThe bridge stays open.\n\nUpvote\n12\nDownvote\nReply\nShare\n\ntomas\n•\n2h ago\nIt is not safe.\n\nUpvote\n1\nDownvote\n",
        [("mira", SHORT[0][1]), ("tomas", SHORT[1][1])],
    ),
    Case(
        "irssi",
        "a.log",
        "--- Log opened Tue Feb 03 09:40:00 2026\n09:41 -!- tomas [t@h] has joined #x\n09:41 <@mira> The bridge stays open.\n09:42 < tomas> It is not safe.\n",
        [("mira", SHORT[0][1]), ("tomas", SHORT[1][1])],
        "1 event",
    ),
    Case(
        "WeeChat",
        "a.weechatlog",
        "2026-02-03 09:40:59\t-->\ttomas (t@h) has joined\n2026-02-03 09:41:02\tmira\tThe bridge stays open.\n2026-02-03 09:42:10\t@tomas\tIt is not safe.\n",
        [("mira", SHORT[0][1]), ("tomas", SHORT[1][1])],
        "1 event",
    ),
    Case(
        "LINE",
        "a.txt",
        "[LINE] Chat history\nSaved on: 2026/02/03\n\n2026/02/03(Tue)\n09:41\tMira Holt\tThe bridge stays open.\n09:42\tTomas Reyes\tIt is not safe.\n",
        SHORT,
    ),
]
ASSISTANTS = [
    Case(
        "ChatGPT with hidden, tool and multimodal messages",
        "conversations.json",
        _json(
            [
                {
                    "title": "Bridge",
                    "mapping": {
                        "r": {"id": "r", "message": None, "parent": None, "children": ["h"]},
                        "h": {
                            "id": "h",
                            "parent": "r",
                            "children": ["u"],
                            "message": {
                                "author": {"role": "user"},
                                "content": {"content_type": "user_editable_context", "user_profile": "x"},
                                "metadata": {"is_visually_hidden_from_conversation": True},
                            },
                        },
                        "u": {
                            "id": "u",
                            "parent": "h",
                            "children": ["c"],
                            "message": {
                                "author": {"role": "user"},
                                "create_time": 1770000000.5,
                                "content": {
                                    "content_type": "multimodal_text",
                                    "parts": [
                                        {"content_type": "image_asset_pointer", "asset_pointer": "x"},
                                        "Is the bridge safe?",
                                    ],
                                },
                            },
                        },
                        "c": {
                            "id": "c",
                            "parent": "u",
                            "children": ["t"],
                            "message": {
                                "author": {"role": "assistant"},
                                "recipient": "python",
                                "content": {"content_type": "code", "text": "x=1"},
                            },
                        },
                        "t": {
                            "id": "t",
                            "parent": "c",
                            "children": ["a"],
                            "message": {
                                "author": {"role": "tool", "name": "python"},
                                "content": {"content_type": "execution_output", "text": "1"},
                            },
                        },
                        "a": {
                            "id": "a",
                            "parent": "t",
                            "children": [],
                            "message": {
                                "author": {"role": "assistant"},
                                "recipient": "all",
                                "content": {"content_type": "text", "parts": ["Not in winter."]},
                            },
                        },
                    },
                    "current_node": "a",
                }
            ]
        ),
        CHAT,
        "1 tool call",
    ),
    Case(
        "Claude export with blocks",
        "conversations.json",
        _json(
            [
                {
                    "uuid": "u",
                    "name": "Bridge",
                    "chat_messages": [
                        {
                            "uuid": "1",
                            "sender": "human",
                            "text": "Is the bridge safe?",
                            "content": [{"type": "text", "text": "Is the bridge safe?"}],
                            "attachments": [{"file_name": "a"}],
                            "files": [],
                        },
                        {
                            "uuid": "2",
                            "sender": "assistant",
                            "text": "",
                            "content": [
                                {"type": "thinking", "thinking": "hm"},
                                {"type": "text", "text": "Not in winter."},
                            ],
                        },
                    ],
                }
            ]
        ),
        [("human", CHAT[0][1]), CHAT[1]],
        "1 attachment, 1 reasoning",
    ),
    Case(
        "Claude Code session",
        "s.jsonl",
        _lines(
            {"type": "summary", "summary": "Bridge", "leafUuid": "x"},
            {
                "type": "user",
                "uuid": "1",
                "sessionId": "s",
                "timestamp": "2026-02-03T09:41:00Z",
                "message": {"role": "user", "content": "Is the bridge safe?"},
            },
            {"type": "system", "uuid": "2", "sessionId": "s", "content": "hook"},
            {
                "type": "assistant",
                "uuid": "3",
                "sessionId": "s",
                "message": {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]},
            },
            {
                "type": "assistant",
                "uuid": "4",
                "sessionId": "s",
                "message": {"role": "assistant", "content": [{"type": "text", "text": "Not in winter."}]},
            },
        ),
        CHAT,
        "1 event",
    ),
    Case(
        "ShareGPT",
        "a.json",
        _json(
            {
                "id": "x",
                "conversations": [
                    {"from": "system", "value": "s"},
                    {"from": "human", "value": "Is the bridge safe?"},
                    {"from": "gpt", "value": "Not in winter."},
                ],
            }
        ),
        [("system", "s"), ("human", CHAT[0][1]), ("gpt", CHAT[1][1])],
    ),
    Case(
        "ShareGPT list",
        "a.json",
        _json(
            [
                {
                    "id": "x",
                    "conversations": [
                        {"from": "human", "value": "Is the bridge safe?"},
                        {"from": "gpt", "value": "Not in winter."},
                    ],
                }
            ]
        ),
        [("human", CHAT[0][1]), ("gpt", CHAT[1][1])],
    ),
    Case(
        "Responses API",
        "a.json",
        _json(
            {
                "object": "response",
                "input": "Is the bridge safe?",
                "output": [
                    {"type": "reasoning", "summary": []},
                    {
                        "type": "message",
                        "role": "assistant",
                        "content": [{"type": "output_text", "text": "Not in winter."}],
                    },
                ],
            }
        ),
        CHAT,
        "1 reasoning",
    ),
    Case(
        "Chat Completions response",
        "a.json",
        _json(
            {
                "request": {"messages": [{"role": "user", "content": "Is the bridge safe?"}]},
                "response": {"choices": [{"message": {"role": "assistant", "content": "Not in winter."}}]},
            }
        ),
        CHAT,
    ),
    Case(
        "Gemini with a thought and a system instruction",
        "a.json",
        _json(
            {
                "systemInstruction": {"parts": [{"text": "s"}]},
                "contents": [
                    {
                        "role": "user",
                        "parts": [{"text": "Is the bridge safe?"}, {"inlineData": {"data": "x"}}],
                    },
                    {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "Not in winter."}]},
                ],
            }
        ),
        [CHAT[0], ("model", CHAT[1][1])],
        "1 system message",
    ),
    Case(
        "AI Studio",
        "a.json",
        _json(
            {
                "chunkedPrompt": {
                    "chunks": [
                        {"role": "user", "text": "Is the bridge safe?"},
                        {"role": "model", "text": "hm", "isThought": True},
                        {"role": "model", "text": "Not in winter."},
                    ]
                }
            }
        ),
        [CHAT[0], ("model", CHAT[1][1])],
        "1 reasoning",
    ),
    Case(
        "Vercel with a tool",
        "a.json",
        _json(
            {
                "messages": [
                    {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Is the bridge safe?"}]},
                    {
                        "id": "2",
                        "role": "assistant",
                        "parts": [
                            {"type": "tool-weather", "state": "output-available", "input": {}, "output": {}},
                            {"type": "reasoning", "text": "hm"},
                            {"type": "text", "text": "Not in winter."},
                        ],
                    },
                ]
            }
        ),
        CHAT,
        "1 tool call",
    ),
    Case(
        "ChatGPT page as text",
        "a.txt",
        "You said:\nIs the bridge safe?\n\nChatGPT said:\nNot in winter.\n",
        [("You", CHAT[0][1]), ("ChatGPT", CHAT[1][1])],
    ),
]
FRAMEWORKS = [
    Case(
        "LangChain dumpd",
        "a.json",
        _json(
            [
                {
                    "lc": 1,
                    "type": "constructor",
                    "id": ["langchain", "schema", "messages", "SystemMessage"],
                    "kwargs": {"content": "s", "type": "system"},
                },
                {
                    "lc": 1,
                    "type": "constructor",
                    "id": ["langchain", "schema", "messages", "HumanMessage"],
                    "kwargs": {"content": "Is the bridge safe?", "type": "human"},
                },
                {
                    "lc": 1,
                    "type": "constructor",
                    "id": ["langchain", "schema", "messages", "AIMessage"],
                    "kwargs": {
                        "content": [{"type": "text", "text": "Not in winter."}],
                        "type": "ai",
                        "name": "mira",
                    },
                },
            ]
        ),
        [("human", CHAT[0][1]), ("mira", CHAT[1][1])],
        "1 system message",
    ),
    Case(
        "LangGraph checkpoint",
        "a.json",
        _json(
            {
                "channel_values": {
                    "messages": [
                        {"type": "human", "content": "Is the bridge safe?"},
                        {"type": "ai", "content": "Not in winter.", "name": None},
                    ]
                },
                "ts": "x",
            }
        ),
        [("human", CHAT[0][1]), ("ai", CHAT[1][1])],
    ),
    Case(
        "AutoGen team state",
        "a.json",
        _json(
            {
                "type": "TeamState",
                "agent_states": {
                    "Mira/1": {"type": "ChatAgentContainerState", "message_buffer": []},
                    "RoundRobinGroupChatManager/1": {
                        "message_thread": [
                            {"source": "user", "content": "Is the bridge safe?", "type": "TextMessage"},
                            {
                                "source": "mira",
                                "content": [{"id": "1", "name": "f", "arguments": "{}"}],
                                "type": "ToolCallRequestEvent",
                            },
                            {"source": "mira", "content": "Not in winter.", "type": "TextMessage"},
                        ]
                    },
                },
            }
        ),
        [("user", CHAT[0][1]), ("mira", CHAT[1][1])],
        "1 event",
    ),
    Case(
        "AG2 result",
        "a.json",
        _json(
            {
                "chat_id": 1,
                "chat_history": [
                    {"content": "Is the bridge safe?", "role": "assistant", "name": "Mira"},
                    {"content": "Not in winter.", "role": "user", "name": "Tomas"},
                ],
                "summary": "s",
                "cost": {},
            }
        ),
        [("Mira", CHAT[0][1]), ("Tomas", CHAT[1][1])],
    ),
    Case(
        "MALLM",
        "a.json",
        _json(
            [
                {
                    "exampleId": "1",
                    "instruction": "Decide.",
                    "personas": [],
                    "input": ["Is the bridge safe?"],
                    "globalMemory": [
                        {
                            "message_id": 0,
                            "turn": 1,
                            "agent_id": "a",
                            "persona": "Engineer",
                            "contribution": "draft",
                            "message": "Not in winter.",
                            "agreement": None,
                            "solution": "no",
                        },
                        {
                            "message_id": 1,
                            "turn": 1,
                            "agent_id": "b",
                            "persona": "Mayor",
                            "contribution": "improve",
                            "message": "It must be.",
                            "agreement": False,
                            "solution": "yes",
                        },
                    ],
                    "answer": "no",
                }
            ]
        ),
        [("Engineer", "Not in winter."), ("Mayor", "It must be.")],
    ),
    Case(
        "ChatEval",
        "a.json",
        _json(
            [
                {
                    "question": "Is the bridge safe?",
                    "response": {"one": "Yes.", "two": "No."},
                    "evaluation": [
                        {"role": "Critic", "evaluation": "Two is right."},
                        {"role": "Public", "evaluation": "One."},
                    ],
                }
            ]
        ),
        [("one", "Yes."), ("two", "No."), ("Critic", "Two is right."), ("Public", "One.")],
    ),
    Case(
        "inspect_ai with a tool",
        "a.json",
        _json(
            {
                "eval": {},
                "samples": [
                    {
                        "id": "s",
                        "messages": [
                            {"role": "user", "content": "Is the bridge safe?"},
                            {
                                "role": "assistant",
                                "content": [
                                    {"type": "reasoning", "reasoning": "hm"},
                                    {"type": "text", "text": "Not in winter."},
                                ],
                            },
                        ],
                    }
                ],
            }
        ),
        CHAT,
        "1 reasoning",
    ),
]
PLAIN = [
    Case(
        "captions",
        "a.txt",
        ">> MIRA HOLT: The bridge stays open.\n>> TOMAS REYES: It is not safe.\n",
        [("MIRA HOLT", SHORT[0][1]), ("TOMAS REYES", SHORT[1][1])],
    ),
    Case(
        "court with numbered lines",
        "a.txt",
        " 1          MS. HOLT:  The bridge stays open.\n 2          MR. REYES:  It is not safe.\n 3          THE COURT:  Overruled.\n",
        [("MS. HOLT", SHORT[0][1]), ("MR. REYES", SHORT[1][1]), ("THE COURT", "Overruled.")],
    ),
    Case(
        "questions and answers in court",
        "a.txt",
        "BY MR. REYES:\n\nQ.   Is the bridge safe?\n\nA.   Not in winter.\n\nQ.   Sure?\n\nA.   Yes.\n",
        [
            ("MR. REYES", CHAT[0][1]),
            ("THE WITNESS", CHAT[1][1]),
            ("MR. REYES", "Sure?"),
            ("THE WITNESS", "Yes."),
        ],
    ),
    Case(
        "Congressional Record",
        "a.txt",
        "Mr. REYES of Ohio. Mr. Speaker, I rise.\nThe bridge is not safe.\n\nMs. HOLT. It stays open.\n",
        [
            ("Mr. REYES of Ohio", "Mr. Speaker, I rise.\nThe bridge is not safe."),
            ("Ms. HOLT", "It stays open."),
        ],
    ),
    Case(
        "European Parliament",
        "a.txt",
        "Mira Holt (PPE). – Madam President, it stays open.\n\nTomas Reyes, on behalf of the S&D Group. – It is not safe.\n",
        [(A, "Madam President, it stays open."), (B, "It is not safe.")],
    ),
    Case(
        "House of Commons",
        "a.txt",
        "Ms Holt (Harbour East) (Ind):\nThe bridge stays open.\n\nThe Speaker:\nOrder.\n\nMs Holt (Harbour East) (Ind):\nThen repair it.\n",
        [
            ("Ms Holt (Harbour East) (Ind)", SHORT[0][1]),
            ("The Speaker", "Order."),
            ("Ms Holt (Harbour East) (Ind)", "Then repair it."),
        ],
    ),
    Case(
        "names on their own lines",
        "a.txt",
        "MIRA HOLT\nThe bridge stays open.\n\nTOMAS REYES\nIt is not safe.\n",
        [("MIRA HOLT", SHORT[0][1]), ("TOMAS REYES", SHORT[1][1])],
    ),
    Case(
        "angle brackets without times",
        "a.txt",
        "<mira> The bridge stays open.\n<tomas> It is not safe.\n",
        [("mira", SHORT[0][1]), ("tomas", SHORT[1][1])],
    ),
    Case(
        "names before dashes",
        "a.txt",
        "Mira — The bridge stays open.\nTomas — It is not safe.\nMira — Then repair it.\n",
        [("Mira", SHORT[0][1]), ("Tomas", SHORT[1][1]), ("Mira", "Then repair it.")],
    ),
    Case(
        "bullets",
        "a.txt",
        "- Mira: The bridge stays open.\n- Tomas: It is not safe.\n",
        [("Mira", SHORT[0][1]), ("Tomas", SHORT[1][1])],
    ),
    Case(
        "bold lines with times",
        "a.md",
        "**Mira Holt** 00:02\nThe bridge stays open.\n\n**Tomas Reyes** 00:10\nIt is not safe.\n",
        SHORT,
    ),
    Case(
        "underscores",
        "a.md",
        "__Mira__: The bridge stays open.\n\n__Tomas__: It is not safe.\n",
        [("Mira", SHORT[0][1]), ("Tomas", SHORT[1][1])],
    ),
    Case(
        "quoted bold names",
        "a.md",
        "> **Mira:** The bridge stays open.\n\n> **Tomas:** It is not safe.\n",
        [("Mira", SHORT[0][1]), ("Tomas", SHORT[1][1])],
    ),
    Case(
        "headings of the third level",
        "a.md",
        "# Bridge\n\n### User\nIs the bridge safe?\n\n### Assistant\nNot in winter.\n",
        [("User", CHAT[0][1]), ("Assistant", CHAT[1][1])],
    ),
    Case(
        "headings of the first level",
        "a.md",
        "# Mira\nThe bridge stays open.\n\n# Tomas\nIt is not safe.\n",
        [("Mira", SHORT[0][1]), ("Tomas", SHORT[1][1])],
    ),
    Case(
        "Markdown table",
        "a.md",
        "| Speaker | Text |\n|---|---|\n| Mira Holt | The bridge stays open. |\n| Tomas Reyes | It is not safe. |\n",
        SHORT,
    ),
    Case(
        "CSV with other names for its columns",
        "a.csv",
        "Timestamp,User Name,Message\n2026-02-03,Mira Holt,The bridge stays open.\n2026-02-04,Tomas Reyes,It is not safe.\n",
        SHORT,
    ),
    Case(
        "CSV with Excel's line and tabs",
        "a.csv",
        "sep=\t\nSpeaker\tText\nMira Holt\tThe bridge stays open.\nTomas Reyes\tIt is not safe.\n",
        SHORT,
    ),
    Case(
        "Windows line ends and encoding",
        "a.txt",
        "Mira: Für März.\r\nTomas: Nein – nie.\r\n".encode("cp1252"),
        [("Mira", "Für März."), ("Tomas", "Nein – nie.")],
    ),
    Case(
        "Cyrillic",
        "a.txt",
        "Мира: Мост открыт до марта.\nТомас: Нет, закрыть.\n".encode("cp1251"),
        [("Мира", "Мост открыт до марта."), ("Томас", "Нет, закрыть.")],
    ),
    Case(
        "Japanese",
        "a.txt",
        "田中：橋は安全です。\n鈴木：反対です。\n".encode("shift_jis"),
        [("田中", "橋は安全です。"), ("鈴木", "反対です。")],
    ),
    Case(
        "UTF-16 without a mark",
        "a.txt",
        "Mira: Open.\nTomas: No.\n".encode("utf-16-le"),
        [("Mira", "Open."), ("Tomas", "No.")],
    ),
]
CASES = [*SUBTITLES, *MEETINGS, *CHATS, *ASSISTANTS, *FRAMEWORKS, *PLAIN]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_form_is_read_with_its_speakers_and_messages(case: Case) -> None:
    read = parse_transcript(case.text, filename=case.file)
    names = {speaker.id: speaker.name for speaker in read.speakers}
    spoken = [(names[each.speaker], each.content) for each in read.messages if each.kind != "tool_result"]
    assert spoken == case.expected
    assert case.left_out in read.left_out
