# SPDX-License-Identifier: Apache-2.0
"""What owners are told in private when a part of goodbot fails, and when it works again: once each.

A fault counts once it has stood for a minute, and is over once it is gone for two: what comes and goes is
no news. `OwnerNews` tells what concerns trainings, versions and raters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from goodbot.access import pairing
from goodbot.api.notice import Notice
from goodbot.api.sentences import Reason, sentence, version, words
from goodbot.api.server import BASE
from goodbot.api.texts import reworded, say
from goodbot.commands.services import Services
from goodbot.conversation.notifications.serving import Said
from goodbot.store import acceptance, adapters, news, settings

STANDS, GONE = 60.0, 120.0
"""Seconds before a fault is told, and before its end is."""
_ENOUGH = 30
"""Rated answers of each version, before two are compared."""
_CLEAR = 3.3
"""Standard errors between two shares. It is looked at again and again, so two would come by chance."""
_STORE = "store"
_OF_VERSIONS = ("adapter", "liked")
"""Faults of one version: that they are over is told while it answers. Of another one there is other news."""


class Fault(NamedTuple):
    """Something that is wrong now."""

    subject: str
    """`disk`, or with a name `connector:slack`, `adapter:7`, `liked:7`."""
    said: Said


class Alerts:
    """Level-triggered, as all maintenance: it compares what is wrong with what owners know."""

    def __init__(self, services: Services) -> None:
        self._s = services
        self._since: dict[str, float] = {}
        self._gone: dict[str, float] = {}
        self._unkept: set[str] = set()
        """Keys of what was told while nothing could be stored."""

    async def look(self) -> None:
        """Tell what has begun, and what is over. Raises StoreError."""
        s, now = self._s, self._s.clock.monotonic()
        found = {one.subject: one.said for one in await self._found()}
        self._since = {subject: self._since.get(subject, now) for subject in found}
        for subject, said in found.items():
            if now - self._since[subject] >= STANDS:
                await self._begun(subject, said)
        if s.store.trouble:  # what has been told, and what is over, cannot be asked for
            return
        known = {*await s.store.read(lambda db: news.told_of(db, "fault")), *self._unkept}
        over = [key for key in sorted(known) if key.split(" ")[1] not in found]
        self._gone = {key: self._gone.get(key, now) for key in over}
        for key in over:
            if now - self._gone[key] >= GONE:
                await self._ended(key)

    async def _begun(self, subject: str, said: Said) -> None:
        for owner in self._s.authorization.owners():
            key, kept = f"fault {subject} {owner}", not self._s.store.trouble
            text = said(self._s.courier.readers.language(owner))
            await self._s.courier.tell(Notice(key=key, person=owner, text=text), kept=kept)
            if not kept:
                self._unkept.add(key)

    async def _ended(self, key: str) -> None:
        _, subject, owner = key.split(" ", 2)
        kind, _, name = subject.partition(":")
        another = kind in _OF_VERSIONS and name != str(await self._s.registry.active())
        if another or owner not in self._s.authorization.owners():  # nobody asks any more
            await self._s.courier.over(key)
        else:
            text = say(f"over_{kind}", self._s.courier.readers.language(owner), name=name)
            await self._s.courier.ended(Notice(key=key, person=owner, text=text))
        self._unkept.discard(key)

    async def _found(self) -> list[Fault]:
        s = self._s
        found = [*self._parts()]
        if s.store.trouble:  # then what it holds cannot be asked for
            return [Fault(_STORE, partial(_because, "fault_store", why=s.store.trouble)), *found]
        for name in await s.store.read(lambda db: pairing.locked(db, s.clock.now())):
            found.append(Fault(f"pairing:{name}", partial(say, "fault_pairing", name=name)))
        if lost := await self._lost_version():
            found.append(Fault(f"adapter:{lost}", partial(_lost, lost, await s.registry.active())))
        if said := await self._liked_less():
            found.append(Fault(f"liked:{await s.registry.active()}", said))
        return found

    async def _lost_version(self) -> str:
        """The version that answered until it could not be used, while somebody may still try it again."""
        registry = self._s.registry
        name = adapters.lost_switch(registry.scope, registry.model)
        lost = await self._s.store.read(lambda db: settings.switch(db, name))
        usable = {str(row.version) for row in await registry.rows() if not (row.tainted or row.erased_at)}
        return lost if lost in usable else ""

    def _parts(self) -> Iterator[Fault]:
        s = self._s
        if reserve := s.quotas.no_reserve():
            yield Fault("disk", partial(_worded, reserve))
        if s.presence.state == "down" and not s.memory.away:
            why = s.server.trouble()
            said = partial(_because, "fault_model", why=why) if why else partial(say, "fault_model_ended")
            yield Fault("model", said)
        for name, why in s.connectors.problems.items():
            yield Fault(f"connector:{name}", partial(_because, "fault_connector", name=name, why=why))
        for title, ahead in [*s.connectors.time.ahead.items()][:1]:
            key = "fault_clock_ahead" if ahead > 0 else "fault_clock_behind"
            yield Fault("clock", partial(say, key, title=title, seconds=round(abs(ahead))))
        if s.http.descriptors.trouble:
            yield Fault("descriptors", partial(say, "fault_descriptors"))

    async def _liked_less(self) -> Said | None:
        """That the version which answers is rated worse than the one that it was made from."""
        s = self._s
        active = await s.registry.active()
        if active == BASE:
            return None
        before = (await s.registry.row(active)).parent
        now = await s.store.read(lambda db: acceptance.of(db, s.pool, active))
        then = await s.store.read(lambda db: acceptance.of(db, s.pool, before))
        if min(now.rated, then.rated) < _ENOUGH:
            return None
        share = (now.good + then.good) / (now.rated + then.rated)
        spread = math.sqrt(share * (1 - share) * (1 / now.rated + 1 / then.rated))
        if then.good / then.rated - now.good / now.rated <= _CLEAR * spread:
            return None
        return lambda language: say(
            "fault_liked",
            language,
            version=active,
            good=now.good,
            rated=now.rated,
            other=version(before, language),
            then=then.good,
            of=then.rated,
            back=before,
        )


def _worded(reason: Reason, language: str) -> str:
    return words(reason, language=language)


def _lost(lost: str, active: int, language: str) -> str:
    other = version(active, language, begins=True)
    return say("fault_adapter", language, version=lost, other=other)


def _because(key: str, language: str, *, why: str, **values: str) -> str:
    """What does not work, and why: `why` may be a server's own words."""
    told = say(key, language, why=reworded(why, language), **values)
    return sentence(told, language)
