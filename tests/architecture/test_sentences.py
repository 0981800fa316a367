# SPDX-License-Identifier: Apache-2.0
"""No code takes a sentence of ours apart: what it needs to know are codes and facts (`api/sentences.py`)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

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
HOLDERS = ("receipt", "result", "notice", "verdict", "check", "condition", "readiness", "effect", "note")
ERRORS = ("error", "exception", "failure")
"""What an error is called. Its words are a sentence of ours, where it is a GoodbotError."""
PROSE = re.compile(r"[A-Za-z’']{2,} [A-Za-z’']+")

FOREIGN = {
    # where it is done, and to whose words
    "core/goodbot/api/sentences.py": "the first letter and the stop of any clause: the one place",
    "core/goodbot/base/errors.py": "anybody's error in one line",
    "core/goodbot/commands/runner.py": "as much of an error as the audit trail keeps",
    "core/goodbot/features/reports/kinds.py": "the frequent words of a language, in a line",
    "core/goodbot/inference/servers/mlx_server.py": "a server's version number",
    "connectors/goodbot_connectors/slack/stream.py": "a model's answer, of which a part was streamed",
    "training/goodbot_training/backends/mlx/model.py": "an error of MLX",
    "training/goodbot_training/backends/ray/driver.py": "an error of Ray",
    "training/goodbot_training/backends/torch/loading.py": "an error of torch",
    "training/goodbot_training/process/autopsy.py": "a dead child's last lines",
}
"""Not seen here, since they go by no sentence of ours in the same function, and left as they are:

* `api/noted.py`: the line of the notes is found in a stored prompt by its beginning;
* `api/commands/__init__.py`: `as_typed` puts a surface's own verb in the place of `/rl `;
* `store/news.py`, `conversation/note_rules.py`: `_begun` and `is_example` go by how a stored text begins;
* `terminal/daemon.py`: of a daemon that ended only its log is left, where its sentence is behind `goodbot: `;
* `cli/setup/ending.py`: the first line of what `install` returns is a sentence, as its docstring says.
"""


def said_here(node: ast.expr, known: set[str]) -> bool:
    """Whether an expression is a sentence of ours for all one sees: it is written here, or is made of an
    error, of what a command answered, or of a name in `known`."""
    match node:
        case ast.Call(func=ast.Name(id="str"), args=[ast.Name(id=name)]) if name in ERRORS:
            return True
        case ast.Call(func=ast.Name(id="str"), args=[inner]):
            return said_here(inner, known)
        case ast.Call(func=ast.Attribute(value=inner, attr=method)) if method in CUTS | {"items", "values"}:
            return said_here(inner, known)
        case ast.Subscript(value=ast.Name() | ast.Attribute(), slice=ast.Constant(value="text" | "error")):
            return True
        case ast.Constant(value=str(text)):
            return bool(PROSE.search(text))
        case ast.JoinedStr(values=parts) | ast.Dict(values=parts):
            return any(said_here(part, known) for part in parts if part)
        case ast.IfExp(body=one, orelse=other):
            return said_here(one, known) or said_here(other, known)
        case ast.Name(id=name):
            return name in known
        case _:
            return False


def named(nodes: Iterable[ast.AST], known: set[str]) -> set[str]:
    """`known`, and the names that are given to sentences of ours in these nodes."""
    for node in nodes:
        match node:
            case ast.Assign(targets=[target], value=value) | ast.NamedExpr(target=target, value=value):
                pass
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                pass
            case _:
                continue
        if said_here(value, known):
            known = known | {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}
    return known


def cuts(tree: ast.Module) -> Iterator[ast.expr]:
    """Every place that takes a part of a sentence of ours, changes one, or looks for a word in it."""
    top = named(tree.body, set())
    within: dict[ast.AST, set[str]] = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            within.update(dict.fromkeys(ast.walk(function), named(ast.walk(function), top)))
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=text, attr=method)) if method in CUTS:
                pass
            case ast.Subscript(value=text, slice=ast.Slice()):
                pass
            case ast.Compare(
                left=ast.Constant(value=str()), ops=[ast.In() | ast.NotIn()], comparators=[text]
            ):
                if said_here(text, within.get(node, top)):
                    yield node
                continue
            case _:
                continue
        if said_here(text, within.get(node, top)) or is_ours(text):
            yield node


def is_ours(text: ast.expr) -> bool:
    """Whether it is called as sentences of ours are."""
    match text:
        case ast.Call(func=ast.Name(id="str"), args=[inner]):
            return is_ours(inner)
        case ast.Attribute(value=holder, attr=name) if name in TEXTS:
            return ast.unparse(holder).rpartition(".")[2].lstrip("_") in HOLDERS
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name.rpartition("_")[2] in OURS
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name in OURS
        case _:
            return False


FIRST_LETTER = re.compile(r"(\w+)\[(?:0|:1)\]\.(?:upper|lower)\(\).{1,6}\1\[1:\]")


def test_a_first_letter_is_changed_in_one_place() -> None:
    """`begun` of `base/text.py` makes it large, `clause` of `api/sentences.py` small."""
    ours = [module for module in modules() if not module.name.startswith("goodbot_training.tiny")]
    found = {module.path for module in ours if FIRST_LETTER.search(module.text)}
    assert found == {"core/goodbot/base/text.py", "core/goodbot/api/sentences.py"}
    for line in ("said[0].upper() + said[1:]", "f'{title[:1].lower()}{title[1:]}'"):
        assert FIRST_LETTER.search(line), line


def test_no_sentence_is_cut_or_edited() -> None:
    found = {
        f"{module.path}:{node.lineno} {ast.unparse(node)}"
        for module in modules()
        if ".testing" not in module.name and not module.name.startswith("goodbot_fakes")
        if module.path not in FOREIGN
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
        "'damaged' in str(error)",
        "str(error).removeprefix(f'Item {identity}: ')",
        "text = str(error)\ntext = text.replace('hosts', 'upstream_hosts')",
        "str(answer['text']).splitlines()[0]",
        "first, *rest = answer['text'].splitlines()\nfirst.removesuffix(' answers')",
        "[one for one in answer['text'].splitlines() if not one.startswith('the model')]",
        "TELLS = {1: 'it does not run: say so'}\nfor _, tell in TELLS.items():\n    tell.partition(': ')",
        "f'the last run was {state}: {why}'.removesuffix(': ')",
        "note.text.startswith('Answer more like this: ')",
    ],
)
def test_a_cut_is_seen(line: str) -> None:
    assert list(cuts(ast.parse(line)))


@pytest.mark.parametrize(
    "line",
    [
        *("event.text.strip()", "turn.text[:60]", "told[0]", "why.encode()", "text.split()"),
        *("'x' in text", "line = read()\nline.strip()", "f'{a}:{b}'.strip(':')", "'name'.split('.')"),
    ],
)
def test_what_is_anybodys_words_is_no_cut(line: str) -> None:
    assert not list(cuts(ast.parse(line)))
