# SPDX-License-Identifier: Apache-2.0
"""What the page of the report asks for: the one that there is, and another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from goodbot.api.connector import ConnectorHost
from goodbot.api.events import UserRef

from goodbot_connectors.kit.bridge.refused import HttpError
from goodbot_connectors.kit.fields import Json
from goodbot_connectors.web.normalize import MALFORMED


async def page(host: ConnectorHost, user: UserRef, query: Mapping[str, str]) -> Mapping[str, Any]:
    """The report that was made last, as JSON takes it. Raises UsageError."""
    del query
    return asdict(await host.report(user))


async def make(host: ConnectorHost, user: UserRef, body: Json) -> Mapping[str, Any]:
    """`{"do": "make"}` begins another one, `"ask"` asks first. Raises HttpError and UsageError."""
    if body.get("do") not in ("make", "ask"):
        raise HttpError(400, MALFORMED)
    return asdict(await host.report(user, anew=True, ask=body["do"] == "ask"))
