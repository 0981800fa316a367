# SPDX-License-Identifier: Apache-2.0
"""A daemon as a person starts it: who can look into it, and what its children can do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from goodbot.base import cage

from tests.cli.program import Bot, environment

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux' /proc")
CORE = "Max core file size        0                    0"


def children(pid: int) -> list[Path]:
    words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [Path("/proc") / word for word in words]


def test_no_core_dump_and_no_look_into_it(running: Bot) -> None:
    assert running.process is not None
    assert CORE in Path(f"/proc/{running.process.pid}/limits").read_text()
    code = (
        "import ctypes; from goodbot.base import cage; "
        "cage.keep_to_itself(); print(ctypes.CDLL(None).prctl(3))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment()
    )
    assert done.stdout.strip() == "0", "Linux calls it dumpable: whoever has its user id may look"


@pytest.mark.skipif(bool(cage.missing()), reason=f"this kernel has no {cage.missing()}")
def test_what_holds_the_model_is_locked_up(running: Bot) -> None:
    assert running.process is not None
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
