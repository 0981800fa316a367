# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a state directory of its own for one test, and a daemon that the tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import rings
from tests.cli.program import Bot, need_backend
from tests.rings import Ring


@pytest.fixture
def bot(tmp_path: Path) -> Iterator[Bot]:
    """An empty state directory of the test's own."""
    bot = Bot(tmp_path / "home")
    yield bot
    bot.stop(signal.SIGKILL)


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bot]:
    """A daemon on the tiny model, shared by all tests here."""
    need_backend()
    bot = Bot(tmp_path_factory.mktemp("running") / "home")
    bot.start()
    yield bot
    bot.stop()


@pytest.fixture
def ring() -> Iterator[Ring]:
    """A keyring in memory, in the place of this machine's."""
    with rings.used() as made:
        yield made
