"""Reasoning, wrappers and template tokens in replies: what is text, whole and streamed."""

from __future__ import annotations

import itertools
from time import thread_time

import pytest
from hypothesis import given, strategies as st

from moot.models.attempt import content_parts, reasoning_field
from moot.models.reply_markup import TEMPLATE_TOKENS, ReplyFilter, split_reply
from moot.text.plain_text import MARK, break_template_tokens

THOUGHT = "The ferry is the weak point. Attack the price first."
ANSWER = "Run the night ferry until spring: 40 of 52 sailings were full, and the bridge opens in May."
NAMES = ("Nadia", "Nadia, harbour master")

MARKED = {
    "DeepSeek": f"<think>\n{THOUGHT}\n</think>\n\n{ANSWER}",
    "in capitals": f"<THINK>{THOUGHT}</THINK>{ANSWER}",
    "thinking": f"<thinking>{THOUGHT}</thinking> {ANSWER}",
    "an empty section": f"<think>\n\n</think>\n\n{ANSWER}",
    "two sections": f"<think>{THOUGHT}</think>\n<think>Again.</think>\n{ANSWER}",
    "an attribute": f'<think time="4.2" lang="en">{THOUGHT}</think>{ANSWER}',
    "EXAONE": f"<thought>\n{THOUGHT}\n</thought>\n\n{ANSWER}",
    "Seed-OSS": f"<seed:think>{THOUGHT}</seed:think>{ANSWER}",
    "MiniMax": f"<mm:think>{THOUGHT}</mm:think>{ANSWER}",
    "LongCat": f"<longcat_think>{THOUGHT}</longcat_think>{ANSWER}",
    "reasoning": f"<reasoning>{THOUGHT}</reasoning>\n{ANSWER}",
    "scratchpad": f"<scratchpad>{THOUGHT}</scratchpad>\n<answer>{ANSWER}</answer>",
    "Hunyuan": f"<think>\n{THOUGHT}\n</think>\n<answer>\n{ANSWER}\n</answer>",
    "Hunyuan, answer cut": f"<think>\n{THOUGHT}\n</think>\n<answer>\n{ANSWER}",
    "Kimi": f"◁think▷{THOUGHT}◁/think▷{ANSWER}",
    "Kimi K3": f"<|open|>think<|sep|>{THOUGHT}<|close|>think<|sep|><|open|>response<|sep|>{ANSWER}"
    "<|close|>response<|sep|>",
    "Mistral": f"[THINK]{THOUGHT}[/THINK]{ANSWER}</s>",
    "OpenThinker": f"<|begin_of_thought|>\n{THOUGHT}\n<|end_of_thought|>\n\n<|begin_of_solution|>\n{ANSWER}\n"
    "<|end_of_solution|>",
    "Cohere": f"<|START_THINKING|>{THOUGHT}<|END_THINKING|><|START_RESPONSE|>{ANSWER}<|END_RESPONSE|>",
    "Apertus": f"<|inner_prefix|>{THOUGHT}<|inner_suffix|>{ANSWER}",
    "Gemma": f"<|channel>thought\n{THOUGHT}<channel|>{ANSWER}",
    "Pangu": f"[unused16]{THOUGHT}[unused17]{ANSWER}",
    "gpt-oss": f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>"
    f"{ANSWER}<|return|>",
    "gpt-oss, three channels": f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>"
    f"commentary<|message|>Check.<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}",
    "gpt-oss, constrained": f"<|start|>assistant<|channel|>analysis<|message|>{THOUGHT}<|end|><|channel|>"
    f"final <|constrain|>json<|message|>{ANSWER}",
    "gpt-oss, no end": f"<|channel|>analysis<|message|>{THOUGHT}<|channel|>final<|message|>{ANSWER}",
    "gpt-oss, only final": f"<|channel|>final<|message|>{ANSWER}<|return|>",
    "gpt-oss, collapsed": f"analysis{THOUGHT}assistantfinal{ANSWER}",
    "gpt-oss, collapsed twice": f"analysis{THOUGHT}assistantcommentaryCheck.assistantfinal{ANSWER}",
    "HyperCLOVA": f"/think\n{THOUGHT}<|im_end|>\n<|im_start|>assistant\n{ANSWER}",
    "Granite": f"Here is my thought process:\n{THOUGHT}\nHere is my response:\n{ANSWER}",
    "Granite, quantized": f"Here's my thought process: {THOUGHT} Here's my response: {ANSWER}",
    "Apriel": f"Here are my reasoning steps:\n{THOUGHT}\n[BEGIN FINAL RESPONSE]\n{ANSWER}\n"
    "[END FINAL RESPONSE]\n<|end|>",
    "ollama run": f"Thinking...\n{THOUGHT}\n...done thinking.\n\n{ANSWER}",
    "Open WebUI": f'<details type="reasoning" done="true">\n{THOUGHT}\n</details>\n{ANSWER}',
    "an empty type": f"<details>\n<summary>Thought for 3 s</summary>\n{THOUGHT}\n</details>\n\n{ANSWER}",
    "words joined": f"<inner_monologue>{THOUGHT}</inner_monologue>{ANSWER}",
    "words behind": f"<chain_of_thought>{THOUGHT}</chain_of_thought>\n{ANSWER}",
    "one word": f"<deepthink>{THOUGHT}</deepthink>{ANSWER}",
    "Chinese": f"<思考>{THOUGHT}</思考>{ANSWER}",
    "square brackets": f"[think]{THOUGHT}[/think]{ANSWER}",
    "a box": f"<think>{THOUGHT}</think>\n<|begin_of_box|>{ANSWER}<|end_of_box|>",
    "a quoted end": f"<think>{THOUGHT} It ends with `</think>`, I know.</think>{ANSWER}",
    "a fence": f"```thinking\n{THOUGHT}\n```\n\n{ANSWER}",
    "own name behind it": f"<think>{THOUGHT}</think>\n\n**Nadia:** {ANSWER}",
}
OPENED_BY_TEMPLATE = {
    "on its own line": f"{THOUGHT}\n</think>\n\n{ANSWER}",
    "glued": f"{THOUGHT}</think>{ANSWER}",
    "without a full stop": f"{THOUGHT} so let me write it</think>\n{ANSWER}",
    "in the same line": f"{THOUGHT} </think> {ANSWER}",
    "Seed-OSS": f"{THOUGHT}</seed:think>{ANSWER}",
    "Mistral": f"{THOUGHT}[/THINK]{ANSWER}",
    "Kimi": f"{THOUGHT}◁/think▷{ANSWER}",
    "Cohere": f"{THOUGHT}<|END_THINKING|><|START_RESPONSE|>{ANSWER}<|END_RESPONSE|>",
    "Gemma": f"{THOUGHT}\n<channel|>{ANSWER}",
    "Apriel": f"{THOUGHT}\n[BEGIN FINAL RESPONSE]\n{ANSWER}\n[END FINAL RESPONSE]",
    "gpt-oss": f"{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}<|return|>",
}
UNMARKED = {
    "ChatML": f"{ANSWER}<|im_end|>",
    "Llama 3": f"{ANSWER}<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAnd the bridge?",
    "Llama 3, roles only": f"{ANSWER}<|eot_id|>user\n\nAnd the bridge?",
    "Mistral": f"{ANSWER} </s>",
    "Llama 2": f"{ANSWER}</s><s>[INST] And the bridge? [/INST]",
    "Gemma": f"{ANSWER}<end_of_turn>\n<start_of_turn>user\nAnd the bridge?",
    "Gemma 4": f"{ANSWER}<turn|>\n<|turn>user\nAnd the bridge?",
    "Phi": f"{ANSWER}<|end|><|user|>\nAnd the bridge?",
    "GLM": f"{ANSWER}<|user|>\nAnd the bridge?",
    "DeepSeek": f"{ANSWER}<｜end▁of▁sentence｜>",
    "Cohere": f"{ANSWER}<|END_OF_TURN_TOKEN|>",
    "EXAONE": f"{ANSWER}[|endofturn|]\n[|user|]And the bridge?",
    "GPT": f"{ANSWER}\n<|endoftext|>Human: And the bridge?",
    "Nemotron": f"{ANSWER}<extra_id_1>",
    "Kimi": f"{ANSWER}[EOS]",
    "Gemma, as a closing tag": f"{ANSWER}\n</end_of_turn>",
    "Seed-OSS": f"{ANSWER}<seed:eos>\n<seed:bos>user\nAnd the bridge?",
    "Command R": f"{ANSWER}<EOS_TOKEN>",
    "Ling": f"{ANSWER}<role>HUMAN</role>And the bridge?",
    "Pangu": f"{ANSWER}[unused10]",
    "Nemotron Nano": f"{ANSWER}<SPECIAL_12>",
    "Alpaca": f"{ANSWER}\n\n### Instruction:\nAnd the bridge?",
    "half a token": f"{ANSWER}<|im_end",
    "Llama's role in front": f"assistant\n\n{ANSWER}",
    "Vicuna's role in front": f"Assistant: {ANSWER}",
    "a run of tokens": f"{ANSWER}<|im_end|><|im_end|>\n<|im_end|>",
    "a header in front": f"<|im_start|>assistant\n{ANSWER}<|im_end|>",
    "Llama's header in front": f"<|start_header_id|>assistant<|end_header_id|>\n\n{ANSWER}",
    "both ends": f"<s>{ANSWER}</s>",
    "final": f"<final>\n{ANSWER}\n</final>",
    "answer and token": f"<answer>{ANSWER}</answer><|im_end|>",
    "Markdown": f"```markdown\n{ANSWER}\n```",
    "name": f"Nadia: {ANSWER}",
    "bold name": f"**Nadia:** {ANSWER}",
    "bold name, colon outside": f"**Nadia**: {ANSWER}",
    "name in brackets": f"[Nadia]: {ANSWER}",
    "name with a role": f"Nadia (harbour master): {ANSWER}",
    "name with a role behind a comma": f"Nadia, harbour master: {ANSWER}",
    "name in capitals": f"NADIA: {ANSWER}",
    "name with an id": f"Nadia [m000012]: {ANSWER}",
    "name as a heading": f"### Nadia\n\n{ANSWER}",
    "name in italics on its line": f"*Nadia*\n{ANSWER}",
    "name behind an id": f"[m000012] Nadia: {ANSWER}",
    "name in angle brackets": f"<Nadia> {ANSWER}",
    "name in bold brackets": f"**[Nadia]** {ANSWER}",
    "name twice": f"Nadia: **Nadia:** {ANSWER}",
}
TEXTS = {
    "a tag in a sentence": "Strip each <think> tag before you store it; the sailing list had 40 of them.",
    "a pair in a sentence": "Their log keeps <think>draft</think> sections, so it doubles in size.",
    "a closing tag in a sentence": "A stray </think> in the log shows that the template opened it.",
    "a closing tag at the end": "The template opens it, so the reply only has a </think>.",
    "a closing tag in quotes": 'They search for "</think>" and cut there. It fails for 3 of 40 logs.',
    "a closing tag in code": "Search `</think>`.\n\n```python\ntext.split('</think>')[1]\n```\nThen count.",
    "a closing tag shown": "The reply ends with:\n</think>\nThat is all we get.",
    "an unclosed code block": "Do this:\n```\n<|im_end|>\n</think>\n",
    "a token in code": "The server must stop at `<|im_end|>`",
    "a token in a sentence": "The server stops at <|im_end|> since May, and at </s> before.",
    "a struck text": "We need <s>four</s> <s>five</s>",
    "a channel in a sentence": "It printed <|channel|>final<|message|> into the log of the ferry.",
    "a word that begins a format": "analysis of 52 sailings shows that 40 were full.",
    "a heading that begins a format": "Here is my thought process: the ferry pays, the bridge does not.",
    "a quoted format": "Thinking... that is what the harbour does all winter.",
    "a tag that begins a sentence": "<think> tags are cut by the parser, as 40 logs show.",
    "an answer tag in a sentence": "Wrap it in <answer> and </answer>, then count the sailings.",
    "an answer tag at the start": "<answer> tags are what the exam wants.",
    "another name first": "Omar: your figure of 40 is from March.",
    "own name in a sentence": "Nadia and Omar agree: 40 of 52 sailings were full.",
    "own name as an address": "Nadia, we should say: 40 of 52.",
    "code first": "```python\nprint('<think>')\n```\nThat prints the tag.",
    "a Markdown block and more": "```markdown\n# Plan\n```\nThe plan has one line.",
    "HTML": "<p>40 of 52</p> sailings, see <b>table 2</b>.",
    "brackets": "[1] counts 40 sailings, [2] counts 52.",
    "math": "x < y and y > z, so a <b>c.",
    "reasoning with a colon": "Reasoning: 40 of 52 sailings were full. Answer: keep it.",
}


