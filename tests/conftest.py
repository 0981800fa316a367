# SPDX-License-Identifier: Apache-2.0
"""For every test: no network but loopback, no GPU, and the environment as it was."""

from __future__ import annotations

import gc
import ipaddress
import os
import socket
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from goodbot.base import priority
from goodbot.base.busy import TurnedAway
from hypothesis import HealthCheck, settings

from tests.support import free_port

pytest_plugins = (
    "tests.children",
    "tests.network",
    "tests.surroundings",
    "tests.passed",
    "tests.unsteady",
    "tests.openers",
    "tests.busy",
    "tests.postgres",
)

# What tests expect are the numbers of fp32 on a processor; on a GPU torch computes in bf16.
os.environ["CUDA_VISIBLE_DEVICES"] = ""

# Beside programs that compute all the time, a training that stands behind them never ends.
os.environ[priority.KEEP] = "1"

# How quick a machine is says nothing of the code; and fixtures here are either made once for a
# test's examples on purpose, or hold nothing that an example changes.
settings.register_profile(
    "goodbot",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("goodbot")


LONG = "tests/training/zoo/test_rounds.py"
"""It takes minutes and is the last by its name: one process was left with it, and all others with nothing."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file is one process's: what takes longest begins first."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


def pytest_collection_finish() -> None:
    """What is here now stays to the end: no full collection goes through its millions of objects again."""
    gc.collect()
    gc.freeze()


def _is_local(address: Any) -> bool:
    """Unix sockets, and the loopback range by its addresses or its one name."""
    if not isinstance(address, tuple):
        return True
    host = str(address[0])
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@pytest.fixture(autouse=True)
def nobody_turned_away() -> Iterator[None]:
    """A process counts whom it has put off, and tells that in `status`: of each test its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TurnedAway, "total", 0)
        patch.setattr(TurnedAway, "answered", Counter())
        yield


@pytest.fixture(autouse=True)
def loopback_only() -> Iterator[None]:
    """Refuse every other connection of this process, and every other name."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex", "sendto"):
            patch.setattr(socket.socket, name, _guarded(name))
        real = socket.getaddrinfo

        def getaddrinfo(host: Any, *arguments: Any, **keywords: Any) -> Any:
            if host and not _is_local((host,)):
                raise PermissionError(f"tests may not look up {host!r}")
            return real(host, *arguments, **keywords)

        patch.setattr(socket, "getaddrinfo", getaddrinfo)
        yield


@pytest.fixture
def unused_tcp_port() -> int:
    """In place of pytest-asyncio's, whose port the next who asks the system for one may get."""
    return free_port()


@pytest.fixture(autouse=True)
def environment_as_it_was() -> Iterator[None]:
    """Libraries set switches in it for themselves; programs that later tests start would take them."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys() - {"PYTEST_CURRENT_TEST"}:
        del os.environ[name]
    os.environ.update(before)


def _guarded(name: str) -> Any:
    real = getattr(socket.socket, name)

    def call(self: socket.socket, *arguments: Any) -> Any:
        if not _is_local(arguments[-1]):
            raise PermissionError(f"tests may not reach {arguments[-1]!r}: only loopback")
        return real(self, *arguments)

    return call
