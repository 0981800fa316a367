# SPDX-License-Identifier: Apache-2.0
"""The child that speaks to a Ray cluster: `python -m goodbot_training.backends.ray.driver`.

A line of JSON says which cluster and which machines; each line after it is a question of the trainer's
(`client`), each line out a part of its answer. It loads no model and reads no file of anybody's: it passes
numbers on, and what Ray's own library does with a network is what it may do.
"""

# pyright: standard, reportMissingImports=false
# (the framework ships no complete types)

from __future__ import annotations

import base64
import contextlib
import json
import os
import queue
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NoReturn

from goodbot.base.errors import TrainingError
from goodbot.base.worded import Worded, said_by
from goodbot.base.worded_parts import parts_of, reason_in

from goodbot_training.backends.ray import wire
from goodbot_training.backends.ray.line import (
    END,
    STATE,
    OrderLine,
    Result,
    is_named,
    refuse_clear,
    refuse_others,
)
from goodbot_training.backends.ray.worker import work

_PART = 1 << 20
_CALL_SECONDS = 10.0
_LOOK_SECONDS = 0.5
_END_SECONDS = 30.0
_GIVE_SECONDS = 120.0
"""For an order to reach the line, which is on this machine."""
_LACK_SECONDS = 600.0
"""For machines to come back."""
_RETRIES = 3
"""Workers that may be lost in one training, each followed by a new group."""
_QUIET = {
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_TRAIN_METRICS_ENABLED": "0",
    "RAY_TRAIN_V2_ENABLED": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}


