# SPDX-License-Identifier: Apache-2.0
"""How long to wait after a platform has refused."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from goodbot.base.clock import Clock, growing
from goodbot.base.errors import RetriableError

T = TypeVar("T")

_TRIES = 4
_LONGEST = 60.0


class FloodError(RetriableError):
    """The platform asks for a pause of `retry_after` seconds; nothing was done."""


def jittered(seconds: float) -> float:
    """A pause a little longer than asked for: those who were refused together come back apart."""
    return seconds * random.uniform(1.0, 1.1)  # noqa: S311


def spread(seconds: float) -> float:
    """At least half of a pause that we chose ourselves: those who were cut off at once come back apart."""
    return seconds * random.uniform(0.5, 1.0)  # noqa: S311


async def patiently(clock: Clock, call: Callable[[], Awaitable[T]], *, patient: bool = True) -> T:
    """Call, and wait as long as the platform asks, a few times; longer each time where it does not say.

    Only a FloodError is tried again: after any other failure the call may have been heard. Without
    `patient` nothing is.
    """
    for tries in range(_TRIES - 1 if patient else 0):
        try:
            return await call()
        except FloodError as error:
            if error.retry_after > _LONGEST:
                raise
            await clock.sleep(jittered(error.retry_after or growing(tries, most=_LONGEST)))
    return await call()
