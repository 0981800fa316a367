# SPDX-License-Identifier: Apache-2.0
"""A real mlx_lm.server on this machine's processor, with the tiny model."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from goodbot.api.server import AdapterFormat

from tests.core.inference.servers import tiny
from tests.support import free_port, patience, require

_START_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class FarSide:
    """A running server, and what it has logged."""

    url: str
    pid: int
    log: Path


@contextlib.contextmanager
def running(home: Path, model: Path | None = None) -> Iterator[FarSide]:
    """Start it, and end it afterwards."""
    for module in ("mlx.core", "mlx_lm"):
        require(module)
    (home / "hub").mkdir(parents=True)
    port = free_port()
    log = home / "log"
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "HF_HOME": str(home),
        "HF_HUB_OFFLINE": "1",
        "MLX_DISABLE_COMPILE": "1",
        "OMP_NUM_THREADS": "1",
    }
    # It collects garbage before each model that it loads, and would look through all of torch then.
    program = "import gc; from mlx_lm import server; gc.freeze(); server.main()"
    command = [sys.executable, "-c", program, "--model", str(model or tiny.model())]
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*command, "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env=environ,
            cwd=home,
        )
    try:
        far_side = FarSide(url=f"http://127.0.0.1:{port}", pid=process.pid, log=log)
        _wait(far_side, process)
        yield far_side
    finally:
        process.kill()
        process.wait()


def _wait(far_side: FarSide, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + patience(_START_SECONDS)
    while time.monotonic() < end and process.poll() is None:
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"{far_side.url}/health", timeout=patience(5)) as answer,
        ):
            if json.loads(answer.read())["status"] == "ok":
                return
        time.sleep(0.05)
    raise AssertionError(f"mlx_lm.server did not come up: {far_side.log.read_text()[-2000:]}")


async def as_mlx(directory: Path, to: AdapterFormat) -> Path:
    """`ServerParts.convert`: an adapter in PEFT's layout as mlx-lm takes it, made once."""
    from goodbot_training.backends.adapters import read_adapter
    from goodbot_training.formats import mlx
    from goodbot_training.formats.checkpoint import Checkpoint

    assert to is AdapterFormat.MLX
    made = directory.parent / f"{directory.name}.mlx"
    if not made.exists():
        mlx.write(made, read_adapter(directory), Checkpoint(tiny.model()))
    return made
