# SPDX-License-Identifier: Apache-2.0
"""The chat without a screen: for scripts, pipes and dumb terminals. One line in, one answer out.

Answers and what commands say go to stdout, receipts and notes to stderr.
"""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable

from goodbot.api.texts import explained
from goodbot.api.texts.terminal import here, phrase
from goodbot.base.errors import GoodbotError
from goodbot.base.printing import say

from goodbot_connectors.terminal.conversation import Conversation
from goodbot_connectors.terminal.daemon import Daemon
from goodbot_connectors.terminal.link import Link
from goodbot_connectors.terminal.words import KEYS, hint, nothing

QUIT = ("/quit", "/exit", "/q")
_TWICE_SECONDS = 2.0


class PlainChat:
    """A `View` and the loop around it. With `prompts` a person sits at a terminal."""

    def __init__(self, daemon: Daemon, link: Link, *, prompts: bool) -> None:
        self._daemon = daemon
        self._prompts = prompts
        self._begun = False
        self.conversation = Conversation(link, daemon.control, self)
        if hasattr(sys.stdin, "reconfigure"):
            sys.stdin.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]

    def run(self) -> int:
        """Until the input ends; 1 when something was not answered or not stored."""
        if self._prompts:
            self.note(phrase("chat_plain", keys=hint(KEYS)))
        interrupted = float("-inf")
        while True:
            try:
                if self._prompts:
                    say("> ", end="", flush=True)
                line = sys.stdin.readline()
                if not line or line.strip() in QUIT:
                    return 1 if self.conversation.failures else 0
                self._handle(line.rstrip())
                self._wait(lambda: not self.conversation.busy)
            except KeyboardInterrupt:
                if not self._prompts or time.monotonic() - interrupted < _TWICE_SECONDS:
                    raise
                interrupted = time.monotonic()
                say(flush=True)
                if self.conversation.stop():
                    self._wait(lambda: not self.conversation.waiting)
                else:
                    self.note(phrase("chat_leave_again"))

    def _handle(self, line: str) -> None:
        """A key alone is what it means; with a space before it, it is a message as any other."""
        if line not in KEYS:
            if text := line.strip():
                self.conversation.say(text)
        elif not self.conversation.press(line):
            self._refuse(nothing(line))

    def _refuse(self, text: str) -> None:
        self.conversation.failures += 1
        self.note(text)

    def _wait(self, done: Callable[[], bool]) -> None:
        while not done():
            for link in select.select(self.conversation.links, [], [])[0]:
                self.conversation.read(link)
            if self.conversation.ended:
                if self._daemon.ours:
                    raise GoodbotError(phrase("chat_ended_why", why=self._daemon.last_words()))
                raise GoodbotError(phrase("chat_ended"))

    def piece(self, text: str) -> None:
        self._begun = self._begun or bool(text)
        say(text, end="", flush=True)

    def whole(self) -> None:
        if self._begun:
            say(flush=True)
        self._begun = False

    def other(self, text: str) -> None:
        self.note(explained(phrase("chat_other"), text, here()))

    def result(self, text: str) -> None:
        say(text, flush=True)

    def news(self, text: str) -> None:
        self.note(text)

    def note(self, text: str) -> None:
        say(text, file=sys.stderr, flush=True)

    def put_back(self, text: str) -> None:
        """There is no line to change: it stands above."""
