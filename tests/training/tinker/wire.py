# SPDX-License-Identifier: Apache-2.0
"""A round on a loopback server that really trains, by goodbot's own relay and the child's own side of it."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from pathlib import Path
from typing import Any

from goodbot.config.remote import RemoteConfig
from goodbot.config.secrets import Secrets
from goodbot.learning.training.remote import Remote
from goodbot_fakes.tinker import FakeTinker

from tests.support import require
from tests.training.test_worker import make_job

require("torch")
require("peft")

from goodbot_training.backends.tinker import client  # noqa: E402
from goodbot_training.backends.tinker.trainer import TinkerBackend  # noqa: E402
from goodbot_training.gate.decide import Verdict  # noqa: E402
from goodbot_training.job.types import Job  # noqa: E402
from goodbot_training.process.asking import Asking  # noqa: E402
from goodbot_training.round.run import run_round  # noqa: E402

KEY = "tml-for-tests-only"
HOST = "127.0.0.1"
SETTINGS: dict[str, Any] = {
    "steps": 6,
    "rank": 4,
    "slice_steps": 1,
    "gate_anchors": 0,
    "gate_max_tokens": 4,
    "strength": 1.0,
    "contested_strength": 1.0,
    "gate_retry": 0.0,
    "attention_rate": 1.0,
    "damping": 0.0,
}


def remote(server: FakeTinker, *, key: str = KEY, **changes: Any) -> Remote:
    """As an owner has allowed it."""
    given: dict[str, Any] = {"model": server.base, **changes}
    config = RemoteConfig(url=server.url, **given)
    return Remote(config=config, url=server.url, key=Secrets(("KEY",), {"KEY": key}).get("KEY"))


class Wire:
    """What lies between a child and goodbot, without a process: a thread asks, this loop answers."""

    def __init__(self, far: Remote) -> None:
        self._far, self._loop = far, asyncio.get_running_loop()
        self._lines: deque[bytes] = deque()

    def emit(self, event: dict[str, Any]) -> None:
        told = asyncio.run_coroutine_threadsafe(self._answered(event), self._loop).result()
        self._lines += [json.dumps({**line, "id": event["id"]}).encode() + b"\n" for line in told]

    def readline(self) -> bytes:
        return self._lines.popleft() if self._lines else b""

    async def _answered(self, event: dict[str, Any]) -> list[dict[str, Any]]:
        return [line async for line in self._far.answer(event)]


def backend(far: Remote, slept: list[float] | None = None, patience: float = 600.0) -> TinkerBackend:
    """One that is connected; it never really waits."""
    made, wire = TinkerBackend(), Wire(far)
    asking: Any = Asking(wire.emit, wire)  # pyright: ignore[reportArgumentType]  it only reads lines
    waits: list[float] = [] if slept is None else slept
    made._server = client.TinkerClient(asking, far.told("here"), sleep=waits.append, patience=patience)
    return made


def job(model: Path, output: Path, **changes: Any) -> dict[str, Any]:
    """Eight ratings at temperature 1."""
    output.mkdir(exist_ok=True)
    settings = {**SETTINGS, **changes.pop("settings", {})}
    raw = make_job(model, output, settings=settings, **changes)
    for item in raw["items"]:
        item |= {"temperature": 1.0, "unscored": True}
    return raw


async def train(
    far: Remote, raw: dict[str, Any], made: TinkerBackend | None = None
) -> tuple[Verdict, list[dict[str, Any]]]:
    """Run a round in a thread; its verdict and its events."""
    events: list[dict[str, Any]] = []
    own = made or backend(far)
    return await asyncio.to_thread(run_round, Job.parse(raw), own, events.append), events


def losses(events: list[dict[str, Any]]) -> list[float]:
    """The loss of each step."""
    return [event["loss"] for event in events if event.get("phase") == "train" and "loss" in event]
