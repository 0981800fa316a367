# SPDX-License-Identifier: Apache-2.0
"""A limit for what may block for ever: a locked keyring, a dead network disk."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def within(seconds: float, function: Callable[[], T]) -> T:
    """The result of a function that may block. Raises TimeoutError, or what it raised.

    A thread that blocks is left behind; the program ends without it.
    """
    answer: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def work() -> None:
        try:
            answer.put((function(), None))
        except BaseException as error:
            answer.put((None, error))

    threading.Thread(target=work, daemon=True).start()
    try:
        result, error = answer.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError from None
    if error is not None:
        raise error
    return result  # pyright: ignore[reportReturnType]  it is the function's own
