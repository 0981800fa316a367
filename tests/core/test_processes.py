"""A child process whose starting is cancelled."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from goodbot import processes

from tests.core.builders import until
from tests.support import patience

PARENT = (
    "import subprocess, sys, time\n"
    "child = subprocess.Popen(['sleep', '600'])\n"
    "open(sys.argv[1] + '.new', 'w').write(str(child.pid))\n"
    "__import__('os').rename(sys.argv[1] + '.new', sys.argv[1])\n"
    "time.sleep(600)\n"
)


def slow_to_connect(monkeypatch: pytest.MonkeyPatch, started: Path) -> None:
    """The pipes are connected only when the child has a child of its own, as on a busy machine."""
    loop = asyncio.get_running_loop()
    connect = loop.connect_read_pipe

    async def later(*args: object) -> object:
        await until(started.exists, seconds=30)
        await asyncio.sleep(0.05)
        return await connect(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "connect_read_pipe", later)


async def _run(pid_file: Path, seen: list[str]) -> None:
    process = await processes.start(
        sys.executable, "-c", PARENT, str(pid_file),
        stdout=asyncio.subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        seen.append("there")
        await asyncio.sleep(600)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        seen.append("ended")


async def test_it_is_there_before_its_starter_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid_file, seen = tmp_path / "pid", list[str]()
    slow_to_connect(monkeypatch, pid_file)
    task = asyncio.create_task(_run(pid_file, seen))
    await until(pid_file.exists, seconds=30)
    for _ in range(3):  # whoever is impatient
        task.cancel()
        await asyncio.sleep(0)
    async with asyncio.timeout(patience(30)):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert seen == ["there", "ended"]


async def test_a_time_limit_meanwhile_is_a_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid_file, seen = tmp_path / "pid", list[str]()
    slow_to_connect(monkeypatch, pid_file)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await _run(pid_file, seen)
    assert seen == ["there", "ended"]


async def test_what_cannot_be_started_and_is_cancelled_is_cancelled() -> None:
    with pytest.raises(FileNotFoundError):
        await processes.start("/nowhere/none")
    task = asyncio.create_task(processes.start("/nowhere/none"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
