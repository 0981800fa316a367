# SPDX-License-Identifier: Apache-2.0
"""What goes to a terminal goes through `goodbot.base.printing`: nothing that others wrote gets there raw."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

from tests.architecture.source import modules, names

ELSEWHERE = {
    # path: why it writes by itself
    "core/goodbot/base/printing.py": "it is the printer",
    "core/goodbot/base/log.py": "the log: the printer makes its lines",
    "core/goodbot/config/lock.py": "the lock's own file",
    "core/goodbot/cli/manifest.py": "a packed file, and to no terminal",
    "connectors/goodbot_connectors/codex/shim.py": "JSON, to the program that has started it",
    "core/goodbot/base/cage/__main__.py": "the log of a child, before it is started",
    "connectors/goodbot_fakes/llamacpp.py": "a fake: what the real one writes",
    "core/goodbot/learning/tracking/child.py": "a child: the parent logs its stderr",
    "training/goodbot_training/process/autopsy.py": "a child: the parent logs its stderr",
    "training/goodbot_training/process/worker.py": "a child: the parent reads its stdout, logs its stderr",
    "training/goodbot_training/process/look.py": "a child: the parent reads its stdout",
    "training/goodbot_training/process/inspect.py": "a child: the parent reads its stdout",
}
WRITES = re.compile(
    r"print|os\.writev?|sys\.__?std(out|err)__?.*|sys\.std(out|err)\.(write|writelines|buffer).*"
    r"|logging\.(basicConfig|lastResort|raiseExceptions|StreamHandler|FileHandler|handlers\..*)"
    r"|traceback\.print_.*|faulthandler\..*|pprint\.pp.*|builtins\.print"
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
