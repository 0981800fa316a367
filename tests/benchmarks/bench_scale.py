# SPDX-License-Identifier: Apache-2.0
"""`make bench-scale`: the same ratings trained in one process, by Ray's workers, and by a Tinker server.

All begin with the same adapter, and differ in where the steps are computed. Each row says how far its curve
of losses is from that of one process, whether the check comes to the same, how long all of it took, and what
went over the wire.
What is not installed here is a row that says so. The Tinker server is our stand-in, which computes with PEFT.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from goodbot.base.errors import GoodbotError
from goodbot.config import Config, TrainingConfig
from goodbot.config.remote import RemoteConfig
from goodbot.learning import worker_process
from goodbot.learning.training.remote import allowed
from goodbot_fakes.tinker import FakeTinker
from goodbot_training.backends import ray, tinker, torch

from tests.benchmarks.table import row
from tests.training.ray import nodes
from tests.training.test_worker import make_job
from tests.training.tinker.wire import SETTINGS

MODEL = Path(__file__).parents[2] / "training" / "goodbot_training" / "tiny" / "model"
_HEAD = ("steps computed by", "loss curve, furthest", "check", "seconds", "bytes sent", "bytes got")


@dataclass
class Told:
    """What one training has come to."""

    losses: list[float] = field(default_factory=list[float])
    passed: bool | None = None
    seconds: float = 0.0
    sent: int = 0
    got: int = 0


def ratings(model: Path, output: Path, count: int, **changes: Any) -> dict[str, Any]:
    """A job of so many ratings at temperature 1, of which a sixth is kept to check it."""
    output.mkdir(parents=True)
    settings = {**SETTINGS, "steps": max(1, count // 4), "learning_rate": 3e-3, "gate_anchors": 8}
    raw = make_job(model, output, settings=settings, **changes)
    one = raw["items"][:2]
    raw["items"] = [
        {
            **one[number % 2],
            "id": f"turn-{number}",
            "messages": [{"role": "user", "content": f"What is {number} and {number + 1}?"}],
            "split": "held_out" if number % 12 in (5, 10) else "train",
            "temperature": 1.0,
            "unscored": True,
        }
        for number in range(count)
    ]
    return raw


async def trained(spec: Any, raw: dict[str, Any], far: Any = None) -> Told:
    """Train in a child, and count."""
    told = Told()

    async def on_event(event: Mapping[str, Any]) -> None:
        if event.get("phase") == "train" and "loss" in event:
            told.losses.append(float(event["loss"]))
        elif event["event"] == "gate":
            told.passed = bool(event["passed"])

    async def answer(asked: Mapping[str, Any]) -> AsyncIterator[Mapping[str, Any]]:
        told.sent += len(json.dumps(asked.get("body")))
        async for line in far.answer(asked):
            told.got += len(json.dumps(line))
            yield line

    since = time.perf_counter()
    if far is None:
        await worker_process.train(spec, raw, on_event)
    else:
        raw["remote"] = far.told("here")
        await worker_process.train(spec, raw, on_event, answer=answer)
        await far.close()
    told.seconds = time.perf_counter() - since
    return told


def show(name: str, told: Told, here: Told) -> None:
    """One row."""
    apart = max((abs(a - b) for a, b in zip(told.losses, here.losses, strict=True)), default=0.0)
    check = "passed" if told.passed else "not passed"
    same = "" if told is here else " (the same)" if told.passed == here.passed else " (**not** the same)"
    row(name, f"{apart:.1e}", check + same, f"{told.seconds:.1f}", f"{told.sent:,}", f"{told.got:,}")


async def measure(model: Path, count: int, place: Path) -> None:
    """Print the table."""
    from tests.training.tinker.engine import PeftEngine

    row(*_HEAD, head=True)
    engine = PeftEngine(model)
    async with FakeTinker(engine) as server:
        remote = RemoteConfig(url=server.url, model=server.base)
        config = Config(home=place, training=TrainingConfig(backend="tinker", remote=remote))
        raw = ratings(model, place / "tinker", count)
        theirs = await trained(tinker.register_backend(), raw, allowed(config, tinker.register_backend()))
    start = str(engine.begun(place / "start"))  # the adapter that the server has begun with
    here = await trained(torch.register_backend(), ratings(model, place / "here", count, parent=start))
    show("one process here", here, here)
    for number in (1, 2):
        name = f"two Ray workers, {('one node', 'two nodes')[number - 1]}"
        if why := nodes.missing():
            row(name, why, "", "", "", "")
            continue
        raw = ratings(model, place / f"ray-{number}", count, parent=start)
        try:
            with nodes.nodes(number) as (address, token):
                os.environ["GOODBOT_TRAINING_KEY"] = token
                remote = RemoteConfig(url=f"ray://{address}", workers=2)
                config = Config(home=place, training=TrainingConfig(backend="ray", remote=remote))
                far: Any = allowed(config, ray.register_backend())
                far.model = model
                show(name, await trained(ray.register_backend(), raw, far), here)
        except GoodbotError as error:
            row(name, f"failed: {error}", "", "", "", "")
    show("Tinker's protocol, our stand-in", theirs, here)
    row("Tinker's protocol, a server of somebody else's", "not run here", "", "", "", "")


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="make bench-scale")
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--ratings", type=int, default=96)
    options = parser.parse_args(arguments)
    if find_spec("torch") is None or find_spec("peft") is None:
        sys.exit("torch is not installed: `make install-all` does it")
    print(f"\n## Training elsewhere: {options.ratings} ratings, {options.model.name}\n")
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(measure(options.model, options.ratings, Path(place)))


if __name__ == "__main__":
    main(sys.argv[1:])
