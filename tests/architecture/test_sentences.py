# SPDX-License-Identifier: Apache-2.0
"""No code takes a sentence of ours apart: what it needs to know are codes and facts (`api/sentences.py`)."""

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

FOREIGN = {
    # where it is done, and to whose words
    "core/goodbot/api/sentences.py": "the first letter and the stop of any clause: the one place",
    "core/goodbot/inference/servers/mlx_server.py": "a server's version number",
    "core/goodbot/learning/adapters/examining.py": "a child's answer, which may be any length",
    "training/goodbot_training/process/autopsy.py": "a dead child's last lines",
}


def cuts(tree: ast.AST) -> Iterator[ast.expr]:
    """Every place that takes a part of a sentence of ours, or changes one."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=text, attr=method)) if method in CUTS:
                pass
            case ast.Subscript(value=text, slice=ast.Slice()):
                pass
            case _:
                continue
        if isinstance(text, ast.Call) and ast.unparse(text.func) == "str":
            text = text.args[0]
        match text:
            case ast.Attribute(value=holder, attr=name) if name in TEXTS:
                ours = ast.unparse(holder).rpartition(".")[2].lstrip("_") in HOLDERS
            case ast.Attribute(attr=name) | ast.Name(id=name):
                ours = name.rpartition("_")[2] in OURS
            case ast.Subscript(slice=ast.Constant(value=str(name))):
                ours = name in OURS
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


def test_whoever_is_let_off_does_it() -> None:
    known = {module.path for module in modules() if list(cuts(module.tree))}
    assert set(FOREIGN) <= known


@pytest.mark.parametrize(
    "line",
    [
        'readiness.why.rpartition("); ")[2]',
        'pressure.replace("training waits", waits, 1)',
        'pressure.partition(": ")[0]',
        "run.reason.rstrip('.')",
        "receipt.text.split('. ')",
        "check.text[1:]",
        "str(gate['reason']).rstrip('.')",
        "last_reason[:40]",
    ],
)
def test_a_cut_is_seen(line: str) -> None:
    assert list(cuts(ast.parse(line)))


@pytest.mark.parametrize("line", ["event.text.strip()", "turn.text[:60]", "told[0]", "why.encode()"])
def test_what_is_anybodys_words_is_no_cut(line: str) -> None:
    assert not list(cuts(ast.parse(line)))
