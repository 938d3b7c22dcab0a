"""The table of commands: adding one is a file with a function that typer takes, and a row here."""

from dataclasses import dataclass
from typing import Literal

Panel = Literal["Debates", "Results", "Setting up"]


@dataclass(frozen=True)
class Row:
    """One command, known by its help text until it is invoked."""

    entry: str
    """Module of `moot.graph.cli.commands` and the function in it, or the typer app of several commands."""
    help: str
    """Short help, one line; the command's own docstring says the rest."""
    panel: Panel
    examples: tuple[str, ...] = ()
    """What may stand behind the command's name."""


COMMANDS: dict[str, Row] = {
    "demo": Row(
        "demo:demo",
        "Watch a sample debate, recorded with a capable model.",
        "Debates",
        ("rate-limiter --fast",),
    ),
    "run": Row(
        "run:run",
        "Argue a topic to its end, with a verdict.",
        "Debates",
        (
            '"Should we adopt a monorepo?" --model gpt-4o-mini --turns 6 --id mono',
            '"Design a queue" --protocol council -d Ada:architect -d Ben:operator -o queue.html',
        ),
    ),
    "batch": Row("batch:batch", "Have many debates at the same time, one a line of a file.", "Debates"),
    "enqueue": Row("jobs:enqueue", "Leave the debates of a file to workers.", "Debates"),
    "worker": Row("jobs:worker", "Run what is enqueued, on as many machines as there are.", "Debates"),
    "jobs": Row("jobs:app", "See, cancel or retry what is enqueued.", "Debates"),
    "resume": Row(
        "resume:resume",
        "Go on with a debate where it stands, or extend a finished one.",
        "Debates",
        ("mono --turns 6", "mono --model gpt-4o --judge-model o3"),
    ),
    "say": Row(
        "steering:say",
        "Say something from the floor, also while the debate runs.",
        "Debates",
        ('mono "Hiring was frozen yesterday." --as moderator',),
    ),
    "pause": Row("steering:pause", "Stop a running debate at the next step's boundary.", "Debates"),
    "correct": Row("steering:correct", "Change a note of the minutes, for good.", "Debates"),
    "pin": Row("steering:pin", "Have a message stand in every prompt that has room.", "Debates"),
    "unpin": Row("steering:unpin", "Take a pinned message off the prompts again.", "Debates"),
    "fork": Row(
        "resume:fork",
        "Begin a new debate with another one's beginning.",
        "Debates",
        ("mono --after m000003 --id no-freeze --run",),
    ),
    "list": Row(
        "listing:list_debates",
        "List the debates of a database.",
        "Debates",
        ("--status paused --grep monorepo",),
    ),
    "search": Row("listing:search", "Find what was said, in all debates.", "Debates", ("hiring freeze",)),
    "rename": Row("upkeep:rename", "Call a debate something else.", "Debates", ("mono monorepo",)),
    "delete": Row(
        "upkeep:delete", "Delete debates with all their checkpoints.", "Debates", ("mono no-freeze --yes",)
    ),
    "show": Row(
        "show:show",
        "Show a debate: verdict, transcript, summaries, prompts.",
        "Results",
        ("mono --transcript", "mono --follow"),
    ),
    "import": Row(
        "import_:import_debate",
        "Make a debate of a transcript, or of an exported debate.",
        "Debates",
        ('talk.csv --topic "A carbon tax?" --moderator Jo --id talk',),
    ),
    "judge": Row(
        "judge:judge",
        "Judge a debate again, by other judges or rules.",
        "Results",
        ("mono --model gpt-4o --panel 3 --rule majority",),
    ),
    "eval": Row(
        "eval:evaluate_debates",
        "Score finished debates against their problem.",
        "Results",
        ("mono talk.json --evaluator gpt-4o -o scores.csv",),
    ),
    "tournament": Row(
        "tournament:tournament",
        "Let line-ups meet on many topics, and rate them.",
        "Results",
        ("cup.yaml --dry-run",),
    ),
    "report": Row(
        "report:report",
        "Write a debate as one HTML page or Markdown file.",
        "Results",
        ("mono --brief --open", "mono --format adr -o docs/decisions/0007-monorepo.md"),
    ),
    "compare": Row(
        "compare:compare",
        "Set debates side by side: results, tokens, cost.",
        "Results",
        ("mono --with single --with vote -o compared.html",),
    ),
    "audit": Row("audit:audit", "Say what memory cost, was shown, and changed.", "Results"),
    "ask": Row(
        "ask:ask",
        "Answer a question about a debate, citing its messages.",
        "Results",
        ('mono "What would change Ben\'s mind?"',),
    ),
    "export": Row(
        "report:export",
        "Write a debate as JSON, Markdown or HTML.",
        "Results",
        ("mono --format md -o mono.md",),
    ),
    "plan": Row(
        "plan:plan",
        "Say what a debate would take: calls, tokens, time.",
        "Setting up",
        ('"Should we adopt a monorepo?" --protocol council --model gpt-4o-mini',),
    ),
    "models": Row("models:models", "List the models that your endpoint offers.", "Setting up"),
    "config": Row("config:app", "Write, check or describe a configuration file.", "Setting up"),
    "mcp": Row("servers:mcp", "Serve debates to agents over the Model Context Protocol.", "Setting up"),
    "backup": Row("upkeep:backup", "Copy the database to a file, also while debates run.", "Setting up"),
    "gc": Row("upkeep:gc", "Free what finished debates take beyond need.", "Setting up"),
    "doctor": Row(
        "doctor:doctor", "Look for what is wrong with installation and database.", "Setting up", ("--models",)
    ),
    "serve": Row("servers:serve", "Watch and hold debates in a browser, as they happen.", "Debates"),
    "studio": Row("servers:studio", "Open the debates in LangGraph Studio.", "Setting up"),
}
"""Commands by name, in the order of the help."""
