# SPDX-License-Identifier: Apache-2.0
"""The child's entry point: `python -m goodbot_training.process.worker MODE package.module:Class`.

It speaks `docs/worker-protocol.md` on stdin and stdout. Whatever a library prints goes to stderr,
and no message text goes anywhere but into the protocol's own answers.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from io import FileIO
from types import FrameType
from typing import Any, BinaryIO, NoReturn

from goodbot.api.backend import TrainingBackend
from goodbot.base import full_disk, priority
from goodbot.base.errors import GoodbotError, TrainingError
from goodbot.base.worded import Worded, said_by
from goodbot.base.worded_parts import parts_of

from goodbot_training.backends.asking import ComputesElsewhere
from goodbot_training.job.types import Job, as_mapping, data_error
from goodbot_training.planning import run_plan
from goodbot_training.predicting import PredictJob, run_predict
from goodbot_training.process import autopsy
from goodbot_training.process.asking import Asking
from goodbot_training.process.serve import serve
from goodbot_training.round.run import run_round

_LOOK_SECONDS = 0.5
_USAGE = "usage: python -m goodbot_training.process.worker train|plan|predict|serve package.module:Class"
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY")


Emit = Callable[[dict[str, Any]], None]
Work = Callable[[Any, TrainingBackend, Emit], object]
Parse = Callable[[object], Any]


_MODES: dict[str, tuple[Work, Parse]] = {
    "train": (run_round, Job.parse),
    "plan": (run_plan, Job.parse),
    "predict": (run_predict, PredictJob.parse),
}


class Lines:
    """JSON objects, one a line, by default on the stdout that this process was started with."""

    def __init__(self, out: FileIO | None = None) -> None:
        self._lock = threading.Lock()
        self._left = bytearray()
        """What the pipe had no room for."""
        if out is None:
            out = FileIO(os.dup(1), "wb")
            os.dup2(2, 1)  # from here on, print() is a log
        self._out = out

    def emit(self, *events: dict[str, Any]) -> None:
        """Write events, in one go. When nobody reads any more, this process ends."""
        self._write(events)

    def offer(self, *events: dict[str, Any]) -> None:
        """As `emit`, but what a full pipe does not take waits for the next call: nobody waits here."""
        os.set_blocking(self._out.fileno(), False)
        try:
            self._write(events)
        finally:
            os.set_blocking(self._out.fileno(), True)

    def _write(self, events: Sequence[dict[str, Any]]) -> None:
        lines = [json.dumps(event, ensure_ascii=False, allow_nan=False) for event in events]
        with self._lock:
            self._left += "".join(f"{line}\n" for line in lines).encode()
            try:
                while self._left and (written := self._out.write(self._left)) is not None:
                    del self._left[:written]
            except BrokenPipeError:
                leave(0)


def leave(code: int) -> NoReturn:
    """End now. A reader thread that still waits for stdin would trip up an orderly shutdown."""
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    os._exit(code)


def failure(error: BaseException) -> tuple[str, str]:
    """What went wrong, as the protocol's kind and one sentence that holds no message text."""
    name = type(error).__name__
    if isinstance(error, TrainingError):
        return error.kind, said_by(error)
    if full_disk.is_full(error):
        return full_disk.KIND, full_disk.SENTENCE
    if isinstance(error, GoodbotError):
        return "error", said_by(error)
    if isinstance(error, MemoryError) or name == "OutOfMemoryError" or _tells_memory(error):
        return "oom", "There was not enough memory."
    return "error", Worded("The model worker failed with {name}; its log says where.", name=name)


def _tells_memory(error: BaseException) -> bool:
    if not isinstance(error, RuntimeError | OSError):
        return False
    words = str(error).lower()
    return any(
        sign in words
        for sign in ("out of memory", "can't allocate memory", "cannot allocate memory", "[malloc")
    )


def make_backend(factory: str) -> TrainingBackend:
    """An unloaded backend from `package.module:Class`. Raises TrainingError."""
    module, _, name = factory.partition(":")
    try:
        return getattr(importlib.import_module(module), name)()
    except (ImportError, AttributeError, ValueError) as error:
        odd = "The backend {name} cannot be imported: {why}"
        raise TrainingError(Worded(odd, name=factory, why=error)) from error


def train(
    lines: Lines, stdin: BinaryIO, factory: str, work: Work = run_round, parse: Parse = Job.parse
) -> None:
    """Read one job, run it (or only plan it), and say how it ended."""
    give_way()
    try:
        try:
            raw: Any = autopsy.heard(json.loads(stdin.readline()))
        except ValueError as error:
            raise data_error("The job is not JSON.") from error
        job = parse(raw)
        if raw.get("background") is True:
            priority.stand_back()
        backend = make_backend(factory)
        if work is run_round and "remote" in raw and isinstance(backend, ComputesElsewhere):
            told = {**as_mapping(raw["remote"], "remote"), "settings": raw.get("settings")}
            backend.connect(Asking(lines.emit, stdin), told)
        work(job, backend, lines.emit)
    except Exception as error:
        kind, reason = failure(error)
        trace = autopsy.trace(error)
        lines.emit({"event": "failed", "kind": kind, "reason": reason, **parts_of(reason), "trace": trace})


def outlive_nobody(parent: int) -> None:
    """End with the daemon, however that ended: the next one goes on with the same checkpoints."""
    never = threading.Event()
    while os.getppid() == parent:
        never.wait(_LOOK_SECONDS)
    leave(0)


def give_way() -> None:
    """Let the chat go first. Best effort."""
    priority.give_way()


def main(arguments: list[str]) -> int:
    """Run one mode until its end; exit code 2 for wrong arguments, 143 after SIGTERM."""
    if len(arguments) != 2 or arguments[0] not in (*_MODES, "serve"):
        sys.stderr.write(_USAGE + "\n")
        return 2
    for name in _OFFLINE:
        os.environ[name] = "1"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    signal.signal(signal.SIGTERM, _terminate)
    autopsy.tell_uncaught()
    faulthandler.enable()  # a crash in a library's own code says where it was, too
    mode, factory = arguments
    lines, stdin = Lines(), os.fdopen(os.dup(0), "rb")
    if mode != "serve":
        watch = threading.Thread(target=outlive_nobody, args=(os.getppid(),), daemon=True)
        watch.start()
        train(lines, stdin, factory, *_MODES[mode])
        return 0
    return serve(lines, stdin, lambda: make_backend(factory), failure)


def _terminate(signum: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    code: Any = 1
    try:
        code = main(sys.argv[1:])
    except SystemExit as end:
        code = end.code
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        sys.stderr.write(autopsy.trace(error) + "\n")
    leave(code if isinstance(code, int) else 1)
