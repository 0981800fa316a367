# SPDX-License-Identifier: Apache-2.0
"""A cluster's workers learn what one process learns, also where they are lost in the middle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.base.errors import TrainingError

from tests.support import require

require("torch")
require("peft")

from goodbot_training.backends.ray import wire  # noqa: E402
from goodbot_training.backends.ray.client import ClusterClient  # noqa: E402
from goodbot_training.backends.ray.trainer import RayBackend  # noqa: E402
from goodbot_training.backends.torch.trainer import TorchBackend  # noqa: E402
from goodbot_training.gate.decide import Verdict  # noqa: E402
from goodbot_training.job.types import Job  # noqa: E402
from goodbot_training.round.batches import pad  # noqa: E402
from goodbot_training.round.run import run_round  # noqa: E402

from tests.training.backends.test_sharing import furthest, keys  # noqa: E402
from tests.training.factories import make_rollout  # noqa: E402
from tests.training.ray.near import Near, alone  # noqa: E402
from tests.training.test_worker import make_job  # noqa: E402
from tests.training.tinker.wire import SETTINGS, losses  # noqa: E402

__all__ = ["alone"]
pytestmark = pytest.mark.usefixtures("alone")

Make = Callable[..., Near]


@pytest.fixture
def near(random_model: Path) -> Iterator[Make]:
    made: list[Near] = []

    def make(workers: int = 2, model: Path = random_model, lose: int | None = None) -> Near:
        made.append(Near(workers, model, lose))
        return made[-1]

    yield make
    for one in made:
        one.close()


def learnt(
    model: Path,
    output: Path,
    cluster: Near | None = None,
    *,
    emit: Callable[[dict[str, Any]], None] = lambda event: None,
    settings: dict[str, Any] | None = None,
    **changes: Any,
) -> tuple[Verdict, list[dict[str, Any]]]:
    output.mkdir(exist_ok=True)
    events: list[dict[str, Any]] = []

    def told(event: dict[str, Any]) -> None:
        events.append(event)
        emit(event)

    raw = make_job(model, output, settings={**SETTINGS, "learning_rate": 3e-3, **(settings or {})}, **changes)
    backend = TorchBackend() if cluster is None else RayBackend()
    if isinstance(backend, RayBackend) and cluster is not None:
        backend.connect(cluster, {"host": "127.0.0.2", "settings": raw["settings"]})
    return run_round(Job.parse(raw), backend, told), events


@pytest.mark.parametrize("workers", [1, 2])
def test_the_curve_the_adapter_and_the_verdict_are_those_of_one_process(
    workers: int, near: Make, random_model: Path, tmp_path: Path
) -> None:
    settings = {"damping": 3.0, "attention_rate": 0.2, "strength": 0.6}
    verdict, here = learnt(random_model, tmp_path / "here", settings=settings)
    theirs, there = learnt(random_model, tmp_path / "there", near(workers), settings=settings)
    assert len(losses(there)) == 6
    assert losses(there) == pytest.approx(losses(here), abs=1e-4)
    assert len({round(loss, 3) for loss in losses(here)}) > 1, "it learns"
    assert (theirs.passed, keys(theirs)) == (verdict.passed, keys(verdict))
    assert furthest(tmp_path / "there", tmp_path / "here") < 1e-4


def test_the_next_round_goes_on_from_what_was_learnt(near: Make, random_model: Path, tmp_path: Path) -> None:
    for where, cluster in (("here", None), ("there", near())):
        parent = tmp_path / f"{where}-1"
        learnt(random_model, parent, cluster)
        _, events = learnt(random_model, tmp_path / f"{where}-2", cluster, parent=str(parent))
        assert len(losses(events)) == 6
    assert furthest(tmp_path / "there-2", tmp_path / "here-2") < 1e-4
    assert furthest(tmp_path / "there-1", tmp_path / "there-2") > 1e-3


def test_workers_that_are_lost_go_on_from_the_last_checkpoint(
    near: Make, random_model: Path, tmp_path: Path
) -> None:
    """Two steps, a state, two steps, …: lost at the fourth step, a new group does the third again."""
    settings = {"slice_steps": 2}
    kept = str(tmp_path / "a")
    _, whole = learnt(random_model, tmp_path / "whole", near(), settings=settings, checkpoints=kept)
    cluster = near(lose=4)
    line: list[Any] = []

    def look(event: dict[str, Any]) -> None:
        if cluster.line is not None:
            line.append(cluster.line)

    kept = str(tmp_path / "b")
    _, torn = learnt(random_model, tmp_path / "torn", cluster, settings=settings, checkpoints=kept, emit=look)
    assert cluster.lose is None
    assert line[-1].begun == 4, "two at first, two in their place"
    assert losses(torn) == losses(whole)
    assert furthest(tmp_path / "torn", tmp_path / "whole") == 0


def test_a_round_that_was_killed_goes_on_there(near: Make, random_model: Path, tmp_path: Path) -> None:
    class Killed(Exception):  # noqa: N818  it is no error
        pass

    def kill(event: dict[str, Any]) -> None:
        if event.get("event") == "checkpoint" and event["step"] == 3:
            raise Killed

    _, whole = learnt(random_model, tmp_path / "whole", near())
    kept = str(tmp_path / "kept")
    with pytest.raises(Killed):
        learnt(random_model, tmp_path / "torn", near(), checkpoints=kept, emit=kill)
    _, rest = learnt(random_model, tmp_path / "torn", near(), checkpoints=kept)
    assert losses(rest) == losses(whole)[3:]
    assert furthest(tmp_path / "torn", tmp_path / "whole") == 0


def test_a_step_that_breaks_is_told_as_it_is_here(near: Make, random_model: Path, tmp_path: Path) -> None:
    """The weights there are asked for before anybody is blamed."""
    said: list[str] = []
    for where, cluster in (("here", None), ("there", near())):
        with pytest.raises(TrainingError) as caught:
            learnt(random_model, tmp_path / where, cluster, settings={"learning_rate": 1e30})
        assert caught.value.kind == "nan"
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_a_machine_with_another_model_is_refused(near: Make, random_model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "model.safetensors").write_bytes(b"less")
    with pytest.raises(TrainingError, match="holds another model than the one here") as caught:
        learnt(random_model, tmp_path / "out", near(model=other))
    assert caught.value.kind == "data"


def test_a_machine_with_another_goodbot_is_refused(
    near: Make, random_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goodbot_training.process.shard.__version__", "0.0.1")
    with pytest.raises(TrainingError, match=r"127\.0\.0\.2: a machine of the cluster has goodbot 0\.0\.1"):
        learnt(random_model, tmp_path / "out", near())


def test_a_state_that_is_none_is_not_kept(
    near: Make, random_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ClusterClient, "state", lambda self: b"anything")
    kept = tmp_path / "kept"
    with pytest.raises(TrainingError, match="cannot be read"):
        learnt(random_model, tmp_path / "out", near(), checkpoints=str(kept))
    assert (kept / "step-000000").exists()
    assert not (kept / "step-000001").exists()


def test_a_base_that_does_not_fit_a_worker_is_a_sentence(
    near: Make, random_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from goodbot_training.memory.fit import Memory
    from goodbot_training.process import shard

    def full(job: Job, backend: str) -> Memory:
        raise TrainingError("Training needs about 9.0 GB of memory and 2.0 GB is free.", kind="memory")

    class Full:
        of = staticmethod(full)

    monkeypatch.setattr(shard, "Memory", Full)
    with pytest.raises(TrainingError, match=r"9\.0 GB .* does not split one over several yet"):
        learnt(random_model, tmp_path / "out", near())


def test_a_batch_comes_out_of_json_as_it_went_in() -> None:
    rows = [
        make_rollout(index, length=2 + index, sampling_logprobs=np.float32(np.random.rand(2 + index)) / 3)
        for index in range(3)
    ]
    batch = pad(rows, [0.1, -0.7, 1 / 3], 7.25)
    import json

    again = wire.heard(json.loads(json.dumps(wire.told(batch))))
    assert again.sequences == batch.sequences
    assert again.temperature == batch.temperature
    assert again.normalizer == batch.normalizer
    assert again.hindsight is None
    for name in ("sampling_logprobs", "reference_logprobs", "advantages", "mask"):
        assert np.array_equal(getattr(again, name), getattr(batch, name)), name
        assert getattr(again, name).dtype == np.float32
