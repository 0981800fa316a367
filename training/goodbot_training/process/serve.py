# SPDX-License-Identifier: Apache-2.0
"""`serve`: a loaded model that answers many requests at once, as `docs/worker-protocol.md` says.

One thread reads stdin, and another adapters' files. All else is done by the main thread: it takes what
has come in, lets the sampler write one token on every answer, tells all of them at once, and looks again.
So nothing waits for longer than a step, and whatever changes versions happens between two steps.
"""

from __future__ import annotations

import gc
import json
import queue
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from goodbot.api.backend import LoraSettings, OptimizesForInference, TrainingBackend
from goodbot.api.sampler import Sampled, Sampler, ScoresAnswers
from goodbot.base.errors import AdapterError, GoodbotError
from goodbot.base.worded import Worded, said_by

from goodbot_training.job.types import PROTOCOL, as_mapping, data_error, parse_messages
from goodbot_training.process import autopsy
from goodbot_training.process.reading import AdapterReading
from goodbot_training.process.serving_parts import (
    DropsAdapters,
    Out,
    ReadsAhead,
    aloud,
    asked,
    cancelled,
    done,
    failure,
    given,
    request_in,
    unknown,
    version_of,
)

Describe = Callable[[BaseException], tuple[str, str]]
"""An error → its kind and one sentence."""
Identity = int | str
_OK: dict[str, Any] = {"event": "ok"}
_TOP = 100
"""First tokens that are told at most."""
_BY_A_VERSION = ("generate", "activate", "first_tokens", "score")
_COSTLY = ("load", "activate", "first_tokens", "score")
"""Between two steps, one of these at most: they take about as long as a step."""


def serve(out: Out, stdin: BinaryIO, make_backend: Callable[[], TrainingBackend], describe: Describe) -> int:
    """Load the model that the first line names, then answer until stdin closes; an exit code."""
    try:
        first = as_mapping(json.loads(stdin.readline()), "The first line")
        if first.get("protocol") != PROTOCOL:
            raise data_error(f"The server was asked for another protocol than {PROTOCOL}.")
        backend = make_backend()
        seed = int(first.get("seed") or 0)
        backend.load(Path(str(first.get("model"))), lora=LoraSettings(), seed=seed)
        if isinstance(backend, OptimizesForInference):
            backend.optimize_for_inference()
        sampler = backend.sampler()
        sampler.activate(0)
    except Exception as error:
        out.emit({**failure(describe(error)[1]), "event": "failed", **autopsy.told(error)})
        return 0
    gc.collect()
    gc.freeze()  # or a full collection goes through all that was imported, in front of everybody
    out.emit({"event": "ready"})
    Serving(out, sampler, describe).run(stdin)
    return 0


