# SPDX-License-Identifier: Apache-2.0
"""Every hook is named by its family, documented, called by the host, and tested."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
from goodbot.api import hookspecs
from goodbot.api.plugins import PluginHost

from tests.architecture.source import ROOT, modules

HOOKS: dict[str, Callable[..., Any]] = {
    name: function
    for name, function in vars(hookspecs).items()
    if inspect.isfunction(function) and hasattr(function, "goodbot_spec")
}
FAMILIES = ("register", "on", "veto")


def test_there_are_hooks() -> None:
    assert len(HOOKS) >= 14


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_is_named_by_its_family(hook: str) -> None:
    family, _, subject = hook.partition("_")
    assert family in FAMILIES
    assert subject
    options: dict[str, Any] = HOOKS[hook].goodbot_spec  # type: ignore[attr-defined]
    assert not options["firstresult"], "with it the first plugin decides for all"


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_is_told_in_one_sentence(hook: str) -> None:
    told = (inspect.getdoc(HOOKS[hook]) or "").partition("\n\nArgs:")[0]
    assert told.endswith(".")
    assert "\n\n" not in told


@pytest.mark.parametrize("hook", HOOKS)
def test_a_decision_is_synchronous(hook: str) -> None:
    returned = str(inspect.signature(HOOKS[hook]).return_annotation)
    assert ("Awaitable" in returned) == hook.startswith("on_")
    assert not inspect.iscoroutinefunction(HOOKS[hook])
    if hook.startswith("veto_"):
        assert returned == "str | None", "a veto can refuse, and grant nothing"


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_is_documented(hook: str) -> None:
    """A section of its own in docs/hooks.md: the arguments, and an example."""
    pages = (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8")
    sections = re.split(r"^### ", pages, flags=re.M)
    parameters = list(inspect.signature(HOOKS[hook]).parameters)
    [section] = [text for text in sections if text.startswith(f"`{hook}({', '.join(parameters)})`")]
    assert f"def {hook}(" in section, "no example"


def test_no_other_hook_is_documented() -> None:
    pages = (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^### `(\w+)\(", pages, flags=re.M)) == set(HOOKS)


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_is_tested(hook: str) -> None:
    """Some test implements it: as a hookimpl function, or as `plugin(HOOK=…)`."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        if "node_modules" in path.parts:
            continue
        text = path.read_text(encoding="utf-8")
        if f"{hook}" in text and _implements(ast.parse(text), hook):
            return
    pytest.fail(f"no test implements {hook}")


def _implements(tree: ast.Module, hook: str) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == hook:
            if any("hookimpl" in ast.unparse(line) for line in node.decorator_list):
                return True
        elif isinstance(node, ast.keyword) and node.arg == hook:
            return True
        elif isinstance(node, ast.Constant) and node.value == hook:
            # a parametrised test that names the hook and registers `plugin(**{hook: …})`
            return "plugin(**{hook:" in ast.unparse(tree)
    return False


def test_only_the_plugin_host_calls_hooks() -> None:
    """`pm.hook` is touched in one module."""
    found = [
        module.path
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and node.attr in ("hook", "subset_hook_caller")
    ]
    assert set(found) == {"core/goodbot/api/plugins.py"}


@pytest.mark.parametrize("hook", [hook for hook in HOOKS if not hook.startswith("register_")])
def test_the_host_calls_every_hook(hook: str) -> None:
    """Each has a method on the host of the same arguments, and somebody in the core calls it."""
    expected = list(inspect.signature(HOOKS[hook]).parameters)
    assert list(inspect.signature(getattr(PluginHost, hook)).parameters)[1:] == expected
    callers = {
        module.name for module in modules() for name, _ in module.calls() if name.endswith(f"plugins.{hook}")
    }
    assert callers, f"nothing calls {hook}"
