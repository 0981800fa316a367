# SPDX-License-Identifier: Apache-2.0
"""sd_notify: what arrives in a real datagram socket, and when the watchdog is not fed."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from goodbot.base.clock import SystemClock
from goodbot.cli.service.notify import Notifier
from goodbot.cli.service.supervision import Supervision
from goodbot.config import HttpConfig
from goodbot.testing import VirtualClock

from tests.cli.program import PROGRAM, environment, need_backend
from tests.core.builders import open_bot, until
from tests.support import patience


class Ear:
    """Where a manager listens."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self._socket.settimeout(patience(60))

    def hear(self) -> dict[str, str]:
        """The next datagram; an empty one if nothing comes in time."""
        try:
            text = self._socket.recv(4096).decode()
        except (TimeoutError, BlockingIOError):
            return {}
        return dict(line.split("=", 1) for line in text.splitlines())

    def wait(self, seconds: float) -> None:
        self._socket.settimeout(seconds)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def ear(tmp_path: Path) -> Iterator[Ear]:
    ear = Ear(str(tmp_path / "notify"))
    yield ear
    ear.close()


def test_every_word_is_a_datagram(ear: Ear) -> None:
    notifier = Notifier.from_environment({"NOTIFY_SOCKET": ear.address})
    notifier.status("starting")
    notifier.ready("tiny answers\non telegram")
    notifier.reloading(SystemClock(), "another model")
    notifier.stopping()
    assert ear.hear() == {"STATUS": "starting"}
    assert ear.hear() == {"READY": "1", "STATUS": "tiny answers on telegram"}
    reloading = ear.hear()
    assert int(reloading.pop("MONOTONIC_USEC")) > 0
    assert reloading == {"RELOADING": "1", "STATUS": "another model"}
    assert ear.hear() == {"STOPPING": "1", "STATUS": "stopping"}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has abstract sockets")
def test_an_abstract_address() -> None:
    ear = Ear(f"@goodbot-{uuid.uuid4().hex}")
    Notifier(ear.address).ready("up")
    assert ear.hear()["READY"] == "1"
    ear.close()


def test_nobody_listens_and_nothing_fails(tmp_path: Path) -> None:
    Notifier().ready("in a terminal")
    Notifier(str(tmp_path / "nothing")).ready("the manager is gone")


def test_the_watchdog_of_another_process_is_none_of_ours() -> None:
    limit = {"WATCHDOG_USEC": "2000000"}
    assert Notifier.from_environment(limit).watchdog == 2.0
    assert Notifier.from_environment({**limit, "WATCHDOG_PID": str(os.getpid())}).watchdog == 2.0
    assert Notifier.from_environment({**limit, "WATCHDOG_PID": "1"}).watchdog == 0.0
    assert Notifier.from_environment({"WATCHDOG_USEC": "soon"}).watchdog == 0.0


async def test_it_is_fed_twice_in_each_limit(ear: Ear) -> None:
    async def alive() -> bool:
        return True

    clock = VirtualClock()
    feeding = asyncio.create_task(Notifier(ear.address, 0.2).feed(clock, alive))
    for _ in range(4):
        assert (await asyncio.to_thread(ear.hear)) == {"WATCHDOG": "1"}
    feeding.cancel()
    assert set(clock.slept) == {0.1}


async def test_a_store_that_does_not_answer_starves_the_watchdog(
    ear: Ear, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ear.wait(patience(20))
    async with open_bot(tmp_path) as bot:
        supervision = Supervision(HttpConfig(), notifier=Notifier(ear.address, 0.4))
        await supervision.start()
        supervision.up(bot.app, "up")
        assert (await asyncio.to_thread(ear.hear))["STATUS"] == "starting"
        assert (await asyncio.to_thread(ear.hear))["READY"] == "1"
        assert (await asyncio.to_thread(ear.hear)) == {"WATCHDOG": "1"}

        stuck, entered = asyncio.Event(), asyncio.Event()

        async def wedge(db: object) -> None:
            entered.set()
            await stuck.wait()

        wedged = asyncio.create_task(bot.store.write(wedge))
        await entered.wait()
        await until(lambda: "the store does not answer" in caplog.text)
        ear.wait(0.01)
        while await asyncio.to_thread(ear.hear):
            pass  # sent before
        ear.wait(1.0)
        assert (await asyncio.to_thread(ear.hear)) == {}
        ear.wait(patience(20))
        stuck.set()
        await wedged
        assert (await asyncio.to_thread(ear.hear)) == {"WATCHDOG": "1"}
        await supervision.stop()


def test_a_daemon_from_start_to_end(ear: Ear, tmp_path: Path) -> None:
    need_backend()
    manager = {"NOTIFY_SOCKET": ear.address, "WATCHDOG_USEC": "1000000"}
    with subprocess.Popen(
        [*PROGRAM, "--home", str(tmp_path / "home"), "run", "--demo-model"],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment(**manager),
    ) as daemon:
        try:
            assert ear.hear() == {"STATUS": "starting"}
            ready = ear.hear()
            assert ready["READY"] == "1", daemon.stderr.read() if daemon.stderr else ""
            assert "answers on terminal" in ready["STATUS"]
            assert ear.hear() == {"WATCHDOG": "1"}
            daemon.send_signal(signal.SIGSTOP)
            ear.wait(0.05)
            while ear.hear():
                pass  # sent before
            ear.wait(1.2)
            assert ear.hear() == {}, "a process that stands still is not alive"
            daemon.send_signal(signal.SIGCONT)
            ear.wait(patience(30))
            assert ear.hear() == {"WATCHDOG": "1"}
            daemon.terminate()
            while heard := ear.hear():
                if "STOPPING" in heard:
                    break
            assert heard == {"STOPPING": "1", "STATUS": "stopping"}
            assert daemon.wait(patience(30)) == 0
        finally:
            daemon.kill()
