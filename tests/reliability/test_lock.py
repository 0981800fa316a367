# SPDX-License-Identifier: Apache-2.0
"""Rule 7: one daemon a state directory; the second says whose it is and leaves it alone."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from goodbot.base.errors import BusyError, StoreError, StoreFullError
from goodbot.config.lock import HomeLock, changing, prepare_home, socket_path

from tests.core.builders import check, open_bot
from tests.support import patience

CHILD = """
import asyncio, os, sys
from pathlib import Path
from goodbot.base.errors import GoodbotError
from goodbot.config.lock import HomeLock, prepare_home

home = Path(sys.argv[1])
prepare_home(home)
try:
    HomeLock(home).acquire()
except GoodbotError as error:
    print("busy", error.pid, flush=True)
    sys.exit(error.exit_code)
print("mine", os.getpid(), flush=True)
sys.stdin.read()
"""


async def child(home: Path) -> tuple[asyncio.subprocess.Process, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CHILD, str(home), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(patience(60)):
            return process, (await process.stdout.readline()).decode().strip()
    except TimeoutError:
        process.kill()
        raise


async def end(process: asyncio.subprocess.Process) -> int:
    assert process.stdin is not None
    process.stdin.close()
    return await process.wait()


async def test_a_finished_restore_is_not_waited_for(tmp_path: Path) -> None:
    """What it has replaced may be locked by somebody: each command waited for them, and told nothing."""
    before = tmp_path / "home.before-restore-20261121-101500"
    before.mkdir()
    (tmp_path / "home").mkdir(mode=0o700)
    with changing(before):
        process, said = await child(tmp_path / "home")
        assert said.startswith("mine")
    assert await end(process) == 0


async def test_of_ten_at_once_exactly_one_has_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    started = await asyncio.gather(*(child(home) for _ in range(10)))
    winners = [process for process, said in started if said.startswith("mine")]
    assert len(winners) == 1
    losers = [(process, said) for process, said in started if said.startswith("busy")]
    assert {said for _, said in losers} == {f"busy {winners[0].pid}"}
    assert {await process.wait() for process, _ in losers} == {75}
    assert await end(winners[0]) == 0


async def test_kill_9_frees_it_at_once(tmp_path: Path) -> None:
    first, said = await child(tmp_path / "home")
    assert said == f"mine {first.pid}"
    first.send_signal(signal.SIGKILL)
    await first.wait()
    second, said = await child(tmp_path / "home")
    assert said == f"mine {second.pid}"
    await end(second)


async def test_two_names_of_one_directory_are_one_directory(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "other").symlink_to(tmp_path / "home")
    lock = HomeLock(tmp_path / "home")
    lock.acquire()
    with pytest.raises(BusyError) as error:
        HomeLock(tmp_path / "other").acquire()
    assert (error.value.pid, error.value.exit_code) == (os.getpid(), 75)
    lock.release()
    lock.release()


async def test_a_second_goodbot_exits_and_the_first_does_not_notice(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.start_training()
        with pytest.raises(BusyError, match=f"process {os.getpid()}") as error:
            async with open_bot(tmp_path):
                pass
        assert error.value.pid == os.getpid()
        assert (await bot.finish_training()).state == "activated"
        await check(bot)


def test_a_number_that_is_not_there_yet_is_not_made_up(tmp_path: Path) -> None:
    """Between the lock and the writing of the number the file is empty, or an old one's."""
    lock = HomeLock(tmp_path)
    lock.acquire()
    for text in ("", "999999999\n", "nonsense\n"):
        (tmp_path / "lock").write_text(text)
        with pytest.raises(BusyError, match="another process") as error:
            HomeLock(tmp_path).acquire()
        assert error.value.pid is None
    lock.release()


def test_odd_homes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError):
        prepare_home(tmp_path / "file")
    with pytest.raises(StoreError):
        prepare_home(tmp_path / "file" / "below")
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    with pytest.raises(StoreError):
        prepare_home(tmp_path / "dangling")
    open_ = tmp_path / "open"
    open_.mkdir(mode=0o755)
    prepare_home(open_)
    assert open_.stat().st_mode & 0o777 == 0o700
    (open_ / "lock").symlink_to(tmp_path / "file")
    with pytest.raises(StoreError, match="lock"):
        HomeLock(open_).acquire()
    assert (tmp_path / "file").read_text() == ""


def test_b14_a_home_that_is_a_link_is_told_by_what_it_leads_to(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    with pytest.raises(StoreError, match=f"{link} is a link: name the directory .* {real}$"):
        prepare_home(link)
    link.unlink()
    link.symlink_to(tmp_path / "nothing")
    with pytest.raises(StoreError, match=f"{link} is a link"):
        prepare_home(link)


def test_m4_a_home_that_another_user_has_prepared_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    prepare_home(home)
    monkeypatch.setattr(os, "geteuid", lambda: home.stat().st_uid + 1)
    with pytest.raises(StoreError, match=f"{home} belongs to another user"):
        prepare_home(home)


def test_m4_a_link_that_comes_between_two_looks_at_the_home_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, home, make = tmp_path / "real", tmp_path / "home", Path.mkdir
    real.mkdir()

    def too_late(path: Path, *args: Any, **options: Any) -> None:
        path.symlink_to(real)
        make(path, *args, **options)

    monkeypatch.setattr(Path, "mkdir", too_late)
    with pytest.raises(StoreError, match=f"{home} is not a directory"):
        prepare_home(home)


def _anothers(place: Path, patch: pytest.MonkeyPatch) -> None:
    uid = os.geteuid() + 1
    place.rename(place.with_name(f"goodbot-{uid}"))
    patch.setattr(os, "geteuid", lambda: uid)


PREPARED: dict[str, Callable[[Path, pytest.MonkeyPatch], object]] = {
    "another user's": _anothers,
    "open to a group": lambda place, _: place.chmod(0o710),
    "open to all": lambda place, _: place.chmod(0o701),
    "a link": lambda place, _: place.symlink_to(place.rename(place.with_name("x"))),
    "a dangling link": lambda place, _: place.rmdir() or place.symlink_to("x"),
    "a file": lambda place, _: place.rmdir() or place.touch(mode=0o600),
}


@pytest.mark.parametrize("case", PREPARED)
def test_m4_a_place_for_sockets_that_others_have_prepared_is_refused(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    home = tmp_path / ("long" * 40)
    place = socket_path(home, "x.sock").parent
    assert (place.parent, place.stat().st_mode & 0o777) == (tmp_path, 0o700)
    assert socket_path(home, "x.sock").parent == place, "ours is taken again"
    PREPARED[case](place, monkeypatch)
    with pytest.raises(StoreError, match="no private directory that goodbot made: remove it"):
        socket_path(home, "x.sock")


def test_b15_a_full_disk_is_told_where_the_lock_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("goodbot.config.lock.os.write", full)
        with pytest.raises(StoreFullError, match="is full: free some space"):
            HomeLock(tmp_path).acquire()
    lock = HomeLock(tmp_path)
    lock.acquire()
    lock.release()
