# SPDX-License-Identifier: Apache-2.0
"""The same ratings teach the same, whether torch takes the steps here or a server does by its own losses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot_fakes.tinker import FakeTinker

from tests.support import require

require("torch")
require("peft")

from goodbot_training.backends.adapters import read_adapter  # noqa: E402
from goodbot_training.backends.torch.trainer import TorchBackend  # noqa: E402
from goodbot_training.job.types import Job  # noqa: E402
from goodbot_training.round.run import run_round  # noqa: E402

from tests.training.tinker.engine import PeftEngine  # noqa: E402
from tests.training.tinker.wire import job, losses, remote, train  # noqa: E402


def here(raw: dict[str, Any]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    run_round(Job.parse(raw), TorchBackend(), events.append)
    return events


def furthest(one: Path, other: Path) -> float:
    """The largest difference between two adapters' effects."""
    found = [read_adapter(path) for path in (one, other)]
    products = [{p: a.scale * b @ x for p, (x, b) in a.pairs.items()} for a in found]
    assert products[0].keys() == products[1].keys()
    return max(float(np.abs(products[0][path] - products[1][path]).max()) for path in products[0])


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("objective", ["tapered", "filter", "scale", "reinforce"])
async def test_loss_curve_and_adapter_agree(
    objective: str, mean: bool, random_model: Path, tmp_path: Path
) -> None:
    engine, settings = PeftEngine(random_model, mean=mean), {"objective": objective, "learning_rate": 1e-3}
    async with FakeTinker(engine) as server:
        far = remote(server, loss="mean" if mean else "sum")
        raw = job(random_model, tmp_path / "there", settings=settings)
        _, there = await train(far, raw)
    start = engine.begun(tmp_path / "start")
    raw = job(random_model, tmp_path / "here", settings=settings, parent=str(start))
    ours = here(raw)
    assert len(losses(there)) == 6
    assert losses(there) == pytest.approx(losses(ours), abs=1e-3)
    assert len({round(loss, 3) for loss in losses(ours)}) > 1, "it learns"
    assert furthest(tmp_path / "there", tmp_path / "here") < 1e-3
    assert furthest(tmp_path / "there", start) > 1e-2


async def test_the_next_round_goes_on_from_what_the_server_has_kept(
    random_model: Path, tmp_path: Path
) -> None:
    engine = PeftEngine(random_model)
    async with FakeTinker(engine) as server:
        far = remote(server)
        one, two = tmp_path / "one", tmp_path / "two"
        await train(far, job(random_model, one))
        kept = json.loads((one / "adapter_config.json").read_text())["goodbot_tinker"]["weights"]
        assert kept in server.saved
        _, there = await train(far, job(random_model, two, parent=str(one)))
        assert ("load_weights", kept) in [(what, body.get("path")) for what, body in server.asked]
        assert not server.models, "each model is given up after its round"
    ours = here(job(random_model, tmp_path / "here", parent=str(one)))
    assert losses(there) == pytest.approx(losses(ours), abs=1e-3)
    assert furthest(one, two) > 1e-3


async def test_it_does_not_go_on_from_what_the_server_does_not_have(
    random_model: Path, tmp_path: Path
) -> None:
    here(job(random_model, tmp_path / "here"))
    async with FakeTinker(PeftEngine(random_model)) as server:
        raw = job(random_model, tmp_path / "there", parent=str(tmp_path / "here"))
        with pytest.raises(Exception, match=r"was not trained by 127\.0\.0\.1 as it is now"):
            await train(remote(server), raw)
        assert server.asked == [], "nothing was sent"


async def test_an_answer_at_another_temperature_is_refused(random_model: Path, tmp_path: Path) -> None:
    raw = job(random_model, tmp_path)
    for item in raw["items"]:
        item["temperature"] = 0.7
    async with FakeTinker(PeftEngine(random_model)) as server:
        with pytest.raises(Exception, match="at temperature 1 only"):
            await train(remote(server), raw)
