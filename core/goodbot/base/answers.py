# SPDX-License-Identifier: Apache-2.0
"""What is answered beside an application."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from goodbot.base.busy import GUARDS


class JsonResponse(web.Response):
    """One JSON object; the connection ends with it."""

    def __init__(
        self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(
            status=status,
            text=json.dumps(body) + "\n",
            content_type="application/json",
            headers={**GUARDS, **(headers or {})},
        )
        self.force_close()
