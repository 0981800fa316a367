# SPDX-License-Identifier: Apache-2.0
"""trackio: a local SQLite store with a dashboard, and the calls of wandb.

`TRACKIO_DIR=~/.goodbot/tracking/trackio trackio show` opens it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goodbot import hookimpl
from goodbot.api.tracker import TrackedRun, Tracker, TrackerSpec


@dataclass(frozen=True, kw_only=True)
class TrackioSettings:
    """`[tracking.trackio]`. Runs stay on this machine; `trackio sync` publishes a project."""

    project: str = "goodbot"
    """The project that the runs are filed under."""
    directory: str = ""
    """Where its store is; empty: `tracking/trackio` in the state directory."""


@hookimpl
def register_tracker() -> TrackerSpec:
    """Offer `trackio`."""
    return TrackerSpec(
        name="trackio",
        factory=f"{__name__}:Trackio",
        settings=TrackioSettings,
        requires=("trackio",),
        extra="trackio",
    )


class Trackio(Tracker):
    """One trackio run; the same again where a run goes on after an interruption."""

    def __init__(self, settings: TrackioSettings, run: TrackedRun) -> None:
        super().__init__(settings, run)
        directory = Path(settings.directory).expanduser() if settings.directory else run.directory
        os.environ["TRACKIO_DIR"] = str(directory)  # read when trackio is imported
        os.environ["HF_HUB_OFFLINE"] = "1"  # it would ask the hub whose token this is
        import trackio

        self._run: Any = trackio.init(  # pyright: ignore[reportUnknownMemberType]
            project=settings.project,
            name=run.name,
            config=dict(run.about),
            resume="allow",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        self._run.log(dict(numbers), step=step)

    def finish(self, state: str) -> None:
        self._run.log({"done": 1.0, state: 1.0})
        self._run.finish()
