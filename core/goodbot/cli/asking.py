"""One question with yes or no, before something is replaced or deleted."""

from __future__ import annotations

import signal
import sys

from goodbot.errors import UsageError
from goodbot.printing import say


def agrees(question: str, *, yes: bool) -> bool:
    """What the person says; no is the default. `yes` answers for them.

    Raises UsageError where nobody can be asked, KeyboardInterrupt for Ctrl-C.
    """
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("nobody can be asked here: say --yes if that is what you want")
    say(f"{question} [y/N] ", file=sys.stderr, end="", flush=True)
    # Under `asyncio.run` Ctrl-C would only mark the task as cancelled, and go on reading.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        say("\nstopped: it was not done\n", file=sys.stderr, end="", flush=True)
        raise
    finally:
        signal.signal(signal.SIGINT, before)
    if not answer.endswith("\n"):  # Ctrl-D leaves the cursor behind the question
        say("\n", file=sys.stderr, end="", flush=True)
    return answer.strip().casefold() in ("y", "yes")
