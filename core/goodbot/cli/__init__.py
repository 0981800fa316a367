# SPDX-License-Identifier: Apache-2.0
"""The `goodbot` program. Starting it imports neither a chat SDK nor an ML framework.

`parser` holds the table of words, `client` speaks to the daemon (or works without one), `run` is
the daemon, `doctor` looks at every part, `init` sets up.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from goodbot.api.texts import reworded
from goodbot.api.texts.terminal import here, speak
from goodbot.base.errors import GoodbotError
from goodbot.base.printing import say, tell_errors, tell_logs
from goodbot.cli import parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code.

    0 done, 1 failed, 2 usage or config, 75 busy (another goodbot holds the directory), 78 the
    data is from a newer version, 130 Ctrl-C. What goes wrong is one sentence on stderr.
    """
    _print_anything()
    tell_errors()
    tell_logs()
    _hear_ctrl_c()
    speak()
    try:
        arguments = parser.parse(sys.argv[1:] if argv is None else argv)
        speak(programs=getattr(arguments, "json", False), setting=lambda: _language(arguments))
        target: str = arguments.run
        module, _, function = target.partition(":")
        if not module.startswith("goodbot."):
            from goodbot.cli.plugin_command import ForPlugins

            arguments.program = ForPlugins(arguments)
        command: Callable[[Any], int] = getattr(importlib.import_module(module), function)
        return command(arguments)
    except GoodbotError as error:
        say(f"goodbot: {reworded(error, here())}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        say(f"goodbot: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    finally:
        speak()  # for whoever calls this twice


def _language(arguments: Any) -> str:
    """What the config says; nothing where it cannot be read."""
    from goodbot import config

    with contextlib.suppress(GoodbotError, OSError):
        return config.load(arguments.home, arguments.config).serving.language
    return ""


def _hear_ctrl_c() -> None:
    """A parent that ignores SIGINT (`nohup … &`, some CI runners) hands that down, and Python keeps it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        with contextlib.suppress(ValueError):  # only the main thread may
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _print_anything() -> None:
    """What a terminal's encoding lacks becomes `?`: an emoji must not end the program."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
