# SPDX-License-Identifier: Apache-2.0
"""The program against a running `goodbot run`, in processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from goodbot.config.lock import HomeLock, prepare_home
from goodbot.daemon.control import ControlSocket
from goodbot.testing import VirtualClock

from tests.cli.program import PROGRAM, Bot, environment, need_backend, until
from tests.cli.terminal import Person
from tests.core.builders import open_bot
from tests.core.builders import until as soon
from tests.support import patience, require

CANARY = "xylophone-canary-4711"


def test_status_in_words_and_in_json(running: Bot) -> None:
    done = running.call("status")
    assert done.returncode == 0
    assert "the base model answers (tiny)" in done.stdout
    data = running.json("status")
    assert data["pid"] == running.process.pid
    assert (data["server"], data["connectors"]) == ("up", {"terminal": "running"})


@pytest.mark.parametrize("command", ["status", "history", "adapters", "plugins", "doctor"])
def test_reports_are_json(running: Bot, command: str) -> None:
    assert isinstance(running.json(command), dict)


def test_chat_in_a_pipe_and_ratings_from_the_command_line(running: Bot) -> None:
    before = running.json("status")["ratings"]
    first = running.call("chat", input="Hello\ng\n")
    assert first.returncode == 0
    assert first.stdout.startswith("[demo model] ")
    assert "Good." in first.stderr
    answer = running.call("chat", input="What is 1+1?\n").stdout.strip()
    assert running.json("bad")["response"] in answer
    undone = running.call("undo")
    assert undone.returncode == 0
    assert undone.stdout.startswith("Taken back.")
    good = running.json("good", running.json("history")["turns"][0]["turn"])
    assert (good["outcome"], good["response"] in answer) == ("accepted", True)
    assert [turn["value"] for turn in running.json("history", "2")["turns"]] == [1.0, 1.0]
    assert running.call("undo").returncode == 0
    assert running.json("status")["ratings"] == before + 1


def test_stars_reasons_and_better_answers_from_the_command_line(running: Bot) -> None:
    assert running.call("chat", input="What is 1+1?\n").returncode == 0
    for words in (("stars", "4"), ("reason", "too", "long"), ("better", "It is two.")):
        assert running.json(*words)["outcome"] == "accepted"
    [last] = running.json("history", "1")["turns"]
    assert last["value"] == 0.5
    assert {"too long", "It is two."} <= {remark["text"] for remark in last["remarks"]}


def test_two_chats_see_the_same_conversation(running: Bot) -> None:
    with subprocess.Popen(
        [*PROGRAM, "--home", str(running.home), "chat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as other:
        assert other.stdin is not None
        other.stdin.write("Hello\n")
        other.stdin.flush()
        assert other.stdout is not None
        assert "[demo model]" in other.stdout.readline()
        mine = running.call("chat", input="What is 2+2?\nu\n")
        assert mine.returncode == 1
        assert "nothing to undo here" in mine.stderr
        out, err = other.communicate("/status\n")
        assert "another chat: What is 2+2?" in err
        assert mine.stdout.strip() in out
        assert "until the next training" in out


def test_a_second_daemon_is_told_whose_directory_it_is(running: Bot) -> None:
    done = running.call("run", "--demo-model")
    assert done.returncode == 75
    assert f"process {running.process.pid}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_directory_that_a_command_has_for_a_moment_is_waited_for(bot: Bot) -> None:
    """`goodbot status` of a bot that does not run holds the directory while it looks."""
    prepare_home(bot.home)
    lock = HomeLock(bot.home)
    lock.acquire()
    with ThreadPoolExecutor(1) as thread:
        started = thread.submit(bot.start)
        try:
            waits = "waiting: goodbot is already running here"
            until(lambda: bot.log.exists() and waits in bot.log.read_text())
        finally:
            lock.release()
        started.result()


def test_pause_off_resume_rollback(running: Bot) -> None:
    assert running.call("pause").returncode == 0
    assert running.json("status")["paused"] is True
    assert running.call("off").returncode == 0
    status = running.json("status")
    assert (status["off"], status["paused"]) == (True, True)
    assert running.call("chat", input="Hello\n").stdout.startswith("[demo model]")
    assert running.call("resume").returncode == 0
    status = running.json("status")
    assert (status["off"], status["paused"]) == (False, False)
    refused = running.call("rollback")
    assert (refused.returncode, "nothing to roll back" in refused.stderr) == (2, True)
    refused = running.call("rollback", "7")
    assert refused.returncode == 1
    assert refused.stderr.startswith("goodbot: ")
    assert "Traceback" not in refused.stderr


def test_a_command_imports_neither_asyncio_nor_plugins(running: Bot) -> None:
    code = (
        "import sys; from goodbot.cli import main; main(sys.argv[1:]); "
        "print({'asyncio', 'aiohttp', 'pluggy', 'sqlite3', 'logging'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--home", str(running.home), "status"],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    assert done.stdout.endswith("set()\n")


@pytest.mark.parametrize(
    "request_",
    [
        b"\n",
        b"nonsense\n",
        b"[1]\n",
        b'{"command": 3}\n',
        b'{"command": "status"',
        b'{"command": "status", "args": [1]}\n',
        b"[" * 100_000 + b"\n",
        b"x" * 2_000_000,
        b'{"command": "\\ud800", "args": ["\\ud800"]}\n',
    ],
)
def test_the_control_socket_bears_anything(running: Bot, request_: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(patience(20))
        connection.connect(str(running.home / "control.sock"))
        try:
            connection.sendall(request_)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.makefile("rb").readline()
        except ConnectionError:
            answer = b""
    if answer:
        assert json.loads(answer)["ok"] is False
    assert running.json("status")["server"] == "up"
    assert "Traceback" not in running.log.read_text()


def test_a_daemon_that_stops_hangs_up_on_who_waits(bot: Bot) -> None:
    need_backend()
    bot.start()
    assert bot.call("chat", input="".join(f"What is {n}+1?\n{'gb'[n % 2]}\n" for n in range(3)))
    with subprocess.Popen(
        [*PROGRAM, "--home", str(bot.home), "train"], stderr=subprocess.PIPE, text=True, env=environment()
    ) as train:
        until(lambda: bot.json("status")["training"])
        assert bot.stop() == 0
        _, said = train.communicate(timeout=patience(30))
    assert (train.returncode, "ended before it answered" in said) == (1, True)
    assert "Traceback" not in bot.log.read_text()
    assert bot.json("status")["last_run"]["state"] == "running", "the next start goes on with it"


def test_sockets_are_private(running: Bot) -> None:
    for path in (running.home / "control.sock", running.home / "connectors/terminal/chat.sock"):
        assert path.stat().st_mode & 0o777 == 0o600
    assert running.home.stat().st_mode & 0o777 == 0o700


def test_what_was_acknowledged_outlives_sigterm_and_sigkill(bot: Bot) -> None:
    need_backend()
    bot.start()
    pid = bot.json("status")["pid"]
    assert "Good." in bot.call("chat", input=f"{CANARY}?\ng\n").stderr
    assert bot.stop() == 0
    assert [turn["value"] for turn in bot.json("history")["turns"]] == [1.0]
    assert "not running" in bot.call("status").stdout
    bot.start()
    assert bot.json("status")["pid"] != pid
    assert "Bad." in bot.call("chat", input=f"{CANARY}!\nb\n").stderr
    bot.stop(signal.SIGKILL)
    assert (bot.home / "control.sock").exists(), "a dead daemon's"
    assert "not running" in bot.call("status").stdout
    bot.start()
    assert [turn["value"] for turn in bot.json("history")["turns"]] == [-1.0, 1.0]
    assert bot.stop(signal.SIGINT) == 0
    logs = "".join(path.read_text() for path in bot.home.parent.glob("*.log"))
    assert CANARY not in logs
    assert "Traceback" not in logs


def test_a_failing_connector_is_printed_with_what_to_do(bot: Bot) -> None:
    need_backend()
    require("telegram")
    token = f"4711:{CANARY}"
    bot.home.mkdir(mode=0o700)
    (bot.home / "config.toml").write_text(
        '[connectors.telegram]\nowners = [1]\napi_base = "http://127.0.0.1:9/bot"\n'
    )
    bot.start(GOODBOT_TELEGRAM_TOKEN=token)
    until(lambda: "telegram" in bot.log.read_text(), 20)
    print(bot.log.read_text())
    assert bot.json("status")["connectors"]["terminal"] == "running"
    assert bot.stop() == 0
    assert CANARY not in bot.log.read_text()


@pytest.mark.parametrize("delay", [0.3, 1.0])
def test_sigterm_while_it_starts(bot: Bot, delay: float) -> None:
    need_backend()
    with subprocess.Popen(
        [*PROGRAM, "--home", str(bot.home), "run", "--demo-model"],
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        until(lambda: (bot.home / "lock").exists())
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGTERM)
        _, said = process.communicate(timeout=patience(60))
    assert process.returncode == 0, said
    assert "Traceback" not in said


def test_few_ratings_are_asked_about_and_ctrl_c_in_train_leaves_the_training_to_the_daemon(bot: Bot) -> None:
    need_backend()
    bot.start()
    assert bot.call("chat", input="".join(f"What is {n}+1?\n{'gb'[n % 2]}\n" for n in range(4)))
    with Person(bot.home, "train") as ada:
        ada.sees("4 ratings are few: with 36 more", "Train now anyway? [y/N]")
        ada.type("n\n")
        ada.sees("Nothing was trained.")
        assert ada.ends() == 1
    assert bot.json("status")["ratings"] == 4
    with Person(bot.home, "train") as ada:
        ada.sees("Train now anyway?")
        ada.type("y\n")
        ada.until(lambda screen: "····" in screen or "████" in screen)
        ada.type("\x03")
        ada.sees("the training goes on in the daemon")
        assert ada.ends() == 130
    assert bot.json("status")["training"]
    assert bot.call("pause").returncode == 0
    assert bot.json("status")["training"] is None


@contextlib.asynccontextmanager
async def starting(home: Path, patience: float = 60.0) -> AsyncGenerator[ControlSocket]:
    """A goodbot that has its directory and is not up yet."""
    lock = HomeLock(home)
    prepare_home(home)
    lock.acquire()
    control = ControlSocket(home, clock=VirtualClock(), patience=patience)
    await control.start()
    try:
        yield control
    finally:
        await control.stop()
        lock.release()


async def test_status_of_a_goodbot_that_starts_says_so(bot: Bot) -> None:
    async with starting(bot.home):
        done = await asyncio.to_thread(bot.call, "status")
        assert (done.returncode, done.stdout) == (0, "starting: opening the data, 0 s\n")
        data = await asyncio.to_thread(bot.json, "status")
        assert (data["server"], data["pid"]) == ("starting", os.getpid())
        told = await asyncio.to_thread(bot.call, "doctor")
        assert f"process {os.getpid()} is starting: opening the data, 0 s" in told.stdout


async def test_a_command_waits_for_a_goodbot_that_starts(bot: Bot) -> None:
    async with starting(bot.home) as control:
        waiting = asyncio.create_task(asyncio.to_thread(bot.call, "channels", "list"))
        await soon(lambda: bool(control._tasks), 60)
        async with open_bot(bot.home.parent / "other", terminal=True) as other:
            control.app = other.app
            assert not waiting.done()
            control.ready()
            done = await waiting
        assert done.returncode == 0, done.stderr


async def test_a_command_does_not_wait_for_ever(bot: Bot) -> None:
    async with starting(bot.home, patience=0.0):
        done = await asyncio.to_thread(bot.call, "train")
    assert done.returncode == 75
    assert done.stderr == (
        "goodbot: goodbot is still starting (opening the data): try again when `goodbot status` "
        "says that it answers\n"
    )


async def test_a_directory_whose_holder_takes_no_commands_is_waited_for(bot: Bot) -> None:
    """A goodbot that ends has shut its socket and not let go of its lock yet."""
    prepare_home(bot.home)
    # Without a model `status` would ask nobody.
    (bot.home / "config.toml").write_text('[model]\npath = "demo"\n')
    lock = HomeLock(bot.home)
    lock.acquire()
    waiting = asyncio.create_task(asyncio.to_thread(bot.call, "status"))
    # On a slow machine the program has hardly begun by then, which is no fault; it gives up after a while.
    done, _ = await asyncio.wait({waiting}, timeout=3)
    lock.release()
    assert not done
    assert (await waiting).stdout.startswith("goodbot is not running")
