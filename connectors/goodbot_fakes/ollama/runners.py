# SPDX-License-Identifier: Apache-2.0
"""What lies in Ollama's memory. After `server/sched.go`: runners are found by their model file, so a base
and its adapters share one place, and going from one to the other waits, then loads anew."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from goodbot.base.clock import Clock

from goodbot_fakes.ollama.store import ModelManifest

KEEP_ALIVE = 300.0


@dataclass(kw_only=True, slots=True)
class Runner:
    """A `llama-server` with one model file and its adapters."""

    name: str
    """Of the model that it was loaded for; `/api/ps` shows it."""
    manifest: ModelManifest
    keep: float = KEEP_ALIVE
    expires: float = 0.0
    users: int = 0


@dataclass(kw_only=True)
class Runners:
    """The scheduler."""

    clock: Clock
    loaded: dict[str, Runner] = field(default_factory=dict[str, Runner])
    """By the digest of the model file."""
    loads: list[str] = field(default_factory=list[str])
    """The names that were loaded, in order."""

    @contextlib.asynccontextmanager
    async def use(
        self, name: str, manifest: ModelManifest, keep_alive: float | None
    ) -> AsyncGenerator[Runner]:
        """The runner of a model, loaded if it is not; it stays while the block runs."""
        key = manifest.of("model")[0]
        while (there := self.running().get(key)) and there.manifest.policy != manifest.policy:
            if there.users == 0:
                del self.loaded[key]
                break
            await asyncio.sleep(0.002)
        runner = self.loaded.get(key)
        if runner is None:
            runner = self.loaded[key] = Runner(name=name, manifest=manifest)
            self.loads.append(name)
        if keep_alive is not None:
            runner.keep = keep_alive
        runner.users += 1
        try:
            yield runner
        finally:
            runner.users -= 1
            runner.expires = self.clock.monotonic() + runner.keep
            self.running()

    def expire(self, manifest: ModelManifest) -> None:
        """Let the runner of this model's file go, whichever adapters it has, once nobody uses it."""
        if runner := self.loaded.get(manifest.of("model")[0]):
            runner.keep, runner.expires = 0.0, self.clock.monotonic()
            self.running()

    def running(self) -> dict[str, Runner]:
        """Those that have not been let go."""
        now = self.clock.monotonic()
        for key, runner in [*self.loaded.items()]:
            if runner.users == 0 and runner.expires <= now:
                del self.loaded[key]
        return self.loaded
