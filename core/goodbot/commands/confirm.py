"""Asking back: what cannot be undone is done only when it is said twice, soon, at one place."""

from __future__ import annotations

from goodbot.clock import Clock
from goodbot.commands.base import Call
from goodbot.people.authorization import person

SECONDS = 60.0
_OPEN = 1000

_Key = tuple[str, str, str, str, str]


class Confirmations:
    """What was asked of whom, in memory: after a restart it is asked again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[_Key, float] = {}

    def ask(self, call: Call, what: str) -> None:
        """Remember that this person was asked here whether they mean `what`."""
        now = self._clock.monotonic()
        self._until = {key: until for key, until in self._until.items() if until > now}
        if len(self._until) < _OPEN:
            self._until[_key(call, what)] = now + SECONDS

    def take(self, call: Call, what: str) -> bool:
        """Whether this person was asked that here within a minute; the answer counts once."""
        until = self._until.pop(_key(call, what), None)
        return until is not None and self._clock.monotonic() < until


def _key(call: Call, what: str) -> _Key:
    channel = call.event.channel
    return (person(call.user), channel.connector, channel.account, channel.id, what)
