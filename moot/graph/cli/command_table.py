"""The table of commands: adding one is a file with a typer `app`, and a row here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Panel = Literal["Debates", "Results", "Setting up"]


@dataclass(frozen=True)
class Row:
    """One command, known by its help text until it is invoked."""

    module: str
    """Module of `moot.graph.cli.commands` that holds the command's typer `app`."""
    help: str
    """Short help, one line; the command's own docstring says the rest."""
    panel: Panel


COMMANDS: dict[str, Row] = {
    "demo": Row("demo", "Watch a sample debate, recorded with a capable model.", "Debates"),
    "run": Row("run", "Argue a topic to its end, with a verdict.", "Debates"),
    "resume": Row("resume", "Go on with a debate where it stands, or extend a finished one.", "Debates"),
    "say": Row("say", "Say something from the floor, also while the debate runs.", "Debates"),
    "pause": Row("pause", "Stop a running debate at the next step's boundary.", "Debates"),
    "fork": Row("fork", "Begin a new debate with another one's beginning.", "Debates"),
    "list": Row("listing", "List the debates of a database.", "Debates"),
    "delete": Row("delete", "Delete a debate with all its checkpoints.", "Debates"),
    "show": Row("show", "Show a debate: verdict, transcript, summaries, prompts.", "Results"),
    "import": Row("import_", "Make a debate of a transcript, or of an exported debate.", "Debates"),
    "judge": Row("judge", "Judge a debate again, by other judges or rules.", "Results"),
    "eval": Row("eval", "Score finished debates against their problem.", "Results"),
    "tournament": Row("tournament", "Let line-ups meet on many topics, and rate them.", "Results"),
    "report": Row("report", "Write a debate as one HTML page or Markdown file.", "Results"),
    "ask": Row("ask", "Answer a question about a debate, citing its messages.", "Results"),
    "export": Row("export", "Write a debate as JSON, Markdown or HTML.", "Results"),
    "plan": Row("plan", "Say what a debate would take: calls, tokens, time.", "Setting up"),
    "config": Row("config", "Write, check or describe a configuration file.", "Setting up"),
    "studio": Row("studio", "Open the debates in LangGraph Studio.", "Setting up"),
}
"""Commands by name, in the order of the help."""
