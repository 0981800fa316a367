# SPDX-License-Identifier: Apache-2.0
"""A connection that nobody has closed says which test has opened it, and where.

Its warning comes when it is collected, which may be many tests later: without that it names nobody.
"""

from __future__ import annotations

import os
import sys
from asyncio import selector_events
from typing import Any

_TRANSPORT: Any = selector_events._SelectorTransport  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
_init, _repr = _TRANSPORT.__init__, _TRANSPORT.__repr__
_FRAMES = 8
_NOT_TOLD = (os.sep + "asyncio" + os.sep, os.sep + "_pytest" + os.sep)


def _opened(self: Any, *arguments: Any, **keywords: Any) -> None:
    self.opened_by = f"{os.environ.get('PYTEST_CURRENT_TEST', '')}: {_way()}"
    _init(self, *arguments, **keywords)


def _told(self: Any) -> str:
    return f"{_repr(self)} opened by {getattr(self, 'opened_by', 'nobody')}"


def _way() -> str:
    """The functions that led to it, innermost first, without those of the event loop."""
    found: list[str] = []
    frame = sys._getframe(2)
    while frame is not None and len(found) < _FRAMES:
        code = frame.f_code
        if not any(one in code.co_filename for one in _NOT_TOLD):
            found.append(f"{os.path.basename(code.co_filename)}:{frame.f_lineno} {code.co_name}")
        frame = frame.f_back
    return " < ".join(found)


_TRANSPORT.__init__, _TRANSPORT.__repr__ = _opened, _told