class Serving:
    """The requests of one daemon and the versions that it has loaded."""

    def __init__(self, out: Out, sampler: Sampler, describe: Describe) -> None:
        self._out, self._sampler, self._describe = out, sampler, describe
        self._told: list[dict[str, Any]] = []
        """What is said with the next step."""
        self._requests: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        """What came in; without `op` what our thread has made of an adapter's files."""
        self._due: deque[dict[str, Any]] = deque()
        """Of these the version was read again. They came before the others."""
        self._reading = AdapterReading(sampler, self._requests.put)
        self._writing: dict[Identity, int] = {}
        """Answers under way, and their versions."""
        self._leaving: dict[Identity, int] = {}
        """Requests to unload a version that is still writing."""
        self._loaded: set[int] = {0}
        self._active = 0
        self._operations: dict[str, Callable[[dict[str, Any]], dict[str, Any] | None]] = {
            "load": self._load,
            "activate": self._activate,
            "unload": self._unload,
            "served": lambda _: {"event": "ok", "version": self._active},
            "first_tokens": self._first_tokens,
            "score": self._score,
            "generate": self._generate,
            "cancel": self._cancel,
        }

    def run(self, stdin: BinaryIO) -> None:
        """Answer until stdin closes; that cuts off what is being written."""
        threading.Thread(target=self._read, args=(stdin,), daemon=True).start()
        while self._take_all():
            self._step()
        for identity in [*self._writing]:
            self._sampler.cancel(identity)
        while self._writing:
            self._step()
        self._out.emit()

    def _step(self) -> None:
        ended = self._sampler.step()
        self._told += aloud(self._sampler)  # before the end, and below before what is said of it
        for identity, end in ended:
            self._tell(identity, end)
        self._say()

    def _say(self) -> None:
        """Who reads slowly gets it later: nobody else's answer waits for that."""
        told, self._told = self._told, []
        self._out.offer(*told)

    def _read(self, stdin: BinaryIO) -> None:
        for line in stdin:
            self._requests.put(request_in(line))
        self._requests.put(None)

    def _take_all(self) -> bool:
        """Do what was asked until now, and wait for something while nothing is being written; whether
        stdin is open."""
        while self._due or not self._requests.empty() or not self._writing:
            if not self._due and self._requests.empty():
                self._out.emit(*self._told)
                self._told = []
            request = self._due.popleft() if self._due else self._requests.get()
            if request is None:
                return False
            self._take(request)
            if self._writing and request.get("op") in _COSTLY:
                break
        if self._told:
            self._say()
        return True

    def _take(self, request: dict[str, Any]) -> None:
        if "op" not in request and "again" in request:
            self._read_again(request)
            return
        if "op" not in request:
            answer = self._guarded(self._loaded_now, request)
        elif request["id"] is None:
            answer = failure("A request must be an object with an id.")
        elif self._waits(request):
            return
        else:
            answer = self._guarded(self._operations.get(str(request["op"]), unknown), request)
        if answer is not None:
            self._told.append({"id": request["id"], **answer})

    def _guarded(
        self, do: Callable[[dict[str, Any]], dict[str, Any] | None], request: dict[str, Any]
    ) -> dict[str, Any] | None:
        try:
            return do(request)
        except Exception as error:
            return self._failed(error)

    def _failed(self, error: Exception) -> dict[str, Any]:
        kind = "adapter" if isinstance(error, AdapterError) else "error"
        reason = said_by(error) if isinstance(error, GoodbotError) else self._describe(error)[1]
        return {**failure(reason, kind), **autopsy.told(error)}

    # -- versions

    def _load(self, request: dict[str, Any]) -> dict[str, Any] | None:
        version, directory = version_of(request), Path(str(request.get("path")))
        if version and request.get("later") and isinstance(self._sampler, DropsAdapters):
            self._sampler.note_adapter(version, directory)
            return self._is_loaded(version)
        if version and isinstance(self._sampler, ReadsAhead):
            self._reading.read(self._sampler, directory, {"id": request["id"], "version": version})
            return None
        self._sampler.load_adapter(version, directory)
        return self._is_loaded(version)

    def _waits(self, request: dict[str, Any]) -> bool:
        """Whether the files of its version have to be read again before it is answered."""
        version = request.get("version")
        if request["op"] not in _BY_A_VERSION:
            return request["op"] == "unload" and self._reading.follows(version, request)
        return self._reading.waits(version if isinstance(version, int) else self._active, request)

    def _read_again(self, found: dict[str, Any]) -> None:
        waited, error = self._reading.take_up(found)
        if error is None:
            self._due.extend(waited)
            return
        self._loaded.discard(found["again"])
        told = self._failed(error)
        self._told += [{"id": one["id"], **(_OK if one["op"] == "unload" else told)} for one in waited]

    def _loaded_now(self, request: dict[str, Any]) -> dict[str, Any]:
        self._reading.keep(request)
        return self._is_loaded(request["version"])

    def _is_loaded(self, version: int) -> dict[str, Any]:
        self._loaded.add(version)
        unloads = [*self._pop_leaving(version), *self._reading.stays(version)]
        self._told += [{"id": one, **_OK} for one in unloads]  # wanted again
        return _OK

    def _activate(self, request: dict[str, Any]) -> dict[str, Any]:
        version = self._known(version_of(request))
        self._sampler.activate(version)
        self._active = version
        return _OK

    def _unload(self, request: dict[str, Any]) -> dict[str, Any] | None:
        version = version_of(request)
        if version == self._active and version:
            raise AdapterError(Worded("v{version} is active and cannot be unloaded", version=version))
        if version in self._writing.values():
            self._leaving[request["id"]] = version
            return None
        self._sampler.unload_adapter(version)
        if version:
            self._loaded.discard(version)
        return _OK

    def _first_tokens(self, request: dict[str, Any]) -> dict[str, Any]:
        messages = parse_messages(request.get("messages"), "The request")
        top = max(1, min(int(request.get("top") or 1), _TOP))
        version = self._active if request.get("version") is None else version_of(request)
        tokens = self._sampler.first_tokens(messages, version=self._known(version), top=top)
        return {"event": "ok", "tokens": tokens}

    def _score(self, request: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(self._sampler, ScoresAnswers):
            return {"event": "ok", "tokens": []}
        version = self._known(version_of(request))
        return {"event": "ok", "tokens": self._sampler.score(given(request), version=version)}

    def _known(self, version: int) -> int:
        """For something new: what leaves as soon as it is done with its answers gets no more of them."""
        if version not in self._loaded or version in self._leaving.values():
            raise AdapterError(Worded("v{version} is not loaded", version=version))
        return version

    def _pop_leaving(self, version: int) -> list[Identity]:
        found = [one for one, left in self._leaving.items() if left == version]
        self._leaving = {one: left for one, left in self._leaving.items() if left != version}
        return found

    # -- answers

    def _generate(self, request: dict[str, Any]) -> None:
        identity = request["id"]
        if identity in self._writing:
            raise data_error("There is an answer under way with that id.")
        version = self._active if request.get("version") is None else version_of(request)
        question, first = asked(request), True

        def on_text(text: str) -> bool:
            nonlocal first
            if text:
                if first:
                    self._told += aloud(self._sampler)
                self._told.append({"id": identity, "event": "text", "text": text})
                if first:  # the step goes on with a token for everybody
                    first = False
                    self._say()
            return True

        self._sampler.start(identity, question, self._known(version), on_text)
        self._writing[identity] = version

    def _cancel(self, request: dict[str, Any]) -> None:
        target = request.get("target")
        if isinstance(target, int | str) and target in self._writing:
            self._sampler.cancel(target)
        elif (version := self._reading.take_back(target)) is not None:
            self._told.append({"id": target, **cancelled(version)})

    def _tell(self, identity: Any, end: Sampled | Exception) -> None:
        """An answer has ended; a version that only waited for that is unloaded."""
        version = self._writing.pop(identity)
        told = self._failed(end) if isinstance(end, Exception) else done(end, version)
        self._told.append({"id": identity, **told})
        if version in self._writing.values():
            return
        for leaving in self._pop_leaving(version):
            answer = self._guarded(self._unload, {"id": leaving, "version": version})
            self._told.append({"id": leaving, **(answer or _OK)})
