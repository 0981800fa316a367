# SPDX-License-Identifier: Apache-2.0
"""What the results of tools say by themselves: an error is bad, a test run good or bad. Nothing else is.

That a tool did its work says nothing of the answer: a rule that called it good would call nearly all good.
Only fixed places of a result are looked at (how it begins, its last lines), so that a file which a tool has
read, and which speaks of errors somewhere, is none. Each pattern is tried at the beginning of a short line:
the whole is linear in the length of the result.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

from goodbot.api.judge import Judge, JudgeCase, Judgement

_LINE = 300
"""Characters of a line that are looked at."""
_HEAD, _TAIL = 6, 12
"""Lines that are looked at, of those that are not empty, from the beginning and from the end."""
_JSON = 1_000_000
"""Characters of a result that is read as JSON."""

# Claude Code: "Exit code 1", "Error: Exit code 1"; Codex: "Exit code: 1", "Process exited with code 1".
_CODE = re.compile(r"(?:Error: )?(?:Exit code:?|Process exited with code) (-?\d{1,5})$")
_OUTPUT = re.compile(r"Output:$")
_ABOUT = re.compile(r"(?:Chunk ID|Wall time|Total output lines|Original token count):? ?.*$")
_ERROR = re.compile(
    r"<tool_use_error>|Error: |error: |Traceback \(most recent call last\):$"
    r"|apply_patch verification failed|exec_command failed|failed to parse function arguments"
)
_DECLINED = re.compile(r"The user doesn't want to (?:proceed|take this action)|\[Request interrupted by user")
"""That somebody stopped a tool says what they want, and not that the answer was bad."""

_PYTEST = re.compile(r"(?:=+ )?((?:\d+ [a-z]+, )*\d+ [a-z]+) in \d")
_FAILED = (
    re.compile(r"FAILED \((?:failures|errors|unexpected successes)="),  # unittest
    re.compile(r"test result: FAILED\."),  # cargo
    re.compile(r"Tests: +\d+ failed"),  # jest
    re.compile(r"--- FAIL: |FAIL\t|FAIL$"),  # go
)
_PASSED = (
    re.compile(r"OK(?: \([\w=, ]+\))?$"),
    re.compile(r"test result: ok\. [1-9]\d* passed"),
    re.compile(r"Tests: +\d+ passed, \d+ total"),
    re.compile(r"ok  \t\S+\t"),
)
_RAN = re.compile(r"Ran [1-9]\d* tests? in ")
"""What stands before unittest's OK."""


class RuleJudge(Judge):
    """Of the results of tools; of what people write it says nothing."""

    async def judge(self, case: JudgeCase) -> Judgement:
        return Judgement(value=results(case.next) if case.by_tool else 0)


def results(texts: tuple[str, ...]) -> int:
    """-1 where one result is an error or a failing test, else 1 where one is a passing test, else 0."""
    found = [result(text) for text in texts]
    return min(found, default=0) if min(found, default=0) < 0 else max(found, default=0)


def result(text: str) -> int:
    """What one result says: -1, 0 or 1."""
    code, text = _unpacked(text)
    lines = [line for raw in text.splitlines() if (line := raw[:_LINE].rstrip())]
    head, body = _opened(lines[:_HEAD]), lines
    if any(_DECLINED.match(line) for line in lines[:_HEAD]):
        return 0
    if head is not None:
        code, at = head
        body = lines[at:]
    if tested := _tests(body[-_TAIL:]):
        return tested if not code else -1
    if code:
        # Of 1 without a word a search has found nothing, a comparison a difference.
        return -1 if body or code != 1 else 0
    return -1 if code is None and lines and _ERROR.match(lines[0]) else 0


def _unpacked(text: str) -> tuple[int | None, str]:
    """Exit code and output of what older Codex packs in JSON; else the text as it is."""
    if not text.startswith('{"') or len(text) > _JSON:
        return None, text
    try:
        read: Any = json.loads(text)
        packed = cast("dict[str, Any]", read)
        code, output = packed["metadata"]["exit_code"], packed["output"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return None, text
    sound = type(code) is int and isinstance(output, str)
    return (code, output) if sound else (None, text)


def _opened(lines: list[str]) -> tuple[int, int] | None:
    """An exit code that the lines begin with, and where the output begins; None without one."""
    code: int | None = None
    for number, line in enumerate(lines):
        if found := _CODE.match(line):
            code = int(found[1])
        elif code is not None and _OUTPUT.match(line):
            return code, number + 1
        elif not _ABOUT.match(line):
            return None if code is None else (code, number)
    return None if code is None else (code, len(lines))


def _tests(lines: list[str]) -> int:
    """What a test runner's last lines say."""
    passed = False
    for before, line in zip(["", *lines], lines, strict=False):
        counted = _PYTEST.match(line)
        words = set(counted[1].replace(",", "").split()) if counted else set[str]()
        if words & {"failed", "error", "errors"} or any(pattern.match(line) for pattern in _FAILED):
            return -1
        sure = not line.startswith("OK") or _RAN.match(before)
        passed = passed or "passed" in words or bool(sure and any(p.match(line) for p in _PASSED))
    return int(passed)
