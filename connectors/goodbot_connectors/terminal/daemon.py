# SPDX-License-Identifier: Apache-2.0
"""The daemon behind a chat: the one that runs already, or one that this chat starts and stops."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from goodbot.api.control import RemoteError, call
from goodbot.api.progress import progress_line
from goodbot.api.sentences import sentence, version
from goodbot.api.texts import joined
from goodbot.api.texts.terminal import here, phrase
from goodbot.base import spawn
from goodbot.base.errors import GoodbotError
from goodbot.base.printing import printable
from goodbot.config.lock import prepare_home, socket_path

from goodbot_connectors.terminal.link import Link

_LOG_BYTES = 4 * 1024 * 1024
_BUSY_SECONDS = 120.0
_STOP_SECONDS = 60.0
_STEP = 0.1
_BUSY_EXIT = 75


class DaemonError(GoodbotError):
    """The daemon did not start; its own sentence and exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        self.exit_code = exit_code
        super().__init__(message)


class Daemon:
    """Attach with `attach`, always end with `leave`."""

    def __init__(self, home: Path, options: Sequence[str], notify: Callable[[str], None]) -> None:
        self.home = home
        self.log = home / "goodbot.log"
        self._options = options
        self._notify = notify
        self._process: spawn.Running | None = None
        self._log_start = 0

    @property
    def control(self) -> Path:
        """The socket for commands."""
        return socket_path(self.home, "control.sock")

    @property
    def ours(self) -> bool:
        """Whether this chat has started it."""
        return self._process is not None

    def link(self) -> Link | None:
        """A new connection to the chat socket, or None when nobody listens there."""
        return Link.open(socket_path(self.home / "connectors" / "terminal", "chat.sock"))

    def attach(self) -> Link:
        """The running daemon, else a new one, once it is up. Raises DaemonError."""
        if (link := self.link()) is not None:
            return link
        self._notify(phrase("chat_starts"))
        self._start()
        try:
            return self._wait()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        prepare_home(self.home)
        with contextlib.suppress(FileNotFoundError):
            if self.log.stat().st_size > _LOG_BYTES:
                self.log.replace(self.log.with_suffix(".log.old"))
        handle = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        self._log_start = os.fstat(handle).st_size
        try:
            command = spawn.python("-m", "goodbot", "--home", str(self.home.absolute()), *self._options)
            self._process = spawn.leave_running(*command, cwd=self.home, out=handle)
        finally:
            os.close(handle)

    def _wait(self) -> Link:
        waited = 0.0
        while True:
            if not self._loads() and (link := self.link()) is not None:
                return link
            code = self._process.poll() if self._process else _BUSY_EXIT
            if code == _BUSY_EXIT and waited < _BUSY_SECONDS:
                # Somebody else holds the directory: a daemon that is still loading, perhaps.
                if self._process is not None:
                    self._process = None
                    self._notify(phrase("chat_wait", why=self.last_words()))
                waited += _STEP
            elif code is not None:
                self._process = None
                raise DaemonError(self.last_words(), code if code > 0 else 1)
            time.sleep(_STEP)

    def _loads(self) -> bool:
        """Whether its model is not up yet, and may still fail."""
        status = self.status()
        return status is not None and status["server"] == "starting"

    def last_words(self) -> str:
        """What the daemon that this chat started said last of all."""
        with self.log.open("rb") as file:
            file.seek(self._log_start)
            lines = file.read(_LOG_BYTES).decode("utf-8", "replace").splitlines()
        told = [line for line in lines if line.startswith("goodbot: ")] or lines[-1:]
        sentence = told[-1].removeprefix("goodbot: ") if told else phrase("chat_silent")
        return printable(sentence)

    def status(self) -> dict[str, Any] | None:
        """What `goodbot status --json` prints; None when it cannot be told now."""
        try:
            answer = call(self.home, "status", [])
        except (RemoteError, GoodbotError, OSError):
            return None
        return answer["data"] if answer else None

    def leave(self, *, shared: bool) -> None:
        """Stop what this chat started, unless another chat is attached to it now.

        A training under way is waited for; Ctrl-C ends the waiting and the training.
        """
        if self._process is None or self._process.poll() is not None:
            return
        if shared:  # it outlives this process: we only forget it
            pid = self._process.pid
            self._notify(phrase("chat_shared", pid=pid))
            self._process = None
            return
        try:
            self._await_training()
        except KeyboardInterrupt:
            self._notify(phrase("chat_stopping"))
        finally:
            self.stop()

    def _await_training(self) -> None:
        status = self.status()
        if not status or not status["training"]:
            return
        self._notify(phrase("chat_training"))
        with progress_line(quiet=False) as show:
            while status and status["training"]:
                show(status["training"])
                time.sleep(0.3)
                status = self.status()
        if status and (run := status["last_run"]):
            name = version(status["version"], here(), begins=True)
            self._notify(joined(here(), sentence(run["short"], here()), phrase("chat_now", name=name)))

    def stop(self) -> None:
        """SIGTERM, and wait until everything is stored and closed."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        if not spawn.ends(self._process, _STOP_SECONDS):
            self._notify(phrase("chat_still", pid=self._process.pid))
        self._process = None
