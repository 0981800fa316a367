"""No code takes a sentence of ours apart: what it needs to know it gets as a code and facts (api/sentences.py)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.source import modules

CUTS = {
    *("partition", "rpartition", "replace", "split", "rsplit", "splitlines"),
    *("strip", "lstrip", "rstrip", "removeprefix", "removesuffix", "index", "find", "startswith", "endswith"),
}
OURS = ("why", "reason", "sentence", "pressure", "objection", "told", "trouble", "note", "verdict")
"""What a sentence of ours is called, alone or as the last word of a name."""
TEXTS = ("text", "said", "line", "answer", "message")
"""What may be anybody's words: a sentence of ours where it is an attribute of one of `HOLDERS`."""
HOLDERS = ("receipt", "result", "notice", "verdict", "check", "condition", "readiness", "effect")

FOREIGN: dict[str, str] = {
    # module: whose words these are
}


def cuts(tree: ast.AST) -> Iterator[ast.expr]:
    """Every place that takes a part of a sentence of ours, or changes one."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=text, attr=method)) if method in CUTS:
                found = text
            case ast.Subscript(value=text, slice=ast.Slice() | ast.UnaryOp() | ast.Constant(value=int())):
                found = text
            case _:
                continue
        match found:
            case ast.Call(func=ast.Name(id="str"), args=[inner]):
                found = inner
            case _:
                pass
        match found:
            case ast.Attribute(value=holder, attr=name) if name in TEXTS:
                ours = ast.unparse(holder).rpartition(".")[2].lstrip("_") in HOLDERS
            case ast.Attribute(attr=name) | ast.Name(id=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
                ours = name.rpartition("_")[2] in OURS
            case _:
                continue
        if ours:
            yield node


def test_no_sentence_is_cut_or_edited() -> None:
    found = {
        f"{module.path}:{node.lineno} {ast.unparse(node)}"
        for module in modules()
        if ".testing" not in module.name and module.path not in FOREIGN
        for node in cuts(module.tree)
    }
    assert not found, "\n".join(sorted(found))
