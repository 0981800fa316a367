# SPDX-License-Identifier: Apache-2.0
"""Passes what the trainer reports on to each configured tracker, and never waits for one."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import logging
import math
import os
import signal
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from goodbot.api.hookspecs import hookimpl
from goodbot.api.registry import registered
from goodbot.api.tracker import Setting, TrackerSpec
from goodbot.base import spawn
from goodbot.base.errors import MissingExtraError
from goodbot.base.installed import missing_modules
from goodbot.base.tasks import end_tasks
from goodbot.config import Config
from goodbot.config.toml import section

logger = logging.getLogger(__name__)

_FINISH_SECONDS = 30.0
"""How long a tracker may take to finish when goodbot itself stops."""
_COUNTED = {"rollouts", "gate"}
"""Phases whose steps are answers, not optimizer steps."""
_WAITING = 10_000
"""Lines that may wait for a tracker; more are dropped."""
_ANSWERS = 10_000
"""Of so many of the last answers it is told how long they took."""
_LAST_WORDS = 4096
"""Bytes of its stderr that are kept, for the reason of a failure."""
_ABOUT_STEPS = {"step", "steps", "run"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Configured:
    """One tracker that the config switches on."""

    spec: TrackerSpec
    settings: Any
    directory: Path


class Tracking:
    """An observer of the training hooks: a process per run and tracker."""

    def __init__(self, config: Config, specs: Mapping[str, TrackerSpec], about: Mapping[str, Any]) -> None:
        """`about` are the settings of the runs; what is no number or text in it is left out.

        Raises ConfigError for an unknown tracker or setting. One that is not installed is reported.
        """
        self._trackers = _configured(config, specs)
        self._about = {n: v for n, v in about.items() if isinstance(v, Setting)}
        self._feeds: dict[int, list[_Feed]] = {}
        self._seconds: deque[float] = deque(maxlen=_ANSWERS)
        """How long the answers took that came since the last training."""
        self._tasks: set[asyncio.Task[None]] = set()

    @hookimpl
    def on_answer(self, outcome: str, seconds: float) -> None:
        """Keep how long an answer took that was sent."""
        if outcome == "sent":
            self._seconds.append(seconds)

    @hookimpl
    def on_training_started(self, run: int, items: int, rewards: Sequence[float]) -> None:
        """Start a process for each tracker."""
        spreads = {"rewards": [*rewards], "answer_seconds": [*self._seconds]}
        self._seconds.clear()
        for tracker in self._trackers:
            feed = _Feed(tracker, run, {**self._about, "ratings": items})
            for name, values in spreads.items():
                if values:
                    feed.put({"spread": name, "values": values})
            self._feeds.setdefault(run, []).append(feed)
            task = asyncio.create_task(feed.work(), name=f"tracking with {tracker.spec.name}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    @hookimpl
    def on_training_progress(self, run: int, progress: Mapping[str, Any]) -> None:
        """Pass the numbers of a step on.

        Those of the training alone: the phases around it count answers, from 1 again, and a tracker
        that has seen a step drops what comes for an earlier one.
        """
        if progress.get("phase") in _COUNTED:
            return
        if run in self._feeds and (numbers := numbers_of(progress)):
            for feed in self._feeds[run]:
                feed.put({"step": progress.get("step", 0), "numbers": numbers})

    @hookimpl
    def on_training_interrupted(self, run: int) -> None:
        """Let the trackers end; when the run goes on, it gets others."""
        for feed in self._feeds.pop(run, []):
            feed.put(None)

    @hookimpl
    def on_training_finished(self, run: int, state: str) -> None:
        """Let the trackers finish, while goodbot goes on."""
        for feed in self._feeds.pop(run, []):
            feed.put({"state": state})
            feed.put(None)

    async def stop(self) -> None:
        """Give those that still write half a minute, then end them. Idempotent."""
        for run in list(self._feeds):
            self.on_training_interrupted(run)
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=_FINISH_SECONDS)
        await end_tasks(*self._tasks)


class _Feed:
    """One tracker's process for one run."""

    def __init__(self, tracker: _Configured, run: int, about: Mapping[str, Setting]) -> None:
        self._tracker = tracker
        self._run = run
        self._lines: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue()
        schema = tracker.spec.settings
        self.put(
            {
                "run": f"run-{run}",
                "about": about,
                "directory": str(tracker.directory),
                "schema": f"{schema.__module__}:{schema.__qualname__}",
                "settings": dataclasses.asdict(tracker.settings),
            }
        )

    def put(self, line: Mapping[str, Any] | None) -> None:
        """Pass a line on; None is the last one."""
        if line is None or self._lines.qsize() < _WAITING:
            self._lines.put_nowait(line)

    async def work(self) -> None:
        """Run the process to its end; its failure is one line in the log."""
        spec = self._tracker.spec
        try:
            process = await spawn.start(
                *spawn.python("-m", "goodbot.learning.tracking.child", spec.factory),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                environ=_environment(spec),
                start_new_session=True,  # Ctrl-C is for goodbot; what the tracker starts ends with it
            )
        except OSError as error:
            logger.warning("run %d is not tracked with %s: %s", self._run, spec.name, error)
            return
        assert process.stderr is not None  # noqa: S101  opened as a pipe
        writing = asyncio.create_task(self._write(process), name="tracker input")
        try:
            said = b""
            while more := await process.stderr.read(_LAST_WORDS):  # a line of theirs may be endless
                said = (said + more)[-_LAST_WORDS:]
            if code := await process.wait():
                lines = said.decode("utf-8", "replace").strip().splitlines()
                reason = lines[-1].strip() if lines else f"it ended with {code} and without a word"
                logger.warning("run %d is not tracked with %s: %s", self._run, spec.name, reason)
        finally:
            writing.cancel()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def _write(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None  # noqa: S101  opened as a pipe
        with contextlib.suppress(ConnectionError):  # it is gone; its exit code tells more
            while (line := await self._lines.get()) is not None:
                process.stdin.write(json.dumps(line).encode() + b"\n")
                await process.stdin.drain()
        process.stdin.close()


def numbers_of(progress: Mapping[str, Any]) -> dict[str, float]:
    """The finite numbers of a progress event but its counters, as `train/loss` and so on."""
    phase = progress.get("phase", "train")
    return {
        f"{phase}/{name}": float(value)
        for name, value in progress.items()
        if name not in _ABOUT_STEPS
        and isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
    }


def _configured(config: Config, specs: Mapping[str, TrackerSpec]) -> Sequence[_Configured]:
    found: list[_Configured] = []
    for name, table in config.tracking.items():
        spec = registered(specs, name, "tracker", config.where("tracking"), name)
        settings = section(spec.settings, table, config.where(f"tracking.{name}"))
        if missing_modules(spec.requires):
            what = f"tracking with {name} is left out: it"
            logger.warning("%s", MissingExtraError(what, spec.extra or name))
            continue
        directory = config.home / "tracking" / name
        found.append(_Configured(spec=spec, settings=settings, directory=directory))
    return found


def _environment(spec: TrackerSpec) -> dict[str, str]:
    """What our other children get, and the secrets that the tracker names."""
    return spawn.child_environment(secrets=spec.secrets)
