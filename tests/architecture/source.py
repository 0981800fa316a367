# SPDX-License-Identifier: Apache-2.0
"""The source as these tests see it: modules and their syntax trees."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "goodbot": ROOT / "core",
    "goodbot_connectors": ROOT / "connectors",
    "goodbot_fakes": ROOT / "connectors",
    "goodbot_training": ROOT / "training",
}


@dataclass(frozen=True, kw_only=True)
class Module:
    """One file of our packages. `path` is relative to the repository."""

    name: str
    path: str
    text: str
    tree: ast.Module

    @property
    def package(self) -> str:
        return self.name.partition(".")[0]

    def imports(self) -> Iterator[tuple[str, int]]:
        """Every module that is imported anywhere in it, with the line."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((alias.name, node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield (node.module or "", node.lineno)
                yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)

    def imported(self) -> Iterator[tuple[str, bool]]:
        """Every name that is imported anywhere in it, in full, and whether for type checkers only."""
        open_: list[tuple[ast.AST, bool]] = [(self.tree, False)]
        while open_:
            node, types = open_.pop()
            if isinstance(node, ast.Import):
                yield from ((alias.name, types) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, f"{self.path}:{node.lineno}: ruff bans relative imports"
                yield from ((f"{node.module}.{alias.name}", types) for alias in node.names)
            else:
                guarded = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
                for part in ("body", "orelse", "handlers", "finalbody", "cases"):
                    within: list[ast.AST] | ast.AST = getattr(node, part, [])
                    if isinstance(within, list):  # a lambda's body is an expression
                        open_ += [(one, types or (guarded and part == "body")) for one in within]

    def calls(self) -> Iterator[tuple[str, ast.Call]]:
        """Every call with the dotted name of what is called."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                yield ast.unparse(node.func), node


def names(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Every name and attribute that is read, in full: as it is called where it was imported from."""
    own: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            own |= {one.asname: one.name for one in node.names if one.asname}
        elif isinstance(node, ast.ImportFrom):
            own |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            first, dot, rest = ast.unparse(node).partition(".")
            yield f"{own.get(first, first)}{dot}{rest}", node


@cache
def modules() -> tuple[Module, ...]:
    """All modules of ours: those that the wheel will hold, and the fakes."""
    found: list[Module] = []
    for package, root in PACKAGES.items():
        for path in sorted((root / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            name = ".".join(path.relative_to(root).with_suffix("").parts)
            found.append(
                Module(
                    name=name.removesuffix(".__init__"),
                    path=str(path.relative_to(ROOT)),
                    text=text,
                    tree=ast.parse(text, path),
                )
            )
    assert len(found) > 50, "the scan has lost its subject"
    return tuple(found)


@cache
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def entry_points() -> dict[str, str]:
    """Our own plugins: name → module."""
    return pyproject()["project"]["entry-points"]["goodbot"]
