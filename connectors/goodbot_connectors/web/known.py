# SPDX-License-Identifier: Apache-2.0
"""What the page of people asks for, out of its address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from goodbot.api.connector import ConnectorHost
from goodbot.api.events import UserRef
from goodbot.api.people import PeopleWanted
from goodbot.base.text import clean

_LONGEST = 200
_LONGEST_AFTER = 512


async def page(host: ConnectorHost, user: UserRef, query: Mapping[str, str]) -> Mapping[str, Any]:
    """Some of the people, as JSON takes them. Raises UsageError."""
    wanted = PeopleWanted(
        text=clean(query.get("text", ""))[:_LONGEST].strip(),
        role=clean(query.get("role", ""))[:_LONGEST],
        after=clean(query.get("after", ""))[:_LONGEST_AFTER],
    )
    return asdict(await host.people(user, wanted))
