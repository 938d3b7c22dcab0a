"""Subtitles, meeting tools and speech recognition."""

# ruff: noqa: E501  # one line of a file may be longer than a line of code

from __future__ import annotations

from tests.support.transcript_forms.case import SHORT, TALK, A, B, Case, to_json

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
    Case(
        "SubRip with a name in brackets before each cue",
        "a.srt",
        "1\n00:00:01,000 --> 00:00:02,000\n[Mira Holt] The bridge stays open.\n\n"
        "2\n00:00:03,000 --> 00:00:04,000\n[Tomas Reyes] It is not safe.\n",
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
        to_json(
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
        to_json(
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
        to_json(
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
        to_json(
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
        to_json(
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
        to_json(
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
    Case(
        "Rev AI with a list of names",
        "a.json",
        to_json(
            {
                "speakers": [{"id": 0, "name": A}, {"id": 1, "name": B}],
                "monologues": [
                    {"speaker": index, "elements": [{"type": "text", "value": text, "ts": 0.1}]}
                    for index, (_, text) in enumerate(SHORT)
                ],
            }
        ),
        SHORT,
    ),
    Case(
        "a list of sentences",
        "a.json",
        to_json([{"sentence": text, "startTime": "00:03", "speaker_name": name} for name, text in TALK]),
        TALK,
    ),
    Case(
        "fields above the first message",
        "a.txt",
        "Meeting Title: Bridge\nDate: May 4\n\nTranscript:\n\nMe: Open.\nThem: No.\nMe: Why?\n",
        [("Me", "Open."), ("Them", "No."), ("Me", "Why?")],
    ),
]
