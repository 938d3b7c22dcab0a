"""Plain text, Markdown, tables and encodings."""

# ruff: noqa: E501  # one line of a file may be longer than a line of code

from __future__ import annotations

from tests.support.transcript_forms.case import CHAT, SHORT, A, B, Case

PLAIN = [
    Case(
        "Markdown with fields above, rounds between and quoted messages",
        "a.md",
        "# bridge\n> Is it safe?\n\n**Prompt:** Is it safe?\n**Status:** completed\n**Ended:** 2026-10-02\n\n## Panel\n"
        "- **Mira Holt (CTO)** (`cto`) - m\n\n## Transcript\n\n### Round 1\n\n#### Mira Holt (CTO) _(m)_\n\n> It stays\n"
        ">\n> open.\n\n#### Tomas Reyes _(m)_\n\n> It is not safe.\n\n### Round 2\n\n#### Mira Holt (CTO) _(m)_\n\n> No.\n\n"
        "#### Tomas Reyes _(m)_\n\n> Yes.\n\n---\n_Exported on 2026-10-02_\n",
        [
            ("Mira Holt (CTO)", "It stays\n\nopen."),
            (B, SHORT[1][1]),
            ("Mira Holt (CTO)", "No."),
            (B, "Yes."),
        ],
    ),
    Case(
        "Markdown with bold fields above two headings",
        "a.md",
        "**Date:** 2 October\n**Place:** Harbour hall\n\n## Mira Holt\nIt stays open.\n\n"
        "## Tomas Reyes\nIt is not safe.\n",
        [(A, "It stays open."), (B, SHORT[1][1])],
    ),
    Case(
        "text with fields above",
        "a.txt",
        "Date: 2 October\nPlace: Harbour hall\nAttendees: both\n\nMira Holt: It stays open.\n"
        "Tomas Reyes: It is not safe.\nMira Holt: Then repair it.\n",
        [(A, "It stays open."), (B, SHORT[1][1]), (A, "Then repair it.")],
        "3 header lines",
    ),
    Case(
        "Markdown with bold fields above bold names",
        "a.md",
        "**Place:** Harbour hall\n**Attendees:** both\n\n**Mira Holt:** It stays open.\n\n"
        "**Tomas Reyes:** It is not safe.\n\n**Mira Holt:** Then repair it.\n",
        [(A, "It stays open."), (B, SHORT[1][1]), (A, "Then repair it.")],
        "2 header lines",
    ),
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
