# SPDX-License-Identifier: Apache-2.0
"""One question, before something is replaced or deleted: yes or no, or a word for what weighs more."""

from __future__ import annotations

import signal
import sys
from collections.abc import Collection

from goodbot.api.texts.terminal import phrase
from goodbot.base.errors import UsageError
from goodbot.base.printing import say


def agrees(question: str, *, yes: bool) -> bool:
    """What the person says; no is the default. `yes` answers for them.

    Raises UsageError where nobody can be asked, KeyboardInterrupt for Ctrl-C.
    """
    if yes:
        return True
    if not somebody():
        raise UsageError(phrase("ask_nobody"))
    return _answer(f"{question} {phrase('ask_yes_no')} ").casefold() in (
        "y",
        "yes",
        *phrase("ask_yes").split(),
    )


def types(word: str, what: str, *, accepted: Collection[str]) -> bool:
    """Whether the person types `word` to agree to `what`; `accepted` are words that were given before.

    Raises UsageError where nobody can be asked, KeyboardInterrupt for Ctrl-C.
    """
    if word in accepted:
        return True
    if not somebody():
        raise UsageError(phrase("ask_accept", what=what, word=word))
    return _answer(f"{phrase('ask_word', what=what, word=word)} ") == word


def somebody() -> bool:
    """Whether a person is at a terminal who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _answer(question: str) -> str:
    say(question, file=sys.stderr, end="", flush=True)
    # Under `asyncio.run` Ctrl-C would only mark the task as cancelled, and go on reading.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        say(f"\n{phrase('ask_stopped')}\n", file=sys.stderr, end="", flush=True)
        raise
    finally:
        signal.signal(signal.SIGINT, before)
    if not answer.endswith("\n"):  # Ctrl-D leaves the cursor behind the question
        say("\n", file=sys.stderr, end="", flush=True)
    return answer.strip()
