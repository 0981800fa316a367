# SPDX-License-Identifier: Apache-2.0
"""`goodbot chat`: attach to the running goodbot or start one, talk, rate, leave."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from typing import NoReturn

from goodbot.base import cage
from goodbot.base.printing import say

from goodbot_connectors.terminal.daemon import Daemon
from goodbot_connectors.terminal.link import Link
from goodbot_connectors.terminal.live import LiveChat
from goodbot_connectors.terminal.plain import PlainChat


def main(arguments: argparse.Namespace) -> int:
    """Chat until the person leaves; a daemon that was started for it is stopped then.

    Returns 0; 1 when the daemon failed, or in a script something was not answered; the daemon's
    own code when it did not start.
    """
    cage.keep_to_itself()
    options = ["--config", str(arguments.config.absolute())] if arguments.config else []
    options += ["run", *(["--demo-model"] if arguments.demo_model else [])]
    daemon = Daemon(arguments.home, options, _notify)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        link = daemon.attach()
        chat = _chat(daemon, link)
        try:
            code = chat.run()
        finally:
            chat.conversation.chat.close()
        daemon.leave(shared=chat.conversation.chats > 1)
        return code
    finally:
        daemon.stop()


def _chat(daemon: Daemon, link: Link) -> PlainChat | LiveChat:
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if not terminal or os.environ.get("TERM", "dumb") == "dumb":
        return PlainChat(daemon, link, prompts=terminal)
    return LiveChat(daemon, link, colour=not os.environ.get("NO_COLOR"))


def _notify(text: str) -> None:
    with contextlib.suppress(OSError):
        say(text, file=sys.stderr, flush=True)


def _end(number: int, _: object) -> NoReturn:
    """SIGTERM, or the terminal was closed: leave at once, through every `finally`."""
    raise SystemExit(128 + number)
