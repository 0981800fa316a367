# SPDX-License-Identifier: Apache-2.0
"""link, unlink: several accounts of one person have one vote."""

from __future__ import annotations

import aiosqlite

from goodbot.access import linking, pairing
from goodbot.access.authorization import person
from goodbot.api.events import ChannelKind
from goodbot.api.texts import say
from goodbot.base import one_time
from goodbot.commands.base import Call, Result, wrong
from goodbot.store import settings


async def link(call: Call) -> Result:
    """Without a code, make one; with one, join this account with the one that made it."""
    if call.event.channel.kind is not ChannelKind.PRIVATE:
        raise wrong(call.event, "wrong_link_private")
    return await (_join(call) if call.args else _offer(call))


async def _offer(call: Call) -> Result:
    s = call.services
    expires = s.clock.now() + pairing.LINK_SECONDS
    code = await s.store.write(lambda db: pairing.make(db, pairing.LINK, person(call.user), expires))
    return Result(
        text=f"{code}\n\n{say('link_code', call.user.language, code=code)}",
        data={"code": code, "seconds": pairing.LINK_SECONDS},
        once=True,
    )


async def _join(call: Call) -> Result:
    s, who, now = call.services, person(call.user), call.services.clock.now()
    code = one_time.read(" ".join(call.args))

    async def operation(db: aiosqlite.Connection) -> tuple[str, str]:
        """The other account, or a refusal: the count of wrong guesses must be committed."""
        first, more = await pairing.redeem_link(db, who, code, now) if code else ("", True)
        if not first:
            return "", "wrong_link_code" if more else "wrong_link_often"
        if first == who:
            return "", "wrong_link_same"
        together = await linking.join(db, s.registry.scope, first, who, now)
        await settings.record(db, await settings.alias(db, who), "link", {"accounts": len(together)}, now)
        return first, ""

    other, refusal = await s.store.write(operation)
    if refusal:
        raise wrong(call.event, refusal)
    s.scheduler.wake()
    return Result(text=say("linked", call.user.language, other=other))


async def unlink(call: Call) -> Result:
    s, who, now = call.services, person(call.user), call.services.clock.now()

    async def operation(db: aiosqlite.Connection) -> bool:
        apart = await linking.part(db, s.authorization, s.registry.scope, who, now)
        if apart:
            await settings.record(db, await settings.alias(db, who), "unlink", {}, now)
        return apart

    if not await s.store.write(operation):
        raise wrong(call.event, "wrong_unlink")
    s.scheduler.wake()
    return Result(text=say("unlinked", call.user.language))
