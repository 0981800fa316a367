# SPDX-License-Identifier: Apache-2.0
"""The docstrings of `goodbot.api` and `goodbot.testing`: who writes a plugin reads them in
docs/plugin-api.md, without the source."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator

import goodbot
import pytest
from goodbot import testing
from goodbot.api import hookspecs

from tests.architecture.source import modules
from tests.architecture.test_public_api import PARTS

Function = ast.FunctionDef | ast.AsyncFunctionDef
FEW = 2
"""So many parameters are told in the first sentence."""
ELSEWHERE = re.compile(r": see `\w+\.\w+`\.\Z")
"""The end of a docstring that sends its reader on to another."""
VERBS = {
    *("Add", "Answer", "Ask", "Change", "Come", "Compute", "Connect", "Delete", "Disconnect"),
    *("End", "Find", "Forget", "Give", "Go", "Hear"),
    *("Judge", "List", "Load", "Make", "Name", "Note", "Offer", "Open", "Pass"),
    *("Put", "Read", "Record", "Refuse", "Replace", "Return", "Run"),
    *("Say", "Send", "Split", "Store", "Submit", "Take", "Tell", "Turn", "Use"),
    *("Write", "Yield"),
    # What tests do.
    *(
        "Cancel",
        "Compare",
        "Do",
        "Let",
        "Mention",
        "Override",
        "Press",
        "React",
        "Set",
        "Shut",
        "Skip",
        "Start",
    ),
    *("Stop", "Train", "Type", "Wait"),
}


def functions(tree: ast.AST, within: str = "") -> Iterator[tuple[str, Function]]:
    """Every public function and method, with its name; an `__init__` counts."""
    for node in ast.iter_child_nodes(tree):
        name = getattr(node, "name", "_")
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(node, Function):
            yield f"{within}{name}", node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{name}.")


def parameters(function: Function) -> list[str]:
    """The names of what it takes, in order."""
    taken = function.args
    extra = [one for one in (taken.vararg, taken.kwarg) if one]
    named = [*taken.posonlyargs, *taken.args, *taken.kwonlyargs, *extra]
    return [one.arg for one in named if one.arg not in ("self", "cls")]


def sections(docstring: str) -> dict[str, str]:
    """What stands below `Args:`, `Returns:`, `Yields:` and `Raises:`."""
    return dict(re.findall(r"^(Args|Returns|Yields|Raises):\n((?: .+\n?)+)", docstring, flags=re.M))


def lacks(function: Function) -> Iterator[str]:
    """What the docstring of a function of many parameters does not tell."""
    told = ast.get_docstring(function) or ""
    if ELSEWHERE.search(told):
        return
    found = sections(told)
    if set(re.findall(r"^    (\w+): \S", found.get("Args", ""), flags=re.M)) != set(parameters(function)):
        yield "Args"
    nothing = function.returns is None or re.search(r"\bNone\Z", ast.unparse(function.returns))
    if not nothing and not {"Returns", "Yields"} & found.keys():
        yield "Returns"
    raised = {
        node.exc.func.id
        for node in ast.walk(function)
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and isinstance(node.exc.func, ast.Name)
    }
    if not {one for one in raised if one[0].isupper()} <= set(re.findall(r"\w+", found.get("Raises", ""))):
        yield "Raises"


def help_of_tests() -> Iterator[tuple[str, Function]]:
    """What authors call in tests of their own: no shipped test, no fixture, no property."""
    own = re.compile(r"fixture|property")
    for module in modules():
        if not module.name.startswith("goodbot.testing."):
            continue
        for name, function in functions(module.tree):
            called = "." in name or name in testing.__all__
            marked = any(own.search(ast.unparse(one)) for one in function.decorator_list)
            if called and not marked and not name.rpartition(".")[2].startswith("test_"):
                yield f"{module.name.removeprefix('goodbot.')}.{name}", function


TESTING = dict(help_of_tests())
MANY = {
    f"{module.name.removeprefix('goodbot.api.')}.{name}": function
    for module in modules()
    if module.name.startswith("goodbot.api.")
    for name, function in functions(module.tree)
    if len(parameters(function)) > FEW
} | {name: function for name, function in TESTING.items() if len(parameters(function)) > FEW}
PUBLIC = [*PARTS, *(one for name in goodbot.__all__ if inspect.isclass(one := getattr(goodbot, name)))]
METHODS = {
    f"{part.__name__}.{name}": inspect.getdoc(member) or ""
    for part in PUBLIC
    for name, member in vars(part).items()
    if not name.startswith("_") and inspect.isroutine(getattr(part, name))
} | {name: inspect.getdoc(one) or "" for name, one in vars(hookspecs).items() if hasattr(one, "goodbot_spec")}
METHODS |= {
    name: ast.get_docstring(one) or "" for name, one in TESTING.items() if not name.endswith(".__init__")
}


@pytest.mark.parametrize("name", MANY)
def test_a_function_of_many_parameters_tells_each(name: str) -> None:
    assert list(lacks(MANY[name])) == []


@pytest.mark.parametrize("name", METHODS)
def test_a_docstring_begins_with_what_to_do(name: str) -> None:
    first = METHODS[name].partition("\n")[0]
    assert re.split(r"\W", first)[0] in VERBS, first
    assert first.endswith((".", "…", "?")), "one line"


def test_there_are_many() -> None:
    assert len(MANY) > 50
    assert len(METHODS) > 150
    assert len(TESTING) > 60


@pytest.mark.parametrize(
    ("code", "missing"),
    [
        ('def f(a, b, c) -> None:\n    """Add."""', ["Args"]),
        (
            'def f(a, b, c) -> int:\n    """Add.\n\n    Args:\n        a: A.\n        b: B.\n    """',
            ["Args", "Returns"],
        ),
        (
            'def f(a, *b, c) -> None:\n    """Add.\n\n    Args:\n        a: A.\n        b: B.\n        c: C.'
            '\n    """\n    raise ValueError(\'no\')',
            ["Raises"],
        ),
        ('def f(a, b, c) -> int:\n    """Add: see `sums.add`."""', []),
    ],
)
def test_what_is_missing_is_seen(code: str, missing: list[str]) -> None:
    [(_, function)] = functions(ast.parse(code))
    assert list(lacks(function)) == missing
