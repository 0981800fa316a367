# SPDX-License-Identifier: Apache-2.0
"""What a round keeps on disk so that a kill costs one slice at most.

`directory/scores.json` holds the log-probs of the round, written once; `directory/step-000008/` the
steps so far (`round.json`) and the backend's own state. Each appears by one rename after a sync, so
what is there is whole. Numbers, ids of turns and a hash of the job are all that is in it: no text
and no token. A checkpoint of another job is never taken up (`fingerprint`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from goodbot.api.backend import StepStats
from goodbot.base import durable, trees

from goodbot_training.job.types import Job

PLAN = ("tokens_per_forward", "recompute", "slice_steps", "slice_seconds")
"""Settings that do not change what a round computes, up to rounding: a smaller memory plan goes on
from the same checkpoint."""

_SCORES = "scores.json"
_ROUND = "round.json"
_ADAPTER = "adapter_model.safetensors"
_DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The log-probs that a round computes once: id of the turn → one number a response token."""

    sampling: Mapping[str, Sequence[float]]
    reference: Mapping[str, Sequence[float]]
    parent: Mapping[str, Sequence[float]]
    """Of the held-out turns, under the adapter that the round starts from."""
    hindsight: Mapping[str, Sequence[float]] = field(default_factory=dict[str, Sequence[float]])
    """What words say of each token; of the turns that have any."""


@dataclass(frozen=True, kw_only=True)
class RoundState:
    """How far a round has come. `trainer` is the backend's checkpoint; None before the first step."""

    steps: tuple[StepStats, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    """Turns that the round goes without, and why."""
    halvings: int = 0
    """How often the learning rate was halved, since a step broke and no turn was to blame."""
    trainer: Path | None = None


class Checkpoints:
    """Those of one job; with no directory, nothing is kept."""

    def __init__(self, directory: Path | None, job: Job) -> None:
        self._directory = directory
        self._job = fingerprint(job) if directory else ""
        if directory is not None:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def scores(self) -> Scores | None:
        """The round's log-probs, if they are there."""
        if self._directory is None:
            return None
        found = self._read(self._directory / _SCORES)
        try:
            return Scores(**found["scores"]) if found else None
        except _DAMAGED:
            return None

    def keep_scores(self, scores: Scores) -> None:
        """Write the round's log-probs."""
        if self._directory is not None:
            content = {"job": self._job, "scores": asdict(scores)}
            partial = self._directory / f".{_SCORES}"  # nobody takes up what begins with a dot
            durable.write(partial, json.dumps(content).encode())
            partial.rename(self._directory / _SCORES)

    def newest(self) -> RoundState:
        """The furthest that is whole and of this job; the beginning if there is none."""
        for directory in reversed(self._steps()):
            found = self._read(directory / _ROUND)
            try:
                if found:
                    return RoundState(
                        steps=tuple(StepStats(**stats) for stats in found["steps"]),
                        left_out=dict(found["left_out"]),
                        halvings=int(found.get("halvings", 0)),
                        trainer=directory if found["steps"] else None,
                    )
            except _DAMAGED:
                continue
        return RoundState()

    def keep(self, progress: RoundState, save: Callable[[Path], None] | None) -> None:
        """Write one and remove those before it; `save` writes the backend's part into a directory."""
        if self._directory is None:
            return
        before = self._steps()
        name = f"step-{len(progress.steps):06d}"
        partial = self._directory / f".{name}"
        trees.remove(partial, ignore_errors=True)
        partial.mkdir(mode=0o700)
        if save is not None:
            save(partial)
        content = {
            "job": self._job,
            "steps": [asdict(stats) for stats in progress.steps],
            "left_out": dict(progress.left_out),
            "halvings": progress.halvings,
        }
        durable.write(partial / _ROUND, json.dumps(content).encode())
        durable.sync(partial)
        trees.remove(self._directory / name, ignore_errors=True)
        partial.rename(self._directory / name)
        durable.sync(self._directory)
        for old in before:
            if old.name != name:
                trees.remove(old, ignore_errors=True)

    def _steps(self) -> list[Path]:
        if self._directory is None:
            return []
        return sorted(self._directory.glob("step-*"))

    def _read(self, path: Path) -> dict[str, Any] | None:
        """A file's content, unless it is missing, torn or of another job."""
        try:
            content = json.loads(path.read_bytes())
            return cast("dict[str, Any]", content) if content["job"] == self._job else None
        except _DAMAGED:
            return None


def fingerprint(job: Job) -> str:
    """A hash of all that decides what a round computes: model, adapters, settings, items, seed."""
    settings = {name: value for name, value in asdict(job.settings).items() if name not in PLAN}
    content = {
        "run": job.run,
        "model": _identity(job.model),
        "parent": _adapter(job.parent),
        "seed": job.seed,
        "settings": settings,
        "baseline": asdict(job.baseline),
        "behaviour": {version: _adapter(path) for version, path in sorted(job.behaviour.items())},
        "items": [asdict(item) for item in job.items],
        "anchors": job.anchors,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _identity(model: Path) -> list[tuple[str, int, int]]:
    """Names, sizes and times of a model's files: hashing gigabytes would cost more than it tells."""
    files = sorted((*model.glob("*.json"), *model.glob("*.safetensors")))
    return [(path.name, (stat := path.stat()).st_size, stat.st_mtime_ns) for path in files]


def _adapter(directory: Path | None) -> str:
    if directory is None:
        return ""
    try:
        with (directory / _ADAPTER).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:  # whoever loads it says so
        return str(directory)
