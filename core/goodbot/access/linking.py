# SPDX-License-Identifier: Apache-2.0
"""Joining two accounts of one person, and what that does to what they have rated.

The terminal, the browser and the programs of this machine are its owner's: one person, unless that
is ended (`unlink`, `people unlink`). What an account may is its own, whatever it is joined with.
"""

from __future__ import annotations

from collections.abc import Sequence

import aiosqlite

from goodbot.access.authorization import Authorization
from goodbot.store import Store, adapters, ledger, people, scopes, settings
from goodbot.store.consent import OWN

_PLACED = "placed "
"""How the notes in `told` begin that name an account which the start leaves where it is."""
_CHANGED = "kept_joined"


async def join(db: aiosqlite.Connection, scope: str, first: str, second: str, now: float) -> Sequence[str]:
    """Two accounts (`connector:id`) are one person from now on; returns all accounts of theirs."""
    if second in await people.accounts(db, first):
        return await people.accounts(db, first)
    together = await people.link(db, first, second, now)
    await refold(db, scope, together)
    return together


async def refold(db: aiosqlite.Connection, scope: str, persons: Sequence[str]) -> None:
    """What they rated counts anew; an adapter that learnt it otherwise is not to be used."""
    await scopes.regroup(db, persons)
    for turn in await ledger.refold_people(db, persons):
        await adapters.taint(db, scope, turn, _CHANGED)


async def here(db: aiosqlite.Connection, authorization: Authorization, who: str) -> list[str]:
    """The accounts of this one's person at this machine; of one from a chat platform it alone."""
    if not authorization.is_local(who):
        return [who]
    return [one for one in await people.accounts(db, who) if authorization.is_local(one)]


async def part(
    db: aiosqlite.Connection, authorization: Authorization, scope: str, who: str, now: float
) -> bool:
    """An account is a person of its own again; False if it was one. The next start leaves it so."""
    if authorization.is_local(who):
        await settings.tell_once(db, f"{_PLACED}{who}")
    together = await people.unlink(db, who, now, owners=authorization.own())
    await refold(db, scope, together)
    return bool(together)


async def adopt(
    db: aiosqlite.Connection, authorization: Authorization, scope: str, first: str, second: str, now: float
) -> None:
    """An account of this machine is its owner's own, as `first` is; a `share off` holds for it too."""
    for note in (_PLACED, OWN):
        await settings.tell_once(db, f"{note}{second}")
    if await settings.withholds(db, await here(db, authorization, first)):
        await settings.set_share(db, second, False, now, own=False)
    await join(db, scope, first, second, now)


async def adopt_own(store: Store, authorization: Authorization, scope: str, now: float) -> None:
    """Join the accounts that the machine's owner has by the config, each once: an `unlink` lasts.

    At the start: who may what is read from the store first.
    """
    await authorization.refresh(store)
    accounts = authorization.own()

    async def operation(db: aiosqlite.Connection) -> None:
        fresh = [one for one in accounts if await settings.tell_once(db, f"{_PLACED}{one}")]
        known = [one for one in accounts if one not in fresh]
        for one in fresh:
            if one != (first := next(iter(known or accounts))):
                await adopt(db, authorization, scope, first, one, now)

    await store.write(operation)


async def adopted(db: aiosqlite.Connection, accounts: Sequence[str]) -> list[str]:
    """Which of these are the owner's own by what was said at the machine, not by a code alone."""
    return [one for one in accounts if await people.is_own(db, one)]


async def put_back(
    db: aiosqlite.Connection,
    authorization: Authorization,
    scope: str,
    accounts: Sequence[str],
    own: Sequence[str],
    now: float,
) -> None:
    """After `forget` of these accounts: those of this machine are together as they were.

    `own` are those that were `adopted` before it: nobody else becomes the owner's own by forgetting.
    """
    local = [one for one in accounts if authorization.is_local(one)]
    for one in local:
        for note in (_PLACED, OWN) if one in own else (_PLACED,):
            await settings.tell_once(db, f"{note}{one}")
        await join(db, scope, local[0], one, now)
