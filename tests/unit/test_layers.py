"""Import order of the packages: imports go one way, and have no cycles."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support.source import ROOT, source_files, syntax_tree

ORDER = (
    *(
        "state",
        "config",
        "text",
        "calls",
        "prompts",
        "storage",
        "models",
        "retrieval",
        "claims",
        "memory",
        "summarizers",
        "judging",
        "rubrics",
    ),
    *("tools", "people", "protocols", "runtime", "asking", "nodes"),
    *("documents", "graph"),
    *("reports", "debates", "importers", "api", "embedding", "testing", "cli", "plugins"),
)
"""Packages and modules of `moot`: each imports only itself and those before it."""
FILES = [path for path in source_files() if path.parent != ROOT or path.stem in ORDER]
NODES = {
    "open",
    "read_topic",
    "plan",
    "clarify",
    "turn",
    "extract",
    "trim",
    "summarize",
    "reflect",
    "judge",
    "close",
}


def _module(path: Path) -> str:
    if path == ROOT:
        return "moot"
    return ".".join(("moot", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


MODULES = {_module(path): path for path in FILES}


def _layer(module: str) -> str:
    """Return the Moot package that contains a module, or the top-level package of another module."""
    top, *rest = module.split(".")
    return rest[0] if top == "moot" and rest else top


def _imports(path: Path) -> set[str]:
    """Return the modules that a file imports. `from package import module` counts as the module."""
    imported: set[str] = set()
    for node in ast.walk(syntax_tree(path)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            module = node.module or ""
            names = {f"{module}.{alias.name}" for alias in node.names}
            imported |= names & MODULES.keys()
            if not names <= MODULES.keys():
                imported.add(module)
    return imported


MOOT_IMPORTS = {module: _imports(path) & MODULES.keys() for module, path in MODULES.items()}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_module_imports_only_its_own_and_earlier_packages(path: Path) -> None:
    own = ORDER.index(path.relative_to(ROOT).with_suffix("").parts[0])
    packages = {_layer(module) for module in _imports(path)}
    assert packages & {*ORDER, "moot", "tests", "benchmarks"} <= set(ORDER[: own + 1])


def test_every_package_is_in_the_import_order() -> None:
    names = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    names |= {path.stem for path in ROOT.glob("*.py")} - {"__init__", "__main__"}
    assert names == set(ORDER)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_settings_module_reads_the_environment(path: Path) -> None:
    if path != ROOT / "state" / "settings.py":
        assert not re.search(r"\bos\.environ|\bgetenv\b", path.read_text())


def test_imports_have_no_cycles() -> None:
    left = {module: set(imports) for module, imports in MOOT_IMPORTS.items()}
    while ground := {module for module, imports in left.items() if not imports & left.keys()}:
        left = {module: imports for module, imports in left.items() if module not in ground}
    assert not left, f"in cycles, or importing one: {sorted(left)}"


def test_no_two_packages_import_each_other() -> None:
    """A package and one inside it count as one."""
    arrows: dict[str, set[str]] = defaultdict(set)
    inside = {module: imports for module, imports in MOOT_IMPORTS.items() if module.count(".") > 1}
    for module, imports in inside.items():
        package = _module(MODULES[module].parent)
        for other in (_module(MODULES[each].parent) for each in imports):
            nested = (package + ".").startswith(other + ".") or (other + ".").startswith(package + ".")
            if not nested:
                arrows[package].add(other)
    pairs = {(a, b) for a, others in arrows.items() for b in others}
    assert not {(a, b) for a, b in pairs if a < b and (b, a) in pairs}


def test_only_the_command_line_imports_the_command_line() -> None:
    """A plug-in's module of commands belongs to the command line."""
    others = {
        module
        for module in MOOT_IMPORTS
        if not module.startswith("moot.cli") and not module.endswith(("_command", "_commands"))
    }
    assert not {
        module for module in others if any(each.startswith("moot.cli") for each in MOOT_IMPORTS[module])
    }


def test_package_nodes_has_one_file_per_node() -> None:
    files = {path.stem for path in (ROOT / "nodes").rglob("*.py")}
    assert files == {*NODES, "__init__"}


def test_class_names_are_unique() -> None:
    classes: dict[str, list[str]] = defaultdict(list)
    for module, path in MODULES.items():
        for node in ast.walk(syntax_tree(path)):
            if isinstance(node, ast.ClassDef):
                classes[node.name.lstrip("_")].append(module)
    assert not {name: modules for name, modules in classes.items() if len(modules) > 1}


def test_module_names_are_unique_except_those_of_commands() -> None:
    several = {"__init__", "registry", "rubrics"}  # one per package; `moot.rubrics` is the public API
    stems = [path.stem for path in FILES if path.parent.name != "commands" and path.stem not in several]
    assert len(stems) == len(set(stems))


ANY_LINES = 245
"""Number of lines that use `Any`, mostly for external data. Lower it if possible, never raise it."""


def test_number_of_lines_with_any_does_not_grow() -> None:
    lines = {
        (path, node.lineno)
        for path in FILES
        for node in ast.walk(syntax_tree(path))
        if isinstance(node, ast.Name) and node.id == "Any"
    }
    assert len(lines) <= ANY_LINES


def test_imports_take_less_than_6_percent_of_the_lines() -> None:
    """Import the module itself if its names do not fit on one line."""
    paths = source_files()
    imports = sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for path in paths
        for node in ast.walk(syntax_tree(path))
        if isinstance(node, ast.Import | ast.ImportFrom)
    )
    assert imports < 0.06 * sum(len(path.read_text().splitlines()) for path in paths)


