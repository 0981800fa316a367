# SPDX-License-Identifier: Apache-2.0
"""What the pages of people, of activity and of the report ask for, and a number for the inbox.

Each takes what an address says and answers as JSON does. Raises UsageError, and HttpError where it says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from goodbot.api import texts
from goodbot.api.activity import ActivityWanted
from goodbot.api.connector import ConnectorHost
from goodbot.api.events import UserRef
from goodbot.api.people import PeopleWanted
from goodbot.base.text import clean

from goodbot_connectors.kit.bridge.refused import HttpError
from goodbot_connectors.kit.fields import Json
from goodbot_connectors.web.normalize import MALFORMED

WORDS = ("waiting_page_on", "waiting_page_off", "waiting_page_what", "waiting_page_denied")
"""What the page says of the number by itself."""
_TEXTS = ("person", "action", "result")
_NUMBERS = ("since", "until", "before")
_LONGEST = 200
_LONGEST_AFTER = 512
_MOST = 100
"""So many answers that wait are counted; more are that many."""


async def people(host: ConnectorHost, user: UserRef, query: Mapping[str, str]) -> Mapping[str, Any]:
    """Some of the people."""
    wanted = PeopleWanted(
        text=clean(query.get("text", ""))[:_LONGEST].strip(),
        role=clean(query.get("role", ""))[:_LONGEST],
        after=clean(query.get("after", ""))[:_LONGEST_AFTER],
    )
    return asdict(await host.people(user, wanted))


async def activity(host: ConnectorHost, user: UserRef, query: Mapping[str, str]) -> Mapping[str, Any]:
    """Some of what was done. Raises HttpError."""
    said: dict[str, Any] = {name: clean(query.get(name, ""))[:_LONGEST].strip() for name in _TEXTS}
    for name in _NUMBERS:
        if number := query.get(name):
            if not (number.isascii() and number.isdecimal() and len(number) < 16):
                raise HttpError(400, MALFORMED)
            said[name] = int(number)
    return asdict(await host.activity(user, ActivityWanted(**said)))


async def checked(host: ConnectorHost, user: UserRef, _: Mapping[str, str]) -> Mapping[str, Any]:
    """Whether all that was done is as it was written."""
    return asdict(await host.check_activity(user))


async def report(host: ConnectorHost, user: UserRef, _: Mapping[str, str]) -> Mapping[str, Any]:
    """The report that was made last."""
    return asdict(await host.report(user))


async def make_report(host: ConnectorHost, user: UserRef, body: Json) -> Mapping[str, Any]:
    """`{"do": "make"}` begins another one, `"ask"` asks first. Raises HttpError."""
    if body.get("do") not in ("make", "ask"):
        raise HttpError(400, MALFORMED)
    return asdict(await host.report(user, anew=True, ask=body["do"] == "ask"))


async def waiting(host: ConnectorHost, user: UserRef, _: Mapping[str, str]) -> Mapping[str, Any]:
    """How many answers wait for their rating, in a sentence, too; no word of anybody's.

    It is for a notification that other eyes may see.
    """
    count = len(await host.inbox(user, limit=_MOST))
    catalogue = texts.catalogue(user.language or texts.ENGLISH)
    return {
        "count": count,
        "told": texts.say("waiting_told", user.language, count=count),
        "words": {name.removeprefix("waiting_page_"): catalogue[name] for name in WORDS},
    }
