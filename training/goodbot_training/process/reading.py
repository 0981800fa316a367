# SPDX-License-Identifier: Apache-2.0
"""A thread that reads adapters' files while others are answered, and the requests that wait for one."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from goodbot_training.process.serving_parts import DropsAdapters, ReadsAhead

Request = dict[str, Any]


class AdapterReading:
    """One after the other: several at once would take the processor from who is answering."""

    def __init__(self, sampler: object, tell: Callable[[Request], None]) -> None:
        """`tell` gets what was asked for, with the `adapter` or the `error`, in that thread."""
        self._sampler, self._tell = sampler, tell
        self._wanted: queue.PriorityQueue[tuple[bool, int, ReadsAhead, Path, Request]] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._waiting: dict[int, list[Request]] = {}
        """By version: it is being read again for these."""
        self._began = False

    def read(self, reader: ReadsAhead, directory: Path, request: Request) -> None:
        """Read an adapter for a request. A new one goes before those that were dropped from memory."""
        if not self._began:
            self._began = True
            threading.Thread(target=self._go_on, daemon=True).start()
        self._wanted.put(("again" in request, next(self._numbers), reader, directory, request))

    def keep(self, found: Request) -> None:
        """Load what was read for a request. Raises what went wrong."""
        if "error" in found:
            raise found["error"]
        if isinstance(self._sampler, ReadsAhead):
            self._sampler.keep_adapter(found["version"], found["adapter"])

    def waits(self, version: int, request: Request) -> bool:
        """Whether a request is for a version that was dropped from memory; `take_up` gives it back then."""
        directory = _lacking(self._sampler, version)
        if directory is None or not isinstance(self._sampler, ReadsAhead):
            return False
        if version not in self._waiting:
            self._waiting[version] = []
            self.read(self._sampler, directory, {"again": version, "path": directory})
        self._waiting[version].append(request)
        return True

    def follows(self, version: object, request: Request) -> bool:
        """Whether others wait for a version that a request unloads; `take_up` gives it back after them."""
        waiting = self._waiting.get(version) if isinstance(version, int) else None
        if waiting is None:
            return False
        waiting.append(request)
        return True

    def stays(self, version: int) -> list[Any]:
        """Whose requests to unload a version wait, and do not any more: it was loaded anew."""
        waiting = self._waiting.get(version, [])
        unloads = [one for one in waiting if one["op"] == "unload"]
        waiting[:] = [one for one in waiting if one not in unloads]
        return [one["id"] for one in unloads]

    def take_up(self, found: Request) -> tuple[list[Request], Exception | None]:
        """The requests that waited for a version that was read again, and why it is unknown now.

        None: it is in memory, or was loaded anew or unloaded meanwhile.
        """
        version, error = found["again"], None
        if isinstance(self._sampler, DropsAdapters) and _lacking(self._sampler, version) == found["path"]:
            error = found.get("error")
            if error is None:
                self._sampler.keep_adapter(version, found["adapter"])
            else:
                self._sampler.unload_adapter(version)
        return self._waiting.pop(version), error

    def take_back(self, identity: object) -> int | None:
        """The version that a request waits for, which does not wait any more; None: it does not."""
        for version, requests in self._waiting.items():
            for request in requests:
                if request["id"] == identity and request["op"] != "unload":
                    requests.remove(request)
                    return version
        return None

    def _go_on(self) -> None:
        while True:
            _, _, reader, directory, request = self._wanted.get()
            try:
                request["adapter"] = reader.read_adapter(directory)
            except Exception as error:
                request["error"] = error
            self._tell(request)


def _lacking(sampler: object, version: int) -> Path | None:
    return sampler.lacking_adapter(version) if isinstance(sampler, DropsAdapters) else None
