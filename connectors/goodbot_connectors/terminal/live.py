# SPDX-License-Identifier: Apache-2.0
"""The chat on a terminal: one key rates, the status stays in sight, typing is never blocked."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

from goodbot.api import progress as told
from goodbot.api.texts import explained
from goodbot.api.texts.terminal import here, phrase
from goodbot.base.errors import GoodbotError
from goodbot.base.printing import draw

from goodbot_connectors.terminal.conversation import Conversation
from goodbot_connectors.terminal.daemon import Daemon
from goodbot_connectors.terminal.editor import Editor
from goodbot_connectors.terminal.keys import Key, Keys, Terminal
from goodbot_connectors.terminal.link import Link
from goodbot_connectors.terminal.plain import QUIT
from goodbot_connectors.terminal.screen import Screen
from goodbot_connectors.terminal.words import hint as rating_keys

_STDIN = 0
_GRACE_SECONDS = 1.5
"""`b` rates, but `because …` is a message: a rating key counts when nothing follows, also of a slow hand."""
_TWICE_SECONDS = 2.0
_POLL_SECONDS = 2.0
_POLL_TRAINING_SECONDS = 0.5
_ESCAPE_SECONDS = 0.05
_BAR = 8


class LiveChat:
    """A `View` and the loop around it."""

    def __init__(self, daemon: Daemon, link: Link, *, colour: bool) -> None:
        self._daemon = daemon
        self._terminal = Terminal(_STDIN)
        self._screen = Screen(self._write, sys.stdout.fileno(), colour=colour)
        self._editor = Editor()
        self._keys = Keys()
        self._pending: tuple[str, float] | None = None
        """The answer that a key alone in the line is about to rate, and when."""
        self._interrupted = float("-inf")
        self._next_poll = 0.0
        self._left = False
        self._away = False
        self.conversation = Conversation(link, daemon.control, self)

    def run(self) -> int:
        """Until the person leaves. The terminal is as it was before, whatever happens."""
        self._screen.say(phrase("chat_begin"), dim=True)
        with self._terminal.raw():
            self._write("\x1b[?2004h")
            try:
                while not self._left:
                    self._turn()
            finally:
                self._screen.leave()
                self._write("\x1b[?2004l")
        return 0

    def _turn(self) -> None:
        """Draw, wait for something, take it."""
        self._poll()
        self._draw()
        links = [] if self._away else self.conversation.links
        ready = select.select([_STDIN, *links], [], [], self._timeout())[0]
        for link in links:
            if link in ready:
                self.conversation.read(link)
        if _STDIN in ready:
            self._read_keys()
        elif self._keys.lone():
            self._keys.drop()
        if self._pending and time.monotonic() >= self._pending[1]:
            self._rate()
        if self.conversation.ended:
            self._reattach()

    def _timeout(self) -> float:
        if self._keys.lone():
            return _ESCAPE_SECONDS
        until = min(self._next_poll, self._pending[1] if self._pending else self._next_poll)
        return max(0.0, until - time.monotonic())

    def _poll(self) -> None:
        if time.monotonic() >= self._next_poll:
            training = self.conversation.status.get("training")
            seconds = _POLL_TRAINING_SECONDS if training else _POLL_SECONDS
            self._next_poll = time.monotonic() + seconds
            if not self._away and not self.conversation.polling:
                self.conversation.command("poll", [])

    def _reattach(self) -> None:
        """The daemon is gone: with ours the chat ends, another one may come back."""
        if self._daemon.ours:
            raise GoodbotError(phrase("chat_ended_why", why=self._daemon.last_words()))
        if not self._away:
            self._away = True
            self._screen.say(phrase("chat_stopped"), dim=True)
        if (link := self._daemon.link()) is not None:
            self._away = False
            self.conversation.reattach(link)
            self._screen.say(phrase("chat_back"), dim=True)

    def _read_keys(self) -> None:
        try:
            data = os.read(_STDIN, 65536)
        except OSError:
            data = b""
        if not data:
            self._left = True  # the terminal is gone
        self._screen.forget()
        for key in self._keys.feed(data):
            self._key(key)

    def _key(self, key: Key) -> None:
        if self._pending and key.name in ("enter", "ctrl-d"):
            self._rate()
            if key.name == "enter":
                return
        self._pending = None  # whatever follows makes it the beginning of a message
        if key.name == "text" and not self._editor.text and key.text in self.conversation.keys:
            self._pending = (self.conversation.last, time.monotonic() + _GRACE_SECONDS)
        if key.name != "ctrl-c":
            self._interrupted = float("-inf")
        match key.name:
            case "ctrl-c":
                self._interrupt()
            case "ctrl-d" if not self._editor.text:
                self._left = True
            case "ctrl-d":
                self._editor.handle(Key("delete"))
            case "ctrl-z":
                self._suspend()
            case "enter":
                self._enter()
            case _:
                self._editor.handle(key)

    def _rate(self) -> None:
        """Do what the key means that stands in the line; it is text where another answer has come."""
        assert self._pending is not None  # noqa: S101  asked by the callers
        (turn, _), self._pending = self._pending, None
        key = self._editor.text
        if turn == self.conversation.last and key in self.conversation.keys:
            self._editor.clear()
            self.conversation.press(key)

    def _interrupt(self) -> None:
        now = time.monotonic()
        twice = now - self._interrupted < _TWICE_SECONDS
        self._interrupted = now
        if twice:
            self._left = True
        elif self._editor.text:
            self._editor.clear()
        elif not self.conversation.stop():
            self._screen.say(phrase("chat_leave_again"), dim=True)

    def _suspend(self) -> None:
        """Ctrl-Z: the shell gets its terminal back, until `fg`."""
        self._screen.leave()
        self._terminal.restore()
        os.kill(0, signal.SIGTSTP)
        self._terminal.enter()

    def _enter(self) -> None:
        text = self._editor.take()
        if text in QUIT:
            self._left = True
        elif text:
            self._screen.say("")
            self._screen.say(self._screen.prompt + text, bold=True)
            self.conversation.say(text)

    def _draw(self) -> None:
        hint = rating_keys(self.conversation.keys)
        if hint:
            hint += f" · {phrase('chat_or_write')}"
        elif not self.conversation.last and not self.conversation.waiting:
            hint = phrase("chat_type")
        line = self._editor.menu or status_line(self.conversation.status)
        if self.conversation.waiting:
            line = f"{phrase('chat_answering')} · {line}"
        self._screen.draw(self._editor.text, self._editor.cursor, hint, line)

    def piece(self, text: str) -> None:
        self._screen.stream(text)

    def whole(self) -> None:
        self._screen.end()
        self._next_poll = 0.0

    def other(self, text: str) -> None:
        self._screen.say("")
        self._screen.say(f"({phrase('chat_other')}) {self._screen.prompt}{text}", bold=True)

    def result(self, text: str) -> None:
        self._screen.say(text)
        self._next_poll = 0.0

    def news(self, text: str) -> None:
        """Apart from the talk, also where there is no colour."""
        self._screen.say("")
        self.note("● " + text)

    def note(self, text: str) -> None:
        self._screen.say(text, dim=True)
        self._next_poll = 0.0

    def put_back(self, text: str) -> None:
        """Into the line, unless something else stands there."""
        if not self._editor.text:
            self._editor.insert(text)

    def _write(self, text: str) -> None:
        try:
            draw(text)
        except OSError:
            self._left = True


def status_line(status: Mapping[str, Any]) -> str:
    """`goodbot status` in one line."""
    if not status:
        return ""
    ratings, needed = status["ratings"], status["needed"]
    learnt = status["version"] and not status["off"]
    version = f"v{status['version']}" if learnt else phrase("chat_base")
    if ratings >= needed:
        condition = status.get("condition") or {"met": True}
        counted = phrase("chat_ready", ratings=ratings)
        if not (condition["met"] or status["training"]):
            counted = explained(counted, status["next"], here())
    else:
        counted = phrase("wait_ratings", available=ratings, needed=needed, more=needed - ratings)
    parts = [counted, version]
    if status["off"] or status["paused"]:
        parts.append(phrase("chat_paused"))
    if (progress := status["training"]) is not None:
        step, steps = told.steps(progress)
        filled = _BAR * step // steps if steps else 0
        count = f" {step}/{steps}" if steps else ""
        known = progress if progress.get("phase") in told.PHASES else {"phase": "train"}
        phase = told.phase(known, here())
        parts.append(f"{phase} {'▇' * filled}{'·' * (_BAR - filled)}{count}")
    if status["server"] == "down":
        parts.append(phrase("chat_model_starts"))
    return " · ".join(parts)
