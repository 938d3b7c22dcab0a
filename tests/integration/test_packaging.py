"""Distributions, pinned packages, workflows and Makefile."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml
from packaging.specifiers import SpecifierSet

import moot

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def _pip(*words: str) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words]
    subprocess.run(pip, check=True, capture_output=True, text=True)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what a wheel of this checkout installs."""
    folder = tmp_path_factory.mktemp("wheel")
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT))
    (wheel,) = folder.glob("moot-*.whl")
    _pip("install", "--no-deps", "--no-index", "--target", str(folder / "site"), str(wheel))
    return folder / "site"


def test_wheel_contains_one_package_with_its_data(installed: Path) -> None:
    names = {path.name for path in installed.iterdir() if path.name != "bin" and path.suffix != ".dist-info"}
    assert names == {"moot"}
    shipped = {str(path.relative_to(ROOT / "moot")) for path in (ROOT / "moot").rglob("*") if path.is_file()}
    contents = {str(path.relative_to(installed / "moot")) for path in (installed / "moot").rglob("*")}
    assert {name for name in shipped if "__pycache__" not in name} <= contents
    assert (installed / "moot" / "py.typed").is_file()


OLDEST_PYTHON = "3.11.2"
"""Python of Debian 12. The packages of the tests and the docs must be installable on it."""


def test_pinned_packages_support_the_oldest_python() -> None:
    pins = (line.partition("==") for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines())
    unsupported = []
    for name, _, version in pins:
        with suppress(PackageNotFoundError):
            package = distribution(name)
            allowed = SpecifierSet("".join(package.metadata.get_all("Requires-Python") or []))
            if package.version == version and not allowed.contains(OLDEST_PYTHON):
                unsupported.append(f"{name} {version} needs Python {allowed}")
    assert not unsupported