def stream(chunks: list[str], names: tuple[str, ...] = NAMES) -> tuple[str, int]:
    """Return the text that a client shows at the end of a stream, and how often it was replaced."""
    reply, shown, replaced = ReplyFilter(names), "", 0
    for chunk in chunks:
        text = reply.feed(chunk)
        if reply.retracts:
            reply.retracts, shown, replaced = False, "", replaced + 1
        shown += text
    rest = reply.rest(reply.close().text)
    if reply.retracts:
        shown, replaced = "", replaced + 1
    return shown + rest, replaced


@pytest.mark.parametrize("kind", MARKED)
def test_answer_and_reasoning_are_parted(kind: str) -> None:
    split = split_reply(MARKED[kind], NAMES)
    assert split.text == ANSWER
    assert THOUGHT in split.reasoning or kind in ("an empty section", "gpt-oss, only final")


@pytest.mark.parametrize("kind", OPENED_BY_TEMPLATE)
def test_reasoning_whose_opening_tag_is_in_the_prompt_is_parted(kind: str) -> None:
    split = split_reply(OPENED_BY_TEMPLATE[kind], NAMES)
    assert split.text == ANSWER
    assert split.reasoning.startswith(THOUGHT)


@pytest.mark.parametrize("kind", UNMARKED)
def test_template_tokens_wrappers_and_own_names_are_removed(kind: str) -> None:
    split = split_reply(UNMARKED[kind], NAMES)
    assert (split.text, split.reasoning) == (ANSWER, "")


