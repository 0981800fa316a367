# SPDX-License-Identifier: Apache-2.0
"""`goodbot doctor`: every part looked at, a line each, and what to do; it changes nothing."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterable
from dataclasses import asdict
from itertools import chain

from goodbot.api.sentences import sentence
from goodbot.api.setup import Check, CheckState
from goodbot.api.texts import commas
from goodbot.api.texts.terminal import here, phrase
from goodbot.base.columns import padded, wide, wrapped
from goodbot.base.printing import draw, print_answer, printable, say, say_json
from goodbot.cli import doctor

_COLOURS = {CheckState.OK: "32", CheckState.WARN: "33", CheckState.FAIL: "31"}
_PART = 15
"""Columns for the name of a part; a longer one moves its own line."""
_COLUMNS = (50, 100)
"""The narrowest and the widest that texts are wrapped to."""


def main(arguments: argparse.Namespace) -> int:
    """Print what was found, as it comes in; the exit code says whether something failed."""
    examined, wrong = doctor.prepare(arguments.home, arguments.config, demo_model=arguments.demo_model)
    if arguments.security:
        from goodbot.cli.doctor import security

        report = security.report(examined, wrong)
        print_answer(report, as_json=arguments.json)
        return doctor.exit_code(wrong)
    if arguments.topic == "serving":
        from goodbot.cli.doctor import serving

        return _print(doctor.run(serving.PROBES, examined), arguments)
    from goodbot.cli.doctor.parts import probes

    found = doctor.run(probes(examined, wrong), examined)
    return _print(chain(wrong, found), arguments)


def _print(found: Iterable[Check], arguments: argparse.Namespace) -> int:
    checks: list[Check] = []
    for check in found:
        checks.append(check)
        if not arguments.json:
            draw(f"{line(check)}\n")
    code = doctor.exit_code(checks)
    if arguments.json:
        listed = [asdict(check) | {"exit_code": doctor.exit_code([check])} for check in checks]
        say_json({"ok": code == 0, "exit_code": code, "checks": listed})
    else:
        say(f"\n{_summary(checks)}")
    return code


def line(check: Check) -> str:
    """One check for people; the text is wrapped, a command to copy is not."""
    least, most = _COLUMNS
    columns = min(max(shutil.get_terminal_size().columns, least), most)
    # Whatever a plugin or a platform said, it is one line and cannot move the cursor.
    text = " ".join(printable(check.text).split())
    head = f"{check.state:4}  {padded(check.part, _PART)} "
    lines = wrapped(text, columns, begins=" " * wide(head), indent=" " * (_PART + 7))
    lines[0] = printable(head) + lines[0].strip()
    if _colourful():
        lines[0] = f"\x1b[{_COLOURS[check.state]}m{lines[0][:4]}\x1b[0m{lines[0][4:]}"
    if check.fix:
        lines.append(f"      → {' '.join(printable(check.fix).split())}")
    return "\n".join(lines)


def _summary(checks: list[Check]) -> str:
    count = {state: sum(check.state is state for check in checks) for state in CheckState}
    parts = [
        phrase("doc_wrong", count=count[CheckState.FAIL]) if count[CheckState.FAIL] else "",
        phrase("doc_know", count=count[CheckState.WARN]) if count[CheckState.WARN] else "",
        phrase("doc_fine", count=count[CheckState.OK]),
    ]
    return sentence(commas(here(), *parts), here())


def _colourful() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
