"""Commands that other packages add: one file and an entry point in the group `moot.commands`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMAND_MODULE = '''\
"""A command of another package."""

import moot_cheer_was_imported

from moot.cli import command


@command(panel="Take part", examples=("Ada",))
def cheer(name: str) -> None:
    """Cheer a debater.

    Prints one line.
    """
    print("hail", name)
'''


def install_package(folder: Path, module: str = COMMAND_MODULE) -> dict[str, str]:
    """Write an installed package into a folder. Return an environment in which Python finds it."""
    (folder / "moot_cheer.py").write_text(module)
    (folder / "moot_cheer_was_imported.py").write_text("import sys; print('imported', file=sys.stderr)\n")
    facts = folder / "moot_cheer-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: moot-cheer\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[moot.commands]\ncheer = moot_cheer:cheer\n")
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}


def moot(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    code = "from moot.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *words], env=environment, capture_output=True, text=True, check=False
    )


def test_entry_point_adds_a_command_and_its_help(tmp_path: Path) -> None:
    environment = install_package(tmp_path)
    ran = moot(environment, "cheer", "Ada")
    assert (ran.returncode, ran.stdout) == (0, "hail Ada\n")

    listed = moot(environment, "help", "--all")
    take_part = listed.stdout.partition("Take part:")[2].partition("\n\n")[0]
    assert "cheer" in take_part
    assert "Cheer a debater." in take_part
    assert "imported" not in listed.stderr  # the help reads the declaration and does not import the module

    explained = moot(environment, "cheer", "--help").stdout
    assert "Prints one line." in explained
    assert "Example: moot cheer Ada" in explained


def test_failing_import_breaks_only_the_command_of_its_package(tmp_path: Path) -> None:
    environment = install_package(tmp_path, "import no_such_module\n")
    broken = moot(environment, "cheer", "Ada")
    assert broken.returncode == 2
    assert "because importing 'moot_cheer:cheer' failed with ModuleNotFoundError" in broken.stderr
    assert "Command of the package moot-cheer." in moot(environment, "help", "--all").stdout
