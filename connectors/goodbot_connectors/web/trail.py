# SPDX-License-Identifier: Apache-2.0
"""What the page of activity asks for, out of its address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from goodbot.api.activity import ActivityWanted
from goodbot.api.connector import ConnectorHost
from goodbot.api.events import UserRef
from goodbot.base.text import clean

from goodbot_connectors.kit.bridge.refused import HttpError
from goodbot_connectors.web.normalize import MALFORMED

_TEXTS = ("person", "action", "result")
_NUMBERS = ("since", "until", "before")
_LONGEST = 200


async def page(host: ConnectorHost, user: UserRef, query: Mapping[str, str]) -> Mapping[str, Any]:
    """Some of what was done, as JSON takes it. Raises HttpError and UsageError."""
    said: dict[str, Any] = {name: clean(query.get(name, ""))[:_LONGEST].strip() for name in _TEXTS}
    for name in _NUMBERS:
        if number := query.get(name):
            if not (number.isascii() and number.isdecimal() and len(number) < 16):
                raise HttpError(400, MALFORMED)
            said[name] = int(number)
    return asdict(await host.activity(user, ActivityWanted(**said)))


async def check(host: ConnectorHost, user: UserRef, query: Mapping[str, str]) -> Mapping[str, Any]:
    """Whether all of it is as it was written. Raises UsageError."""
    del query
    return asdict(await host.check_activity(user))
