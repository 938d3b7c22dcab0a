"""The parts of a debate as `moot show` prints them; every word of a debate is made safe for a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from moot.graph.cli.screen.result_tables import borderless_table
from moot.graph.cli.screen.terminal_text import (
    debater_names,
    entry_words,
    json_text,
    local_time,
    one_line,
    safe,
)
from moot.graph.cli.screen.verdict_screen import verdict_parts
from moot.nodes.models.registry import Models
from moot.nodes.text.plain import amount
from moot.state.config import OFFLINE
from moot.state.config.debate_config import frozen_config
from moot.state.entries import tokens_of, turns_taken

if TYPE_CHECKING:
    from moot.graph.audit import MemoryCost, Replayed
    from moot.graph.lookback import Lookback

Parts = list[RenderableType]
Document = Mapping[str, Any]


def overview(document: Document) -> Parts:
    """Return what a debate is and what came of it."""
    names, usage = debater_names(document["config"]), document["usage"]
    named, failed = document["name"] != document["id"], document["status"] == "failed"
    said = [
        amount(turns_taken(document["transcript"], names), "turn"),
        amount(usage["calls"], "call"),
        amount(tokens_of(usage), "token"),
        cost_text(document),
    ]
    facts = {
        "debate": f"{document['name']} ({document['id']})" if named else document["id"],
        "protocol": f"{document['protocol']} · {', '.join(names.values())}",
        "status": document["status"],
        "ended": document.get("ended_because", ""),
        "agreement": _agreement(document),
        "said": " · ".join(said),
        "begun": f"{local_time(document['created_at'])} · last active {local_time(document['updated_at'])}",
        "pinned": ", ".join(document.get("state", {}).get("pinned", [])),
        "why": document["errors"][-1]["error"] if failed and document["errors"] else "",
        "forked from": document["parent"],
    }
    table = Table.grid(padding=(0, 2))
    for key, value in facts.items():
        if value:
            table.add_row(Text(key, "dim"), Text(one_line(str(value), 600)))
    return [Text(one_line(document["topic"], 1000), "bold"), table, Text(), *verdict_parts(document)]


def _agreement(document: Document) -> str:
    """Return how far a council's proposals agreed after each round, `""` where none was checked."""
    checks = document.get("convergence") or []
    threshold = document["config"].get("termination", {}).get("threshold")
    shares = [each["agreement"] for each in checks] + [threshold]
    *found, end = ("unknown" if share is None else f"{share:.2f}" for share in shares)
    rounds = [f"{share} in round {each['round']}" for share, each in zip(found, checks, strict=True)]
    return f"{', '.join(rounds)} (ends at {end})" if rounds else ""


def cost_text(document: Document) -> str:
    """Return what a debate has cost, and what is not counted in it."""
    config, spent = frozen_config(document), f"US$ {document['usage']['cost_usd']:.4f}"
    unpriced = Models(config.models).names_without_price(config.model_names())
    if not unpriced:
        return spent
    if not set(config.model_names()) - {OFFLINE, *unpriced}:
        return "cost unknown: no prices are configured"
    return f"{spent}, not counting {', '.join(unpriced)}: no prices are configured"


def block(heading: Text, text: str, indent: int = 2) -> Parts:
    """Return words of a debate under their heading."""
    return [heading, Padding(Text(safe(text)), (0, 0, 1, indent))]


def transcript(document: Document) -> Parts:
    """Return everything that was said."""
    names, parts = debater_names(document["config"]), []
    for entry in document["transcript"]:
        who = one_line(names.get(entry["speaker"], entry["speaker"]), 60)
        about = [entry["id"], entry_words(entry, names), amount(entry["tokens"], "token"), entry["model"]]
        heading = Text.assemble((who, "bold"), (f"  {one_line(' · '.join(filter(None, about)), 300)}", "dim"))
        parts += block(heading, entry["content"])
    return parts


def summary(version: Mapping[str, Any] | None) -> Parts:
    """Return one version of a summary, `None` where there is none yet."""
    if version is None:
        return [Text("No summary yet: every message is still in the window.")]
    model, provider, spent = version["model"], version.get("provider"), version.get("tokens_used", 0)
    made_by = [
        version["method"],
        f"{model} ({provider})" if model and provider else model,
        f"temperature {version['temperature']:g}" if version["temperature"] is not None else "",
        f"{version['latency_s']:.1f} s" if model else "",
        f"{spent:,} tokens of model calls so far" if spent else "",
    ]
    about = (
        f"  entries {version['covers_from_seq']}–{version['covers_through_seq']} · "
        f"{amount(version['messages'], 'message')} · "
        f"{version['before_tokens']} → {version['after_tokens']} tokens · "
        f"{one_line(' · '.join(filter(None, made_by)), 300)}"
    )
    whose = f" of {one_line(version['owner'], 60)}" if version["owner"] else ""
    title = f"{version['kind']} summary{whose}, version {version['version']}"
    return block(Text.assemble((title, "bold"), (about, "dim")), version["text"])


