# SPDX-License-Identifier: Apache-2.0
"""One worker's part of each step on a cluster: `python -m goodbot_training.process.shard`.

It reads foreign weights, so it is in a cage and has no network. The worker that has started it
(`goodbot_training.backends.ray.worker`) gives it orders by frames on its stdin, and for each sum over all
workers (`add`) puts the numbers of all in the place of its own.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from goodbot import __version__
from goodbot.api.backend import LoraSettings, OptimizerSettings, TrainingBatch
from goodbot.base import priority
from goodbot.base.errors import TrainingError
from goodbot.base.worded import Worded
from goodbot.base.worded_parts import parts_of

from goodbot_training.backends.ray import wire
from goodbot_training.backends.ray.line import STATE
from goodbot_training.backends.state import FILE
from goodbot_training.job.settings import TrainingSettings
from goodbot_training.job.types import Job
from goodbot_training.memory.fit import Memory
from goodbot_training.objectives import make_objective
from goodbot_training.process import autopsy
from goodbot_training.process.worker import failure, leave

if TYPE_CHECKING:
    from goodbot_training.backends.torch.trainer import TorchBackend

_GONE = (EOFError, ConnectionError)
"""Nobody gives orders any more."""
_WHOLE = (
    "Each worker of a cluster holds the whole base: goodbot does not split one over several yet. "
    "Take machines with more memory, `base_bits = 4` under [training.settings], or a smaller model."
)


class Shard:
    """A base, and the steps that are ordered."""

    def __init__(self, stdin: BinaryIO, out: BinaryIO) -> None:
        self._stdin, self._out = stdin, out

    def work(self) -> None:
        """Do what is ordered until there is no more. What goes wrong is said in answer to each order."""
        with suppress(*_GONE):
            told, state = wire.read(self._stdin)
            try:
                backend = self._loaded(told)
            except Exception as error:
                while True:
                    wire.read(self._stdin)
                    self._failed(error)
            try:
                self._train(backend, told, state)
            except _GONE:
                raise
            except Exception as error:
                self._failed(error)
                for _ in self._batches(backend):  # its weights may be asked for yet
                    self._failed(error)

    def _train(self, backend: TorchBackend, told: Mapping[str, Any], state: bytes) -> None:
        objective = make_objective(TrainingSettings.from_mapping(told["settings"]))
        with tempfile.TemporaryDirectory() as scratch:
            (Path(scratch) / FILE).write_bytes(state)
            steps = backend.train(
                self._batches(backend),
                OptimizerSettings(**told["optimizer"]),
                objective,
                checkpoint=Path(scratch),
            )
            for stats in steps:
                wire.write(self._out, {"what": "done", "found": asdict(stats)})

    def _loaded(self, told: Mapping[str, Any]) -> TorchBackend:
        from goodbot_training.backends.torch.sharing import Share, through
        from goodbot_training.backends.torch.trainer import TorchBackend

        if __version__ != told["version"]:
            other = (
                "a machine of the cluster has goodbot {version}, and here is {here}: install the same there"
            )
            raise TrainingError(Worded(other, version=__version__, here=told["version"]), kind="data")
        model = Path(told["model"])
        if wire.files(model) != told["files"]:
            other = (
                "{path} on a machine of the cluster holds another model than the one here: see model under "
                "[training.remote]."
            )
            raise TrainingError(Worded(other, path=model), kind="data")
        _room(model, told["settings"])
        backend = TorchBackend()
        lora = LoraSettings(rank=told["rank"], alpha=told["alpha"])
        backend.load(model, lora=lora, seed=told["seed"], bits=told["bits"])
        backend.share = Share(number=told["number"], of=told["of"], add=through(self._summed))
        return backend

    def _batches(self, backend: TorchBackend) -> Iterator[TrainingBatch]:
        """The batches that are ordered; what else is, is done here, between two steps."""
        while True:
            order, _ = wire.read(self._stdin)
            if order["what"] != STATE:
                yield wire.heard(order["batch"])
                continue
            with tempfile.TemporaryDirectory() as scratch:
                backend.save_checkpoint(Path(scratch))
                wire.write(self._out, {"what": "done", "found": {}}, (Path(scratch) / FILE).read_bytes())

    def _summed(self, numbers: bytes) -> bytes:
        wire.write(self._out, {"what": "add"}, numbers)
        return wire.read(self._stdin)[1]

    def _failed(self, error: Exception) -> None:
        kind, reason = failure(error)
        sys.stderr.write(autopsy.trace(error) + "\n")
        found = {"kind": kind, "reason": reason, **parts_of(reason)}
        wire.write(self._out, {"what": "failed", "found": found})


def _room(model: Path, settings: Mapping[str, Any]) -> None:
    """Raise TrainingError where the base does not fit this machine."""
    job = Job.parse({"protocol": 1, "model": str(model), "output": ".", "settings": settings, "items": []})
    try:
        Memory.of(job, "torch")
    except TrainingError as error:
        whole = Worded("{why} {more}", why=error, more=Worded(_WHOLE))
        raise TrainingError(whole, kind=error.kind) from error


def main() -> int:
    """Work until stdin ends."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who orders ends it
    priority.give_way()
    stdin, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # from here on, print() is a log
    Shard(stdin, out).work()
    return 0


if __name__ == "__main__":
    leave(main())
