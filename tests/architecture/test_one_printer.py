# SPDX-License-Identifier: Apache-2.0
"""What goes to a terminal goes through `goodbot.base.printing`: nothing that others wrote gets there raw."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest
from goodbot.cli.doctor.command import _COLOURS

from tests.architecture.source import modules, names

ELSEWHERE = {
    # path: why it writes by itself
    "core/goodbot/base/printing.py": "it is the printer",
    "core/goodbot/base/log.py": "the log: the printer makes its lines",
    "core/goodbot/config/lock.py": "the lock's own file",
    "core/goodbot/cli/manifest.py": "a packed file, and to no terminal",
    "connectors/goodbot_connectors/codex/shim.py": "JSON, to the program that has started it",
    "core/goodbot/base/cage/__main__.py": "the log of a child, before it is started",
    "connectors/goodbot_fakes/cluster.py": "a fake: what the real one writes",
    "connectors/goodbot_fakes/llamacpp.py": "a fake: what the real one writes",
    "core/goodbot/learning/tracking/child.py": "a child: the parent logs its stderr",
    "training/goodbot_training/process/autopsy.py": "a child: the parent logs its stderr",
    "training/goodbot_training/backends/ray/driver.py": "a child: the parent keeps the end of its stderr",
    "training/goodbot_training/process/shard.py": "a child: the parent keeps the end of its stderr",
    "training/goodbot_training/process/worker.py": "a child: the parent reads its stdout, logs its stderr",
    "training/goodbot_training/process/look.py": "a child: the parent reads its stdout",
    "training/goodbot_training/process/inspect.py": "a child: the parent reads its stdout",
}
MADE_PRINTABLE = {
    # what `draw` is given, as it stands there: where it was made printable
    (
        "core/goodbot/api/progress.py",
        "bar(progress, columns - 1, here(), figures=figures)",
    ): "its phase, by `phase`",
    ("core/goodbot/cli/doctor/command.py", "line(check)"): "each of its parts, there",
    ("core/goodbot/cli/setup/dialogue.py", "bold"): "the text, before it is made bold",
    ("connectors/goodbot_connectors/terminal/live.py", "text"): "whatever `Screen` is given, by it",
}
PRINTABLE = ("goodbot.base.printing.printable", "goodbot.base.printing.one_line")
GIVEN = re.compile(
    r"goodbot\.base\.printing\.draw|getpass\.(\w*getpass|_raw_input)|(builtins\.)?(input|SystemExit|exit|quit)"
    r"|sys\.exit|readline\..*"
)
"""What writes to a terminal the text that it is given."""
WRITES = re.compile(
    r"print|os\.writev?|sys\.__?std(out|err)__?.*|sys\.std(out|err)\.(write|writelines|buffer).*"
    r"|logging\.(basicConfig|lastResort|raiseExceptions|StreamHandler|FileHandler|handlers\..*)"
    r"|warnings\.(warn|warn_explicit|showwarning)|traceback\.print_.*|faulthandler\..*|pprint\.pp.*|builtins\.print"
)


def found(tree: ast.AST) -> list[int]:
    """The lines that write to a terminal, or take the means to."""
    lines = [node.lineno for name, node in names(tree) if WRITES.fullmatch(name)]
    for node in ast.walk(tree):
        match node:
            # the stream under a name of its own: what is written to it then is not seen
            case ast.Assign(value=value) | ast.NamedExpr(value=value) | ast.withitem(context_expr=value):
                parts = value.values if isinstance(value, ast.BoolOp) else [value]
                if {"sys.stdout", "sys.stderr"} & {ast.unparse(part) for part in parts}:
                    lines.append(value.lineno)
            case ast.ImportFrom(module="sys", names=imported):
                if {one.name for one in imported} & {"stdout", "stderr", "__stdout__", "__stderr__"}:
                    lines.append(node.lineno)
            case _:
                continue
    return lines


def test_s8_nothing_prints_by_itself() -> None:
    writing = {module.path: lines for module in modules() if (lines := found(module.tree))}
    assert {path: lines for path, lines in writing.items() if path not in ELSEWHERE} == {}
    assert ELSEWHERE.keys() - writing.keys() == set(), "take out of the list what does not write any more"


def test_s8_each_way_is_seen() -> None:
    """The scan itself: a way to a terminal that it does not see is a hole in this test."""
    for line in (
        "print('x')",
        "say = print",
        "print('x', file=sys.stderr)",
        "from builtins import print as p; p('x')",
        "sys.stdout.write('x')",
        "sys.stdout.buffer.write(b'x')",
        "import sys as s; s.stderr.buffer.write(b'x')",
        "write = sys.stdout.write",
        "from sys import stdout",
        "out = sys.stdout",
        "out = file or sys.stdout",
        "sys.__stderr__.write('x')",
        "os.write(1, b'x')",
        "from os import write; write(2, b'x')",
        "traceback.print_exc()",
        "from pprint import pprint; pprint(x)",
        "logging.basicConfig()",
        "from logging import StreamHandler; x = StreamHandler()",
        "logging.lastResort = x",
    ):
        assert found(ast.parse(line)), line
    assert not found(ast.parse("say('x', file=sys.stderr); sys.stdout.isatty()"))


def given(tree: ast.Module) -> list[str]:
    """What is given, raw as it stands there, to a way to the terminal; the way's name if it is handed on."""
    called = {id(node): name for name, node in names(tree)}
    constants = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    def raw(part: ast.expr, way: str) -> list[str]:
        match part:
            case ast.Constant():
                return []
            case ast.Name(id=name) if name in constants:
                return []
            case ast.Call(func=made) if called.get(id(made)) in PRINTABLE:
                return []
            case ast.Call(func=ast.Name(id="main")) if way.endswith(("exit", "SystemExit")):
                return []  # its exit code
            case ast.BinOp(left=ast.Constant(value=int()), op=ast.Add()):
                return []  # a number
            case ast.BinOp(left=left, right=right):
                return raw(left, way) + raw(right, way)
            case ast.IfExp(body=left, orelse=right):
                return raw(left, way) + raw(right, way)
            case ast.JoinedStr(values=parts):
                return [one for value in parts for one in raw(value, way)]
            case ast.FormattedValue(value=value) | ast.Subscript(value=value):
                return raw(value, way)
            case _:
                return [ast.unparse(part)]

    left, seen = [], set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and GIVEN.fullmatch(way := called.get(id(node.func), "")):
            seen.add(id(node.func))
            words = [*node.args[:1], *(one.value for one in node.keywords if one.arg != "file")]
            left += [one for word in words for one in raw(word, way)]
    return left + [
        name for name, node in names(tree) if GIVEN.fullmatch(name) and id(node) not in seen | _loads(tree)
    ]


