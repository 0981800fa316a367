# SPDX-License-Identifier: Apache-2.0
"""TensorBoard: event files, written by `tensorboard` itself without TensorFlow or PyTorch.

`tensorboard --logdir ~/.goodbot/tracking/tensorboard` shows them, a run beside the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from goodbot import hookimpl
from goodbot.api.tracker import TrackedRun, Tracker, TrackerSpec
from goodbot.base.clock import SystemClock

_PROTO = "tensorboard.compat.proto"
"""Their classes are made at run time: no type checker knows them."""


@dataclass(frozen=True, kw_only=True)
class TensorBoardSettings:
    """`[tracking.tensorboard]`."""

    directory: str = ""
    """Where the runs' folders are; empty: `tracking/tensorboard` in the state directory."""


@hookimpl
def register_tracker() -> TrackerSpec:
    """Offer `tensorboard`."""
    return TrackerSpec(
        name="tensorboard",
        factory=f"{__name__}:TensorBoard",
        settings=TensorBoardSettings,
        requires=("tensorboard",),
        extra="tensorboard",
    )


class TensorBoard(Tracker):
    """One folder a run; a run that goes on after an interruption adds a file to its folder."""

    def __init__(self, settings: TensorBoardSettings, run: TrackedRun) -> None:
        super().__init__(settings, run)
        self._clock = SystemClock()
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        root = Path(settings.directory).expanduser() if settings.directory else run.directory
        self._writer: Any = EventFileWriter(str(root / run.name), flush_secs=5)
        rows = [f"| {name} | {value} |" for name, value in sorted(run.about.items())]
        self._text("settings", "\n".join(["| setting | value |", "|---|---|", *rows]))

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        summary: Any = import_module(f"{_PROTO}.summary_pb2").Summary
        values = [summary.Value(tag=name, simple_value=n) for name, n in numbers.items()]
        self._write(summary(value=values), step)

    def spread(self, name: str, values: Sequence[float]) -> None:
        page: Any = import_module("tensorboard.plugins.histogram.summary_v2")
        self._write(page.histogram_pb(name, values), 0)

    def finish(self, state: str) -> None:
        self._text("state", state)
        self._writer.close()

    def _text(self, tag: str, text: str) -> None:
        page: Any = import_module("tensorboard.plugins.text.summary_v2")
        self._write(page.text_pb(tag, text), 0)

    def _write(self, summary: Any, step: int) -> None:
        event: Any = import_module(f"{_PROTO}.event_pb2").Event
        self._writer.add_event(event(wall_time=self._clock.now(), step=step, summary=summary))
