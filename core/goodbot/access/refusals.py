# SPDX-License-Identifier: Apache-2.0
"""What was refused in silence, by its id: read again after an outage, it is not done with rights of later.

By order of events, so by no clock: what comes first decides. In memory, for a crowd is to cost no space:
a restart forgets it, and then only what a platform tells again of the last minutes is decided anew.
"""

from __future__ import annotations

from collections import OrderedDict

from goodbot.api.events import Event

MOST = 20_000
"""The newest; no platform tells so much again."""
_Key = tuple[str, str, str]


class Refusals:
    """Remembers them."""

    def __init__(self) -> None:
        self._keys: OrderedDict[_Key, None] = OrderedDict()

    def add(self, event: Event) -> None:
        """This was refused, and nothing of it is stored."""
        self._keys[_key(event)] = None
        if len(self._keys) > MOST:
            self._keys.popitem(last=False)

    def discard(self, event: Event) -> None:
        """That is not so: it may come again."""
        self._keys.pop(_key(event), None)

    def __contains__(self, event: Event) -> bool:
        return _key(event) in self._keys


def _key(event: Event) -> _Key:
    return (event.user.connector, event.user.account, event.event_id)
