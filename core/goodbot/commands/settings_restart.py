# SPDX-License-Identifier: Apache-2.0
"""An owner lets goodbot begin anew on its config file, from the page of settings."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from goodbot.api.commands import Grant
from goodbot.api.events import UserRef
from goodbot.api.texts import say
from goodbot.base.errors import UsageError
from goodbot.commands.audit import NOT_ALLOWED, NOT_DONE, audit
from goodbot.commands.overview import in_private, reads
from goodbot.commands.settings_page import settings_seen

if TYPE_CHECKING:
    from goodbot.commands.services import Services

_MOMENT_SECONDS = 0.5
"""Until it stops, so that whoever asked is told first."""


async def restart(services: Services, user: UserRef) -> str:
    """Begin anew on the file as it is now, for an owner, and say so.

    Raises UsageError with a sentence: goodbot goes on as it is.
    """
    language, call = reads(services, user), in_private(services, user, "settings")
    if not services.authorization.may(user, Grant.ADMINISTER):
        await audit(call, "settings", {"restart": True, "refused": NOT_ALLOWED})
        raise UsageError(say("set_owners", language))
    if (await settings_seen(services, user)).trouble:
        await audit(call, "settings", {"restart": True, "refused": NOT_DONE})
        raise UsageError(say("restart_trouble", language))
    await audit(call, "settings", {"restart": True, "done": True})
    asyncio.get_running_loop().call_later(_MOMENT_SECONDS, services.restart.set)
    return say("restart_begun", language)
