"""Chats and threads."""

# ruff: noqa: E501  # one line of a file may be longer than a line of code

from __future__ import annotations

from tests.support.transcript_forms.case import SHORT, A, Case, to_json

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
        to_json(
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
        to_json(
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
        to_json(
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
        to_json(
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
        to_json(
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
        to_json(
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
    Case(
        "WhatsApp in Arabic, with marks of direction in the date",
        "a.txt",
        "\u200f12\u200f/1\u200f/2026، 10:05 ص - Mira Holt: The bridge stays open.\n"
        "\u200f12\u200f/1\u200f/2026، 10:06 ص - Tomas Reyes: It is not safe.\n",
        SHORT,
    ),
]
