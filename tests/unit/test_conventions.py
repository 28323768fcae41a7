"""The project's own rules, checked on the source."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "shared").rglob("*.py")) + sorted((ROOT / "services").rglob("*.py"))
LIVE = {"tickwire_ingest", "tickwire_features", "tickwire_inference", "tickwire_router"}
# Offline and operator packages see the live ones; nobody sees them.
MAY_IMPORT: dict[str, set[str]] = {
    "tickwire": set(),
    **{service: set() for service in LIVE},
    "tickwire_models": {"tickwire_ingest", "tickwire_features", "tickwire_inference"},
    "tickwire_ctl": LIVE | {"tickwire_models"},
}
# What a strategy's environment has: nothing of a service may be needed by what it imports.
BASE_ONLY = ("client", "kernel", "records", "ring", "book", "windows", "models")
SERVICES_EXTRA = {
    "structlog", "uvloop", "onnxruntime", "click", "rich", "textual", "aiohttp", "prometheus_client", "torch", "onnx",
}  # fmt: skip


def imported(path: Path) -> set[str]:
    """Top-level names that a file imports anywhere."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


def package_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[1]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_any_source_follow_the_allowed_direction(path):
    """`tickwire` imports no service, live services import none of one another, nobody imports the operators' tools."""
    package = package_of(path)
    ours = {name for name in imported(path) if name.startswith("tickwire")} - {package, "tickwire"}
    assert ours <= MAY_IMPORT[package], f"{path}: must not import {sorted(ours - MAY_IMPORT[package])}"


@pytest.mark.parametrize("package", BASE_ONLY)
def test_imports_base_packages_need_no_service_extra(package):
    """What a strategy imports needs the base dependencies only."""
    for path in (ROOT / "shared" / "tickwire" / package).rglob("*.py"):
        assert not imported(path) & SERVICES_EXTRA, path


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_shared_words_any_source_never_packed_with_struct(path):
    """`pack_into` and `unpack_from` tear words of shared memory (measured: readers saw 0 in 9 % of stores)."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            assert node.attr not in {"pack_into", "unpack_from"}, f"{path}:{node.lineno}"


def test_intrinsics_only_words_touches_llvm():
    """Atomics are emitted in one file."""
    users = {path.relative_to(ROOT) for path in SOURCES if "llvmlite" in imported(path)}
    assert {str(path) for path in users} <= {"shared/tickwire/ring/words.py", "shared/tickwire/kernel/cache.py"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_ignores_any_source_carry_their_reason(path):
    """Each `noqa` and `type: ignore` names its rule; a `noqa` also says why."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if "# noqa" in line:
            assert re.search(r"# noqa: [A-Z]+[0-9]+(, ?[A-Z]+[0-9]+)* - \S", line), f"{path}:{number}"
        if "# type: ignore" in line:
            assert re.search(r"# type: ignore\[[a-z-]+(, ?[a-z-]+)*\]", line), f"{path}:{number}"


def test_sync_labels_stand_at_both_ends():
    """Every `# SYNC <label>:` has a partner: a store and the load that it is paired with."""
    labels: dict[str, int] = {}
    for path in SOURCES:
        for label in re.findall(r"# SYNC ([a-z_]+):", path.read_text()):
            labels[label] = labels.get(label, 0) + 1
    assert labels
    assert [label for label, count in labels.items() if count < 2] == []


def test_modules_banned_names_do_not_exist():
    """No file is a drawer for everything."""
    banned = {"utils", "helpers", "manager", "common", "misc"}
    assert [path for path in SOURCES if path.stem in banned] == []


def test_top_level_holds_only_what_it_should():
    """Imports stay specific: a strategy's environment gets no package named `shared`."""
    assert not (ROOT / "shared" / "__init__.py").exists()
    assert not (ROOT / "services" / "__init__.py").exists()
