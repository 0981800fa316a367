# SPDX-License-Identifier: Apache-2.0
"""Commands that a crash has left undone, and that wait for their platform: they come after newer ones.

None of them overrules what somebody was told as done meanwhile: it is told as not done. Owners' commands
overrule each other's. What people say for themselves (`share`, say) is overruled by themselves alone: a
platform may tell of newer words while it is still being connected to. Ratings need none of that: each
was stored when it came in (`CommandRunner.at_once`), and counts where it was said (`store/placing`).

Whoever was forgotten meanwhile, on whichever of their accounts, has said nothing: what waited is not done,
a rating neither, and no owner's word that was said before it brings them back.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Iterable, Sequence

from goodbot.access.authorization import person
from goodbot.api.events import Event
from goodbot.store import Store, inbox, people, trail

_KINDS = (
    frozenset(
        (
            *("train", "pause", "resume", "off", "cancel", "release", "switch"),
            *("rollback", "reset", "adapters"),
        )
    ),
    frozenset(("people", "pair")),
    frozenset(("channels", "enable", "disable")),
)
"""What changes the same thing: what answers and learns, who may, where."""
_OWN = (frozenset(("share",)), frozenset(("link", "unlink")), frozenset(("notes",)))
"""The same of what people may say for themselves."""
_LOOKED_AT = frozenset(("people", "channels", "adapters", "share", "link", "notes"))
_LOOKS = frozenset(("list", "show", "diff", "export"))
"""First words with which those change nothing, as without any."""
_BRINGS_BACK = ("grant", "link")
"""First words with which `people` gives somebody what `forget` has taken."""


class LateCommands:
    """Those that wait, and what was done since."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._left = set[tuple[str, str, str]]()
        """Those and all others that were left undone."""
        self._since: dict[tuple[str, str, str], int] = {}
        self._own = set[int]()
        """Entries of the trail that they have made themselves."""
        self._said = set[tuple[str, frozenset[str]]]()
        """Who has changed what for themselves, since some of them wait: by account."""

    def left(self, events: Iterable[Event]) -> None:
        """They were accepted and not done when the last process ended."""
        self._left |= {key_of(event) for event in events}

    async def forgotten(self, event: Event) -> bool:
        """Whether who said it was forgotten since it was left undone: `inbox.forget` has emptied it."""
        if key_of(event) not in self._left:
            return False
        return not await self._store.read(lambda db: inbox.is_open(db, event))

    def wait(self, events: Iterable[Event], since: int) -> None:
        """They were left undone before the entry `since` of the audit trail."""
        self._since |= {key_of(event): since for event in events}

    async def overtaken(self, event: Event, name: str, args: Sequence[str]) -> bool:
        """Whether something of its kind was done since it was left undone."""
        since = self._since.get(key_of(event))
        if since is None or not _changes(name, args):
            return False
        if own := _kind(_OWN, name):
            return (person(event.user), own) in self._said
        kind = _kind(_KINDS, name)
        if kind is None:
            return False
        brings = name == "people" and args[0] in _BRINGS_BACK
        newer = kind | {"forget"} if brings else kind
        done = await self._store.read(lambda db: trail.done_after(db, since, newer))
        return any(_changes(action, said.split()) for seq, action, said in done if seq not in self._own)

    async def said(self, event: Event, name: str, args: Sequence[str]) -> None:
        """Somebody has said something for themselves just now, and maybe one of these says otherwise."""
        # Who is forgotten takes back all of it.
        own = _OWN if (name, *args) == ("forget", "me", "yes") else [one for one in _OWN if name in one]
        if not self._since or not own or key_of(event) in self._since or not _changes(name, args):
            return
        who = person(event.user)
        # `share`, say, is said for all accounts that are one person.
        together = await self._store.read(lambda db: people.accounts(db, who))
        self._said |= {(account, one) for account in (who, *together) for one in own}

    @contextlib.asynccontextmanager
    async def done(self, event: Event) -> AsyncGenerator[None]:
        """While one of them is done: what the next of them finds of it has overtaken nobody."""
        if key_of(event) not in self._since:
            yield
            return
        before = await self._store.read(trail.newest)
        try:
            yield
        finally:
            self._own.update(range(before + 1, await self._store.read(trail.newest) + 1))


def _kind(kinds: Iterable[frozenset[str]], name: str) -> frozenset[str] | None:
    return next((kind for kind in kinds if name in kind), None)


def _changes(name: str, args: Sequence[str]) -> bool:
    return not (name in _LOOKED_AT and (not args or args[0] in _LOOKS))


def key_of(event: Event) -> tuple[str, str, str]:
    """What a command is called while it waits."""
    return (event.user.connector, event.user.account, event.event_id)
