"""What goodbot says unasked, and only in private: progress to raters, training news to owners.

`live` is asked for: the message that shows a run where its owner has typed `/rl train`.

Everything here is told once, by a key in the table `told`; what was due when a process died is
due again when the next one starts.
"""

from __future__ import annotations

from goodbot.news.courier import Courier, Notice
from goodbot.news.live import LiveMessage
from goodbot.news.owners import OwnerNews
from goodbot.news.raters import Progress, progress

__all__ = ["Courier", "LiveMessage", "Notice", "OwnerNews", "Progress", "progress"]
