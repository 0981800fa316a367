# SPDX-License-Identifier: Apache-2.0
"""link, unlink: several accounts of one person have one vote."""

from __future__ import annotations

import aiosqlite

from goodbot.access import linking, pairing
from goodbot.access.authorization import person
from goodbot.api.events import ChannelKind
from goodbot.base import one_time
from goodbot.base.errors import UsageError
from goodbot.commands.base import Call, Result
from goodbot.store import settings


async def link(call: Call) -> Result:
    """Without a code, make one; with one, join this account with the one that made it."""
    if call.event.channel.kind is not ChannelKind.PRIVATE:
        raise UsageError("accounts are linked in a private chat with me: type it there")
    return await (_join(call) if call.args else _offer(call))


async def _offer(call: Call) -> Result:
    s = call.services
    expires = s.clock.now() + pairing.LINK_SECONDS
    code = await s.store.write(lambda db: pairing.make(db, pairing.LINK, person(call.user), expires))
    return Result(
        text=f"{code}\n\nType `/rl link {code}` to me from your other account, in a private chat, "
        "within 15 minutes. Then both have one vote. Each keeps what it may.",
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
            return "", (
                "that is no code that holds: ask for a fresh one with `/rl link` from the other account"
                if more
                else "too many wrong codes: wait a quarter of an hour"
            )
        if first == who:
            return "", "that is your code for your *other* account: type it there"
        together = await linking.join(db, s.registry.scope, first, who, now)
        await settings.record(db, await settings.alias(db, who), "link", {"accounts": len(together)}, now)
        return first, ""

    other, refusal = await s.store.write(operation)
    if refusal:
        raise UsageError(refusal)
    s.scheduler.wake()
    return Result(
        text=f"{other} and this account are one person now: one vote, the last one given counts; "
        "`forget me` by either forgets both. Each keeps what it may. "
        f"Is {other} not yours? `/rl unlink` ends it."
    )


async def unlink(call: Call) -> Result:
    s, who, now = call.services, person(call.user), call.services.clock.now()

    async def operation(db: aiosqlite.Connection) -> bool:
        apart = await linking.part(db, s.authorization, s.registry.scope, who, now)
        if apart:
            await settings.record(db, await settings.alias(db, who), "unlink", {}, now)
        return apart

    if not await s.store.write(operation):
        raise UsageError("this account is linked with no other")
    s.scheduler.wake()
    return Result(text="This account is a person of its own again.")
