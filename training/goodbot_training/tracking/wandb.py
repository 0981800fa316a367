# SPDX-License-Identifier: Apache-2.0
"""Weights & Biases, offline unless the owner says otherwise.

`wandb sync ~/.goodbot/tracking/wandb/wandb/offline-run-*` uploads what was kept, whenever you like.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from goodbot import hookimpl
from goodbot.api.tracker import TrackedRun, Tracker, TrackerSpec


@dataclass(frozen=True, kw_only=True)
class WandbSettings:
    """`[tracking.wandb]`."""

    project: str = "goodbot"
    """The project that the runs are filed under."""
    entity: str = ""
    """The person or team whose project it is; empty: the one of the key."""
    online: bool = False
    """Send each run to the W&B server: numbers, settings and the model's name. It needs
    WANDB_API_KEY; by default nothing leaves this machine."""


@hookimpl
def register_tracker() -> TrackerSpec:
    """Offer `wandb`."""
    return TrackerSpec(
        name="wandb",
        factory=f"{__name__}:Wandb",
        settings=WandbSettings,
        requires=("wandb",),
        extra="wandb",
        secrets=("WANDB_API_KEY", "WANDB_BASE_URL"),
    )


class Wandb(Tracker):
    """One W&B run. Of the machine, its packages, its repository and its console it keeps nothing."""

    def __init__(self, settings: WandbSettings, run: TrackedRun) -> None:
        super().__init__(settings, run)
        os.environ["WANDB_ERROR_REPORTING"] = "false"  # read when wandb is imported
        for place in ("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
            os.environ[place] = str(run.directory / "cache")
        import wandb

        self._run: Any = wandb.init(
            project=settings.project,
            entity=settings.entity or None,
            name=run.name,
            dir=str(run.directory),
            mode="online" if settings.online else "offline",
            config=dict(run.about),
            settings=wandb.Settings(
                silent=True,
                console="off",
                save_code=False,
                disable_code=True,
                disable_git=True,
                disable_job_creation=True,
                host="",
                x_disable_machine_info=True,
                x_disable_meta=True,
                x_disable_stats=True,
                x_save_requirements=False,
            ),
        )

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        self._run.log(dict(numbers), step=step)

    def finish(self, state: str) -> None:
        import wandb

        self._run.summary["state"] = state
        self._run.finish(exit_code=1 if state == "failed" else 0)
        wandb.teardown()  # its service is a process of its own
