"""`serve`: a loaded model that answers request after request, as `docs/worker-protocol.md` says.

One thread reads stdin, so that a `cancel` reaches the answer that is being written; all else is
done by the main thread, one request after the other. So one answer is written by one version.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from goodbot.backend import LoraSettings, Sampler, SampleRequest, TrainingBackend
from goodbot.errors import AdapterError, GoodbotError

from goodbot_training.types import PROTOCOL, as_mapping, data_error, parse_messages

Emit = Callable[[dict[str, Any]], None]
Describe = Callable[[BaseException], tuple[str, str]]
"""An error → its kind and one sentence."""


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
        self._lock = threading.Lock()
        self._waiting: set[object] = set()
        self._cancelled: set[object] = set()
        self._closed = threading.Event()
        self._loaded: set[int] = {0}
        self._active = 0
        self._operations: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "load": self._load,
            "activate": self._activate,
            "unload": self._unload,
            "served": lambda _: {"event": "ok", "version": self._active},
            "generate": self._generate,
        }

    def run(self, stdin: BinaryIO) -> None:
        """Answer until stdin closes."""
        threading.Thread(target=self._read, args=(stdin,), daemon=True).start()
        while (request := self._requests.get()) is not None:
            identity = request.get("id")
            try:
                answer = self._operations.get(str(request.get("op")), _unknown)(request)
            except AdapterError as error:
                answer = {"event": "error", "kind": "adapter", "reason": str(error)}
            except GoodbotError as error:
                answer = {"event": "error", "kind": "error", "reason": str(error)}
            except Exception as error:
                answer = {"event": "error", "kind": "error", "reason": self._describe(error)[1]}
            self._forget(identity)
            self._emit({"id": identity, **answer})

    def _read(self, stdin: BinaryIO) -> None:
        for line in stdin:
            try:
                request = as_mapping(json.loads(line), "A request")
                identity = request.get("id")
                if not isinstance(identity, int | str):
                    raise data_error("A request needs an id.")
            except (ValueError, GoodbotError):
                reason = "A request must be an object with an id."
                self._emit({"id": None, "event": "error", "kind": "error", "reason": reason})
                continue
            with self._lock:
                if request.get("op") == "cancel":
                    target = request.get("target")
                    if isinstance(target, int | str) and target in self._waiting:
                        self._cancelled.add(target)
                    continue
                self._waiting.add(identity)
            self._requests.put(request)
        self._closed.set()  # cuts off the answer that is being written
        self._requests.put(None)

    def _forget(self, identity: object) -> None:
        with self._lock:
            self._waiting.discard(identity)
            self._cancelled.discard(identity)

    def _wanted(self, identity: object) -> bool:
        with self._lock:
            return not self._closed.is_set() and identity not in self._cancelled

    def _load(self, request: dict[str, Any]) -> dict[str, Any]:
        version = _version(request)
        self._sampler.load_adapter(version, Path(str(request.get("path"))))
        self._loaded.add(version)
        return {"event": "ok"}

    def _activate(self, request: dict[str, Any]) -> dict[str, Any]:
        version = _version(request)
        self._sampler.activate(version)
        self._active = version
        return {"event": "ok"}

    def _unload(self, request: dict[str, Any]) -> dict[str, Any]:
        version = _version(request)
        if version == self._active and version:
            raise AdapterError(f"Version {version} is active and cannot be unloaded.")
        self._sampler.unload_adapter(version)
        if version:
            self._loaded.discard(version)
        return {"event": "ok"}

    def _generate(self, request: dict[str, Any]) -> dict[str, Any]:
        identity = request["id"]
        asked = self._active if request.get("version") is None else _version(request)
        question = SampleRequest(
            messages=parse_messages(request.get("messages"), "The request"),
            max_tokens=max(1, int(request.get("max_tokens") or 256)),
            temperature=max(0.0, float(request.get("temperature", 0.8))),
            seed=abs(int(request.get("seed") or 0)),
        )
        if not self._wanted(identity):
            return _done("", asked, "cancelled", (), (), ())

        def on_text(text: str) -> bool:
            if text:
                self._emit({"id": identity, "event": "text", "text": text})
            return self._wanted(identity)

        if asked == self._active:
            answer = self._sampler.sample(question, on_text)
        else:  # one answer by another version, then back; nothing else runs in between
            self._sampler.activate(asked)
            try:
                answer = self._sampler.sample(question, on_text)
            finally:
                self._sampler.activate(self._active)
        return _done(
            answer.text, asked, answer.finish, answer.prompt, answer.tokens, answer.logprobs
        )


def _done(
    text: str,
    version: int,
    finish: str,
    prompt: tuple[int, ...],
    tokens: tuple[int, ...],
    logprobs: tuple[float, ...],
) -> dict[str, Any]:
    return {
        "event": "done",
        "text": text,
        "version": version,
        "finish": finish,
        "prompt_tokens": list(prompt),
        "tokens": list(tokens),
        "logprobs": list(logprobs),
    }


def _unknown(request: dict[str, Any]) -> dict[str, Any]:
    raise data_error("There is no such operation.")


def _version(request: dict[str, Any]) -> int:
    version = request.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise data_error("version must be a whole number.")
    return version