def _loads(tree: ast.AST) -> set[int]:
    """Exceptions that are caught, and bare `raise SystemExit`."""
    caught = [node.type for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.type]
    raised = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc]
    return {id(inner) for one in caught for inner in ast.walk(one)} | {id(one) for one in raised}


def test_s8_what_is_drawn_asked_and_said_at_the_end_is_printable() -> None:
    """A prompt and an exit's sentence are written by Python itself; what is drawn is not looked at again."""
    found = {
        (module.path, one)
        for module in modules()
        if module.path not in ELSEWHERE and not module.path.startswith("connectors/goodbot_fakes/")
        for one in given(module.tree)
    }
    assert found - MADE_PRINTABLE.keys() == set(), "make it `printable` there, or say here where it is"
    assert MADE_PRINTABLE.keys() - found == set(), "take out of the list what is not drawn any more"


def test_s8_each_raw_text_is_seen() -> None:
    head = "import getpass, sys\nfrom goodbot.base import printing\nfrom goodbot.base.printing import draw\n"
    for line in (
        "draw(text)",
        "printing.draw(text, file=out)",
        "draw(sequences=text)",
        "draw('\\r' + text)",
        "draw(f'\\r{text}')",
        "draw(printing.printable(text) + more)",
        "show = draw",
        "getpass.getpass(prompt, out)",
        "getpass.getpass(prompt=prompt)",
        "from getpass import getpass as ask; ask(prompt)",
        "input(prompt)",
        "ask = input",
        "raise SystemExit(str(error))",
        "raise SystemExit(f'no {name}')",
        "sys.exit(text)",
        "end = sys.exit",
    ):
        assert given(ast.parse(head + line)), line
    for line in (
        "draw('\\r')",
        "draw('\\r' + printing.printable(text)[:9])",
        "_CLEAR = '\\r'\ndraw(_CLEAR + printing.printable(text))",
        "getpass.getpass(printing.printable(prompt), out)",
        "raise SystemExit(128 + number)",
        "raise SystemExit(main())",
        "raise SystemExit",
        "try: x()\nexcept (SystemExit, OSError): pass",
        "sys.exit()",
    ):
        assert not given(ast.parse(head + line)), line


LOGS = r"""
import goodbot.cli, sys
for _ in range(2):
    goodbot.cli.main(["status", "--nothing"])
print("logging" in sys.modules)
import logging
logging.getLogger("x").warning("%s", "\x1b]0;title\x07\x1b[31mred\nsecond")
logging.getLogger("x").info("quiet")
"""


@pytest.mark.parametrize("before", [False, True])
def test_s8_what_a_command_logs_is_printed(before: bool) -> None:
    """Without a daemon no log is set up: Python's last resort would write a child's words raw."""
    code = f"import logging\n{LOGS}" if before else LOGS
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{before}\n"
    assert done.stderr.splitlines()[-2:] == ["red", "  second"]


def test_a_terminal_with_sixteen_colours_shows_all_that_is_coloured() -> None:
    """Of 256, or of any, is none: who has set what the sixteen look like sees ours in that light."""
    few = {"0", "1", "2", *map(str, range(30, 38)), *map(str, range(90, 98))}
    used = {code for module in modules() for code in re.findall(r"\\x1b\[([^\"'m]*)m", module.text)}
    assert {"0", "1"} <= used, "the scan has lost its subject"
    assert used - few == {"{_COLOURS[check.state]}"}
    assert set(_COLOURS.values()) <= few
