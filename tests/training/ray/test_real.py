# SPDX-License-Identifier: Apache-2.0
"""The real Ray, on loopback: a trainer in its cage, the driver, workers, and their children in cages."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from goodbot.base.errors import TrainingError
from goodbot.config import Config, TrainingConfig
from goodbot.config.remote import RemoteConfig
from goodbot.learning import worker_process
from goodbot.learning.training.cluster import Cluster
from goodbot.learning.training.remote import allowed
from goodbot_training.backends.ray import register_backend
from goodbot_training.backends.torch import register_backend as register_torch

from tests.support import require
from tests.training.ray import nodes
from tests.training.test_worker import make_job
from tests.training.tinker.wire import SETTINGS, losses

require("torch")
require("peft")

from tests.training.backends.test_sharing import furthest  # noqa: E402

pytestmark = [pytest.mark.ray, pytest.mark.slow]
RAY, TORCH = register_backend(), register_torch()
Look = Callable[[Mapping[str, Any]], Awaitable[None] | None]


@pytest.fixture(scope="module", params=[1, 2], ids=["one node", "two nodes"])
def head(request: pytest.FixtureRequest) -> Iterator[tuple[str, str, int]]:
    if why := nodes.missing():
        pytest.skip(why)
    with nodes.nodes(request.param) as (address, token):
        yield address, token, request.param


@pytest.fixture
def cluster(
    head: tuple[str, str, int], random_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Cluster:
    address, token, _ = head
    monkeypatch.setenv("GOODBOT_TRAINING_KEY", token)
    remote = RemoteConfig(url=f"ray://{address}", workers=2)
    found = allowed(Config(home=tmp_path, training=TrainingConfig(backend="ray", remote=remote)), RAY)
    assert isinstance(found, Cluster)
    found.model = random_model
    return found


async def learnt(
    model: Path, output: Path, cluster: Cluster | None = None, look: Look = lambda event: None, **more: Any
) -> tuple[list[dict[str, Any]], Mapping[str, Any]]:
    """The events of one training in a real child, and its last one."""
    output.mkdir(exist_ok=True)
    raw = make_job(model, output, settings={**SETTINGS, "learning_rate": 3e-3}, **more)
    events: list[dict[str, Any]] = []

    async def on_event(event: Mapping[str, Any]) -> None:
        events.append(dict(event))
        if (wait := look(event)) is not None:
            await wait

    if cluster is None:
        return events, await worker_process.train(TORCH, raw, on_event)
    raw["remote"] = cluster.told("here")
    try:
        return events, await worker_process.train(RAY, raw, on_event, answer=cluster.answer)
    finally:
        await cluster.close()


def verdict(events: list[dict[str, Any]]) -> tuple[bool, list[Any]]:
    [found] = [event for event in events if event["event"] == "gate"]
    return found["passed"], [code for code, _ in found["said"]]


async def test_the_same_round_on_one_process_and_on_a_cluster_agrees(
    cluster: Cluster, head: tuple[str, str, int], random_model: Path, tmp_path: Path
) -> None:
    assert sum(one["cpu"] for one in await cluster.machines()) == 2
    assert len(await cluster.machines()) == head[2]
    here, _ = await learnt(random_model, tmp_path / "here")
    there, done = await learnt(random_model, tmp_path / "there", cluster)
    assert len(losses(there)) == 6
    assert losses(there) == pytest.approx(losses(here), abs=1e-4)
    assert verdict(there) == verdict(here)
    assert furthest(tmp_path / "there", tmp_path / "here") < 1e-4
    assert done["metrics"]["steps"] == 6


async def test_a_worker_that_is_lost_costs_no_step(
    cluster: Cluster, random_model: Path, tmp_path: Path
) -> None:
    here, _ = await learnt(random_model, tmp_path / "here")
    lost: list[int] = []

    def look(event: Mapping[str, Any]) -> None:
        if event["event"] == "checkpoint" and event["step"] == 3 and not lost:
            lost.append(shards()[0])
            os.kill(lost[0], signal.SIGKILL)

    there, _ = await learnt(
        random_model, tmp_path / "there", cluster, look, checkpoints=str(tmp_path / "kept")
    )
    assert lost
    assert losses(there) == pytest.approx(losses(here), abs=1e-4)
    assert furthest(tmp_path / "there", tmp_path / "here") < 1e-4


async def test_more_workers_than_processors_are_a_sentence(
    cluster: Cluster, random_model: Path, tmp_path: Path
) -> None:
    cluster.config = RemoteConfig(url=cluster.config.url, workers=9)
    with pytest.raises(TrainingError, match="2 processors, and 9 workers need one each"):
        await learnt(random_model, tmp_path / "there", cluster)


async def test_a_cluster_that_is_not_there_is_a_sentence(
    cluster: Cluster, random_model: Path, tmp_path: Path, unused_tcp_port: int
) -> None:
    cluster.url = f"ray://127.0.0.2:{unused_tcp_port}"
    with pytest.raises(TrainingError, match="No Ray cluster answers at"):
        await learnt(random_model, tmp_path / "there", cluster)


def shards() -> list[int]:
    """The process ids of the workers' children."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"goodbot_training.process.shard" in words and b"goodbot.base.cage" not in words:
            found.append(int(entry.name))
    return sorted(found)
