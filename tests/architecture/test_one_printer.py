# SPDX-License-Identifier: Apache-2.0
"""What goes to a terminal goes through `goodbot.base.printing`: nothing that others wrote gets there raw."""

from __future__ import annotations

from tests.architecture.source import modules

ELSEWHERE = {
    # path: why it writes by itself
    "core/goodbot/base/printing.py": "it is the printer",
    "core/goodbot/base/cage/__main__.py": "the log of a child, before it is started",
    "connectors/goodbot_fakes/llamacpp.py": "a fake: what the real one writes",
    "core/goodbot/learning/tracking/child.py": "a child: the parent logs its stderr",
    "training/goodbot_training/process/worker.py": "a child: the parent reads its stdout, logs its stderr",
    "training/goodbot_training/process/look.py": "a child: the parent reads its stdout",
    "training/goodbot_training/process/inspect.py": "a child: the parent reads its stdout",
}
WRITES = {"print", "sys.stdout.write", "sys.stderr.write", "sys.stdout.writelines", "sys.stderr.writelines"}


def test_s8_nothing_prints_by_itself() -> None:
    found = {
        module.path: f"line {call.lineno}: {called}"
        for module in modules()
        for called, call in module.calls()
        if called in WRITES
    }
    assert {path: place for path, place in found.items() if path not in ELSEWHERE} == {}
    assert ELSEWHERE.keys() - found.keys() == set(), "take out of the list what does not write any more"
