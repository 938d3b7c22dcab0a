"""Facts of the topic and the documents, which a model collects before a council's first proposals.

The members see the table beside the documents while these fit the prompt, and in place of the parts that do
not.
"""

from collections.abc import Sequence

from pydantic import BaseModel

from moot.calls.model_calls import Hints, ModelCall, Reply
from moot.claims.claim_extraction import find_quotation
from moot.claims.ledger_rendering import board_text
from moot.config import DebateConfig
from moot.config.model_settings import is_built_in
from moot.judging.judge_spec import JudgeSpec
from moot.prompts.request import many, narrow_schema
from moot.prompts.structured_calls import shown_entries, structured_call, structured_data
from moot.prompts.templates import fenced, load_prompt_template
from moot.state.entries import Entry, is_program_note
from moot.text.plain_text import count_noun
from moot.text.terms import is_long
from moot.text.tokens import TokenCounter, truncate_middle

FACTS = load_prompt_template("facts", "topic")
MAX_FACTS, MAX_CONTRADICTIONS, MAX_MISSING = 20, 8, 8
"""Maximum numbers of rows. A document of 2,500 words in the sample debates had 3 contradictions."""
ROW_TOKENS = 90
"""Estimated number of reply tokens for one row: two quotations and two short texts."""
_FRAME_TOKENS = 600
TITLE = "Facts of the topic and the documents"


class Fact(BaseModel):
    """Figure, date or limit on which the decision depends."""

    figure: str
    unit: str = ""
    used_for: str = ""
    quote: str


class Contradiction(BaseModel):
    """Two passages that cannot both be true."""

    a: str
    b: str
    use: str = ""
    check: str = ""


class FactTable(BaseModel):
    """Facts, contradictions and gaps of a debate's material."""

    facts: list[Fact]
    contradictions: list[Contradiction] = []
    missing: list[str] = []


def asks_for_facts(config: DebateConfig, topic: str, judge_spec: JudgeSpec, *, has_background: bool) -> bool:
    """Return True if a model must collect the facts: a council was given a document or a long topic."""
    is_council = judge_spec.judging == "design" and not is_built_in(config.model)
    return is_council and (has_background or is_long(topic))


def facts_call(
    config: DebateConfig, topic: str, documents: Sequence[Entry], count: TokenCounter
) -> ModelCall:
    """Return the model call that collects the facts of the topic and the documents."""
    remaining = max(200, config.memory.budget.total - _FRAME_TOKENS)
    topic = truncate_middle(topic, remaining // 2, count)
    messages = [*shown_entries(documents, config, remaining - count(topic), count), "Fill in the lists."]
    hints: Hints = {"phase": "facts"}
    min_tokens = ROW_TOKENS * (MAX_FACTS + MAX_CONTRADICTIONS)
    system = FACTS.render(topic=fenced(topic, config.fence))
    schema = narrow_schema(
        FactTable,
        {
            "facts": many(Fact, 0, MAX_FACTS),
            "contradictions": many(Contradiction, 0, MAX_CONTRADICTIONS),
            "missing": many(str, 0, MAX_MISSING),
        },
    )
    return structured_call("extract", config, system, messages, schema, count, least=min_tokens, hints=hints)


def fact_notes(transcript: Sequence[Entry]) -> list[Entry]:
    """Return Moot's note with the table of facts in a list, or `[]` if there is none."""
    return [entry for entry in transcript if is_program_note(entry) and entry["content"].startswith(TITLE)]


def facts_text(reply: Reply, topic: str, documents: Sequence[Entry]) -> str:
    """Return the table of facts as Markdown, or `""` if the reply has none.

    A row is shown only if its quotations are in the topic or a document, and if a quotation contains the
    figure. The other rows are counted below the table.
    """
    data = None if reply.placeholder else structured_data(FactTable, reply)
    if data is None:
        return ""
    sources = {"topic": topic} | {
        entry["content"].partition("\n")[0]: entry["content"] for entry in documents
    }

    def cited(quote: str) -> tuple[str, str]:
        """Return a passage that matches a quotation and the name of its source, or two empty texts."""
        for name, text in sources.items():
            if span := find_quotation(quote, text):
                return _cell(text[slice(*span)]), _cell(name)
        return "", ""

    dropped, rows, conflicts = 0, [], []
    for fact in data["facts"]:
        quote, source = cited(fact["quote"])
        if quote and find_quotation(fact["figure"], fact["quote"]):
            cells = _cell(fact["figure"]), _cell(fact["unit"]), _cell(fact["used_for"])
            rows.append(f"| {' | '.join(cells)} | {source}: “{quote}” |")
        else:
            dropped += 1
    for each in data["contradictions"]:
        (a, a_source), (b, b_source) = cited(each["a"]), cited(each["b"])
        if a and b and (a, a_source) != (b, b_source):
            use, check = (board_text(each[key]).rstrip(".") for key in ("use", "check"))
            text = f"- {a_source}: “{a}” contradicts {b_source}: “{b}”."
            conflicts.append(
                text + (f" Use: {use}." if use else "") + (f" To find out: {check}." if check else "")
            )
        else:
            dropped += 1
    missing = [f"- {text}" for text in map(board_text, data["missing"]) if text]
    if not (rows or conflicts or missing):
        return ""
    header = ["| Figure | Unit | Used for | Where |", "| --- | --- | --- | --- |"] if rows else []
    parts = (
        "\n".join([*header, *rows]),
        "\n".join(["Contradictions:", *conflicts]) if conflicts else "",
        "\n".join(["Missing:", *missing]) if missing else "",
        f"{count_noun(dropped, 'row')} left out: no such quotation or figure." if dropped else "",
    )
    return "\n\n".join(filter(None, (TITLE, *parts)))


def _cell(text: str) -> str:
    return board_text(text).replace("|", "/")
