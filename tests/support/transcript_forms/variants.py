"""Variants of the other forms: further locales, exporters and dialects."""

# ruff: noqa: E501  # one line of a file may be longer than a line of code

from __future__ import annotations

from tests.support.transcript_forms.case import CHAT, SHORT, TALK, A, B, Case, to_json, to_lines

_T1, _T2 = SHORT[0][1], SHORT[1][1]
_STAMPS = {
    "copied from WhatsApp's web application": ("[09:41, 03/02/2026] ", "[09:42, 03/02/2026] "),
    "WhatsApp in French": ("03/02/2026 à 09:41 - ", "13/02/2026 à 09:42 - "),
    "WhatsApp in Bulgarian": ("3.02.2026 г., 9:41 ч. - ", "3.02.2026 г., 9:42 ч. - "),
    "WhatsApp in Persian": ("[۱۴۰۴/۱۱/۱۴،\u200f ۹:۴۱:۰۲] ", "[۱۴۰۴/۱۱/۱۴،\u200f ۹:۴۲:۰۲] "),
    "WhatsApp in Chinese at night": ("[2026/2/3 晚上9:41:02] ", "[2026/2/3 凌晨1:42:02] "),
    "WhatsApp in Hindi": ("3/2/2026, पूर्वाह्न 9:41 - ", "3/2/2026, अपराह्न 9:42 - "),
    "WhatsApp in Albanian": ("3.2.2026, 9:41 e paradites - ", "3.2.2026, 9:42 e pasdites - "),
    "WhatsApp in Malay": ("3/2/2026, 9:41 PG - ", "3/2/2026, 9:42 PTG - "),
}
_LAYOUTS = {
    "saved captions of Zoom": "[{}] 10:01:02\n{}\n\n",
    "Temi": "{}: (00:01)\n{}\n\n",
    "Sonix": "{}: [00:00:01] {}\n\n",
    "Trint": "{} [00:00:01] {}\n",
    "Amberscript": "{} (00:00:01 - 00:00:04):\n{}\n\n",
    "a chat of Teams with days": "[Yesterday 9:41 AM] {}\n{}\n\n",
    "Fathom": "@0:00 - **{}**\n{}\n\n",
    "KakaoTalk": "[{}] [오전 9:41] {}\n",
    "Premiere": "00:00:01:02 - 00:00:05:10\n{}\n{}\n\n",
    "Unicode line separators": "{}: {}\u2028",
}
_ALICE = {"sender_name": "Jos\u00c3\u00a9", "timestamp_ms": 1770000000000, "content": _T1}
_BOB = {"sender_name": B, "timestamp_ms": 1770000060000, "content": _T2}
VARIANTS = [
    *(Case(name, "chat.txt", f"{one}{A}: {_T1}\n{two}{B}: {_T2}\n", SHORT) for name, (one, two) in _STAMPS.items()),
    *(Case(name, "a.txt", "".join(layout.format(*each) for each in TALK), TALK) for name, layout in _LAYOUTS.items()),
    Case(
        "WhatsApp with a title above and an event with a colon",
        "chat.txt",
        f"The harbour group\n\n13/02/2026, 09:40 - {A} changed the group description to: safe\n"
        f"13/02/2026, 09:41 - {A}: {_T1}\n13/02/2026, 09:42 - {B}: {_T2}\n",
        SHORT,
        "1 system message",
    ),
    Case(
        "WhatsApp with an edited message",
        "chat.txt",
        f"[13/02/2026, 09:41:02] {A}: {_T1} \u200e<This message was edited>\n[13/02/2026, 09:42:02] {B}: {_T2}\n",
        SHORT,
    ),
    Case(
        "Webex with speakers in the ids of cues",
        "a.vtt",
        f'WEBVTT\n\n1 "{A}" (77)\n00:01.000 --> 00:02.000\n{_T1}\n\n2 "{B}" (78)\n00:03.000 --> 00:04.000\n{_T2}\n',
        SHORT,
    ),
    Case(
        "lower-case names in subtitles, one of them rare",
        "a.srt",
        "".join(
            f"{at}\n00:00:0{at},000 --> 00:00:0{at},900\n{name}: {text}\n\n"
            for at, (name, text) in enumerate([("mira", _T1), ("tomas", _T2), ("mira", "No.")], start=1)
        ),
        [("mira", _T1), ("tomas", _T2), ("mira", "No.")],
    ),
    Case(
        "headings inside an answer, and rules between messages",
        "a.md",
        "#### You:\nSafe?\n\n***\n\n#### ChatGPT:\nNo.\n\n### Plan\n\nRepair it.\n\n#### You:\nWhy?\n",
        [("You", "Safe?"), ("ChatGPT", "No.\n\n### Plan\n\nRepair it."), ("You", "Why?")],
        "1 heading or rule",
    ),
    Case("ElevenLabs", "a.json", to_json({"words": [{"text": text, "type": "word", "start": 1, "speaker_id": name} for name, text in (("s0", "Open"), ("s0", " it."), ("s1", "No."))]}), [("s0", "Open it."), ("s1", "No.")]),
    Case("Speechmatics", "a.json", to_json({"results": [{"type": kind, "start_time": 1, "alternatives": [{"content": text, "speaker": name}]} for kind, name, text in (("word", "S1", "Open"), ("punctuation", "S1", "."), ("word", "S2", "No"))]}), [("S1", "Open."), ("S2", "No")]),
    Case("Recall", "a.json", to_json([{"participant": {"id": 1, "name": name}, "words": [{"text": word} for word in text.split()]} for name, text in SHORT]), SHORT),
    Case("Messenger, newest first and with damaged letters", "a.json", to_json({"title": "x", "messages": [_BOB, _ALICE]}), [("José", _T1), (B, _T2)]),
    Case("Slack with a thread and with blocks", "a.json", to_json({"messages": [{"type": "message", "user": "U1", "text": _T1, "ts": "1770000000.1", "slackdump_thread_replies": [{"type": "message", "user": "U2", "text": "", "ts": "1770000001.1", "blocks": [{"elements": [{"type": "text", "text": _T2}]}]}]}]}), [("U1", _T1), ("U2", _T2)]),
    Case("a thread with replies in messages", "a.json", to_json({"author": "mira", "text": _T1, "children": [{"author": "tomas", "text": _T2, "children": [{"author": "mira", "text": "No.", "children": []}]}]}), [("mira", _T1), ("tomas", _T2), ("mira", "No.")]),
    Case("GitHub pull request with a review and a deleted user", "a.json", to_json({"title": "x", "body": _T1, "author": {"login": "mira"}, "comments": [{"author": None, "body": "No."}], "reviews": [{"author": {"login": "tomas"}, "body": _T2, "submittedAt": "2026"}]}), [("mira", _T1), ("ghost", "No."), ("tomas", _T2)]),
    Case("OpenAI thread, newest first", "a.json", to_json({"object": "list", "data": [{"role": role, "created_at": at, "content": [{"type": "text", "text": {"value": text}}]} for at, (role, text) in ((1770000060, CHAT[1]), (1770000000, CHAT[0]))]}), CHAT),
    Case("OpenAI refusal", "a.json", to_json([{"role": "user", "content": CHAT[0][1]}, {"role": "assistant", "content": None, "refusal": "I can't."}]), [CHAT[0], ("assistant", "I can't.")]),
    Case("OpenAI response with a search", "a.json", to_json({"input": CHAT[0][1], "output": [{"type": "web_search_call"}, {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": CHAT[1][1]}]}]}), CHAT, "1 tool call"),
    Case("Bedrock", "a.json", to_json({"messages": [{"role": "user", "content": [{"text": CHAT[0][1]}, {"image": {}}]}, {"role": "assistant", "content": [{"reasoningContent": {}}, {"text": CHAT[1][1]}]}]}), CHAT, "1 attachment, 1 reasoning"),
    Case("Claude export with a branch", "a.json", to_json({"name": "x", "chat_messages": [{"uuid": key, "parent_message_uuid": parent, "sender": role, "text": text} for key, parent, role, text in (("1", "0", "human", "Old?"), ("2", "0", "human", "Safe?"), ("3", "2", "assistant", "No."))]}), [("human", "Safe?"), ("assistant", "No.")], "1 off-branch message"),
    Case("TradingAgents", "a.json", to_json({"2026-02-03": {"company_of_interest": "X", "investment_debate_state": {"history": "\nBull Analyst: Up.\nBear Analyst: Down."}, "risk_debate_state": {}}}), [("Bull Analyst", "Up."), ("Bear Analyst", "Down.")], "1 risk debate"),
    Case("AG2 events", "a.jsonl", to_lines({"type": "text", "content": {"uuid": "1", "content": _T1, "sender": "mira"}}, {"type": "using_auto_reply", "content": {"uuid": "2", "sender": "x"}}, {"type": "text", "content": {"uuid": "3", "content": _T2, "sender": "tomas"}}), [("mira", _T1), ("tomas", _T2)], "1 event"),
    Case("German header of a table", "a.csv", f"Zeit;Sprecher;Text\n0:01;{A};{_T1}\n0:05;{B};{_T2}\n", SHORT),
    Case("table without a header, with dates", "a.csv", "".join(f"2026-02-0{at},{name},{text}\n" for at, (name, text) in enumerate(TALK, start=1)), TALK),
    Case("Polish in Windows-1250", "a.txt", "Łukasz: Skład otwarty aż do marca.\nŻaneta: Najpierw płatności.\nŁukasz: Dlaczego?\n".encode("cp1250"), [("Łukasz", "Skład otwarty aż do marca."), ("Żaneta", "Najpierw płatności."), ("Łukasz", "Dlaczego?")]),
]  # fmt: skip
