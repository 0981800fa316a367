# SPDX-License-Identifier: Apache-2.0
"""What the Bot Connector answers when it refuses."""

from __future__ import annotations

from typing import Any


class TeamsError(Exception):
    """A status and `{"error": {"code": …, "message": …}}`."""

    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.body: dict[str, Any] = {"error": {"code": code, "message": message}}
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
