# SPDX-License-Identifier: Apache-2.0
"""One conversion: what is asked for, room for it on the disk, and how far it is."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goodbot.base import trees
from goodbot.base.errors import AdapterError
from goodbot.base.worded import Worded

from goodbot_training.backends import adapters, sums
from goodbot_training.backends.adapters import AdapterWeights
from goodbot_training.formats import fused, gguf_adapter, gguf_model, mlx, proof, turns
from goodbot_training.formats.checkpoint import Checkpoint
from goodbot_training.job.types import PROTOCOL, as_mapping, data_error

Emit = Callable[[dict[str, Any]], None]
_SMALL = 64 << 20
"""Bytes that must be free for an adapter, whatever its size."""
_SHARES = {"fused": 1.1, "fused-f32": 2.2, "gguf-model": 1.1, "gguf-base": 1.1}
"""What a whole model may take, in sizes of the base's files: fp32 of 16-bit weights is twice as much."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversionJob:
    """A conversion of `source` to `to`, written to `output`."""

    to: str
    model: Path
    source: Path | None
    output: Path
    name: str
    rests_on: Path | None = None
    onto: Path | None = None
    """Of a sum: its first part, and the one that it gets in place of that."""

    @classmethod
    def parse(cls, raw: Any) -> ConversionJob:
        """The first line. Raises TrainingError."""
        told = as_mapping(raw, "A conversion")
        if told.get("protocol") != PROTOCOL:
            raise data_error(f"A conversion must be asked for in the protocol {PROTOCOL}.")
        if any(not isinstance(told.get(key), str) for key in ("to", "model", "output")):
            raise data_error("A conversion needs to, model and output.")
        if told["to"] not in FORMATS:
            raise data_error(f"There is no format {str(told['to'])[:40]!r}.")
        source, rests_on, onto = (told.get(key) for key in ("adapter", "rests_on", "onto"))
        return cls(
            to=told["to"],
            model=Path(told["model"]),
            output=Path(told["output"]),
            source=Path(source) if isinstance(source, str) else None,
            name=str(told.get("name") or "goodbot"),
            rests_on=Path(rests_on) if isinstance(rests_on, str) else None,
            onto=Path(onto) if isinstance(onto, str) else None,
        )


def run(job: ConversionJob, emit: Emit) -> None:
    """Do it, and emit `progress` and at last `done`. Raises GoodbotError; then nothing is left."""
    base = Checkpoint(job.model)
    if job.output.exists() or job.output.is_symlink():
        there = "{path} is there already: name a place that is not, or remove it"
        raise AdapterError(Worded(there, path=job.output))
    _require_room(job, base)
    told = Told(emit, base)
    try:
        found = FORMATS[job.to](job, base, told)
    except BaseException:
        _remove(job.output)
        raise
    emit({"event": "done", "proof": found})


class Told:
    """Counts the bytes that are done, and says so after every hundredth of the model."""

    def __init__(self, emit: Emit, base: Checkpoint) -> None:
        self._emit, self._of = emit, base.bytes
        self._done = self._said = 0

    def __call__(self, amount: int) -> None:
        self._done = min(self._done + amount, self._of)
        if self._done - self._said >= self._of / 100 or self._done == self._of:
            self._said = self._done
            self._emit({"event": "progress", "phase": "write", "done": self._done, "of": self._of})


def _adapter(job: ConversionJob) -> AdapterWeights:
    if job.source is None:
        raise data_error(f"A conversion to {job.to} needs an adapter.")
    return adapters.read_adapter(job.source)


def _mlx(job: ConversionJob, base: Checkpoint, told: Told) -> dict[str, Any]:
    return mlx.write(job.output, _adapter(job), base)


def _peft(job: ConversionJob, base: Checkpoint, told: Told) -> dict[str, Any]:
    """An adapter of mlx-lm's, or another PEFT one, as goodbot keeps its own: fp32, names of the base."""
    if job.source is None:
        raise data_error("An import needs an adapter.")
    foreign = (job.source / mlx.WEIGHTS).exists()
    adapter = mlx.read(job.source) if foreign else adapters.read_adapter(job.source)
    proof.plain(adapter, base)
    adapters.write_adapter(job.output, adapter)
    return proof.of_numbers(adapter, adapters.read_adapter(job.output)).require("the import")


def _sum(job: ConversionJob, base: Checkpoint, told: Told) -> dict[str, Any]:
    """A sum of a shared adapter and an own part, on another shared one."""
    if job.source is None:
        raise data_error("A sum needs an adapter.")
    weights = sums.rebased(job.source, job.rests_on, job.onto)
    adapters.write_adapter(job.output, weights)
    return proof.of_ranks(weights, adapters.read_adapter(job.output)).require("the sum")


def _gguf(job: ConversionJob, base: Checkpoint, told: Told) -> dict[str, Any]:
    return gguf_adapter.write(job.output, _adapter(job), base, job.name)


def _gguf_model(job: ConversionJob, base: Checkpoint, told: Told) -> dict[str, Any]:
    return _whole_gguf(job, base, told, _adapter(job), "Q8_0")


def _gguf_base(job: ConversionJob, base: Checkpoint, told: Told) -> dict[str, Any]:
    dtype = "F32" if base.dtype == "F32" else "F16"
    return _whole_gguf(job, base, told, None, dtype)


def _whole_gguf(
    job: ConversionJob, base: Checkpoint, told: Told, adapter: AdapterWeights | None, dtype: str
) -> dict[str, Any]:
    looked = turns.look(base)
    made = gguf_model.write(job.output, base, adapter, dtype=dtype, name=job.name, end=looked.end, done=told)
    return {**made, **looked.told()}


def _fused(job: ConversionJob, base: Checkpoint, told: Told, dtype: str = "") -> dict[str, Any]:
    adapter, looked = _adapter(job), turns.look(base)
    made = fused.write(job.output, base, adapter, dtype=dtype, done=told)
    turns.declare(job.output, looked.end)
    return {**made, **looked.told()}


def _fused_f32(job: ConversionJob, base: Checkpoint, told: Told) -> dict[str, Any]:
    return _fused(job, base, told, "F32")


FORMATS: Mapping[str, Callable[[ConversionJob, Checkpoint, Told], dict[str, Any]]] = {
    "mlx": _mlx,
    "peft": _peft,
    "sum": _sum,
    "gguf": _gguf,
    "gguf-model": _gguf_model,
    "gguf-base": _gguf_base,
    "fused": _fused,
    "fused-f32": _fused_f32,
}


def _require_room(job: ConversionJob, base: Checkpoint) -> None:
    parent = job.output.parent
    if not parent.is_dir():
        raise AdapterError(Worded("{path} is no directory: make it first", path=parent))
    needed = max(_SMALL, round(base.bytes * _SHARES.get(job.to, 0.0)))
    free = shutil.disk_usage(parent).free
    if free < needed:
        little = "too little is free in {path}: {needed} are needed, {free} are free"
        wanted, there = f"{needed / 1e9:.1f} GB", f"{free / 1e9:.1f} GB"
        raise AdapterError(Worded(little, path=parent, needed=wanted, free=there))


def _remove(output: Path) -> None:
    if output.is_dir():
        trees.remove(output, ignore_errors=True)
    else:
        output.unlink(missing_ok=True)
