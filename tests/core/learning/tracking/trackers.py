# SPDX-License-Identifier: Apache-2.0
"""Trackers without an SDK, each with a behaviour of its own."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from goodbot import TrackedRun, Tracker, TrackerSpec, hookimpl


@dataclass(frozen=True, kw_only=True)
class DiarySettings:
    """`behaviour`: `ok`, `no start`, `dies`, `no end`, `deaf` or `chatty`."""

    behaviour: str = "ok"


class Diary(Tracker):
    """One JSON object a line."""

    def __init__(self, settings: DiarySettings, run: TrackedRun) -> None:
        super().__init__(settings, run)
        if settings.behaviour == "no start":
            raise OSError("the disk is\nread-only")
        if settings.behaviour == "deaf":
            time.sleep(3600)
        if settings.behaviour == "chatty":
            sys.stderr.write("\r 10%" * 100_000)
        self._file = (run.directory / f"{run.name}.jsonl").open("a")
        self._write(about=dict(run.about), environ=sorted(os.environ))

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        if self.settings.behaviour == "dies":
            os._exit(3)
        self._write(step=step, **numbers)

    def finish(self, state: str) -> None:
        if self.settings.behaviour == "no end":
            raise RuntimeError("nothing can be closed")
        self._write(state=state)

    def _write(self, **line: Any) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


class DiaryPlugin:
    """Offers it."""

    def __init__(self, requires: tuple[str, ...] = ()) -> None:
        self.requires = requires

    @hookimpl
    def register_tracker(self) -> TrackerSpec:
        return TrackerSpec(
            name="diary",
            factory=f"{__name__}:Diary",
            settings=DiarySettings,
            requires=self.requires,
            extra="diary",
            secrets=("DIARY_KEY",),
        )
