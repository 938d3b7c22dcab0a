"""The Markdown report: hostile texts, citations and headings."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings, strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from moot.reports import render_markdown
from moot.reports.markdown import block_quote, defuse, plain
from moot.reports.markdown_html import PLAIN_ABOVE, Prose
from tests.support.report_documents import ATTACKS, debate_document, hostile_document


def all_tokens(text: str) -> list[Token]:
    """Parse Markdown as a permissive viewer does: HTML is enabled and every link is allowed."""
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
    markdown.validateLink = lambda url: True  # type: ignore[method-assign]
    tokens = markdown.parse(text)
    return tokens + [child for token in tokens for child in token.children or []]


def dangers(text: str) -> list[str]:
    tokens = all_tokens(text)
    html = [token.content for token in tokens if token.type in ("html_block", "html_inline")]
    odd = [tag for tag in html if not re.fullmatch(r'<a id="[me]\d+">|</a>', tag.strip())]
    links = [str(token.attrGet("href")) for token in tokens if token.type == "link_open"]
    images = [str(token.attrGet("src")) for token in tokens if token.type == "image"]
    return odd + images + [link for link in links if not re.match(r"https?://|#[me]\d+$", link)]


def test_hostile_texts_add_no_html_image_or_unsafe_link() -> None:
    assert dangers(render_markdown(hostile_document())) == []


@pytest.mark.parametrize("attack", ATTACKS)
def test_each_attack_is_defused_in_a_quote_and_in_a_line(attack: str) -> None:
    assert dangers(block_quote(attack)) == []
    assert dangers(plain(attack)) == []


pieces = st.sampled_from(
    ["<b>", "<", "![", "[", "](", "javascript:x", ")", "\\", "`", "```\n", "\n", "> ", "a", ": ", "- "]
)


@settings(max_examples=120, deadline=None)
@given(parts=st.lists(pieces, max_size=25))
def test_random_markup_is_defused(parts: list[str]) -> None:
    assert dangers(block_quote("".join(parts))) == []
    assert dangers(plain("".join(parts))) == []


@given(text=st.text(alphabet="ab*_#|<>[]`~\\-+.)1 \n!&$", max_size=40))
def test_plain_line_renders_as_its_original_text(text: str) -> None:
    inline = [token for token in all_tokens(plain(text)) if token.type == "inline"]
    shown = "".join(child.content for token in inline for child in token.children or [])
    assert shown == " ".join(text.split())


def test_headings_and_fences_in_a_message_end_with_it() -> None:
    markdown = render_markdown(debate_document(words="\n\n# Loud\n\n```\nnever closed"))
    own = [token.map for token in all_tokens(markdown) if token.type == "heading_open" and token.level == 0]
    assert "## Transcript" in markdown
    assert len(own) == len(re.findall(r"^#+ ", markdown, re.M))


def test_citations_lead_to_the_anchor_of_their_message() -> None:
    markdown = render_markdown(debate_document())
    cited = set(re.findall(r"\]\(#(m\d+)\)", markdown))
    assert cited
    assert cited <= set(re.findall(r'<a id="(m\d+)">', markdown))


def test_names_with_pipes_and_line_breaks_stay_in_one_table_row() -> None:
    document = debate_document()
    document["config"] = {"debaters": [{"id": "ada", "name": "A|d\na"}, {"id": "grace", "name": "Grace"}]}
    assert r"| Criterion | A\|d a | Grace |" in render_markdown(document)


def test_ordinary_markdown_is_not_changed() -> None:
    text = "A *b* [c](https://example.org) `x < y`\n\n- 1 < 2\n\n```\n<kept>\n```"
    assert defuse(text) == text


def test_huge_texts_are_shown_verbatim() -> None:
    text = "*a* ```" * PLAIN_ABOVE
    assert defuse(text).startswith("````text\n")
    assert "<em>" not in Prose({}).block(text)


@pytest.mark.parametrize(
    ("text", "levels"),
    [("# a\n\n### b\n\n## c", ["h3", "h4", "h4"]), ("### a\n\n# b\n\n## c", ["h3", "h3", "h4"])],
    ids=["skipping a level", "rising first"],
)
def test_headings_of_a_solution_join_the_outline_without_gaps(text: str, levels: list[str]) -> None:
    assert re.findall(r"<(h\d)>", Prose({}).block(text, base=3)) == levels


def test_code_never_gets_citation_links_and_prose_does() -> None:
    html = Prose({"m000001": "m000001"}).block("See m000001, not `m000001`.")
    assert html.count('href="#m000001"') == 1
