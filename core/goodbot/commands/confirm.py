# SPDX-License-Identifier: Apache-2.0
"""Asking back: what cannot be undone is done only when it is said twice, soon, at one place."""

from __future__ import annotations

from goodbot.access.authorization import person
from goodbot.api.actions import run
from goodbot.api.events import ChannelKind
from goodbot.api.texts import joined, say
from goodbot.base.clock import Clock
from goodbot.commands.base import Call, Result

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


def agreed(call: Call, what: str, *, sure: bool, programs: bool = False) -> bool:
    """Whether `what` is to be done now: it is said a second time, or a program has asked, of which nobody
    is asked back; with `programs` it must be `sure` as well."""
    if call.direct:
        return sure or not programs
    return sure and call.services.confirmations.take(call, what)


def ask(call: Call, what: str, question: str, *, command: str, label: str, personal: bool = False) -> Result:
    """Ask a person back; `command`, said or pressed by them here within a minute, does it.

    `personal`: what is asked in a shared channel, they are asked in private.
    """
    call.services.confirmations.ask(call, what)
    elsewhere = personal and call.event.channel.kind is ChannelKind.SHARED
    language = call.user.language
    how = say("confirm_there" if elsewhere else "confirm_here", language, command=command)
    return Result(
        text=joined(language, _too_late(call), question, how),
        offer=(run(command, label),),
        data={"asked": True},
    )


def _too_late(call: Call) -> str:
    """What comes before a question that was answered before it was asked, or long after."""
    if call.args[-1:] != ("yes",):
        return ""
    return say("confirm_late", call.user.language)


def _key(call: Call, what: str) -> _Key:
    channel = call.event.channel
    return (person(call.user), channel.connector, channel.account, channel.id, what)