class RayDriver:
    """One cluster, and one training at a time on it."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self._told, self._unreached, self._why = told, "", ""
        self._line: Any = None
        self._state = bytearray()
        self._ended = threading.Event()
        self.trainers: queue.Queue[tuple[Any, threading.Event]] = queue.Queue()
        """What is to be run in the main thread, where Ray's signals are, and who is told of its end."""
        self._scratch = tempfile.mkdtemp(prefix="goodbot-ray-")

    def connect(self) -> None:
        """Join the cluster. What stands against that is told to who asks."""
        import ray

        host, _, port = self._told["address"].rpartition(":")
        try:
            # Ray itself tries for minutes.
            with socket.create_connection((host.strip("[]"), int(port)), timeout=_CALL_SECONDS) as call:
                there = str(call.getpeername()[0])
            here = {"_node_ip_address": there} if self._told["here"] else {}
            ray.init(address=self._told["address"], log_to_driver=False, logging_level="ERROR", **here)
        except Exception as error:  # each layer of Ray's has its own
            none = (
                "No Ray cluster answers at {address}, or this machine is no node of it "
                "({name}). Start one there, and `ray start --address=…` here."
            )
            self._unreached = Worded(none, address=self._told["address"], name=type(error).__name__)

    def leave(self) -> NoReturn:
        """End at once; Ray ends what a driver that is gone has had made."""
        shutil.rmtree(self._scratch, ignore_errors=True)
        os._exit(0)

    def fit(self) -> None:
        """Run what is begun, one after the other. It does not return."""
        while True:
            trainer, ended = self.trainers.get()
            try:
                trainer.fit()
            except Exception as error:
                lines = str(error).strip().splitlines() or [type(error).__name__]
                self._why = Worded("The training on the cluster has ended: {why}", why=lines[-1][:200])
            ended.set()

    def answer(self, asked: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The lines for one question; the last has a status."""
        ways = {
            ("GET", "plan"): self._plan,
            ("POST", "state"): self._take,
            ("POST", "begin"): self._begin,
            ("POST", "step"): self._step,
            ("GET", "state"): self._give,
            ("POST", "end"): self._end,
        }
        try:
            way = ways.get((str(asked.get("method")), str(asked.get("path"))))
            if way is None:
                raise TrainingError("The trainer asks for something that is no part of the protocol.")
            if self._unreached:
                raise TrainingError(self._unreached)
            yield from way(asked.get("body") or {})
        except TrainingError as error:
            yield _failed(error.kind, said_by(error))
        except Exception as error:
            sys.stderr.write(f"{error!r}\n")
            name = type(error).__name__
            yield _failed("died", Worded("Ray failed with {name}; the log says where.", name=name))

    def _plan(self, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        machines = [
            {
                "address": str(address := node["NodeManagerAddress"]),
                "named": is_named(address, self._told["machines"]),
                **{name: float(node["Resources"].get(name.upper(), 0)) for name in ("cpu", "gpu")},
            }
            for node in _machines()
        ]
        yield {"status": 200, "text": json.dumps({"machines": machines})}

    def _take(self, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if body["first"]:
            self._state = bytearray()
        self._state += base64.b64decode(body["part"])
        if len(self._state) > wire.LARGEST:
            raise TrainingError("The trainer does not come to an end with its state.")
        yield {"status": 200}

    def _begin(self, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        import ray
        from ray.train import FailureConfig, RunConfig, ScalingConfig
        from ray.train.torch import TorchConfig, TorchTrainer
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._stop()
        workers = int(self._told["workers"])
        machines, named = [node["NodeManagerAddress"] for node in _machines()], self._told["machines"]
        encrypted = os.environ.get("RAY_USE_TLS") == "1"
        refuse_others(machines, named)
        refuse_clear(machines, encrypted)
        there = ray.cluster_resources()
        if there.get("CPU", 0) < workers:
            few = (
                "The cluster has {count} processors, and {workers} workers need one each: "
                "see workers under [training.remote]."
            )
            raise TrainingError(Worded(few, count=f"{there.get('CPU', 0):g}", workers=workers))
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        made = ray.remote(num_cpus=0)(OrderLine).options(scheduling_strategy=here)
        self._line = made.remote(bytes(self._state), named if encrypted else [])
        self._state, self._why = bytearray(), ""
        trainer = TorchTrainer(
            work,
            train_loop_config={
                "line": self._line,
                "told": {**body, "model": self._told["model"], "hidden": self._told["hidden"]},
            },
            torch_config=TorchConfig(backend="gloo"),  # of LoRA's gradients, which leave a cage as numbers
            scaling_config=ScalingConfig(
                num_workers=workers, use_gpu=there.get("GPU", 0) >= workers, placement_strategy="SPREAD"
            ),
            run_config=RunConfig(
                storage_path=self._scratch, failure_config=FailureConfig(max_failures=_RETRIES)
            ),
        )
        self._ended = threading.Event()
        self.trainers.put((trainer, self._ended))
        yield {"status": 200}

    def _step(self, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        found, _ = self._ordered({"what": "step", "batch": body})
        yield {"status": 200, "text": json.dumps(found["done"])}

    def _give(self, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        _, state = self._ordered({"what": STATE})
        for start in range(0, len(state), _PART):
            yield {"part": base64.b64encode(state[start : start + _PART]).decode()}
        yield {"status": 200}

    def _end(self, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        self._stop()
        yield {"status": 200}

    def _ordered(self, order: dict[str, Any]) -> Result:
        """Have all workers do something. Raises TrainingError where they fail, or are no more."""
        import ray

        if self._line is None:
            raise TrainingError("Nothing was begun on the cluster.")
        number = ray.get(self._line.give.remote(order), timeout=_GIVE_SECONDS)
        result, enough = self._line.result.remote(number), time.monotonic()
        while not ray.wait([result], timeout=_LOOK_SECONDS)[0]:
            if self._ended.is_set():
                ended = Worded("The training on the cluster has ended.")
                raise TrainingError(self._why or ended, kind="died")
            if ray.cluster_resources().get("CPU", 0) >= int(self._told["workers"]):
                enough = time.monotonic()
            elif time.monotonic() - enough > _LACK_SECONDS:
                lost = Worded("The cluster has lost machines, and too few are left.")
                raise TrainingError(lost, kind="died")
        found, body = ray.get(result)
        if failed := found.get("failed"):
            raise TrainingError(reason_in(failed), kind=failed["kind"])
        return found, body

    def _stop(self) -> None:
        """Have the workers end, if there are any."""
        import ray

        line, self._line = self._line, None
        if line is None:
            return
        with contextlib.suppress(Exception):  # it may be gone, and there is no more to end then
            ray.get(line.give.remote({"what": END}), timeout=_CALL_SECONDS)
        self._ended.wait(_END_SECONDS)


def _machines() -> list[dict[str, Any]]:
    import ray

    return [node for node in ray.nodes() if node["Alive"]]


def _failed(kind: str, reason: str) -> dict[str, Any]:
    return {"status": 500, "text": json.dumps({"kind": kind, "reason": reason, **parts_of(reason)})}


def _listen(driver: RayDriver, stdin: BinaryIO, out: BinaryIO) -> None:
    """Answer until nobody asks any more."""
    try:
        while line := stdin.readline():
            for told in driver.answer(json.loads(line)):
                out.write(json.dumps(told).encode() + b"\n")
                out.flush()
    finally:
        driver.leave()


def main() -> None:
    """Answer questions about one cluster."""
    os.environ.update(_QUIET)
    stdin, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # from here on, print() is a log
    driver = RayDriver(json.loads(stdin.readline()))
    driver.connect()
    threading.Thread(target=_listen, args=(driver, stdin, out), daemon=True).start()
    driver.fit()


if __name__ == "__main__":
    main()
