"""A debate as Markdown: the whole report, a one-page brief or an architecture decision record."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from itertools import accumulate, pairwise
from typing import Any, Literal
from urllib.parse import quote

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from moot.claims.ledger_rendering import board_text
from moot.reports.html import Report, template_environment
from moot.reports.markdown_html import PLAIN_ABOVE, Prose, is_safe_link, parser, place_headings
from moot.reports.verdict_view import Participant
from moot.state.conversation import options_of
from moot.state.entries import is_program_note, traits_of
from moot.state.verdict import UNDECIDED
from moot.text.plain_text import clip, show_reordering
from moot.text.terms import split_sentences, term_set

_SPECIAL = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?])|&(?=#?\w+;)|(?<!\S)#")
"""Pattern for characters with a special meaning in Markdown or HTML."""
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_LINE_START = re.compile(r"^(\s*)([-+=>]|\d{1,9}[.)](?=\s|$))")


def plain(text: str) -> str:
    """Return `text` on one line with Markdown and HTML syntax escaped."""
    line = " ".join(text.split())
    # `&lt;` also works in Markdown renderers that ignore a backslash before a tag.
    line = _SPECIAL.sub(lambda mark: "&lt;" if mark[0] == "<" else f"\\{mark[0]}", line)
    start = _LINE_START.match(line)
    return f"{line[: start.end() - 1]}\\{line[start.end() - 1 :]}" if start else line


def block_quote(text: str) -> str:
    """Return Markdown text as a block quote in which unsafe content is disabled.

    HTML outside fences is escaped and images become links. If a link does not lead to the web, or the text
    defines a link target, all brackets are escaped.
    """
    return "\n".join(f"> {line}".rstrip() for line in defuse(text).split("\n"))


def section(text: str, base: int) -> str:
    """Disable unsafe content, and shift headings to level `base` without skipping a level."""
    text = defuse(text)
    lines, tokens = text.split("\n"), parser().parse(text)
    place_headings(tokens, base)
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open" and opening.level == 0 and opening.map:
            first, end = opening.map
            title = " ".join(inline.content.split("\n"))
            lines[first:end] = [f"{'#' * int(opening.tag[1:])} {title}", *[""] * (end - first - 1)]
    return "\n".join(lines)


def defuse(text: str) -> str:
    """Disable HTML, images and unsafe links in Markdown text."""
    if len(text) > PLAIN_ABOVE:
        longest = max((len(run) for run in re.findall("`+", text)), default=0)
        fence = "`" * max(3, longest + 1)
        return f"{fence}text\n{text}\n{fence}"
    if "<" not in text and "[" not in text:
        return text
    # Top-level fences are shown verbatim.
    tokens = _inspector().parse(text)
    fences = [token.map for token in tokens if token.type == "fence" and token.level == 0 and token.map]
    fenced = {number for start, end in fences for number in range(start, end)}
    text = _outside(fenced, text, lambda line: _TAG.sub("&lt;", line).replace("![", "&#33;["))
    # Checked last, because an escaped tag can turn the brackets around it into a link.
    if _is_misleading_link(text):
        text = _outside(fenced, text, lambda line: line.replace("[", "&#91;").replace("]", "&#93;"))
    return text


def _outside(fenced: set[int], text: str, change: Callable[[str], str]) -> str:
    # Entities are used, not backslashes, because a backslash in the text would undo the escape.
    lines = enumerate(text.split("\n"))
    return "\n".join(line if number in fenced else change(line) for number, line in lines)


@cache
def _inspector() -> MarkdownIt:
    markdown = parser()
    markdown.validateLink = lambda url: True  # type: ignore[method-assign]  # it must see bad links to report them
    return markdown


def _is_misleading_link(text: str) -> bool:
    """Return True if Markdown text contains a link that may mislead readers."""
    environment: dict[str, Any] = {}
    tokens = _inspector().parse(text, environment)
    for token in tokens:  # the list grows
        tokens += token.children or ()
    targets = (token.attrGet(key) for token in tokens for key in ("href", "src"))
    misleading = any(target is not None and not is_safe_link(str(target)) for target in targets)
    return misleading or bool(environment.get("references"))


MAX_WORDS = 900
"""Maximum number of words in a brief or a decision record. A longer one is rendered with less detail."""
DETAILS = (1.0, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1)
"""Shares of the limits below that are tried until a brief or a decision record is short enough."""
MAX_TABLE_ROWS = 8
"""Maximum number of rows in each table of a brief or a decision record, and of lines in each list."""
SHOWN_SOURCES, SOURCE_CHARS = 12, 140
"""Maximum number of footnotes, and maximum length of a quotation in a footnote, in characters."""
SOLUTION_SHARE = 0.4
"""Minimum share of the solution's limit. The solution is carried out, so other parts are shortened first."""
BACKGROUND_CHARS = 600
"""Maximum length of each background document in a decision record, in characters."""
BRIEF_CHARS = 1200
"""Maximum length of the solution in a one-page report (brief), in characters."""
TOPIC_CHARS = 600
"""Maximum length of the topic in a one-page report (brief), in characters."""


