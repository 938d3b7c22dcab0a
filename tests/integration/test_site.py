"""The site of the docs: built strictly, and its tutorial does what it shows."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml
from langgraph_cli.config import config_to_docker, validate_config_file
from mkdocs.commands.build import build
from mkdocs.config import load_config
from typer.testing import CliRunner

from moot.graph.cli.group import app_of
from moot.graph.cli.reference import pages

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n\$ moot (.*?)\n(.*?)^```", re.M | re.S)


@pytest.mark.filterwarnings("ignore")  # of what builds the site
def test_the_site_builds_with_no_broken_link(tmp_path: Path) -> None:
    build(load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(tmp_path)))
    assert (tmp_path / "tutorial.html").exists()
    assert (tmp_path / "report.png").stat().st_size < 200_000


@pytest.mark.parametrize(("page", "least"), [("tutorial", 8), ("recipes", 5)])
def test_a_page_prints_what_it_shows(
    page: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.setenv("MOOT_DB", str(tmp_path / "debates.sqlite"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MOOT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    blocks = BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"))
    assert len(blocks) >= least
    for words, shown in blocks:
        name, *rest = shlex.split(words)
        ran = CliRunner().invoke(app_of(name), rest)
        assert ran.exit_code == 0, (words, ran.output, ran.exception)
        printed, at = " ".join(f"{ran.stderr}\n{ran.stdout}".split()), 0
        for part in filter(None, (" ".join(part.split()) for part in shown.split("…"))):
            found = printed.find(part, at)
            assert found >= 0, f"moot {words}: not printed, or not in this order: {part!r} in {printed}"
            at = found + len(part)


def test_the_servers_configuration_is_one() -> None:
    config = validate_config_file(ROOT / "langgraph.json")
    assert set(config["graphs"]) == {"debate"}
    dockerfile, _ = config_to_docker(ROOT / "langgraph.json", config, base_image="langchain/langgraph-api")
    told = dict(re.findall(r"^ENV (\w+)='(.*)'$", dockerfile, re.MULTILINE))
    assert set(json.loads(told["LANGSERVE_GRAPHS"])) == {"debate"}
    assert json.loads(told["LANGGRAPH_HTTP"]) == config["http"]
    assert json.loads(told["LANGGRAPH_CHECKPOINTER"]) == config["checkpointer"]
    (installing,) = re.findall(r"^RUN .*pip install .*mcp.*$", dockerfile, re.MULTILINE)
    assert not re.search(r"[<>]", installing)  # which its shell would take for files


def test_the_compose_file_of_the_docs_names_what_there_is() -> None:
    (text,) = re.findall(
        r"```yaml\n(# compose.yaml.*?)```", (ROOT / "docs" / "deploy.md").read_text(), re.DOTALL
    )
    made = yaml.safe_load(text)
    services = made["services"]
    given = [key for key in services["debates"]["environment"] if key.startswith("MOOT_")]
    known = (ROOT / "moot" / "state" / "settings.py").read_text()
    assert given
    assert all(f'"{key}"' in known for key in given)
    volumes = [each.partition(":")[0] for service in services.values() for each in service.get("volumes", ())]
    assert {each for each in volumes if not each.startswith(".")} == set(made["volumes"])
    assert all(set(service.get("depends_on", ())) <= set(services) for service in services.values())
    assert all(port.startswith("127.0.0.1:") for port in services["debates"]["ports"])
    assert not re.search(r"(KEY|PASSWORD): *[^$\s]*[a-z0-9]{6}", text)
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {".env", "secrets.env", ".git", "*.sqlite*"} <= set(ignored)


def test_the_references_of_configuration_and_python_are_as_the_code_is() -> None:
    for name, text in pages().items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, "run: make docs"
