# SPDX-License-Identifier: Apache-2.0
"""How many answers wait for somebody's rating: a number, for a notification that other eyes may see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goodbot.api import texts
from goodbot.api.connector import ConnectorHost
from goodbot.api.events import UserRef

WORDS = ("waiting_page_on", "waiting_page_off", "waiting_page_what", "waiting_page_denied")
"""What the page says of it by itself."""
_MOST = 100
"""So many are counted; more are that many."""


async def page(host: ConnectorHost, user: UserRef, _: Mapping[str, str]) -> Mapping[str, Any]:
    """How many wait, in a sentence, too; no word of anybody's."""
    count = len(await host.inbox(user, limit=_MOST))
    catalogue = texts.catalogue(user.language or texts.ENGLISH)
    return {
        "count": count,
        "told": texts.say("waiting_told", user.language, count=count),
        "words": {name.removeprefix("waiting_page_"): catalogue[name] for name in WORDS},
    }