def _build(target: str, source: Path, folder: Path) -> Path:
    """Return the distribution that hatchling builds from a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, text=True)
    (built,) = folder.iterdir()
    return built


def _package_files(root: Path) -> set[str]:
    """Return the paths of all files of the package below a folder."""
    files = (path for path in (root / "moot").rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix() for path in files if "__pycache__" not in path.parts}


def test_wheel_built_from_sdist_contains_the_package_and_the_command(tmp_path: Path) -> None:
    sdist, unpacked = _build("sdist", ROOT, tmp_path / "sdist"), tmp_path / "source"
    unpacked.mkdir()
    tar = shutil.which("tar") or "tar"
    subprocess.run([tar, "--extract", "--file", str(sdist), "--directory", str(unpacked)], check=True)
    (source,) = unpacked.iterdir()
    assert _package_files(source) == _package_files(ROOT)
    with ZipFile(_build("wheel", source, tmp_path / "wheel")) as wheel:
        contents = set(wheel.namelist())
        info = f"moot-{moot.__version__}.dist-info"
        entry_points = wheel.read(f"{info}/entry_points.txt").decode()
    assert _package_files(ROOT) | {"moot/langgraph.json"} <= contents
    assert "[console_scripts]\nmoot = moot.cli:main" in entry_points
    assert "[moot.commands]\ncompare = moot.plugins" in entry_points


def test_installed_package_does_not_shadow_modules_of_an_app(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "state.py").write_text("MINE = 'my state'\n")
    (tmp_path / "graph.py").write_text("MINE = 'my graph'\n")
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "__init__.py").write_text("MINE = 'my nodes'\n")
    (tmp_path / "app.py").write_text(
        "import graph, nodes, state\n"
        "from moot import DebateConfig, open_debates\n"
        "print(state.MINE, graph.MINE, nodes.MINE)\n"
        "with open_debates('app.sqlite') as debates:\n"
        "    debate = debates.start('Tabs or spaces?', DebateConfig(turns=2))\n"
        "    debate.run()\n"
        "    print(debate.row.status, len(debate.document()['transcript']))\n"
    )
    run = subprocess.run(
        [sys.executable, "app.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(installed), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["my state my graph my nodes", "done 3"]


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_workflows_use_no_secrets_and_test_every_declared_python() -> None:
    assert [path.stem for path in WORKFLOWS] == ["docs", "newest", "release", "supply", "test"]
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = [each.rpartition(" ")[2] for each in project["classifiers"] if ":: Python :: 3" in each]
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        assert "secrets." not in text
        assert set(re.findall(r"run: make ([a-z]+)", text)) <= targets
        for job in yaml.safe_load(text)["jobs"].values():
            pythons = job.get("strategy", {}).get("matrix", {}).get("python", versions)
            assert pythons == versions


def test_workflows_pin_each_action_to_a_commit_with_its_version() -> None:
    for path in WORKFLOWS:
        for used in re.findall(r"uses: (.*)", path.read_text(encoding="utf-8")):
            pinned = re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", used)
            assert pinned or used.startswith("./.github/workflows/"), used


def test_base_images_are_pinned_by_digest() -> None:
    sources = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    outside = [source for source in sources if source != "base"]
    assert outside
    assert all(re.search(r":[\w.-]+@sha256:[0-9a-f]{64}$", source) for source in outside)


def test_dependabot_updates_every_kind_of_pin() -> None:
    text = (ROOT / ".github" / "dependabot.yml").read_text(encoding="utf-8")
    ecosystems = {each["package-ecosystem"] for each in yaml.safe_load(text)["updates"]}
    assert {"docker", "github-actions", "pip"} <= ecosystems


@pytest.mark.parametrize("name", ["plain", "all", "image", "build"])
def test_hashed_constraints_pin_the_same_versions_without_urls(name: str) -> None:
    text = (ROOT / "hashes" / f"{name}.txt").read_text(encoding="utf-8")
    assert "://" not in text
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    pin = r"^([\w.-]+(?:\[\w+\])?)==(\S+) [^\n]*\\\n    --hash=sha256:[0-9a-f]{64}"
    hashed = re.findall(pin, text, re.MULTILINE)
    assert len(hashed) == text.count("==") - text.count(" == '") > (4 if name == "build" else 50)
    assert {package: version for package, version in hashed if package in pinned}.items() <= pinned.items()


def test_licence_names_the_folder_of_the_rank_tables() -> None:
    (folder,) = re.findall(r"rank tables in (\S+)", (ROOT / "LICENSE").read_text(encoding="utf-8"))
    assert list((ROOT / folder).glob("*.gz"))


def test_index_page_has_whole_addresses_for_links_and_pictures() -> None:
    namespace: dict[str, Any] = {"__name__": "hatch_build"}
    exec((ROOT / "hatch_build.py").read_text(encoding="utf-8"), namespace)  # noqa: S102  # our own build hook
    text = "![A](docs/a.png) [B](docs/b.md) [C](https://c.example) [D](#d)"
    assert namespace["with_whole_addresses"](text, "https://github.com/me/moot") == (
        "![A](https://raw.githubusercontent.com/me/moot/main/docs/a.png) "
        "[B](https://github.com/me/moot/blob/main/docs/b.md) [C](https://c.example) [D](#d)"
    )


def test_make_owner_sets_every_address_of_the_repository(tmp_path: Path) -> None:
    named = ("pyproject.toml", "mkdocs.yml", "CITATION.cff", ".github/ISSUE_TEMPLATE/config.yml")
    for name in ("Makefile", *named):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    words = [shutil.which("make") or "make", "owner", "OWNER=me"]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    assert not [name for name in named if re.search(r"/OWNER[/.]", (tmp_path / name).read_text("utf-8"))]


def test_makefile_targets_use_no_undefined_variable() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z]+):.*## ", text, re.MULTILINE)
    assert "dist" in targets
    words = [shutil.which("make") or "make", "--dry-run", "--always-make", "--warn-undefined-variables"]
    run = subprocess.run([*words, *targets], cwd=ROOT, capture_output=True, text=True, check=False)
    warned = {line for line in run.stderr.splitlines() if "undefined variable" in line}
    assert not {line for line in warned if "'MAKE" not in line}
    assert run.returncode == 0, run.stderr


def test_release_workflow_reads_the_package_version() -> None:
    release = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    (expression,) = re.findall(r"sed -n '(.*)' moot/__init__\.py", release)
    sed = shutil.which("sed") or "sed"
    run = subprocess.run(
        [sed, "-n", expression, str(ROOT / "moot" / "__init__.py")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == moot.__version__


def test_docs_list_every_required_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs/deploy.md").read_text(encoding="utf-8")
    section = page.partition("## Packages\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    assert documented == {needed.partition(">")[0] for needed in project["dependencies"]}


def test_lowest_constraints_satisfy_the_declared_lower_bounds() -> None:
    locked = dict(
        line.split("==")
        for line in (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    )
    for needed in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "dependencies"
    ]:
        name, _, bounds = needed.partition(">=")
        lowest = tuple(map(int, bounds.partition(",")[0].split(".")))
        assert tuple(map(int, locked[name].split(".")))[: len(lowest)] >= lowest
