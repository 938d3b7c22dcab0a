"""The wheel beside programs that have a `state.py`, a `graph.py` and `nodes/` of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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


def test_the_wheel_holds_one_package_with_its_data(installed: Path) -> None:
    names = {path.name for path in installed.iterdir() if path.name != "bin" and path.suffix != ".dist-info"}
    assert names == {"moot"}
    shipped = {str(path.relative_to(ROOT / "moot")) for path in (ROOT / "moot").rglob("*") if path.is_file()}
    held = {str(path.relative_to(installed / "moot")) for path in (installed / "moot").rglob("*")}
    assert {name for name in shipped if "__pycache__" not in name} <= held
    assert (installed / "moot" / "py.typed").is_file()


def test_an_app_keeps_its_own_state_graph_and_nodes(installed: Path, tmp_path: Path) -> None:
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
