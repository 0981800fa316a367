# SPDX-License-Identifier: Apache-2.0
"""What Slack answers when it refuses."""

from __future__ import annotations

from typing import Any


class SlackError(Exception):
    """`{"ok": false, "error": code, **more}`, as every Web API method may answer."""

    def __init__(self, code: str, **more: Any) -> None:
        super().__init__(code)
        self.body: dict[str, Any] = {"ok": False, "error": code, **more}