PUBLIC = {
    *("moot", "moot.config", "moot.importers", "moot.protocols", "moot.reports", "moot.rubrics"),
    *("moot.state.errors", "moot.storage.servers", "moot.summarizers", "moot.tools"),
    *("moot.cli", "moot.cli.databases", "moot.cli.group", "moot.cli.inputs", "moot.cli.live"),
    *("moot.cli.options", "moot.cli.running", "moot.cli.terminal"),
}
"""Modules that plug-ins import, Moot's own and those of other packages. CONTRIBUTING.md lists them."""
PRIVATE: dict[str, set[str]] = {
    "evals": {
        *("moot.api", "moot.calls.concurrency", "moot.calls.model_calls", "moot.config.boundary"),
        *("moot.config.config_files", "moot.config.debate_config", "moot.config.file_references"),
        *("moot.config.model_settings", "moot.config.participants", "moot.config.rubrics"),
        *("moot.config.section", "moot.config.stages", "moot.debates.config_checks"),
        *("moot.debates.session", "moot.judging.orders"),
        *("moot.judging.panel", "moot.judging.response_check", "moot.judging.response_schema"),
        *("moot.plugins.importing.dialectic", "moot.prompts.request"),
        *("moot.prompts.structured_calls", "moot.prompts.templates", "moot.prompts.truncation"),
        *("moot.protocols.answer_calls", "moot.protocols.registry", "moot.reports.html"),
        *("moot.reports.markdown", "moot.reports.markdown_html", "moot.runtime.background_loop"),
        *("moot.runtime.environment", "moot.runtime.run_node", "moot.state.entries"),
        *("moot.state.reducers", "moot.state.settings", "moot.state.verdict"),
        *("moot.storage.catalogue", "moot.storage.rate_limiter", "moot.storage.sqlite"),
        *("moot.text.answers", "moot.text.plain_text", "moot.text.tokens"),
    },
    "importing": {
        *("moot.config.file_references", "moot.config.memory_config", "moot.config.participants"),
        *("moot.debates.lifecycle", "moot.documents", "moot.memory.tool_results"),
        *("moot.prompts.templates", "moot.state.entries", "moot.state.settings"),
        *("moot.state.verdict", "moot.text.plain_text", "moot.text.terms"),
    },
    "postgres": {
        *("moot.api", "moot.calls.concurrency", "moot.runtime.background_loop"),
        *("moot.state.langgraph_internals", "moot.state.settings", "moot.storage.checked_saver"),
        *("moot.storage.records",),
    },
    "tools": set(),
    "web": {
        *("moot.api", "moot.asking.answer", "moot.calls.concurrency", "moot.claims.ledger_rendering"),
        *("moot.config.boundary", "moot.config.debate_config", "moot.config.model_settings"),
        *("moot.config.participants", "moot.config.section", "moot.config.stages"),
        *("moot.debates.config_checks", "moot.debates.continuation", "moot.debates.dry_run"),
        *("moot.debates.events", "moot.debates.lifecycle", "moot.debates.prompt_reconstruction"),
        *("moot.debates.proposed_debaters", "moot.debates.session", "moot.debates.stored_debate"),
        *("moot.documents", "moot.embedding", "moot.graph.json_schemas", "moot.graph.served"),
        *("moot.models.attempt", "moot.models.endpoints", "moot.models.offline"),
        *("moot.models.registry", "moot.people", "moot.plugins.evals.report_pages"),
        *("moot.plugins.evals.results", "moot.plugins.evals.statistics", "moot.prompts.templates"),
        *("moot.protocols.registry", "moot.protocols.result", "moot.reports.html"),
        *("moot.reports.markdown", "moot.reports.markdown_html", "moot.reports.positions"),
        *("moot.reports.verdict_view", "moot.runtime.environment", "moot.runtime.spending"),
        *("moot.state.entries", "moot.state.langgraph_internals", "moot.state.reducers"),
        *("moot.state.settings", "moot.state.verdict", "moot.storage.catalogue"),
        *("moot.storage.records", "moot.text.plain_text", "moot.text.terms", "moot.text.tokens"),
    },
}
"""Other modules that Moot's own plug-ins still import. Remove one when a public module offers what it is
needed for, and never add one."""


def _plugin_imports(plugin: str) -> set[str]:
    """Return the modules outside a plug-in's folder that its files import."""
    own = f"moot.plugins.{plugin}"
    imports = {
        module: found for module, found in MOOT_IMPORTS.items() if (module + ".").startswith(own + ".")
    }
    return {each for found in imports.values() for each in found if not (each + ".").startswith(own + ".")}


@pytest.mark.parametrize(
    "plugin", sorted(path.name for path in (ROOT / "plugins").iterdir() if path.is_dir())
)
def test_plugin_imports_only_public_modules_and_the_listed_private_ones(plugin: str) -> None:
    if plugin != "__pycache__":
        assert _plugin_imports(plugin) - PUBLIC == PRIVATE[plugin]


def test_core_names_no_plugin() -> None:
    """The core finds plug-ins by their entry points."""
    core = {path for path in source_files() if "plugins" not in path.relative_to(ROOT).parts}
    assert not {path for path in core if "moot.plugins" in path.read_text(encoding="utf-8")}


def test_public_modules_are_documented() -> None:
    page = (ROOT.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert not {module for module in PUBLIC if f"`{module}`" not in page}
