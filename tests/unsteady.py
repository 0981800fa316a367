# SPDX-License-Identifier: Apache-2.0
"""`GOODBOT_TESTS_FAILED=FILE`: a run adds to FILE each test that fails, and how.

`.ci/run` runs what is red once more, alone. What passes then is unsteady, which is a fault of the test or,
worse, of the product. `python -m tests.unsteady FILE` is the last that CI does: it names each such test with
the last lines of its first failure, and fails where there are more than `MOST`. A few may have met a machine
that stood still; more say that something is broken.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

MOST = 5
"""Tests that may be unsteady in one run of the CI."""
_LINES = 15
_FAILED: dict[str, str] = {}
"""The last words of each test's first failure."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the first failure of a test; what it needs and leaves counts, too."""
    _note(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A module that could not be read."""
    _note(report)


def _note(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.failed:
        last = report.longreprtext.rstrip().splitlines()[-_LINES:]
        _FAILED.setdefault(report.nodeid, "\n".join(last))


def pytest_sessionfinish(session: pytest.Session) -> None:
    name = os.environ.get("GOODBOT_TESTS_FAILED")
    if name is None or hasattr(session.config, "workerinput"):
        return
    with Path(name).open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps([test, words])}\n" for test, words in _FAILED.items())


def told(file: Path) -> tuple[str, bool]:
    """What to say at the end of a CI that is green but for the tests in `file`, and whether it stays so."""
    found: dict[str, str] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        test, words = json.loads(line)
        found.setdefault(test, words)
    if not found:
        return "", True
    parts = [
        f"UNSTEADY: {test} failed, and passed when run alone:\n{words}\n" for test, words in found.items()
    ]
    fine = len(found) <= MOST
    verdict = "mend them" if fine else "this is red, mend them"
    parts.append(f"===== {len(found)} unsteady, of {MOST} that may be: {verdict} =====")
    return "\n".join(parts), fine


if __name__ == "__main__":
    said, fine = told(Path(sys.argv[1]))
    # What a test has said may hold what no terminal shows.
    print(said.encode("ascii", "backslashreplace").decode(), end="\n" if said else "")
    sys.exit(not fine)
