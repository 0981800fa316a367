# SPDX-License-Identifier: Apache-2.0
"""One `llama-server`: started on a free port of this machine, waited for, looked at, and ended.

It listens on 127.0.0.1 alone and asks for a key that only we know, which it gets in its environment. What it
parses others have made: weights, a vocabulary, a template. So it runs in a cage: it may listen at its port
and read those files, and starts no other program.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
import shutil
import signal
import socket
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from goodbot.api.manners import Manners
from goodbot.api.model_shape import context_of
from goodbot.api.server import ServerParts
from goodbot.api.texts.terminal import phrase
from goodbot.base import spawn
from goodbot.base.clock import Clock
from goodbot.base.errors import AdapterError, ServerError
from goodbot.base.last_lines import drain
from goodbot.base.tasks import end_tasks
from goodbot.base.worded import Worded
from goodbot.config.secrets import Secret
from goodbot.inference.models.directory import read_config
from goodbot.inference.servers.plugin import LlamaCppSettings
from goodbot.inference.servers.upstream import Upstream

logger = logging.getLogger(__name__)

_START_SECONDS = 600.0
_LOOK_SECONDS = 0.05
_STOP_SECONDS = 10.0
_DOUBT_SECONDS = 10.0
_HOST = "127.0.0.1"
_CONTEXT = 8192
"""Tokens of a conversation, if the model can and nothing else is said."""
_PORTS = 3
"""Tries."""
_TAKEN = ("couldn't bind", "already in use")
_REFUSED = ("permission denied", "not permitted", "cannot fork")
_LACKS = (
    *_TAKEN,
    "no space left",
    "cannot allocate",
    "failed to allocate",
    "unable to allocate",
    "out of memory",
    "bad_alloc",
    "too many open files",
)
"""As llama-server and its libraries say that the machine has no room for it; their exit code does not."""
_WARNS = ("warn", "mlock")
"""What is in a line that says what it goes on without."""
_NOT_RUN = (126, 127)
"""Exit codes: the cage, a shell or the loader could not run it."""
_KILLED = (-signal.SIGKILL, -signal.SIGXFSZ)
"""As a machine without memory kills it, and the limit of a file's size."""
_LAST_WORDS_SECONDS = 2.0
_PARTS = 5
"""Digits of their number, and of how many there are, in the name of a part of a model."""


def command(settings: LlamaCppSettings, parts: ServerParts) -> list[str]:
    """The program and what each process is given. Raises ServerError for what is not there."""
    binary = shutil.which(settings.binary, path=parts.environ.get("PATH"))
    if binary is None:
        none = (
            "there is no program {name}: install llama.cpp, or set binary in [serving.settings] to where its "
            "llama-server is"
        )
        raise ServerError(Worded(none, name=repr(settings.binary)))
    model = _model(settings)
    if not settings.model or not model.is_file():
        file = (
            "llama.cpp needs the base model as a GGUF file: set model in [serving.settings] to it "
            "(`goodbot adapters export base --format gguf --out base.gguf` makes one)"
        )
        raise ServerError(Worded(file))
    most = context_of(read_config(parts.model.path)) or _CONTEXT
    context = settings.context or min(most, _CONTEXT)
    words = [binary, "--model", str(model), "--parallel", str(settings.parallel)]
    words += ["--ctx-size", str(context * settings.parallel), "--cache-ram", "0"]
    if settings.gpu_layers >= 0:
        words += ["--n-gpu-layers", str(settings.gpu_layers)]
    if settings.threads:
        words += ["--threads", str(settings.threads)]
    return words


def weights(settings: LlamaCppSettings) -> list[Path]:
    """The model's file and, where it is in parts (`NAME-00001-of-00003.gguf`), the others beside it."""
    model = _model(settings)
    begins, _, count = model.stem.rpartition("-of-")
    name, _, number = begins.rpartition("-")
    if not all(len(word) == _PARTS and word.isdecimal() for word in (number, count)):
        return [model]
    parts = (f"{name}-{one:0{_PARTS}}-of-{count}{model.suffix}" for one in range(1, int(count) + 1))
    return [path for path in map(model.with_name, parts) if path.is_file()]


def _model(settings: LlamaCppSettings) -> Path:
    return Path(settings.model).expanduser().absolute()


