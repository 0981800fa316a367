# SPDX-License-Identifier: Apache-2.0
"""A real Ray cluster on loopback, of one node or of several, each with an address of its own."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from tests.support import free_port, patience

_MEMORY = 100_000_000
"""Of the object store of a node: nothing large goes through it."""


def missing() -> str:
    """Why there can be no cluster here; empty: there can."""
    return "" if find_spec("ray") else "ray is not installed: `make test-ray` does it"


@contextmanager
def nodes(count: int, workers: int = 2) -> Generator[tuple[str, str]]:
    """The address of the head, and the token that it asks for. All that was started ends with it."""
    token, port = secrets.token_hex(16), free_port()
    place = tempfile.mkdtemp(prefix="gb-ray-", dir="/tmp")  # sockets have short paths
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
        "HOME": place,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": token,
        "RAY_USAGE_STATS_ENABLED": "0",
        "OMP_NUM_THREADS": "1",
    }
    program = str(Path(sys.executable).with_name("ray"))
    each = workers // count
    common = [f"--num-cpus={each}", "--num-gpus=0", f"--object-store-memory={_MEMORY}", "--block"]
    head = ["--head", "--node-ip-address=127.0.0.2", f"--port={port}", f"--temp-dir={place}/r"]
    head += ["--include-dashboard=false", "--disable-usage-stats"]
    running: list[subprocess.Popen[bytes]] = []
    log = Path(place, "log")
    try:
        with log.open("wb") as out:
            running.append(_start([program, "start", *head, *common], environ, out.fileno()))
            _up(log, 1)
            for number in range(1, count):
                join = [f"--address=127.0.0.2:{port}", f"--node-ip-address=127.0.0.{2 + number}"]
                running.append(_start([program, "start", *join, *common], environ, out.fileno()))
                _up(log, 1 + number)
            yield f"127.0.0.2:{port}", token
    finally:
        for process in reversed(running):
            _end(process)
        shutil.rmtree(place, ignore_errors=True)


def _start(command: list[str], environ: dict[str, str], out: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
    )


def _up(log: Path, count: int) -> None:
    end = time.monotonic() + patience(120)
    while log.read_text("utf-8", "replace").count("Ray runtime started") < count:
        assert time.monotonic() < end, log.read_text("utf-8", "replace")
        time.sleep(0.2)


def _end(process: subprocess.Popen[bytes]) -> None:
    """It leads a group of its own, with all that it has started."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(patience(20))
    except subprocess.TimeoutExpired:
        pass
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
