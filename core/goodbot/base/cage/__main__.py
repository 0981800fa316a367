# SPDX-License-Identifier: Apache-2.0
"""Becoming a child: see the package."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from typing import Any

from goodbot.base.cage.tie import tie


def main(told: dict[str, Any], command: list[str]) -> None:
    """Become the program. Returns only where it cannot be started, having said why."""
    tie(told["parent"])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # people's words are in its memory
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and what it becomes would
        signal.signal(number, signal.SIG_DFL)
    try:
        os.umask(0o077)  # what it leaves in memory that is shared is for nobody else's eyes
        if told["cage"] and sys.platform == "linux":
            from goodbot.base.cage import linux

            linux.enter(told["cage"], command)
        elif told["cage"] and sys.platform == "darwin":
            from goodbot.base.cage import macos

            command = macos.enter(told["cage"], command)
        os.execv(command[0], command)  # noqa: S606  the process is the program from here on
    except OSError as error:
        sys.stderr.write(f"{command[0]} cannot be started: {error.strerror}\n")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])
    sys.stderr.flush()
    os._exit(127)
