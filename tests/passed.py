# SPDX-License-Identifier: Apache-2.0
"""`GOODBOT_TESTS_PASSED=FILE`: a run leaves out the tests that FILE names, and adds those that pass.

So `.ci/run` tests a bare environment first, and runs in the full one only what could not run before.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_PASSED: dict[str, bool] = {}


def _file() -> Path | None:
    name = os.environ.get("GOODBOT_TESTS_PASSED")
    return Path(name) if name else None


def _known(file: Path) -> set[str]:
    return set(file.read_text(encoding="utf-8").splitlines()) if file.exists() else set()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (file := _file()) is None:
        return
    known = _known(file)
    again = [item for item in items if _name(item.nodeid) in known]
    items[:] = [item for item in items if _name(item.nodeid) not in known]
    config.hook.pytest_deselected(items=again)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A test has passed if it ran, and neither it nor what it needs and leaves has failed."""
    if report.when == "call" and report.passed and not hasattr(report, "wasxfail"):
        _PASSED.setdefault(_name(report.nodeid), True)
    elif report.failed:
        _PASSED[_name(report.nodeid)] = False


def _name(nodeid: str) -> str:
    """Without the name of its group, which stands behind it with `--dist loadgroup`."""
    name, _, group = nodeid.rpartition("@")
    return name if name and "]" not in group else nodeid


def pytest_sessionfinish(session: pytest.Session) -> None:
    file = _file()
    if file is None or hasattr(session.config, "workerinput"):
        return
    names = _known(file) | {name for name, passed in _PASSED.items() if passed}
    file.write_text("".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")