class LlamaProcess:
    """A `llama-server` with one adapter, or none, for as long as it lives."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        weights: Sequence[Path],
        adapter: Path | None,
        cache: Path | None = None,
        environ: Mapping[str, str],
        clock: Clock,
        manners: Manners,
    ) -> None:
        """`command` and `manners`: the program with what every process of this driver is given, and what
        it is known to refuse. `weights` are what it reads beside the adapter, `cache` is where it keeps what
        it compiles."""
        self.name = name
        self.adapter = adapter
        self._reads = (*weights, adapter) if adapter else (*weights,)
        self._cache = cache
        self._command = command
        self._environ = environ
        self._clock = clock
        self._process: asyncio.subprocess.Process | None = None
        self._log: deque[str] = deque(maxlen=20)
        self._reader: asyncio.Task[None] | None = None
        self._killed = False
        self._manners = manners
        self.upstream = Upstream("llama.cpp", f"http://{_HOST}", Secret(""), manners)

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Come up with the model, and with the adapter and nothing else applied.

        Raises ServerError; AdapterError where it comes up with the adapter not as it should.
        """
        for left in reversed(range(_PORTS)):
            self._log.clear()
            try:
                return await self._come_up()
            except ServerError:  # somebody else may take a free port before it does
                if not (left and self._says(_TAKEN)):
                    raise

    async def _come_up(self) -> None:
        port, key = _free_port(), secrets.token_urlsafe(24)
        adapter = ("--lora", str(self.adapter)) if self.adapter else ()
        try:
            self._process = await spawn.start(
                *self._command,
                "--host",
                _HOST,
                "--port",
                str(port),
                "--alias",
                self.name,
                *adapter,
                stderr=asyncio.subprocess.PIPE,
                cage=spawn.Cage(reads=self._reads, cache=self._cache, seconds=None, port=port),
                environ={**self._environ, "LLAMA_API_KEY": key},
                start_new_session=True,
            )
        except OSError as error:
            self._killed = True  # it is no fault of the adapter
            said = Worded("{name}: {why}", name=self._command[0], why=spawn.why_not(error))
            raise ServerError(said) from error
        self._reader = asyncio.create_task(self._read(self._process), name=f"{self.name} log")
        self.upstream = Upstream("llama.cpp", f"http://{_HOST}:{port}", Secret(key), self._manners)
        try:
            await self.upstream.open()
            async with asyncio.timeout(_START_SECONDS):
                await self._healthy()
                await self._look()
        except BaseException as error:
            await self.stop()
            if isinstance(error, TimeoutError):
                self._killed = True
                late = "llama-server did not come up within {minutes} min"
                raise ServerError(Worded(late, minutes=round(_START_SECONDS / 60))) from error
            raise

    @property
    def blames_machine(self) -> bool:
        """Whether it did not come up for want of memory, disk or a port: no fault of its adapter."""
        return self._killed or self._says(_LACKS)

    def _says(self, words: Sequence[str]) -> bool:
        """Whether any of these is in its last lines, but for those of what it goes on without."""
        lines = [line for line in map(str.lower, self._log) if not any(sign in line for sign in _WARNS)]
        return any(word in line for line in lines for word in words)

    async def doubt(self) -> None:
        """After an answer that broke off: end it if it does not even say that it is well."""
        try:
            if self.alive and (await self.upstream.ask("/health", seconds=_DOUBT_SECONDS)).ok:
                return
        except ServerError:
            pass
        await self.stop()

    async def stop(self) -> None:
        """End it; idempotent. Answers under way are cut off."""
        process, self._process = self._process, None
        await self.upstream.close()
        if process is not None:
            try:
                if process.returncode is None:
                    _tell_all(process.pid, signal.SIGTERM)
                    async with asyncio.timeout(_STOP_SECONDS):
                        await process.wait()
            except TimeoutError:
                pass
            finally:
                _tell_all(process.pid, signal.SIGKILL)
                await process.wait()
        await end_tasks(self._reader)

    async def _healthy(self) -> None:
        while self.alive:
            with contextlib.suppress(ServerError):
                if (await self.upstream.ask("/health", seconds=10.0)).ok:
                    return
            await self._clock.sleep(_LOOK_SECONDS)
        code = None if self._process is None else self._process.returncode
        self._killed = code in (*_KILLED, *_NOT_RUN)
        if self._reader is not None:  # it may have started something that holds the pipe
            await asyncio.wait({self._reader}, timeout=_LAST_WORDS_SECONDS)
        last = next((line for line in reversed(self._log) if "error" in line.lower()), "")
        last = (last or (self._log[-1] if self._log else "")).strip()
        key = "llama_ended_alone" if self._is_in_front(code, last) else "llama_ended"
        raise ServerError(phrase(key, last=last or phrase("llama_silent")))

    def _is_in_front(self, code: int | None, last: str) -> bool:
        """Whether it may be what only starts another program: it ended by itself, and was refused something
        or said nothing, before it came to its files."""
        if code is None or code < 0 or any(path.name in last for path in self._reads):
            return False
        return code in _NOT_RUN or not last or self._says(_REFUSED)

    async def _look(self) -> None:
        """See that just our adapter is applied, whole."""
        reply = await self.upstream.ask("/lora-adapters", seconds=30.0)
        try:
            listed: Any = json.loads(reply.text) if reply.ok else None
            found = [(Path(entry["path"]).name, float(entry["scale"])) for entry in listed]
        except (ValueError, LookupError, TypeError) as error:
            old = "llama-server does not tell its adapters (/lora-adapters): it is too old, update it"
            raise ServerError(Worded(old)) from error
        wanted = [(self.adapter.name, 1.0)] if self.adapter else []
        if found != wanted:
            other = (
                "llama-server has {found} applied in place of {wanted}: update llama.cpp, and see that "
                "`binary` is no script that adds options of its own"
            )
            none = Worded("no adapter")
            raise AdapterError(Worded(other, found=found or none, wanted=wanted or none))

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        """Keep the pipe empty, and its last lines. Prompts are not in its log at its usual verbosity."""
        await drain(process, self._log)
        if self._process is process:  # nobody asked it to end
            logger.error("llama-server ended: %s", "\n".join(self._log) or "not a word")


def _tell_all(group: int, number: int) -> None:
    """A script may have started the program, and end without it. The group has its number as long as
    something is in it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])
