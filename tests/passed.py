# SPDX-License-Identifier: Apache-2.0
"""`GOODBOT_TESTS_PASSED=FILE`: a run leaves out the tests that FILE names, and adds those that pass.

So `.ci/run` tests a bare environment first, and runs in the full one only what could not run before. A file
whose tests have all passed is named, too, and not even read again: what is not installed skips a test, and is
never what its parameters depend on.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

_PASSED: dict[str, bool] = {}
_WHOLE: dict[str, bool] = {}
"""By file: whether each of its tests has passed."""


def _file() -> Path | None:
    name = os.environ.get("GOODBOT_TESTS_PASSED")
    return Path(name) if name else None


@cache
def _known(file: Path) -> set[str]:
    return set(file.read_text(encoding="utf-8").splitlines()) if file.exists() else set()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Of which all tests have passed; the others are for others to decide."""
    if (file := _file()) is None or not collection_path.is_relative_to(config.rootpath):
        return None
    return collection_path.relative_to(config.rootpath).as_posix() in _known(file) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (file := _file()) is None:
        return
    known = _known(file)
    again = [item for item in items if item.nodeid in known]
    items[:] = [item for item in items if item.nodeid not in known]
    config.hook.pytest_deselected(items=again)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A test has passed if it ran, and neither it nor what it needs and leaves has failed."""
    if report.when == "call" and report.passed and not hasattr(report, "wasxfail"):
        _PASSED.setdefault(report.nodeid, True)
    elif report.failed:
        _PASSED[report.nodeid] = False
    name = report.nodeid.partition("::")[0]
    _WHOLE[name] = _WHOLE.get(name, True) and report.passed and not hasattr(report, "wasxfail")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    file = _file()
    if file is None or hasattr(session.config, "workerinput"):
        return
    whole = _WHOLE if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) else {}
    names = _known(file) | {name for name, passed in (_PASSED | whole).items() if passed}
    file.write_text("".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")
