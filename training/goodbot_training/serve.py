"""`serve`: a loaded model that answers many requests at once, as `docs/worker-protocol.md` says.

One thread reads stdin. All else is done by the main thread: it takes what has come in, lets the sampler
write one token on every answer, and looks again. So nothing waits for longer than a step, and whatever
changes versions happens between two steps.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from goodbot.backend import LoraSettings, Sampled, Sampler, SampleRequest, TrainingBackend
from goodbot.errors import AdapterError, GoodbotError

from goodbot_training.types import PROTOCOL, as_mapping, data_error, parse_messages

Emit = Callable[[dict[str, Any]], None]
Describe = Callable[[BaseException], tuple[str, str]]
"""An error → its kind and one sentence."""
Identity = int | str
_OK: dict[str, Any] = {"event": "ok"}
_TOP = 100
"""First tokens that are told at most."""


def serve(
    emit: Emit, stdin: BinaryIO, make_backend: Callable[[], TrainingBackend], describe: Describe
) -> int:
    """Load the model that the first line names, then answer until stdin closes; an exit code."""
    try:
        first = as_mapping(json.loads(stdin.readline()), "The first line")
        if first.get("protocol") != PROTOCOL:
            raise data_error(f"The server was asked for another protocol than {PROTOCOL}.")
        backend = make_backend()
        seed = int(first.get("seed") or 0)
        backend.load(Path(str(first.get("model"))), lora=LoraSettings(), seed=seed)
        sampler = backend.sampler()
        sampler.activate(0)
    except Exception as error:
        emit({"event": "failed", "reason": describe(error)[1]})
        return 0
    emit({"event": "ready"})
    Serving(emit, sampler, describe).run(stdin)
    return 0


class Serving:
    """The requests of one daemon and the versions that it has loaded."""

    def __init__(self, emit: Emit, sampler: Sampler, describe: Describe) -> None:
        self._emit, self._sampler, self._describe = emit, sampler, describe
        self._requests: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
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
            "generate": self._generate,
            "cancel": self._cancel,
        }

    def run(self, stdin: BinaryIO) -> None:
        """Answer until stdin closes; that cuts off what is being written."""
        threading.Thread(target=self._read, args=(stdin,), daemon=True).start()
        while self._take_all():
            for identity, end in self._sampler.step():
                self._tell(identity, end)
        for identity in [*self._writing]:
            self._sampler.cancel(identity)
        while self._writing:
            for identity, end in self._sampler.step():
                self._tell(identity, end)

    def _read(self, stdin: BinaryIO) -> None:
        for line in stdin:
            try:
                request = as_mapping(json.loads(line), "A request")
                if not isinstance(request.get("id"), int | str):
                    raise data_error("A request needs an id.")
            except (ValueError, GoodbotError):
                self._emit({"id": None, **_error("A request must be an object with an id.")})
                continue
            self._requests.put(request)
        self._requests.put(None)

    def _take_all(self) -> bool:
        """Do all that was asked until now, and wait for something while nothing is being written; whether
        stdin is open."""
        while not self._requests.empty() or not self._writing:
            request = self._requests.get()
            if request is None:
                return False
            answer = self._guarded(self._operations.get(str(request.get("op")), _unknown), request)
            if answer is not None:
                self._emit({"id": request["id"], **answer})
        return True

    def _guarded(
        self, do: Callable[[dict[str, Any]], dict[str, Any] | None], request: dict[str, Any]
    ) -> dict[str, Any] | None:
        try:
            return do(request)
        except Exception as error:
            return self._failed(error)

    def _failed(self, error: Exception) -> dict[str, Any]:
        if isinstance(error, AdapterError):
            return _error(str(error), "adapter")
        return _error(str(error) if isinstance(error, GoodbotError) else self._describe(error)[1])

    # -- versions

    def _load(self, request: dict[str, Any]) -> dict[str, Any]:
        version = _version(request)
        self._sampler.load_adapter(version, Path(str(request.get("path"))))
        self._loaded.add(version)
        for leaving in self._pop_leaving(version):  # it is wanted again
            self._emit({"id": leaving, **_OK})
        return _OK

    def _activate(self, request: dict[str, Any]) -> dict[str, Any]:
        version = self._known(_version(request))
        self._sampler.activate(version)
        self._active = version
        return _OK

    def _unload(self, request: dict[str, Any]) -> dict[str, Any] | None:
        version = _version(request)
        if version == self._active and version:
            raise AdapterError(f"Version {version} is active and cannot be unloaded.")
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
        version = self._active if request.get("version") is None else _version(request)
        tokens = self._sampler.first_tokens(messages, version=self._known(version), top=top)
        return {"event": "ok", "tokens": tokens}

    def _known(self, version: int) -> int:
        """For something new: what leaves as soon as it is done with its answers gets no more of them."""
        if version not in self._loaded or version in self._leaving.values():
            raise AdapterError(f"Version {version} is not loaded.")
        return version

    def _pop_leaving(self, version: int) -> list[Identity]:
        found = [one for one, left in self._leaving.items() if left == version]
        for one in found:
            del self._leaving[one]
        return found

    # -- answers

    def _generate(self, request: dict[str, Any]) -> None:
        identity = request["id"]
        if identity in self._writing:
            raise data_error("There is an answer under way with that id.")
        version = self._active if request.get("version") is None else _version(request)
        question = SampleRequest(
            messages=parse_messages(request.get("messages"), "The request"),
            max_tokens=max(1, int(request.get("max_tokens") or 256)),
            temperature=max(0.0, float(request.get("temperature", 0.8))),
            seed=abs(int(request.get("seed") or 0)),
            conversation=str(request.get("conversation") or ""),
        )

        def on_text(text: str) -> bool:
            if text:
                self._emit({"id": identity, "event": "text", "text": text})
            return True

        self._sampler.start(identity, question, self._known(version), on_text)
        self._writing[identity] = version

    def _cancel(self, request: dict[str, Any]) -> None:
        target = request.get("target")
        if isinstance(target, int | str) and target in self._writing:
            self._sampler.cancel(target)

    def _tell(self, identity: Any, end: Sampled | Exception) -> None:
        """An answer has ended; a version that only waited for that is unloaded."""
        version = self._writing.pop(identity)
        told = self._failed(end) if isinstance(end, Exception) else _done(end, version)
        self._emit({"id": identity, **told})
        if version in self._writing.values():
            return
        for leaving in self._pop_leaving(version):
            answer = self._guarded(self._unload, {"id": leaving, "version": version})
            self._emit({"id": leaving, **(answer or _OK)})


def _done(answer: Sampled, version: int) -> dict[str, Any]:
    return {
        "event": "done",
        "text": answer.text,
        "version": version,
        "finish": answer.finish,
        "prompt_tokens": list(answer.prompt),
        "tokens": list(answer.tokens),
        "logprobs": list(answer.logprobs),
    }


def _error(reason: str, kind: str = "error") -> dict[str, Any]:
    return {"event": "error", "kind": kind, "reason": reason}


def _unknown(request: dict[str, Any]) -> dict[str, Any]:
    raise data_error("There is no such operation.")


def _version(request: dict[str, Any]) -> int:
    version = request.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise data_error("version must be a whole number.")
    return version
