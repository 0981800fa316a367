# SPDX-License-Identifier: Apache-2.0
"""Errors that people read can be said in their language: their words are `Worded`, and in the catalogue.

The rooms below the catalogue say them in English. What is a bare text today is counted by module, with why;
the list only gets shorter. Rooms above say theirs with `say` and `phrase`, which `test_texts.py` counts.
"""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from functools import cache

import pytest
from goodbot.api.texts import catalogue

from tests.architecture.source import Module, modules
from tests.architecture.test_texts import PROSE

ROOMS = (
    *("goodbot.config", "goodbot.store", "goodbot.base", "goodbot.inference", "goodbot.api.adapters"),
    *(f"goodbot.api.{name}" for name in ("address", "registry", "projections", "marks", "plugins")),
    *("goodbot.learning", "goodbot.conversation", "goodbot.commands", "goodbot.daemon"),
    *(f"goodbot_connectors.codex.{name}" for name in ("hooks_file", "trust")),
    *("goodbot_connectors.claude_code.settings_file", "goodbot_connectors.openclaw.program"),
    "goodbot_connectors.kit.settings_file",
    *(f"goodbot_training.{name}" for name in ("backends", "formats", "memory", "process")),
)
"""Where errors are worded."""
VALUES = (
    *("goodbot.config", "goodbot.api.address", "goodbot_connectors.claude_code.settings_file"),
    *(f"goodbot.base.{name}" for name in ("checks", "sampling", "addresses")),
)
"""Where a ValueError says what is wrong with a setting."""
ENGLISH: dict[str, int] = {
    # module: how many errors
    "goodbot.api.plugins": 3,  # to whoever writes a plugin
    "goodbot.base.outward": 3,  # to the log, of what cannot be delivered
    "goodbot.base.safe_tar": 3,  # of an archive that was altered by hand
    "goodbot.base.sse": 2,  # of a model server that breaks its protocol
    "goodbot.commands.activity": 1,  # to programs: the page has a list
    "goodbot.commands.overview": 1,  # to programs: who may not talk sees no page
    "goodbot.commands.report_parts": 1,  # to whoever writes a plugin
    "goodbot.config.vault": 2,  # what is odd in a file that nobody edits
    "goodbot.conversation.completions": 1,  # to programs
    "goodbot.conversation.ingest": 1,  # to connectors
    "goodbot.conversation.judging": 2,  # to the log
    "goodbot.daemon.control": 3,  # to programs, and of a goodbot that does not know its settings yet
    "goodbot.daemon.features": 2,  # the name of a section
    "goodbot.daemon.loopback.chat": 1,  # to whoever writes a test
    "goodbot.inference.models.servers": 3,  # to whoever writes a plugin
    "goodbot.inference.servers.ollama": 1,  # to the log
    "goodbot.learning.training.folders": 1,  # of a folder that was altered by hand
    "goodbot.learning.training.remote": 1,  # to a child that breaks its protocol
    "goodbot_training.backends.base": 1,  # of a setting that was looked at before
    "goodbot_training.backends.chat": 3,  # without values: the catalogue has them
    "goodbot_training.backends.mlx.trainer": 2,  # one likewise, and one to programs
    "goodbot_training.backends.packing": 2,  # likewise
    "goodbot_training.backends.ray.driver": 3,  # to a child that breaks its protocol
    "goodbot_training.backends.sampling": 1,  # to programs
    "goodbot_training.backends.torch.trainer": 2,  # as of MLX
    "goodbot_training.formats.proof": 2,  # what is to be reported
}


@cache
def ours() -> frozenset[str]:
    """The names of all errors of goodbot's own."""
    found, before = {"GoodbotError"}, 0
    classes = [
        node for module in modules() for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)
    ]
    while len(found) > before:
        before = len(found)
        found |= {one.name for one in classes if {ast.unparse(base) for base in one.bases} & found}
    return frozenset(found)


def within(module: Module, rooms: tuple[str, ...]) -> bool:
    return any(module.name == room or module.name.startswith(f"{room}.") for room in rooms)


def messages(module: Module) -> Iterator[ast.expr]:
    """What errors are made with in a module, as far as it is written at their making."""
    raised = ours() | ({"ValueError"} if within(module, VALUES) else set())
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[first, *_]) if (
                name in raised
            ):
                yield first
            case ast.Call(func=ast.Attribute(value=holder, attr="error"), args=[_, said, *_]):
                if ast.unparse(holder) != "logger":
                    yield said
            case ast.Call(func=ast.Name(id="config_error"), args=[_, _, said]):
                yield said
            case _:
                pass


def bare(said: ast.expr) -> bool:
    """Whether it is a sentence that no catalogue could know."""
    match said:
        case ast.Constant(value=str(text)):
            return bool(PROSE.search(text))
        case ast.JoinedStr(values=parts):
            return any(bare(part) for part in parts) or len(parts) > 1
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
            return bare(one) or bare(other)
        case _:
            return False


def test_what_is_wrong_can_be_said_in_every_language() -> None:
    found = {module.name: sum(map(bare, messages(module))) for module in modules() if within(module, ROOMS)}
    assert {name: count for name, count in found.items() if count} == ENGLISH


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ('raise ConfigError("it cannot be read")', 1),
        ('raise ConfigError(f"{path} is gone")', 1),
        ('raise where.error("key", f"{key} is off")', 1),
        ('raise ConfigError("it is" if one else "they are all")', 1),
        ('raise ConfigError(Worded("it cannot be read"))', 0),
        ('logger.error("it cannot be read: %s", "with a reason")', 0),
        ('raise KeyError("it is not there")', 0),
    ],
)
def test_a_bare_sentence_is_seen(line: str, count: int) -> None:
    made = Module(name="made", path="made.py", text=line, tree=ast.parse(line))
    assert sum(map(bare, messages(made))) == count


# -- the texts


def templates(module: Module) -> Iterator[tuple[str, list[set[str]]]]:
    """Each text of a `Worded`, written at it or named in the same function, and the values it may get."""
    for scope in (module.tree, *ast.walk(module.tree)):
        if not isinstance(scope, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        given: dict[str, list[set[str]]] = {}
        for call in ast.walk(scope):
            match call:
                case ast.Call(
                    func=ast.Name(id="Worded"), args=[ast.Constant(value=str(text))], keywords=words
                ):
                    yield text, [{word.arg or "" for word in words}]
                case ast.Call(func=ast.Name(id="Worded"), args=[ast.Name(id=name)], keywords=words):
                    given.setdefault(name, []).append({word.arg or "" for word in words})
                case _:
                    pass
        if isinstance(scope, ast.Module):
            continue  # its names belong to functions
        for node in ast.walk(scope):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))) if (
                    name in given
                ):
                    yield text, given[name]
                case _:
                    pass


def test_every_worded_text_is_in_the_catalogue() -> None:
    known = {text for text in catalogue("en").values() if isinstance(text, str)}
    found = [(module.path, *one) for module in modules() for one in templates(module)]
    assert len(found) > 100, "the scan has lost its subject"
    for path, text, given in found:
        parts = list(string.Formatter().parse(text))
        places = {name for _, name, _, _ in parts if name}
        assert places in given, (path, text)
        assert text in known or not any(sign.isalpha() for part, *_ in parts for sign in part), (path, text)
