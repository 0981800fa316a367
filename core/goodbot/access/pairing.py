# SPDX-License-Identifier: Apache-2.0
"""One-time codes that prove who somebody is: to become an owner (pair), to be one person (link).

Only a code's hash is stored. Five wrong guesses end it, however many people they came from.
"""

from __future__ import annotations

import hashlib
import hmac
import logging

import aiosqlite

from goodbot.access.authorization import person
from goodbot.api.events import UserRef
from goodbot.base import one_time
from goodbot.store import Store, codes, people, settings

logger = logging.getLogger(__name__)

PAIR_SECONDS = 3600.0
LINK_SECONDS = 900.0
MAX_FAILURES = 5

PAIR = "pair"
LINK = "link"
_GUESSES = "guesses"


async def open_code(store: Store, connector: str, now: float) -> str:
    """A fresh pairing code for one connector, as `ABCD-2345`; the one before it is dead.

    Whoever sends it to the bot there in a private chat within an hour is an owner. Shown once:
    the store has only its hash. Needs no daemon; `now` is seconds since the epoch.
    """
    return await store.write(lambda db: make(db, PAIR, connector, now + PAIR_SECONDS))


async def make(db: aiosqlite.Connection, purpose: str, subject: str, expires_at: float) -> str:
    """Make and remember a code; returns it for people to read."""
    code = one_time.fresh()
    role = "owner" if purpose == PAIR else ""
    await codes.put(db, purpose, subject, _hash(purpose, code), expires_at, role)
    return f"{code[:4]}-{code[4:]}"


async def pair(db: aiosqlite.Connection, user: UserRef, text: str, now: float, *, counts: bool) -> bool:
    """Make the sender of a connector's open code an owner; False when the text is none.

    A wrong one counts, unless it came from somebody who has no need to guess (`counts`).
    """
    code, who = one_time.read(text), person(user)
    if not code or not await _redeem_pairing(db, user.connector, code, now, counts=counts):
        return False
    await people.grant(db, who, "owner", people.PAIRING, now)
    await settings.record(db, who, PAIR, {"connector": user.connector}, now)
    return True


async def _redeem_pairing(
    db: aiosqlite.Connection, connector: str, code: str, now: float, *, counts: bool
) -> bool:
    """Whether this is the connector's open code, which then is used up."""
    held = await codes.get(db, PAIR, connector, now)
    if held is None or held.failures >= MAX_FAILURES:
        return False
    if hmac.compare_digest(held.hash, _hash(PAIR, code)):
        await codes.kill(db, PAIR, connector)
        return True
    if counts and await codes.fail(db, PAIR, connector) == MAX_FAILURES:
        logger.warning("the pairing code of %s is locked after %d wrong ones", connector, MAX_FAILURES)
    return False


async def seen(db: aiosqlite.Connection, connector: str, text: str, now: float) -> str:
    """End each open code that stands in a text which others read; returns for what the last one was.

    Whoever reads it could use it before whom it was made for. What is no code counts as no guess:
    nobody gains a right here.
    """
    if not (found := one_time.within(text)):
        return ""
    ended = ""
    held = [(LINK, code) for code in await codes.unexpired(db, LINK, now)]
    if (pairing := await codes.get(db, PAIR, connector, now)) is not None:
        held.append((PAIR, pairing))
    for purpose, code in held:
        if any(hmac.compare_digest(code.hash, _hash(purpose, one)) for one in found):
            await codes.kill(db, purpose, code.subject)
            logger.warning("a code (%s) was sent where others read it: it does not hold any more", purpose)
            ended = purpose
    return ended


async def locked(db: aiosqlite.Connection, now: float) -> list[str]:
    """The connectors whose pairing code was guessed at too often."""
    held = await codes.unexpired(db, PAIR, now)
    return [code.subject for code in held if code.failures >= MAX_FAILURES]


async def redeem_link(db: aiosqlite.Connection, guesser: str, code: str, now: float) -> tuple[str, bool]:
    """`(who made this link code, whether to guess on)`; nobody ("") when it is wrong.

    A wrong guess names no code, so it counts against the guesser: nobody can end another's code.
    """
    tried = await codes.get(db, _GUESSES, guesser, now)
    if tried is not None and tried.failures >= MAX_FAILURES:
        return "", False
    digest = _hash(LINK, code)
    for held in await codes.unexpired(db, LINK, now):
        if hmac.compare_digest(held.hash, digest):
            await codes.kill(db, LINK, held.subject)
            return held.subject, True
    if tried is None:
        await codes.put(db, _GUESSES, guesser, "", now + LINK_SECONDS, "")
    return "", await codes.fail(db, _GUESSES, guesser) < MAX_FAILURES


def _hash(purpose: str, code: str) -> str:
    return hashlib.sha256(f"{purpose} {code}".encode()).hexdigest()
