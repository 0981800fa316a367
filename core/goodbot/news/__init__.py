"""What goodbot says unasked, and only in private: progress to raters, training news to owners.

Everything here is told once, by a key in the table `told`; what was due when a process died is
due again when the next one starts.
"""

from __future__ import annotations

from goodbot.news.courier import Courier, Notice
from goodbot.news.owners import OwnerNews
from goodbot.news.raters import Progress, progress

__all__ = ["Courier", "Notice", "OwnerNews", "Progress", "progress"]
