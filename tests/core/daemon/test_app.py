# SPDX-License-Identifier: Apache-2.0
"""What has started is undone, last to first, also where a start goes wrong half way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from goodbot.base.errors import ServerError, StoreError
from goodbot.config.lock import HomeLock
from goodbot.daemon.app import App
from goodbot.daemon.connectors import ConnectorManager
from goodbot.learning.training.trainer import Trainer
from goodbot.store import Store

from tests.core.builders import GRANTS, Fake, config, plugins


def free(home: Path) -> bool:
    """Whether another goodbot could take the directory."""
    lock = HomeLock(home)
    lock.acquire()
    lock.release()
    return True


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stores that were closed."""
    seen: list[str] = []
    close = Store.close

    async def closing(store: Store) -> None:
        seen.append("store")
        await close(store)

    monkeypatch.setattr(Store, "close", closing)
    return seen


def breaking(monkeypatch: pytest.MonkeyPatch, kind: type, name: str) -> None:
    async def breaks(*_: Any, **__: Any) -> None:
        raise ServerError(f"{name} goes wrong")

    monkeypatch.setattr(kind, name, breaks)


@pytest.mark.parametrize(
    ("kind", "name"), [(Trainer, "recover"), (ConnectorManager, "start"), (ConnectorManager, "stop")]
)
async def test_a_start_that_goes_wrong_leaves_nothing_open(
    kind: type, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: list[str]
) -> None:
    breaking(monkeypatch, kind, name)
    home = tmp_path / "bot"
    given = config(home, Fake(tmp_path / "fake"))
    with pytest.raises(ServerError, match=name):
        async with App.open(given, plugins(), grants={"loopback": GRANTS}):
            assert name == "stop", "it has not come up"
    assert closed == ["store"]
    assert free(home)


async def test_a_store_that_cannot_be_opened_leaves_the_directory_free(tmp_path: Path) -> None:
    home = tmp_path / "bot"
    given = config(home, Fake(tmp_path / "fake"))
    home.mkdir(exist_ok=True)
    (home / "goodbot.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError):
        async with App.open(given, plugins(), grants={"loopback": GRANTS}):
            pass
    assert free(home)
