# SPDX-License-Identifier: Apache-2.0
"""A goodbot and a chat as a person starts them: who can look into them, and what children can do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from goodbot.base import cage

from tests.cli.program import Bot, environment, need_backend
from tests.cli.terminal import Person

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux' /proc")
CORE = "Max core file size        0                    0"
PLAIN = (
    sys.executable,
    "-c",
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(24, 19, 0, 0, 0); os.execv(sys.argv[1], sys.argv[1:])",
)
"""Becomes a program that may not trace all others (PR_CAPBSET_DROP, CAP_SYS_PTRACE), as one of root's may."""


def children(pid: int) -> list[Path]:
    words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [Path("/proc") / word for word in words]


def looking(*command: str) -> subprocess.CompletedProcess[str]:
    """What a program of the same user comes to, which is no more than that where the user is root."""
    return subprocess.run(
        [*PLAIN, *command], capture_output=True, text=True, check=False, env=environment(LC_ALL="C")
    )


def test_no_core_dump_and_no_look_into_a_chat_nor_into_its_goodbot(bot: Bot) -> None:
    need_backend()
    others = looking("/bin/sh", "-c", "sleep 60 & cat /proc/$!/environ; code=$?; kill $!; exit $code")
    assert others.returncode == 0, "into other programs it looks"
    with Person(bot.home, "chat", "--demo-model", through=PLAIN) as ada:
        ada.sees("type a message")
        for pid in (ada.process.pid, bot.json("status")["pid"]):
            assert CORE in Path(f"/proc/{pid}/limits").read_text()
            assert "Permission denied" in looking("/bin/cat", f"/proc/{pid}/environ").stderr
        ada.type("/quit\r")
        assert ada.ends() == 0


@pytest.mark.skipif(bool(cage.missing()), reason=f"this kernel has no {cage.missing()}")
def test_what_holds_the_model_is_locked_up(running: Bot) -> None:
    assert running.process is not None
    assert CORE in Path(f"/proc/{running.process.pid}/limits").read_text()
    [sampler] = children(running.process.pid)
    status = (sampler / "status").read_text()
    assert "NoNewPrivs:\t1" in status
    assert "Seccomp:\t2" in status
    assert CORE in (sampler / "limits").read_text()
    words = (sampler / "environ").read_bytes().decode().split("\0")
    environ = dict(word.split("=", 1) for word in words if word)
    own = (sampler / "cwd").resolve()
    assert own.name.startswith("goodbot-own-")
    assert {environ["HOME"], environ["TMPDIR"]} == {str(own)}
    handles = {(entry.name, entry.readlink().name.partition(":")[0]) for entry in (sampler / "fd").iterdir()}
    assert "socket" not in {kind for _, kind in handles}
