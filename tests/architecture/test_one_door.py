# SPDX-License-Identifier: Apache-2.0
"""Programs are started in one place, which is where they are kept from doing harm."""

from __future__ import annotations

import ast
import re

import pytest

from tests.architecture.source import modules, names

DOOR = {
    "core/goodbot/base/spawn.py": "the door",
    "core/goodbot/base/desktop.py": "which browser there is; the door starts it",
    "core/goodbot/base/cage/__main__.py": "what every program is started through",
    "core/goodbot/base/cage/linux.py": "the driver's own program, before the child is locked up",
    "core/goodbot/base/cage/macos.py": "the system's own sandbox, asked whether it is there",
    "core/goodbot/base/cage/tie.py": "the process that watches, where the kernel does not",
    "core/goodbot/testing/connector.py": "a suite that plugin authors run; no product imports it",
}
FREE = {
    # path: why what it starts is in no cage, or may be in none
    "core/goodbot/cli/doctor/model.py": "the card's own program; the framework, where a cage hides the card",
    "core/goodbot/learning/training/cluster.py": "a cluster's driver has a network; it loads no model",
    "core/goodbot/learning/tracking/observer.py": "a tracker reads numbers of ours, and some are sent away",
    "connectors/goodbot_connectors/codex/trust.py": "the person's own program",
    "connectors/goodbot_connectors/openclaw/program.py": "the person's own program",
}
WAYS = re.compile(
    r"sys\.(_base_)?executable|(os|posix)\.(exec[lv]|spawn|posix_spawn|system|popen|v?fork).*"
    r"|(subprocess|multiprocessing|pty|posix|_posixsubprocess|webbrowser|concurrent\.futures\.process)(\..*)?"
    r"|concurrent\.futures\.ProcessPoolExecutor"
)
METHODS = re.compile(
    r"(create_)?subprocess_(exec|shell)|(exec|spawn)[lv]p?e?|posix_spawnp?|v?fork|forkpty|popen"
)
"""Names that start a program whatever they are taken from."""
START = "goodbot.base.spawn.start"
LOADERS = ("import_module", "__import__", "getattr", "find_spec")


def found(tree: ast.AST) -> list[int]:
    """The lines that start a program, or could hand somebody the means to."""
    lines = [node.lineno for name, node in names(tree) if starts(name)]
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=imported):
                hit = any(starts(one.name) for one in imported)
            case ast.ImportFrom(module=module, names=imported):
                full = [f"{module}.{one.name}" for one in imported]
                hit = any(map(starts, [str(module), *full])) or "asyncio.subprocess" in full
            case ast.Call(func=called, args=[*_, ast.Constant(value=str(word))]):
                # `importlib.import_module("subprocess")`, `getattr(os, "execv")`
                loads = ast.unparse(called).rpartition(".")[2] in LOADERS
                hit = loads and (starts(word) or starts(f"os.{word}") or word in ("os", "executable"))
            case ast.Subscript(value=table, slice=ast.Constant(value=str(word))):
                hit = ast.unparse(table).endswith("modules") and (starts(word) or word in ("os", "sys"))
            case _:
                continue
        if hit:
            lines.append(node.lineno)
    return lines


def starts(name: str) -> bool:
    """Whether something of this name starts programs."""
    return bool(WAYS.fullmatch(name) or ("." in name and METHODS.fullmatch(name.rpartition(".")[2])))


def test_no_other_module_starts_a_program() -> None:
    others = [
        f"{module.path}:{line}"
        for module in modules()
        if module.path not in DOOR and not module.path.startswith("connectors/goodbot_fakes/")
        for line in found(module.tree)
    ]
    assert others == [], "goodbot.base.spawn starts programs: `start`, `run`, `python`"


def test_the_door_is_where_it_is_said_to_be() -> None:
    opened = {module.path for module in modules() if found(module.tree)}
    assert set(DOOR) - opened == set()


def test_whoever_starts_a_child_says_what_it_may() -> None:
    free = {module.path for module in modules() if lets_out(module.tree)}
    assert free == set(FREE), "give it a `cage`, or say here why it needs none"


def lets_out(tree: ast.AST) -> bool:
    """Whether a child that it starts is in no cage, may be in none, or nobody can see in which."""
    starting = [node for name, node in names(tree) if name == START]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.func in starting]
    by_name = any(
        f"{node.module}.{one.name}" == START
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for one in node.names
    )
    given = [word.value for call in calls for word in call.keywords if word.arg == "cage"]
    if by_name or not len(starting) == len(calls) == len(given):
        return True
    return bool(calls) and (any(map(nothing, given)) or any(map(perhaps, ast.walk(tree))))