def render_markdown(document: Mapping[str, object]) -> str:
    """Render a debate's report as Markdown.

    The report has the same contents as the HTML page except charts. Messages are block quotes in their own
    Markdown, with HTML, images and suspicious links disabled. Names and other short texts are escaped.
    Citations link to the anchor of their message. Any key of the document may be missing.

    Returns:
        The text of the file, ending with a newline.
    """
    report = Report(document)

    def cite(message_id: str) -> str:
        anchor = report.anchors.get(message_id)
        return f"[{plain(message_id)}](#{quote(anchor)})" if anchor else plain(message_id)

    # Autoescape is off for Markdown, so each text needs `plain` or `quoted`, which escape Markdown and HTML.
    environment = template_environment(plain=plain, quoted=block_quote, cite=cite, attribute=escape)
    text = environment.get_template("report.md.j2").render(report=report)
    return _tidy(text)


def render_brief(document: Mapping[str, object], form: Literal["brief", "adr"] = "brief") -> str:
    """Render a debate as a one-page brief or an architecture decision record in Markdown.

    Any key of the document may be missing.
    """
    return _brief(Report(document), form)


def _brief(report: Report, form: Literal["brief", "adr"]) -> str:
    environment = template_environment(plain=plain, quoted=block_quote, section=section)
    template = environment.get_template(f"{form}.md.j2")
    beyond_title = report.topic.removeprefix(report.title).removesuffix(report.title)
    for share in DETAILS:
        text = template.render(
            report=report,
            considered=_considered(report),
            background=_background(report, int(share * BACKGROUND_CHARS)) if form == "adr" else [],
            added=_added(report, int(share * TOPIC_CHARS)),
            most=max(1, int(share * MAX_TABLE_ROWS)),
            rows=MAX_TABLE_ROWS,
            excerpt=_solution_excerpt(report.at_a_glance, int(max(share, SOLUTION_SHARE) * BRIEF_CHARS)),
            asked=_excerpt(beyond_title, int(share * TOPIC_CHARS)),
            reasons=_whole_sentences(report.verdict.record["reasoning"], int(share * BRIEF_CHARS))
            if report.verdict
            else "",
        )
        text = _tidy(_with_sources(text, report, int(share * SHOWN_SOURCES)))
        if len(text.split()) <= MAX_WORDS:
            break
    return text


_ID = r"m\d{6,}"
_CITATIONS = re.compile(rf"[ ]?(?:\\?\[|\()({_ID}(?:\s*,\s*{_ID})*)(?:\\?\]|\))|\b({_ID})\b")


def _with_sources(text: str, report: Report, max_notes: int) -> str:
    """Replace message ids by numbered notes, which quote the sentence of the message that fits best.

    Readers without Moot cannot look up an id. In brackets, ids after the first `max_notes` are left out.
    """
    entries = {entry["id"]: entry for entry in report.document["transcript"]}
    notes: dict[str, str] = {}

    def number(key: str, line: str) -> str:
        entry = entries.get(key)
        if key not in notes and entry and len(notes) < max_notes:
            quotation = clip(_one_line(_closest_sentence(entry["content"], line)), SOURCE_CHARS)
            notes[key] = f"{report.people[entry['speaker']].name}: “{quotation}”"
        return f"[{list(notes).index(key) + 1}]" if key in notes else ""

    def mark(match: re.Match[str]) -> str:
        line = text[text.rfind("\n", 0, match.start()) + 1 :].partition("\n")[0]
        if match[2]:
            return number(match[2], line) or match[0]
        numbers = "".join(number(key.strip(), line) for key in match[1].split(","))
        return f" {numbers}" if numbers else ""

    marked = _CITATIONS.sub(mark, text)
    if not notes:
        return marked
    lines = [f"{place}. {plain(note)}" for place, note in enumerate(notes.values(), 1)]
    sources = "\n".join(["", "## Sources", "", *lines, ""])
    body, rule, footer = marked.rpartition("\n---\n")
    return f"{body}\n{sources}{rule}{footer}" if "\n# " in f"\n{body}" else f"{marked}\n{sources}"


def _closest_sentence(text: str, line: str) -> str:
    """Return the sentence of a text that shares the most words with a line, or its first sentence."""
    line_terms = term_set(line)
    sentences = [each.text for each in split_sentences(text) if each.kind != "heading"]
    return max(sentences, key=lambda sentence: len(term_set(sentence) & line_terms), default=text)


def render_brief_html(document: Mapping[str, object]) -> str:
    """Render the one-page brief of a debate as a self-contained HTML page."""
    report = Report(document)
    return as_page(_brief(report, "brief"), report.title)


