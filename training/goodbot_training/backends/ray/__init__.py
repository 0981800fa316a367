# SPDX-License-Identifier: Apache-2.0
"""The backend `ray`: workers of a Ray cluster share each step, all else is torch here.

Importing this imports no framework. Who does what, from here to there:

* `trainer` is in the trainer's child, which has no network. It asks by the worker protocol's `ask`.
* `driver` is a child of its own, with a network. It speaks to the cluster, and loads no model.
* `line` is an actor of the cluster. It keeps what the workers are to do until a checkpoint lies behind it.
* `worker` is what Ray runs. It adds gradients up with the other workers, and loads no model either.
* `goodbot_training.process.shard` loads it: each worker's own child, in the same cage as the trainer's.
"""

from __future__ import annotations

from goodbot import hookimpl
from goodbot.api.backend import BackendSpec

from goodbot_training.job.presets import resolve
from goodbot_training.job.settings import OBJECTIVES, TrainingSettings


@hookimpl
def register_backend() -> BackendSpec:
    """Offer `ray`."""
    return BackendSpec(
        name="ray",
        factory="goodbot_training.backends.ray.trainer:RayBackend",
        requires=("torch", "transformers", "peft", "safetensors", "ray"),
        extra="ray",
        settings=TrainingSettings,
        objectives=OBJECTIVES,
        presets=resolve,
        priority=0,
        remote=True,
        driver="goodbot_training.backends.ray.driver",
    )