def perhaps(node: ast.AST) -> bool:
    """Whether this says of a cage that it may be None. What the type checker knows of types is its own."""
    match node:
        case (
            ast.arg(annotation=ast.expr() as said)
            | ast.FunctionDef(returns=ast.expr() as said)
            | ast.AsyncFunctionDef(returns=ast.expr() as said)
        ):
            return "Cage" in ast.unparse(said) and nothing(said)
        case ast.AnnAssign(target=name, annotation=said, value=value):
            caged = "cage" in ast.unparse(name).lower() or "Cage" in ast.unparse(said)
            return caged and (nothing(said) or (value is not None and nothing(value)))
        case ast.Assign(targets=targets, value=value):
            return any("cage" in ast.unparse(name).lower() for name in targets) and nothing(value)
        case _:
            return False


def nothing(value: ast.AST) -> bool:
    """Whether None is in it, or what stands for it in a type. What a call gives says its own annotation."""
    match value:
        case ast.Call():
            return False
        case ast.Constant(value=None) | ast.Name(id="Optional") | ast.Attribute(attr="Optional"):
            return True
        case _:
            return any(map(nothing, ast.iter_child_nodes(value)))


@pytest.mark.parametrize(
    "starts",
    [
        "from goodbot.base import spawn\nspawn.start('x')",
        "from goodbot.base import spawn\nspawn.start('x', cage=None)",
        "from goodbot.base import spawn\nspawn.start('x', cage=spawn.Cage() if y else None)",
        "from goodbot.base import spawn\nspawn.start('x', **options)",
        "from goodbot.base import spawn as s\ns.start('x', cage=None)",
        "from goodbot.base.spawn import start\nstart('x', cage=spawn.Cage())",
        "from goodbot.base import spawn\ngo = spawn.start\ngo('x')",
        "from goodbot.base import spawn\ndef f(cage: spawn.Cage | None): spawn.start('x', cage=cage)",
        "from goodbot.base import spawn\ndef f(cage: Optional[spawn.Cage]): spawn.start('x', cage=cage)",
        "from goodbot.base import spawn\ndef g() -> spawn.Cage | None: ...\nspawn.start('x', cage=g())",
        "from goodbot.base import spawn\ncage = None\nspawn.start('x', cage=cage)",
        "from goodbot.base import spawn\ncage: spawn.Cage | None\nspawn.start('x', cage=cage)",
        "import goodbot.base.spawn\ngoodbot.base.spawn.start('x')",
    ],
)
def test_whoever_may_start_one_without_a_cage_is_seen(starts: str) -> None:
    assert lets_out(ast.parse(starts))
    assert not lets_out(ast.parse("from goodbot.base import spawn\nspawn.start('x', cage=spawn.Cage())"))


def test_each_way_is_seen() -> None:
    """The scan itself: a way to start a program that it does not see is a hole in this test."""
    for line in (
        "import subprocess",
        "from subprocess import run",
        "import multiprocessing as m",
        "from asyncio import create_subprocess_exec",
        "asyncio.create_subprocess_shell('x')",
        "asyncio.subprocess.create_subprocess_exec('x')",
        "loop.subprocess_exec(p, 'x')",
        "from sys import executable",
        "print(sys.executable)",
        "os.execv('x', [])",
        "os.execvpe('x', [], {})",
        "os.spawnlp(0, 'x')",
        "os.posix_spawn('x', [], {})",
        "os.fork()",
        "from os import fork",
        "from concurrent.futures import ProcessPoolExecutor",
        "import pty",
        "from os import execv",
        "import os as o; o.execv('x', [])",
        "import os\ngo = os.execv",
        "from asyncio import subprocess",
        "from asyncio.subprocess import create_subprocess_exec",
        "importlib.import_module('subprocess')",
        "__import__('subprocess')",
        "import_module('os').system('x')",
        "getattr(os, 'execv')('x', [])",
        "sys.modules['subprocess']",
        "import posix",
        "import webbrowser",
        "import sys as s; s.executable",
        "import subprocess as s",
        "ctypes.CDLL(None).execv('x', 0)",
    ):
        assert found(ast.parse(line)), line
    assert not found(ast.parse("x: asyncio.subprocess.Process = asyncio.subprocess.PIPE"))