def summaries(document: Document) -> Parts:
    """Return every version of every summary, oldest first."""
    versions = document["summaries"]
    return [part for version in versions for part in summary(version)] if versions else summary(None)


def blackboard(document: Document) -> Parts:
    """Return what the orchestrator has extracted, as YAML, which reads better than JSON."""
    import yaml

    parts: Parts = []
    for name, content in document["blackboard"].items():
        if content:
            plain = json.loads(json_text(content))  # what a terminal would obey is an escape there
            text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=90)
            parts += block(Text(name, "bold"), text.rstrip())
    return parts or [Text("The blackboard is empty.")]


def receipts(document: Document) -> Parts:
    """Return what each prompt was made of."""
    names = debater_names(document["config"])
    rows = [{**row, "speaker": names.get(row["speaker"], row["speaker"])} for row in document["receipts"]]
    return _receipts(rows, ("seq", "speaker", "phase"))


def calls(document: Document) -> Parts:
    """Return what each call was made of that is no speech."""
    return _receipts(document.get("calls", []), ("id", "purpose", "makes"))


def _receipts(rows: Sequence[Document], words: Sequence[str]) -> Parts:
    """Return a table of what these keys say of each row, and of its tokens."""
    if not rows:
        return [Text("No prompt has been sent yet.")]
    sections = list(dict.fromkeys(section for row in rows for section in row["sections"]))
    table = borderless_table(*words, figures=(*sections, "total", "budget", "left out"))
    for row in rows:
        counts = [row["sections"].get(section, 0) for section in sections]
        left_out = sum(note["tokens"] for note in row["left_out"])
        figures = map(str, (*counts, row["total_tokens"], row["budget"], left_out))
        table.add_row(*(Text(one_line(str(row[key]), 24)) for key in words), *figures)
    return [table]


def memory_costs(rows: Sequence[MemoryCost]) -> Parts:
    """Return what each kind of memory cost and how often it was shown."""
    headings = ("made", "calls", "tokens", "US$", "views", "tokens shown")
    table = borderless_table("memory", figures=headings)
    for row in rows:
        numbers = (row.made, row.calls, row.tokens, f"{row.cost_usd:.4f}", row.views, row.shown_tokens)
        table.add_row(row.kind, *map(str, numbers))
    return [table]


def replays(again: Sequence[Replayed], without: str) -> Parts:
    """Return speeches beside those that were given without a kind of memory."""
    parts: Parts = []
    for each in again:
        table = Table(pad_edge=False, expand=True, title=f"{each.entry_id}, {one_line(each.speaker, 60)}")
        for heading in (f"as it was, {each.shown_tokens} tokens of it shown", f"without {without}"):
            table.add_column(heading, ratio=1)
        table.add_row(Text(safe(each.said)), Text(safe(each.without or each.error)))
        parts.append(table)
    return parts


def view(looked: Lookback) -> Parts:
    """Return the exact prompt of one utterance, section by section."""
    receipt = looked.receipt
    whose: Document = receipt
    if "purpose" in whose:
        what = f"{whose['id']}, {whose['purpose']}"
    else:
        what = f"{whose['entry_id']}, {one_line(whose['speaker'], 60)}"
    heading = f"Prompt of {what}: {receipt['total_tokens']} of {receipt['budget']} tokens"
    proof = (
        "exact: its digest is the recorded one"
        if looked.exact
        else "NOT what was sent: its digest differs from the recorded one (another version of the prompts?)"
    )
    parts: Parts = [Text(heading, "bold"), Text(f"{proof}  {looked.digest[:16]}…", "dim"), Text()]
    for part in looked.parts:
        who = " ".join(filter(None, [part.message["role"], one_line(part.message.get("name") or "", 60)]))
        title = f"── {part.section} · {who} · {part.tokens} tokens"
        parts += block(Text(title, "bold cyan"), part.message["content"], indent=0)
    left_out = receipt["left_out"]
    parts.append(Text("Left out:", "bold") if left_out else Text("Nothing was left out."))
    for note in left_out:
        what, why = one_line(note["what"], 80), one_line(note["why"], 80)
        parts.append(Text(f"  {note.get('count', 1)} × {what}: {why}, {note['tokens']} tokens"))
    return parts


PARTS: Mapping[str, Callable[[Document], Parts]] = {
    "transcript": transcript,
    "summaries": summaries,
    "blackboard": blackboard,
    "receipts": receipts,
    "calls": calls,
    "verdict": verdict_parts,
}


def part(name: str, document: Document) -> tuple[object, Parts]:
    """Return a part of a debate as JSON types and as it is shown; `""` is the whole and its overview."""
    if not name:
        return document, overview(document)
    if name == "summary":
        latest = next((each for each in reversed(document["summaries"]) if each["kind"] == "rolling"), None)
        return latest or {}, summary(latest)
    return document[name], PARTS[name](document)
