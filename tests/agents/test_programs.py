# SPDX-License-Identifier: Apache-2.0
"""The programs that the tests here drive are the ones that are pinned."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.agents import programs
from tests.support import patience

pytestmark = pytest.mark.agents


def _said(command: list[str], home: Path) -> str:
    done = subprocess.run(
        [*command, "--version"],
        env={"PATH": programs.path(), "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=patience(120),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("openclaw", lambda: programs.openclaw()),
        ("@anthropic-ai/claude-code", lambda: [str(programs.claude())]),
        ("@openai/codex", lambda: programs.codex()),
        ("typescript", lambda: programs.tsc()),
    ],
)
def test_the_program_is_the_pinned_one(name: str, command: object, tmp_path: Path) -> None:
    assert callable(command)
    assert programs.PINNED[name] in _said(command(), tmp_path)
