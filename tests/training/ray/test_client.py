# SPDX-License-Identifier: Apache-2.0
"""What a cluster says is not believed: numbers are numbers, and a model is that of here."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from goodbot.api.backend import StepStats
from goodbot.base.errors import TrainingError
from goodbot_training.backends.asking import RemoteReply
from goodbot_training.backends.ray import wire, worker
from goodbot_training.backends.ray.client import ClusterClient
from goodbot_training.backends.ray.line import OrderLine
from goodbot_training.round.batches import pad

from tests.training.factories import make_rollout

STEP = {"loss": 1, "kl": 0.5, "token_acceptance": 1.0, "trajectory_acceptance": 1.0, "grad_norm": 2.0}


def stepped(text: str) -> StepStats:
    def ask(method: str, path: str, body: Any = None, file: BinaryIO | None = None) -> RemoteReply:
        return RemoteReply(status=200, text=text)

    return ClusterClient(ask, {"host": "here"}).step(pad([make_rollout(0)], [1.0], 1.0))


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "[]",
        "{}",
        json.dumps({**STEP, "more": 1}),
        json.dumps({**STEP, "loss": [1]}),
        json.dumps({**STEP, "loss": {"a": 1}}),
        json.dumps({**STEP, "kl": "much"}),
        json.dumps({**STEP, "grad_norm": float("nan")}),
        json.dumps({**STEP, "tokens": 10**400}),
    ],
)
def test_what_is_no_step_is_a_sentence(text: str) -> None:
    with pytest.raises(TrainingError, match="here answers with something that is no step"):
        stepped(text)


def test_a_step_is_numbers() -> None:
    found = stepped(json.dumps({**STEP, "tokens": 3, "skipped": False}))
    assert found == StepStats(
        loss=1.0, kl=0.5, token_acceptance=1.0, trajectory_acceptance=1.0, grad_norm=2.0, tokens=3
    )
    assert isinstance(found.tokens, int)
    assert found.skipped is False


def test_another_fine_tune_of_the_same_base_is_another_model(tmp_path: Path) -> None:
    found: list[Any] = []
    for name, config, weights in (
        ("a", b"{}", b"one" + bytes(9)),
        ("same", b"{}", b"one" + bytes(9)),
        ("weights", b"{}", b"two" + bytes(9)),
        ("config", b"[]", b"one" + bytes(9)),
    ):
        model = tmp_path / name
        model.mkdir()
        (model / "config.json").write_bytes(config)
        (model / "model.safetensors").write_bytes(weights)
        found.append(json.loads(json.dumps(wire.files(model))))
    assert found[0] == found[1]
    assert found[2] != found[0] != found[3]


async def test_a_full_disk_elsewhere_is_not_told_as_one_here() -> None:
    line = OrderLine(b"", [])
    await line.give({"what": "step", "batch": {}})
    ours: asyncio.StreamReader = asyncio.StreamReader()
    ours.feed_data(
        json.dumps({"what": "failed", "found": {"kind": "disk", "reason": "It is full."}, "size": 0}).encode()
        + b"\n"
    )

    async def start(model: Path) -> worker.Pipes:
        return worker.Pipes(writer=_Deaf(), reader=ours, last_words=words)  # type: ignore[arg-type]

    with pytest.raises(TrainingError):
        await worker.serve(
            line, start, {"model": "m"}, number=0, of=1, address="127.0.0.2", summed=lambda numbers: numbers
        )
    failed = (await line.result(0))[0]["failed"]
    assert (failed["kind"], failed["reason"]) == ("error", "127.0.0.2: It is full.")


async def test_a_child_that_is_gone_before_it_was_told_anything_is_a_sentence() -> None:
    async def start(model: Path) -> worker.Pipes:
        return worker.Pipes(writer=_Deaf(gone=True), reader=asyncio.StreamReader(), last_words=words)  # type: ignore[arg-type]

    with pytest.raises(
        TrainingError, match=r"127\.0\.0\.2: a worker's child ended without a result: why\."
    ) as caught:
        await worker.serve(
            OrderLine(b"", []),
            start,
            {"model": "m"},
            number=0,
            of=1,
            address="127.0.0.2",
            summed=lambda numbers: numbers,
        )
    assert caught.value.kind == "died"


async def words() -> str:
    return ": why."


class _Deaf:
    """A pipe that nobody reads."""

    def __init__(self, gone: bool = False) -> None:
        self._gone = gone

    def write(self, data: bytes) -> None:
        pass

    async def drain(self) -> None:
        if self._gone:
            raise ConnectionResetError

    def close(self) -> None:
        pass
