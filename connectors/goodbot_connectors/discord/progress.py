# SPDX-License-Identifier: Apache-2.0
"""How far the dispatches of a session are stored: what a RESUME, or a restart, goes on from.

Discord numbers what it sends in a session and sends again, on a RESUME, what comes after the number that
it is given. discord.py gives the number of the last dispatch that came; we give the last one up to
which everything is committed, so that a crash in between loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from yarl import URL

_HOSTS = ".discord.gg"


class Progress:
    """One session's. A dispatch that is being worked on is open.

    `stored` is a plain number, because discord.py's heartbeat reads it from a thread of its own.
    """

    def __init__(self, session: str = "", stored: int = 0) -> None:
        self.session = session
        self.current = stored
        """The number of the dispatch that has come last."""
        self.stored = stored
        """Everything up to this number is committed."""
        self._newest = stored
        self._open: set[int] = set()

    def begin(self) -> int:
        """Something is to be done about the last dispatch; its number, or 0 when that is under way."""
        if self.current in self._open:
            return 0
        self._open.add(self.current)
        return self.current

    def settle(self) -> None:
        """The last dispatch was looked at: whatever is to be done about it has begun."""
        self._newest = max(self._newest, self.current)
        self.stored = self.after(())

    def done(self, number: int) -> None:
        """It is committed, or there was nothing to keep."""
        self._open.discard(number)
        self.stored = self.after(())

    def after(self, numbers: Iterable[int]) -> int:
        """What `stored` will be once these are done, too."""
        left = self._open.difference(numbers)
        return min(left) - 1 if left else self._newest


class Cursor(NamedTuple):
    """Where a session was left: for whom, under which intents, how far, and where it is resumed."""

    account: str = ""
    intents: int = 0
    session: str = ""
    number: int = 0
    seen: int = 0
    """The id of the newest thing that was seen: what is newer than that may have been missed."""
    url: str = ""

    @classmethod
    def read(cls, text: str | None) -> Cursor:
        """What was committed; nothing when it is not to be understood."""
        words = (text or "").split(" ")
        try:
            account, intents, session, number, seen, url = words
            return cls(account, int(intents), session, int(number), int(seen), url)
        except ValueError:
            return cls()

    @classmethod
    def newer(cls, *texts: str | None) -> Cursor:
        """The last of several that were kept in different places."""
        return max(map(cls.read, texts), key=lambda cursor: (cursor.seen, cursor.number))

    def __str__(self) -> str:
        return " ".join(map(str, self))

    def resumes(self, account: str, intents: int, gateway: str) -> bool:
        """Whether the session may be gone on with: ours, with the same intents, and at Discord.

        The token is sent there. `gateway` is set when Discord is elsewhere, in a test.
        """
        if (self.account, self.intents) != (account, intents) or not self.session or not self.url:
            return False
        url = URL(self.url)
        host = url.host or ""
        if gateway:
            return host == URL(gateway).host
        return url.scheme == "wss" and host.endswith(_HOSTS)
