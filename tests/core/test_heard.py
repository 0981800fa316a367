# SPDX-License-Identifier: Apache-2.0
"""What a child says is kept up to a bound: one that says more is ended, and nobody's memory is full of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from goodbot.base import heard, spawn
from goodbot.base.errors import AdapterError, FatalConnectorError
from goodbot.learning.adapters import examining
from goodbot_connectors.openclaw.config import OpenClawSettings
from goodbot_connectors.openclaw.program import MOST, Program

PIPES = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE)
ENDLESS = "import sys\nwhile True: sys.{}.write('x' * 65536)\n"


@asynccontextmanager
async def child(code: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await spawn.start(*spawn.python("-c", code), cage=None, **PIPES)
    try:
        yield process
    finally:
        await heard.end(process)
        assert process.returncode is not None


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_26_4_what_never_ends_is_read_no_further(stream: str) -> None:
    async with child(ENDLESS.format(stream)) as process:
        with pytest.raises(heard.SaidTooMuchError):
            await heard.all_of(process, most=1_000_000)
        assert process.returncode is None


async def test_what_is_within_the_bound_is_heard_whole() -> None:
    code = "import sys\nprint(sys.stdin.read() * 2, end='')\nsys.stderr.write('done')\nsys.exit(3)"
    async with child(code) as process:
        given = b"y" * 200_000
        assert await heard.all_of(process, given, most=400_000) == (given * 2, b"done")
        assert process.returncode == 3


async def test_who_does_not_read_is_no_error() -> None:
    async with child("print('no')") as process:
        assert await heard.all_of(process, b"y" * 5_000_000, most=10) == (b"no\n", b"")


def instead_of_what_reads_adapters(adapter: Path, code: str) -> dict[str, str]:
    """The environment of a child that runs this; its files lie where it may read."""
    package = adapter / "goodbot_training" / "process"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    (package / "inspect.py").write_text(code)
    return {**spawn.child_environment(), "PYTHONPATH": str(adapter)}


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_26_4_what_reads_adapters_is_ended(stream: str, tmp_path: Path) -> None:
    """All that it said was kept for ten minutes, in the daemon's memory."""
    adapter = tmp_path / "v1"
    environ = instead_of_what_reads_adapters(adapter, ENDLESS.format(stream))
    with pytest.raises(AdapterError, match="said too much: v1 may be damaged"):
        await examining.examine(None, adapter, environ)


@pytest.mark.parametrize(
    ("code", "begins", "ends"),
    [
        (
            "import sys\nsys.stdin.read()\nraise OSError('layer 7 is no matrix')",
            "what reads adapters ended with 1: Traceback",
            "OSError: layer 7 is no matrix",
        ),
        (
            "import sys\nsys.stderr.write('it began' * 9999 + 'the end')\nsys.exit(3)",
            "what reads adapters ended with 3: ",
            "it beganthe end",
        ),
        (
            "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
            "what reads adapters ended with -9: no word",
            "",
        ),
    ],
    ids=["raises", "says much", "is killed"],
)
async def test_what_a_reader_of_adapters_dies_of_is_in_the_log(
    code: str, begins: str, ends: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Who asked is told that there is no result. Why stands in the log, and not what was asked."""
    adapter = tmp_path / "v1"
    environ = instead_of_what_reads_adapters(adapter, code)
    with caplog.at_level("WARNING"), pytest.raises(AdapterError, match="ended without a result: v1 may be"):
        await examining.examine(None, adapter, environ)
    [said] = [one.getMessage() for one in caplog.records if one.name == examining.__name__]
    assert said.startswith(begins)
    assert said.endswith(ends)
    assert len(said) < 5000
    assert '"before"' not in said


async def test_26_4_a_program_that_never_stops_talking_is_ended(tmp_path: Path) -> None:
    program = tmp_path / "openclaw"
    program.write_text(f"#!{sys.executable}\n{ENDLESS.format('stdout')}")
    program.chmod(0o755)
    settings = OpenClawSettings(program=str(program), state_dir=str(tmp_path))
    with pytest.raises(FatalConnectorError, match=f"said more than {MOST >> 20} MB and was ended"):
        await Program(settings).run("plugins", "list")
