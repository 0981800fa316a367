# SPDX-License-Identifier: Apache-2.0
"""How programs are started: never lost, never outliving us, and with nothing of ours."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from goodbot.base import packages, scratch, spawn, trees
from goodbot.base.scratch import Scratch

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
    process = await spawn.start(
        sys.executable, "-c", PARENT, str(pid_file), stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
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
        await spawn.start("/nowhere/none")
    task = asyncio.create_task(spawn.start("sleep", "600", cwd="/nowhere/none"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# -- with its parent

STARTER = """
import asyncio, sys
from goodbot.base import spawn as processes
async def main():
    child = await processes.start(*sys.argv[1:], start_new_session=True)
    print(child.pid, flush=True)
    await child.wait()
asyncio.run(main())
"""


def alive(mark: str) -> list[str]:
    """The processes with these words in their command line, but for the one that is asked."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if mark in words:
                found.append(f"{entry.name} {words}")
    return found


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc to see who runs")
@pytest.mark.parametrize("after", [0.0, 0.02, 0.05, 0.1, 0.2, None])
async def test_b3_a_child_ends_with_its_parent_from_its_first_instruction_on(
    tmp_path: Path, after: float | None
) -> None:
    """However early the parent is killed; None: when the child is long there."""
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-c", STARTER),
        *(sys.executable, "-c", "import time; time.sleep(600)", mark),
        stdout=asyncio.subprocess.PIPE,
    )
    assert parent.stdout is not None
    # The child has the mark from its first instruction to its last: as the door, and as the program.
    if after is None:
        child = str(int(await parent.stdout.readline()))
        # While one program becomes the other, it has no command line.
        await until(lambda: child in [one.split()[0] for one in alive(mark)], seconds=30)
    else:
        await until(lambda: len(alive(mark)) > 1, seconds=30)
        await asyncio.sleep(after)
    parent.kill()
    await parent.wait()
    await until(lambda: alive(mark) == [], seconds=30)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc to see who runs")
@pytest.mark.parametrize("killed", ["parent", "script"])
async def test_b3_what_a_script_has_started_ends_with_its_parent_too(tmp_path: Path, killed: str) -> None:
    """A script of the owner's, in a program's place, that does not say `exec`."""
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    script = tmp_path / "script"
    script.write_text(f'#!/bin/sh\n"{sys.executable}" -c "import time; time.sleep(600)" "$1"\necho over\n')
    script.chmod(0o700)
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-c", STARTER, str(script), mark), stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    await until(lambda: any("time.sleep" in one for one in alive(mark)), seconds=30)
    if killed == "parent":
        parent.kill()
    else:
        os.kill(child, signal.SIGKILL)
    await parent.wait()
    await until(lambda: alive(mark) == [], seconds=30)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this Python has none itself")