def as_page(
    text: str, title: str, kicker: str = "In brief", figures: Markup | None = None, lead: str = ""
) -> str:
    """Render Markdown as a self-contained HTML page.

    The first line of `text` is the title, and `kicker` the line above it. `lead`, as Markdown, and then
    `figures`, as trusted HTML, are shown before the text.
    """
    body, lead_html = Prose({}).block(text.partition("\n")[2], base=2), Prose({}).block(lead, base=2)
    template = template_environment().get_template("brief.html.j2")
    return show_reordering(
        template.render(title=title, lead=lead_html, body=body, kicker=kicker, figures=figures or "")
    )


def _considered(report: Report) -> list[str]:
    """Return the answers that the debate considered, if the judge did not weigh them.

    Each answer names the debaters who argue for it or gave it up. The options of the question that nobody
    chose follow, then the judge's decision if it is another answer.
    """
    holders: dict[str, list[str]] = {}
    for person in report.people.values():
        if position := _position_of(report, person):
            holders.setdefault(position, []).append(person.name)
    former_holders = {
        option: [report.people[debater].name for debater in debaters if report.option_of(debater) != option]
        for option, debaters in report.options_chosen.items()
    }
    decision = report.verdict.record.get("decision", "") if report.verdict else ""
    question_options, lines = options_of(report.document.get("state") or {}), []
    for answer in dict.fromkeys([*former_holders, *question_options, *holders]):
        holder_names, former_names = (
            ", ".join(holders.get(answer, ())),
            ", ".join(former_holders.get(answer, ())),
        )
        notes = [holder_names and f"argued by {holder_names}", former_names and f"given up by {former_names}"]
        note = "; ".join(filter(None, notes)) or ("chosen by nobody" if former_holders else "")
        lines.append(f"{answer} ({note})" if note else answer)
    if decision and lines and decision not in {*former_holders, *holders, *question_options, UNDECIDED}:
        lines.append(f"{decision} (the judge's decision)")
    return lines


def _position_of(report: Report, person: Participant) -> str:
    """Return a debater's position.

    The position is the option that the debater holds on an open question. If there is none, the debater's
    final position counts, or else the configured stance.
    """
    final = report.verdict.positions.get(person.id, "") if report.verdict else ""
    return report.option_of(person.id) or final.strip() or person.stance.strip()


def _background(report: Report, limit: int) -> list[tuple[str, str]]:
    """Return the name and the beginning of each background document."""
    documents = []
    for entry in report.document["transcript"]:
        if traits_of(entry).user_input == "document" and not is_program_note(entry):
            name, _, text = entry["content"].partition("\n\n")
            documents.append((name.strip(), _excerpt(text, limit)))
    return [(name, text) for name, text in documents if text]


def _added(report: Report, limit: int) -> list[tuple[str, str]]:
    """Return the ids and beginnings of people's messages, which may change the facts of the decision."""
    entries = (
        entry for entry in report.document["transcript"] if traits_of(entry).user_input == "interjection"
    )
    return [(entry["id"], _excerpt(entry["content"], limit)) for entry in entries]


def _solution_excerpt(text: str, limit: int) -> str:
    """Shorten a long solution to its first whole lines, and add a note about the full report."""
    text = text.strip()
    if len(text) <= limit:
        return text
    excerpt, _, rest = text[: limit + 1].rpartition("\n")
    for fence in ("```", "~~~"):
        if excerpt.count(fence) % 2:
            excerpt = excerpt[: excerpt.rindex(fence)]
    lines = (excerpt.strip() or _whole_sentences(rest, limit)).split("\n")
    while len(lines) > 1 and (not lines[-1].strip() or lines[-1].startswith("#")):
        lines.pop()  # a heading without its text
    return "\n".join([*lines, "", "*The rest is in the full report.*"])


def _excerpt(text: str, limit: int) -> str:
    """Return as many whole lines of a text as fit into `limit` characters.

    A mark shows that the rest is left out. Line breaks count, the mark does not. Of a first line that is too
    long, return whole sentences. Headings become plain lines.
    """
    lines = [line.strip().lstrip("#").strip() for line in text.strip().splitlines()]
    ends = accumulate(len(line) + 1 for line in lines)  # each end includes a line break
    shown_lines = [line for line, end in zip(lines, ends, strict=True) if end - 1 <= limit]
    if not any(shown_lines):
        shown_lines = [_whole_sentences(text, limit)]
    is_cut = len(_one_line("\n".join(shown_lines))) < len(_one_line("\n".join(lines)))
    return "\n".join(shown_lines).strip() + (" […]" if is_cut else "")


def _whole_sentences(text: str, limit: int) -> str:
    """Return as many whole sentences as fit into `limit` characters, at least one."""
    line = _one_line(text)
    if len(line) <= limit:
        return line
    end = 0
    for sentence in split_sentences(line):
        sentence_end = sentence.start + len(sentence.text)
        if end and sentence_end > limit:
            break
        end = sentence_end
    return line[:end].rstrip()


def _one_line(text: str) -> str:
    return board_text(text, len(text) + 1)


def _tidy(text: str) -> str:
    """Remove repeated empty lines from a rendered template. Text-direction characters become visible."""
    return show_reordering(re.sub(r"\n{3,}", "\n\n", text).strip()) + "\n"
