"""The docs site: it builds without warnings, and its commands print the output that it shows."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from langgraph_cli.config import config_to_docker, validate_config_file
from mkdocs.commands.build import build
from mkdocs.config import load_config
from typer.main import get_command
from typer.testing import CliRunner

from moot.cli.group import app_of, shipped_commands
from moot.cli.reference import pages

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHELL_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.M | re.S)
INLINE_COMMAND = re.compile(r"`(moot [^`]+)`")
PLACEHOLDERS = ("…", "[", "|", "{", "NAME=")
"""Placeholders in commands. A command with one of them cannot be parsed."""
CONSOLE_BLOCK = re.compile(r"^```console\n\$ moot (.*?)\n(.*?)^```", re.M | re.S)


@pytest.mark.filterwarnings("ignore")  # warnings of MkDocs and its plug-ins
def test_the_docs_site_builds_without_broken_links(tmp_path: Path) -> None:
    build(load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(tmp_path)))
    assert (tmp_path / "tutorial.html").exists()
    assert (tmp_path / "report.png").stat().st_size < 200_000


def console_blocks(page: Path) -> list[tuple[str, str]]:
    return CONSOLE_BLOCK.findall(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if console_blocks(page)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_commands_in_the_docs_print_the_output_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.setenv("MOOT_DB", str(tmp_path / "debates.sqlite"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MOOT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    for words, shown in console_blocks(page):
        name, *rest = shlex.split(words)
        ran = CliRunner().invoke(app_of(name), rest)
        assert ran.exit_code == 0, (words, ran.output, ran.exception)
        printed, at = " ".join(f"{ran.stderr}\n{ran.stdout}".split()), 0
        for part in filter(None, (" ".join(part.split()) for part in shown.split("…"))):
            found = printed.find(part, at)
            assert found >= 0, f"moot {words}: not printed, or not in this order: {part!r} in {printed}"
            at = found + len(part)


def commands_in(page: Path) -> list[str]:
    """Return the `moot` commands in a page's shell blocks and sentences, without those with placeholders."""
    text = page.read_text(encoding="utf-8")
    lines = "\n".join(SHELL_BLOCK.findall(text)).replace("\\\n", " ").splitlines()
    typed = [line.split("  #")[0].removeprefix(".venv/bin/").strip() for line in lines]
    commands = [line for line in typed if line.startswith("moot ")] + INLINE_COMMAND.findall(
        " ".join(text.split("\n"))
    )
    return [each for each in commands if not any(part in each for part in PLACEHOLDERS)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_the_docs_exist_with_their_options(page: Path) -> None:
    wrong = []
    for words in commands_in(page):
        name, *rest = [word for word in shlex.split(words, comments=True)[1:] if word != "&&"]
        if " " in name or name.startswith("-"):
            continue  # a question, or an option of `moot` itself
        command: Any = get_command(app_of(name)) if name in shipped_commands() else None
        while command and getattr(command, "commands", None) and rest:
            command = command.commands.get(rest.pop(0))
        options = {part for each in command.params for part in each.opts} if command else set()
        used = {word.split("=")[0] for word in rest if re.match(r"-[a-zA-Z]|--[a-z]", word)}
        if command is None or used - options - {"--help", "-h"}:
            wrong.append(words)
    assert not wrong


def test_the_server_configuration_is_valid() -> None:
    config = validate_config_file(ROOT / "langgraph.json")
    assert set(config["graphs"]) == {"debate", "council", "dialogue"}
    dockerfile, _ = config_to_docker(ROOT / "langgraph.json", config, base_image="langchain/langgraph-api")
    variables = dict(re.findall(r"^ENV (\w+)='(.*)'$", dockerfile, re.MULTILINE))
    assert set(json.loads(variables["LANGSERVE_GRAPHS"])) == set(config["graphs"])
    assert json.loads(variables["LANGGRAPH_HTTP"]) == config["http"]
    assert json.loads(variables["LANGGRAPH_CHECKPOINTER"]) == config["checkpointer"]
    (installing,) = re.findall(r"^RUN .*pip install .*mcp.*$", dockerfile, re.MULTILINE)
    assert not re.search(r"[<>]", installing)  # the shell would read these as redirections


def test_the_documented_compose_file_is_consistent() -> None:
    (text,) = re.findall(
        r"```yaml\n(# compose.yaml.*?)```", (ROOT / "docs" / "deploy.md").read_text(), re.DOTALL
    )
    compose = yaml.safe_load(text)
    services = compose["services"]
    used = [key for key in services["debates"]["environment"] if key.startswith("MOOT_")]
    known = (ROOT / "moot" / "state" / "settings.py").read_text()
    assert used
    assert all(f'"{key}"' in known for key in used)
    volumes = [each.partition(":")[0] for service in services.values() for each in service.get("volumes", ())]
    assert {each for each in volumes if not each.startswith(".")} == set(compose["volumes"])
    assert all(set(service.get("depends_on", ())) <= set(services) for service in services.values())
    assert all(port.startswith("127.0.0.1:") for port in services["debates"]["ports"])
    assert not re.search(r"(KEY|PASSWORD): *[^$\s]*[a-z0-9]{6}", text)
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {".env", "secrets.env", ".git", "*.sqlite*"} <= set(ignored)


def test_the_reference_pages_match_the_code() -> None:
    for name, text in pages().items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, "run: make docs"