def test_b3_a_python_that_cannot_watch_a_group_starts_children_all_the_same() -> None:
    """Some builds lack `os.pidfd_open`, on kernels that have it."""
    code = (
        "import os; os.setsid(); del os.pidfd_open; from goodbot.base.cage.tie import tie;"
        " tie(os.getppid()); print('there')"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("there\n", 0), done.stderr


BURYING = """
import asyncio, ctypes, os
from goodbot.base import spawn
from goodbot.base.orphans import Orphans

def dead():
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None

async def main():
    ctypes.CDLL(None).prctl(36, 1)  # orphans come to us, as to the first process of a container
    orphans = Orphans()
    process = await spawn.start("true", start_new_session=True)
    assert await process.wait() == 0
    while not dead():
        await asyncio.sleep(0.01)
    orphans.bury()
    assert dead(), "whoever waits for it may be about to take it"
    orphans.bury()
    assert not dead()
    living = await spawn.start("sleep", "600")
    orphans.bury()
    orphans.bury()
    living.kill()
    assert await living.wait() == -9

asyncio.run(main())
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="nobody watches a group here")
def test_what_watched_a_model_server_is_buried_where_no_init_does() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BURYING], capture_output=True, text=True, timeout=patience(60.0), check=False
    )
    assert done.returncode == 0, done.stderr


# -- with nothing of ours

TELLS = (
    "import json, os, resource, sys; print(json.dumps({"
    "'cwd': os.getcwd(), 'path': sys.path, 'environ': dict(os.environ),"
    "'core': resource.getrlimit(resource.RLIMIT_CORE),"
    "'standard': [os.fstat(fd)[1:3] for fd in range(3)],"
    "'handles': [fd for fd in range(3, 256) if os.path.exists(f'/dev/fd/{fd}')]}))"
)
ASKS = f"""
import asyncio, json, os, sys
from goodbot.base import spawn as processes
handle = os.open(os.devnull, os.O_RDONLY)
os.set_inheritable(handle, True)
async def main():
    child = await processes.start(*processes.python("-c", {TELLS!r}), stdout=asyncio.subprocess.PIPE)
    return (await child.communicate())[0].decode()
print(json.dumps([[os.fstat(fd)[1:3] for fd in range(3)], json.loads(asyncio.run(main())), json.loads(
    processes.run(*processes.python("-c", {TELLS!r}), seconds=None).stdout)]))
"""


def test_a_child_has_nothing_of_ours(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('a file of the working directory ran')")
    environ = {
        **os.environ,
        "PYTHONPATH": str(tmp_path / "more"),
        "TELEGRAM_BOT_TOKEN": "secret",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "HF_TOKEN": "secret",
        "CUDA_SECRET": "secret",
        "PYTHONSTARTUP": "secret",
        "CUDA_VISIBLE_DEVICES": "3",
        "OMP_NUM_THREADS": "1",
        "HF_HOME": "/somewhere",
        "https_proxy": "secret",
    }
    done = subprocess.run(
        [sys.executable, "-P", "-c", ASKS],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        input="",
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ours, *children = json.loads(done.stdout)
    for child in children:
        assert not [handle for handle in child["standard"] if handle in ours], "a terminal may be behind it"
        assert child["cwd"] == "/"
        assert not {"", str(tmp_path), str(tmp_path / "more")} & set(child["path"])
        assert child["core"] == [0, 0]
        assert [fd for fd in child["handles"] if fd > 3] == []  # 3 is what lists them
        kept = child["environ"]
        assert "secret" not in kept.values()
        assert not {"PYTHONPATH", "LD_PRELOAD"} & set(kept)
        assert (kept["CUDA_VISIBLE_DEVICES"], kept["HF_HOME"]) == ("3", "/somewhere")
        assert kept["HF_HUB_OFFLINE"] == "1"


async def test_a_program_that_is_none_says_so(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF no program")
    broken.chmod(0o700)
    done = spawn.run(str(broken), seconds=None)
    assert done.returncode == 127
    assert done.stderr.startswith(f"{broken} cannot be started: ")
    with pytest.raises(FileNotFoundError):
        spawn.run(str(tmp_path / "none"), seconds=None)
    with pytest.raises(TimeoutError):
        spawn.run("sleep", "600", seconds=0.01)


def test_only_what_nobody_holds_is_swept(tmp_path: Path) -> None:
    """Whatever its name says of process ids: in a container each goodbot is number 1."""
    root = tmp_path / "root"
    root.mkdir()
    left = root / f"x-{os.getpid()}"
    (left / "deep").mkdir(parents=True)
    held, other = Scratch(root, "x-"), root / "y-left"
    other.mkdir()
    (root / "x-file").write_text("")
    (tmp_path / "kept").mkdir()
    (root / "x-link").symlink_to(tmp_path / "kept")
    assert scratch.abandoned(root, "x-") == [left]
    scratch.sweep(root, "x-")
    assert {*root.iterdir()} == {held.path, other, root / "x-file", root / "x-link"}
    assert (tmp_path / "kept").exists()
    held.remove()
    assert not held.path.exists()


def test_one_that_is_swept_before_it_is_held_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Any = scratch.tempfile.mkdtemp
    swept: list[str] = []

    def mkdtemp(**options: Any) -> str:
        made = str(real(**options))
        if not swept:
            scratch.sweep(tmp_path)
            swept.append(made)
        return made

    monkeypatch.setattr(scratch.tempfile, "mkdtemp", mkdtemp)
    held = Scratch(tmp_path)
    assert not Path(swept[0]).exists()
    assert [*tmp_path.iterdir()] == [held.path]
    assert scratch.abandoned(tmp_path) == []
    held.remove()


async def test_directories_of_children_are_swept_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spawn.tempfile, "tempdir", str(tmp_path))
    left = tmp_path / f"{spawn._SCRATCH}left"
    left.mkdir()
    threads, real = dict[str, threading.Thread](), trees.remove

    def remove(path: Path, **options: Any) -> None:
        threads[Path(path).name] = threading.current_thread()
        real(path, **options)

    monkeypatch.setattr(trees, "remove", remove)
    process = await spawn.start(
        *spawn.python("-c", "import os; print(os.getcwd())"),
        cage=spawn.Cage(),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    own = Path(out.decode().strip())
    await until(lambda: not own.exists(), seconds=30)
    assert {*threads} == {left.name, own.name}
    assert threading.main_thread() not in threads.values()


# -- with no secrets


def test_a_secret_passes_only_to_whom_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "MY_API_TOKEN",
        "MY_PLACE",
        "MY_Password",
        "LC_secret",
        "PIP_INDEX_URL",
        "PIP_KEYRING_PROVIDER",
        "UV_INDEX_OURS_PASSWORD",
        "https_proxy",
        "HF_TOKEN",
    ):
        monkeypatch.setenv(name, "here")

    def kept(environ: dict[str, str]) -> set[str]:
        return {name for name, value in environ.items() if value == "here"}

    assert kept(spawn.child_environment()) == set()
    assert kept(spawn.child_environment("MY_*", "MY_API_TOKEN")) == {"MY_PLACE"}
    assert kept(spawn.child_environment(secrets=["MY_API_TOKEN"])) == {"MY_API_TOKEN"}
    assert kept(packages.install_environment()) == {
        "PIP_INDEX_URL",
        "PIP_KEYRING_PROVIDER",
        "UV_INDEX_OURS_PASSWORD",
        "https_proxy",
    }
