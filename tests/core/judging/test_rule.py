# SPDX-License-Identifier: Apache-2.0
"""What results of tools say by themselves: shapes of Claude Code, of Codex, and of test runners."""

from __future__ import annotations

import json

import pytest
from goodbot.features.judges import rule

BAD = {
    "Claude Code, a command": "Exit code 2\ncat: nothing: No such file",
    "Claude Code, an older one": "Error: Exit code 127\nmake: command not found",
    "Claude Code, a tool's own": "<tool_use_error>String to replace not found in file.</tool_use_error>",
    "Codex": "Exit code: 1\nWall time: 0.1 seconds\nOutput:\nsed: bad expression\n",
    "Codex, a long command": "Chunk ID: 1\nWall time: 0.5 seconds\nProcess exited with code 101\nOutput:\nx",
    "Codex, JSON": json.dumps(
        {"output": "no such file\n", "metadata": {"exit_code": 2, "duration_seconds": 0.1}}
    ),
    "Codex, a patch": "apply_patch verification failed: Failed to find expected lines in a.py",
    "a tool of Python": 'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: x',
    "pytest": "=== short test summary info ===\nFAILED a.py::b\n=== 1 failed, 2 passed in 0.12s ===",
    "pytest, an error": "=== 2 passed, 1 error in 0.30s ===",
    "pytest -q": "F..\n1 failed, 2 passed in 0.12s",
    "unittest": "Ran 3 tests in 0.001s\n\nFAILED (failures=1)",
    "cargo": "test result: FAILED. 1 passed; 1 failed; 0 ignored",
    "jest": "Tests:       1 failed, 2 passed, 3 total\nTime:        1 s",
    "go": "--- FAIL: TestA (0.00s)\nFAIL\nexit status 1\nFAIL\texample.org/a\t0.003s",
    "a passing run that a failing command ends": "Exit code 3\n=== 3 passed in 0.12s ===\nsh: deploy: failed",
}
GOOD = {
    "pytest": "...\n=== 3 passed, 1 warning in 0.12s ===",
    "pytest -q": "... [100%]\n3 passed in 0.12s",
    "Codex": "Exit code: 0\nWall time: 0.4 seconds\nOutput:\n... [100%]\n3 passed in 0.12s\n",
    "unittest": "...\n-----\nRan 3 tests in 0.001s\n\nOK\n",
    "cargo": "test result: ok. 3 passed; 0 failed; 0 ignored",
    "jest": "Tests:       3 passed, 3 total\nTime:        1 s",
    "go": "ok  \texample.org/a\t0.003s",
}
NEITHER = {
    "a command that has worked": "a.py\nb.py",
    "nothing": "",
    "Codex, a command that has worked": "Exit code: 0\nWall time: 0.1 seconds\nOutput:\na.py\n",
    "a search without a hit": "Exit code 1",
    "Codex, a search without a hit": "Exit code: 1\nWall time: 0.1 seconds\nOutput:\n",
    "somebody said no": "The user doesn't want to proceed with this tool use. The tool use was rejected.",
    "a file that speaks of errors": "import sys\n# Error: this cannot be\nraise ValueError('x')\n",
    "a log of tests, long past": "=== 1 failed in 0.12s ===\n" + "and then more\n" * 40,
    "an OK of something else": "Everything is fine\nOK",
    "pytest without tests": "=== no tests ran in 0.01s ===",
    "JSON of something else": json.dumps({"output": "x"}),
    "JSON with a code that is none": '{"output": "x", "metadata": {"exit_code": "2"}}',
    "not JSON at all": '{"output": ' + "[" * 2000,
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param(text, value, id=f"{value}: {name}")
        for value, shapes in ((-1, BAD), (1, GOOD), (0, NEITHER))
        for name, text in shapes.items()
    ],
)
def test_a_result_says(text: str, value: int) -> None:
    assert rule.result(text) == value


def test_of_several_results_one_error_decides() -> None:
    passed, failed, fine = GOOD["pytest"], BAD["Codex"], "a.py"
    assert rule.results((passed, failed, fine)) == -1
    assert rule.results((fine, passed)) == 1
    assert rule.results((fine, fine)) == rule.results(()) == 0


def test_a_hostile_result_takes_no_longer_than_its_length() -> None:
    """Each line that is looked at is short, whatever it repeats."""
    for piece in ("1 a, ", "= ", "Error: ", "OK (", "Exit code ", "\\", "9"):
        assert rule.result(piece * 200_000) in (-1, 0)
        assert rule.result((piece * 50 + "\n") * 20_000) in (-1, 0)
