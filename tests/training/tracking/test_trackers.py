# SPDX-License-Identifier: Apache-2.0
"""Each tracker with its real library: what a run wrote is read back with that library's own reader."""

from __future__ import annotations

import importlib.util
import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.plugins import PluginHost
from goodbot.config import parse
from goodbot.learning.tracking.observer import Tracking
from goodbot_training.tracking import tensorboard, trackio, wandb

from tests.support import missing

ABOUT = {"model": "tiny", "rank": 8, "learning_rate": None, "objective": "scale"}
LOSSES = [0.5, 0.25, 0.125]


def installed(library: str) -> None:
    """Skip where it is not; it is never imported into this process."""
    if importlib.util.find_spec(library) is None:
        missing(f"{library} is not installed")


def specs() -> PluginHost:
    host = PluginHost()
    for plugin in (tensorboard, wandb, trackio):
        host.register(plugin, plugin.__name__)
    return host


async def a_run(home: Path, section: str, number: int = 7, state: str = "activated") -> Tracking:
    """Three steps, by the hooks that the trainer calls."""
    host = specs()
    tracking = Tracking(parse(section, home=home), host.trackers(), ABOUT)
    host.attach(tracking)
    for seconds, outcome in ((1.5, "sent"), (2.5, "sent"), (60.0, "no_model")):
        await host.on_answer("slack", outcome, seconds, "a turn")
    await host.on_training_started(number, 40, [0.5] * 30 + [-0.5] * 10)
    await host.on_training_progress(number, {"event": "progress", "phase": "load", "step": 0})
    for step, loss in enumerate(LOSSES, start=1):
        await host.on_training_progress(
            number,
            {
                "event": "progress",
                "phase": "train",
                "step": step,
                "steps": 3,
                "loss": loss,
                "kl": 0.01 * step,
                "eta": 1.0,
            },
        )
    await host.on_training_finished(number, state, "a sentence with nobody's words")
    await tracking.stop()
    return tracking


async def test_tensorboard_reads_the_curve_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    installed("tensorboard")
    await a_run(tmp_path, "[tracking.tensorboard]")
    code = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
found = EventAccumulator(sys.argv[1]); found.Reload()
scalars, texts = found.Tags()["scalars"], found.Tags()["tensors"]
print(json.dumps({
    "scalars": {tag: [[e.step, e.value] for e in found.Scalars(tag)] for tag in scalars},
    "texts": {
        tag: found.Tensors(tag)[0].tensor_proto.string_val[0].decode()
        for tag in texts if found.Tensors(tag)[0].tensor_proto.string_val
    },
    "spreads": {
        tag: make_ndarray(found.Tensors(tag)[0].tensor_proto).tolist()
        for tag in texts if not found.Tensors(tag)[0].tensor_proto.string_val
    },
}))
"""
    code = f"from tensorboard.util.tensor_util import make_ndarray{code}"
    found = read_back(code, str(tmp_path / "tracking/tensorboard/run-7"))
    rewards, seconds = found["spreads"]["rewards"], found["spreads"]["answer_seconds"]
    assert (rewards[0][0], rewards[0][2], rewards[-1][1], rewards[-1][2]) == (-0.5, 10, 0.5, 30)
    assert (seconds[0][0], seconds[-1][1]) == (1.5, 2.5)
    assert sum(count for *_, count in seconds) == 2, "of what was sent"
    assert found["scalars"]["train/loss"] == [[1, 0.5], [2, 0.25], [3, 0.125]]
    assert set(found["scalars"]) == {"train/loss", "train/kl", "train/eta"}
    assert found["texts"]["state"] == "activated"
    assert "| rank | 8 |" in found["texts"]["settings"]
    assert "| ratings | 40 |" in found["texts"]["settings"]
    assert caplog.records == []


async def test_wandb_keeps_the_run_offline(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    installed("wandb")
    await a_run(tmp_path, '[tracking.wandb]\nproject = "mine"', state="refused")
    assert caplog.records == []
    only_numbers_and_settings(tmp_path)
    [file] = (tmp_path / "tracking/wandb").rglob("run-*.wandb")
    assert file.parent.name.startswith("offline-run-")
    (tmp_path / "records").write_text(json.dumps([part.hex() for part in leveldb(file)]))
    code = """
import json, sys
from wandb.proto import wandb_internal_pb2 as pb
found = {"history": [], "config": {}, "summary": {}}
for part in json.load(open(sys.argv[1])):
    record = pb.Record.FromString(bytes.fromhex(part))
    kind = record.WhichOneof("record_type")
    name = lambda item: item.key or ".".join(item.nested_key)
    if kind == "run":
        found.update(project=record.run.project, name=record.run.display_name, host=record.run.host)
        found["config"].update({name(i): json.loads(i.value_json) for i in record.run.config.update})
    elif kind == "history":
        row = {name(i): json.loads(i.value_json) for i in record.history.item}
        found["history"].append([record.history.step.num, row])
    elif kind == "summary":
        found["summary"].update({name(i): json.loads(i.value_json) for i in record.summary.update})
print(json.dumps(found))
"""
    found = read_back(code, str(tmp_path / "records"))
    assert (found["project"], found["name"], found["host"]) == ("mine", "run-7", "")
    assert [(step, row["train/loss"]) for step, row in found["history"]] == list(enumerate(LOSSES, start=1))
    assert found["summary"]["state"] == "refused"
    assert {"rank": 8, "ratings": 40, "objective": "scale"}.items() <= found["config"].items()


async def test_trackio_keeps_the_run_in_its_store_also_when_it_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    installed("trackio")
    await a_run(tmp_path, "[tracking.trackio]", state="failed")
    await a_run(tmp_path, "[tracking.trackio]")
    assert caplog.records == []
    only_numbers_and_settings(tmp_path)
    code = """
import json, trackio
from trackio.sqlite_storage import SQLiteStorage
[run] = trackio.Api().runs("goodbot")
logs = SQLiteStorage.get_logs("goodbot", run.name)
print(json.dumps({
    "name": run.name, "config": run.config,
    "loss": [[row["step"], row["train/loss"]] for row in logs if "train/loss" in row],
    "activated": [row["activated"] for row in logs if "activated" in row],
}))
"""
    found = read_back(code, TRACKIO_DIR=str(tmp_path / "tracking/trackio"))
    assert found["name"] == "run-7"
    assert found["loss"] == 2 * [[1, 0.5], [2, 0.25], [3, 0.125]]
    assert found["activated"] == [1.0]
    assert found["config"]["_Username"] is None, "it has asked the hub whose token this is"
    assert {"rank": 8, "ratings": 40}.items() <= found["config"].items()


def only_numbers_and_settings(home: Path) -> None:
    """No sentence of a run's end and no place on this machine is written anywhere."""
    written = b"".join(f.read_bytes() for f in (home / "tracking").rglob("*") if f.is_file())
    assert b"loss" in written
    assert b"nobody's words" not in written
    assert str(Path(__file__).parents[3]).encode() not in written


def read_back(code: str, *arguments: str, **environ: str) -> dict[str, Any]:
    """What the library itself makes of the files, in a process that is as quiet as ours is not."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "WANDB_ERROR_REPORTING": "false", **environ},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def leveldb(path: Path) -> Iterator[bytes]:
    """The records of a `.wandb` file: LevelDB's log format after a header of seven bytes."""
    data, at, part = path.read_bytes(), 7, b""
    assert data.startswith(b":W&B")
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        _, size, kind = struct.unpack_from("<IHB", data, at)
        part += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last piece
            yield part
            part = b""
