# SPDX-License-Identifier: Apache-2.0
"""What the tests of the doctor share: something to examine, and one probe asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from goodbot import config
from goodbot.api.plugins import PluginHost
from goodbot.api.setup import Check, CheckState, Examined
from goodbot.daemon import loopback
from goodbot.inference.servers import plugin as own_servers
from goodbot.store import Store
from goodbot_connectors import telegram, terminal
from goodbot_training.backends import mlx, torch
from goodbot_training.objectives import rewards
from goodbot_training.tiny import plugin as tiny

OWN = {
    "loopback": loopback,
    "mlx": mlx,
    "rewards": rewards,
    "servers": own_servers,
    "telegram": telegram,
    "terminal": terminal,
    "tiny": tiny,
    "torch": torch,
}


def examined(
    home: Path,
    toml: str = "",
    *extra: object,
    environ: Mapping[str, str] | None = None,
    daemon: Mapping[str, Any] | None = None,
    demo: bool = False,
) -> Examined:
    """A state directory with this config; `home` need not exist."""
    path = home / "config.toml" if toml else None
    plugins = PluginHost()
    for name, plugin in OWN.items():
        plugins.register(plugin, name)
    for number, plugin in enumerate(extra):
        plugins.register(plugin, f"extra-{number}")
    return Examined(
        config=config.parse(toml, home=home, path=path),
        plugins=plugins,
        environ=environ or {},
        daemon=daemon,
        demo_model=demo,
    )


async def only(answer: Awaitable[Sequence[Check]]) -> Check:
    """The one check that a probe returns."""
    [check] = await answer
    return check


def states(checks: Sequence[Check]) -> dict[str, CheckState]:
    return {check.part: check.state for check in checks}


def store(home: Path, work: Callable[[Any], Awaitable[None]] | None = None) -> Path:
    """A database as goodbot makes it, after some work in it; its file."""
    home.mkdir(mode=0o700, exist_ok=True)

    async def made() -> None:
        store = await Store.open(home / "goodbot.db")
        if work is not None:
            await store.write(work)
        await store.close()

    asyncio.run(made())
    return home / "goodbot.db"
