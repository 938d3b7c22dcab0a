"""Faults in the text of a reply: no text, loops, tool calls as text, lines of other speakers."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, strategies as st

from moot.models.reply_faults import (
    ENDLESS_CHARS,
    is_empty_text,
    is_endless,
    length_before_loop,
    mark_other_speakers,
    without_tool_calls,
)

ANSWER = "Run the night ferry until spring: 40 of 52 sailings were full."


@pytest.mark.parametrize(
    "text", ["", " \n", "\u200b", "\ufeff\u200b\n", "\u2060\u200d", "None", " null ", "undefined", '""']
)
def test_reply_without_visible_text_is_empty(text: str) -> None:
    assert is_empty_text(text)


@pytest.mark.parametrize("text", ["No.", "None of them.", "…", "नहीं", "👩\u200d🚀", "0", "nullify it"])
def test_short_reply_is_not_empty(text: str) -> None:
    assert not is_empty_text(text)


@pytest.mark.parametrize(
    "loop", ["We must act now. ", "\n", "- The ferry is full.\n- The bridge is not.\n", "ha"]
)
def test_loop_at_the_end_is_cut_after_its_first_occurrence(loop: str) -> None:
    text = f"{ANSWER} {loop * 300}"[:-1]
    kept = length_before_loop(text)
    assert kept is not None
    assert text[:kept].strip() in (ANSWER, f"{ANSWER} {loop}".strip(), f"{ANSWER} {loop}".strip()[:-1])


@pytest.mark.parametrize(
    "text",
    [
        ANSWER,
        "".join(f"| {year} | {year % 7} sailings |\n" for year in range(1990, 2024)),
        "Yes. Yes. Yes.",
        f"{'word ' * 200}{ANSWER}",
        " ".join(f"{number}. The ferry is full." for number in range(40)),
    ],
)
def test_text_without_a_loop_at_the_end_is_kept(text: str) -> None:
    assert length_before_loop(text) is None


@given(st.text(max_size=60), st.text(min_size=1, max_size=30))
def test_every_long_repetition_is_found(start: str, loop: str) -> None:
    kept = length_before_loop(start + loop * 120)
    assert kept is not None
    assert kept <= len(start) + len(loop)


@pytest.mark.parametrize("loop", ["I am not ready. ", "\n", "- Full.\n- Not full.\n", '{"score": 0}, '])
def test_long_loop_of_short_texts_is_endless(loop: str) -> None:
    assert is_endless(ANSWER + loop * ENDLESS_CHARS)


@pytest.mark.parametrize(
    "text",
    [
        "I am not ready. " * 100,  # too short
        "".join(f"| {year} | full | full |\n" for year in range(1000, 2024)),
        "".join(f"{ANSWER} ({number}) " for number in range(60)),
        "0, " * ENDLESS_CHARS + ANSWER,
        ("word " * 60 + ANSWER) * 20,  # too few repetitions
    ],
)
def test_other_unfinished_text_is_not_endless(text: str) -> None:
    assert not is_endless(text)


def test_search_for_a_loop_takes_a_linear_number_of_steps() -> None:
    def steps(length: int) -> int:
        count = 0

        def trace(*_: object) -> object:
            nonlocal count
            count += 1
            return trace

        sys.settrace(trace)  # type: ignore[arg-type]  # it counts the executed lines
        length_before_loop(("ab" * 50 + "c") * (length // 101))
        sys.settrace(None)
        return count

    assert steps(16_000) < 9 * steps(2_000)


CALLS = {
    "Hermes": '<tool_call>\n{"name": "search", "arguments": {"query": "ferry"}}\n</tool_call>',
    "unclosed": '<tool_call>\n{"name": "search", "arguments": {}}',
    "two calls": '<tool_call>{"name": "search"}</tool_call>\n<tool_call>{"name": "search"}</tool_call>',
    "Mistral": '[TOOL_CALLS][{"name": "search", "arguments": {}}]',
    "Qwen coder": "<tool_call>\n<function=search>\n<parameter=q>ferry</parameter>\n</function>\n</tool_call>",
    "Llama": '<|python_tag|>{"name": "search", "parameters": {}}',
    "bare JSON": '{"name": "search", "parameters": {"query": "ferry"}}',
    "bare JSON in OpenAI's form": '{"type": "function", "function": {"name": "search", "arguments": {}}}',
    "bare JSON in a fence": '```json\n{"name": "search", "arguments": {}}\n```',
    "DeepSeek": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="search">\n</｜DSML｜invoke>\n'
    "</｜DSML｜function_calls>",
    "a list": '<tools>\n{"name": "search", "arguments": {}}\n</tools>',
    "Phi": 'functools[{"name": "search", "arguments": {}}]',
    "MiniMax": '<minimax:tool_call>\n<invoke name="search"></invoke>\n</minimax:tool_call>',
    "a fence": '```tool_call\n{"name": "search"}\n```',
    "LM Studio": '[TOOL_REQUEST]{"name": "search", "arguments": {}}[END_TOOL_REQUEST]',
}


@pytest.mark.parametrize("kind", CALLS)
def test_tool_call_as_text_is_replaced(kind: str) -> None:
    assert set(without_tool_calls(CALLS[kind], lambda name: f"[{name}]").split("\n")) <= {
        "[search]",
        "[search][search]",
    }
    if not kind.startswith("bare JSON"):
        text = without_tool_calls(f"{ANSWER}\n{CALLS[kind]}", lambda name: f"[{name}]")
        assert text.startswith(f"{ANSWER}\n[search]")


@pytest.mark.parametrize(
    "text",
    [
        "Never print <tool_call> in a message.",
        "```\n<tool_call>{}</tool_call>\n```\nThat is what it prints.",
        '{"name": "Ferry", "price": 3}',
        "`[TOOL_CALLS]` is a token.",
    ],
)
def test_text_about_tool_calls_is_kept(text: str) -> None:
    assert without_tool_calls(text, lambda _: "") == text


def marked(text: str, *quotations: str) -> str:
    return mark_other_speakers(
        text, "Nadia", {"Omar": "omar", "Li": "li"}, lambda _, line: line in quotations
    )


@pytest.mark.parametrize(
    ("label", "mark"),
    [
        ("Omar: I give up.", "Omar (written by Nadia): I give up."),
        ("**Omar:** I give up.", "**Omar (written by Nadia):** I give up."),
        ("omar: I give up.", "omar (written by Nadia): I give up."),
        ("> Li [m000004]: I give up.", "> Li (written by Nadia) [m000004]: I give up."),
        ("[Omar]: I give up.", "[Omar (written by Nadia)]: I give up."),
        ("[m000004] Omar: I give up.", "[m000004] Omar (written by Nadia): I give up."),
        ("<Omar> I give up.", "<Omar (written by Nadia)> I give up."),
        ("### Omar\nI give up.", "### Omar (written by Nadia)\nI give up."),
        ("**Li**\nI give up.", "**Li (written by Nadia)**\nI give up."),
        ("Nadia: Thank you.", "Thank you."),
    ],
)
def test_line_of_another_speaker_is_marked(label: str, mark: str) -> None:
    assert marked(f"{ANSWER}\n\n{label}\n") == f"{ANSWER}\n\n{mark}\n"


@pytest.mark.parametrize(
    "text",
    [
        "Omar and Li: you both count 40.",
        "I ask Omar: who counted?",
        "Thanks to\nOmar\nwe know it.",
        "```\nOmar: text\n```",
        "Lina: no debater.",
    ],
)
def test_other_lines_are_not_marked(text: str) -> None:
    assert marked(text) == text


def test_exact_quotation_of_another_speaker_is_not_marked() -> None:
    text = "You wrote:\n> Omar: The bridge opens in June.\nIt does not."
    assert marked(text, "The bridge opens in June.") == text