@pytest.mark.parametrize("kind", TEXTS)
def test_text_about_markup_is_not_changed(kind: str) -> None:
    split = split_reply(TEXTS[kind], NAMES)
    assert (split.text, split.reasoning) == (TEXTS[kind].strip(), "")


@pytest.mark.parametrize("unclosed", ["<think>", "<|channel|>analysis<|message|>", "◁think▷", "analysis"])
def test_reasoning_without_an_end_has_no_text(unclosed: str) -> None:
    assert split_reply(f"{unclosed}{THOUGHT}").text == ""


@pytest.mark.parametrize("kind", UNMARKED)
def test_only_template_tokens_at_the_end_are_reported(kind: str) -> None:
    ends_with_token = UNMARKED[kind].endswith(
        ("|>", "</s>", "?", "turn|]", "｜>", "_1>", "[EOS]", "/INST]", "turn>", "EN>", "10]", "_12>", "end")
    )
    assert split_reply(UNMARKED[kind], NAMES).has_template_tokens is ends_with_token


ALL = [*MARKED.values(), *OPENED_BY_TEMPLATE.values(), *UNMARKED.values(), *TEXTS.values()]
LATE = {"Hunyuan, answer cut", "a Markdown block and more", "name twice", "Kimi K3", "a quoted end", "Alpaca"}
LATE |= {"name behind an id", "name in angle brackets", "name in bold brackets"}
"""Replies of which a stream shows, or lacks, a tag until the end."""
SHOWN = [text for group in (MARKED, UNMARKED, TEXTS) for kind, text in group.items() if kind not in LATE]


