# SPDX-License-Identifier: Apache-2.0
"""Small helpers that tests of every part share."""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import os
import random
import shutil
import socket
import time
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest
from goodbot.testing.patience import patience

__all__ = [
    "REQUIRE_ALL",
    "chromium",
    "free_port",
    "missing",
    "patience",
    "require",
    "require_program",
    "within",
]

REQUIRE_ALL = os.environ.get("GOODBOT_REQUIRE_ALL") == "1"


def missing(reason: str) -> NoReturn:
    """Skip for a missing part; under GOODBOT_REQUIRE_ALL=1 that is a failure."""
    if REQUIRE_ALL:
        pytest.fail(f"GOODBOT_REQUIRE_ALL=1, but {reason}")
    pytest.skip(reason, allow_module_level=True)


def require(module: str) -> Any:
    """Import a module that an extra brings, or skip with the reason."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing(f"{module} is not installed ({error})")


_EACH = 1000
_FIRST = 20_000 + _EACH * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 12)
_PORTS = itertools.cycle(random.sample(range(_FIRST, _FIRST + _EACH), _EACH))


def free_port() -> int:
    """A port that nobody listens on now, and that nobody gets until it is listened on.

    It lies below those that a system hands out by itself, and each worker of pytest has its own.
    """
    for _ in range(_EACH):
        with socket.socket() as found, contextlib.suppress(OSError):
            found.bind(("127.0.0.1", port := next(_PORTS)))
            return port
    pytest.fail("no port is free")


def require_program(name: str) -> str:
    """The path of a program of the operating system, or skip with the reason.

    GOODBOT_REQUIRE_ALL=1 asks for all that our extras install; a shell or a compiler none of them does.
    """
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"the program {name} is not installed")
    return path


def chromium() -> str:
    """The path of a Chromium of the operating system, or skip with the reason.

    Unlike other programs it is installed by `.ci/run`, so GOODBOT_REQUIRE_ALL=1 asks for it too.
    """
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    missing("no Chromium is on PATH (on Debian: `apt-get install chromium`)")


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail when the block takes more of the processor's time, however busy the machine is.

    This thread's alone, and nothing that earlier tests have left is collected meanwhile.
    """
    gc.disable()
    try:
        began = time.thread_time()
        yield
        took = time.thread_time() - began
    finally:
        gc.enable()
    assert took <= seconds, f"{took:.2f} s of the processor's time, not {seconds:g}"
