# SPDX-License-Identifier: Apache-2.0
"""Whether this machine's clock agrees with those of the platforms, which say theirs with each answer.

A clock that stood still while the machine slept, or was never set, puts ratings out of order.
"""

from __future__ import annotations

import logging

logger = logging.getLogger(__name__)

APART = 60.0
"""Seconds by which two clocks may differ: an answer is some on its way."""
SET_CLOCK = (
    "set the clock from the network: `timedatectl set-ntp true` on Linux, Date & Time in the System "
    "Settings on macOS"
)


def apart(title: str, ahead: float) -> str:
    """What is to be said of a clock that is so many seconds `ahead` of a platform's; often nothing."""
    if abs(ahead) <= APART:
        return ""
    return f"this machine is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} {title}"


class PlatformTime:
    """What the platforms' clocks say, while goodbot runs."""

    def __init__(self) -> None:
        self.ahead: dict[str, float] = {}
        """Seconds that this machine is ahead of each platform whose clock is another."""

    def note(self, title: str, told: float, now: float) -> None:
        """Compare; the log says once that they differ, and once that they agree again."""
        text = apart(title, now - told)
        if bool(text) != (title in self.ahead):
            if text:
                logger.warning("%s: %s", text, SET_CLOCK)
            else:
                logger.info("this machine's clock agrees with that of %s again", title)
        if text:
            self.ahead[title] = now - told
        else:
            self.ahead.pop(title, None)