@pytest.mark.parametrize("raw", ALL)
@given(cuts=st.lists(st.integers(0, 400), max_size=12))
def test_stream_shows_the_same_text_however_it_is_cut(raw: str, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    text = split_reply(raw, NAMES).text
    assert stream([raw[start:end] for start, end in itertools.pairwise(edges)])[0] == text
    assert stream(list(raw))[0] == text


@pytest.mark.parametrize("raw", SHOWN)
def test_stream_never_shows_reasoning_or_markup(raw: str) -> None:
    assert stream(list(raw))[1] == 0


@pytest.mark.parametrize("kind", OPENED_BY_TEMPLATE)
def test_streamed_reasoning_is_replaced_once_its_end_arrives(kind: str) -> None:
    assert stream(list(OPENED_BY_TEMPLATE[kind]))[1] == 1


@pytest.mark.parametrize("kind", OPENED_BY_TEMPLATE)
def test_model_that_is_known_to_reason_first_shows_nothing_before_the_end(kind: str) -> None:
    reply = ReplyFilter(NAMES, reasons_first=True)
    shown = "".join(map(reply.feed, OPENED_BY_TEMPLATE[kind]))
    assert shown + reply.rest(reply.close().text) == ANSWER
    assert not reply.retracts


TAGS = """
<think> </think> <thinking> </THINKING> < th </ a x<y > <|im_end|> </s> user ` ``` [THINK] [/THINK] <s>
<answer> </answer> Nadia: <|channel|> analysis final <|message|> assistantfinal A. ** ◁/think▷
"""
PIECES = st.lists(
    st.sampled_from(
        [" ", "\n", "\n\n", *TAGS.split()],
    ),
    max_size=40,
)


@given(PIECES, st.data())
def test_chunk_boundaries_do_not_matter(pieces: list[str], data: st.DataObject) -> None:
    raw = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    edges = [0, *cuts, len(raw)]
    cut = [raw[start:end] for start, end in itertools.pairwise(edges)]
    text = split_reply(raw, NAMES).text
    assert stream(cut)[0] == stream([raw])[0] == stream(list(raw))[0] == text


WORDS = st.sampled_from(
    ["the", "ferry", "was", "full", "in", "march", "they", "said", "40", "sailings", "pay"]
)
MENTIONED = """
<think> </think> `<think>` `</think>` <|im_end|> `</s>` </s> [THINK] [/THINK] ◁think▷ <|channel|>
<answer> </answer> `<|eot_id|>` <thought> [/INST] <end_of_turn> “</think>” (</think>) "<|im_end|>"
<seed:think> assistantfinal <|END_THINKING|> <turn|> </thought> ◁/think▷ <|end_of_thought|>
"""
MENTIONS = st.sampled_from([*MENTIONED.split(), "[BEGIN FINAL RESPONSE]"])


@given(WORDS, st.lists(st.one_of(WORDS, MENTIONS), max_size=30), WORDS)
def test_prose_that_mentions_tags_is_never_cut(first: str, middle: list[str], last: str) -> None:
    # Roles behind a token look like the next turn, so the words hold none.
    prose = " ".join([first.capitalize(), *itertools.chain(*((each, "and") for each in middle)), last]) + "."
    split = split_reply(prose, NAMES)
    assert (split.text, split.reasoning) == (prose, "")
    assert stream(list(prose)) == (prose, 0)


@given(
    st.text(st.characters(exclude_characters="<>[]`◁▷｜＜＞:/", exclude_categories=("Cs", "Cc", "Zl", "Zp")))
)
def test_text_without_tags_is_kept(text: str) -> None:
    expected = split_reply(text).text
    assert expected == text.strip().strip("\u200b\u2060\ufeff").strip() or text.lstrip().startswith(
        ("analysis", "assistant", "commentary")
    )


HOSTILE = {
    "sections": "<think></think>",
    "openings": "<think>",
    "closings": "</think>",
    "spoken of": "x </think> y ",
    "glued": "x</think>Y",
    "tokens": "<|im_end|>x ",
    "struck": "<s></s>",
    "backticks": "`a``b```c````d",
    "channels": "<|channel|>analysis<|message|><|end|>",
    "white space": "</s>" + " " * 60,
    "brackets": "<" * 16,
    "labels": "Nadia: ",
    "fences": "```\n~~~\n",
    "must close": "Here is my thought process: ",
}


def _work(raw: str, size: int) -> float:
    """Return the least processor time in seconds of three runs."""
    times = []
    for _ in range(3):
        began = thread_time()
        reply = ReplyFilter(NAMES)
        for start in range(0, len(raw), size):
            reply.feed(raw[start : start + size])
        reply.rest(reply.close().text)
        times.append(thread_time() - began)
    return min(times)


@pytest.mark.parametrize("kind", HOSTILE)
def test_run_time_is_linear_in_the_length_of_a_reply(kind: str) -> None:
    unit = HOSTILE[kind]
    short, long = (unit * (length // len(unit)) for length in (40_000, 320_000))
    assert _work(long, 16) < 24 * max(_work(short, 16), 0.002)  # quadratic: 64 times


def test_every_template_token_is_broken_in_prompts() -> None:
    tokens = [
        "<|im_end|>",
        "</s>",
        "[INST]",
        "<end_of_turn>",
        "<eos>",
        "<turn|>",
        "[|endofturn|]",
        "[e~[",
        "[EOS]",
    ]
    tokens += ["<eop>", "<_user>", "<extra_id_1>", "<reserved_106>", "<unused5>", "<endoftext>", "<｜User｜>"]
    assert len(TEMPLATE_TOKENS) <= len(tokens)
    assert [token for token in tokens if MARK not in break_template_tokens(token)] == []


def test_content_blocks_are_split_by_their_type() -> None:
    blocks = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "reasoning", "reasoning": "ah"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "oh"}]},
        {"type": "text", "text": "Yes"},
        {"type": "output_text", "text": ", no"},
        {"text": "."},
        {"type": "image_url", "image_url": {"url": "x"}},
    ]
    parts = content_parts(blocks)
    assert (parts.text, parts.reasoning) == ("Yes, no.", "hmahoh")


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content", "thinking"])
def test_reasoning_is_read_from_each_field(field: str) -> None:
    assert reasoning_field({field: "a"}) == "a"
    assert reasoning_field({field: None, "reasoning_text": 3}) == ""


def test_reasoning_is_read_from_details() -> None:
    assert reasoning_field({"reasoning_details": [{"type": "reasoning.text", "text": "a"}, 3]}) == "a"
