# SPDX-License-Identifier: Apache-2.0
"""What goodbot says unasked, and only in private: progress to raters, training news to owners.

`live` is asked for: the message that shows a run where its owner has typed `/rl train`.

Everything here is told once, by a key in the table `told`; what was due when a process died is
due again when the next one starts.
"""

from __future__ import annotations

from goodbot.conversation.notifications.counter import can_be_begun, progress
from goodbot.conversation.notifications.live import LiveMessage
from goodbot.conversation.notifications.owners import OwnerNews
from goodbot.conversation.notifications.raters import RoundCounter

__all__ = ["LiveMessage", "OwnerNews", "RoundCounter", "can_be_begun", "progress"]
