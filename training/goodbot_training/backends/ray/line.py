# SPDX-License-Identifier: Apache-2.0
"""What the workers of one training are to do, in order; an actor of the cluster, on the driver's machine.

A worker that is lost takes nothing with it: Ray starts all of them anew, they ask where to begin, and do
again what was ordered since the last checkpoint. So the cluster needs no disk that all machines share.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any, Protocol

from goodbot.base.errors import TrainingError
from goodbot.base.worded import Worded

END = "end"
STATE = "state"
Result = tuple[dict[str, Any], bytes]
"""What an order has come to, and the bytes that it asked for."""


class Orders(Protocol):
    """A line, from near or from far."""

    async def begin(self, address: str) -> tuple[int, bytes]:
        """The number of the first order that is to be done, and the state to do it in."""
        ...

    async def order(self, number: int) -> dict[str, Any]:
        """The order of that number, once there is one: `what`, and a batch."""
        ...

    async def done(self, number: int, found: dict[str, Any], body: bytes) -> None:
        """Say what an order has come to."""
        ...


class OrderLine:
    """See the module; `machines` are those that people's words may go to."""

    def __init__(self, state: bytes, machines: Sequence[str]) -> None:
        self._state, self._at = state, 0
        self._machines = machines
        self._orders: dict[int, dict[str, Any]] = {}
        self._results: dict[int, Result] = {}
        self._next, self._news = 0, asyncio.Condition()
        self._end: int | None = None
        self.begun = 0
        """How many workers have begun, those that took another's place too."""

    async def begin(self, address: str) -> tuple[int, bytes]:
        """See `Orders`. Raises TrainingError for a machine that nobody has named."""
        refuse_others([address], self._machines)
        self.begun += 1
        # Whom nobody waits for any more does nothing again.
        return (self._at if self._end is None else self._end), self._state

    async def give(self, order: dict[str, Any]) -> int:
        """One order more; its number."""
        async with self._news:
            number, self._next = self._next, self._next + 1
            self._orders[number] = order
            if order["what"] == END:
                self._end = number
            self._news.notify_all()
        return number

    async def order(self, number: int) -> dict[str, Any]:
        """See `Orders`."""
        async with self._news:
            await self._news.wait_for(lambda: number in self._orders)
            return self._orders[number]

    async def done(self, number: int, found: dict[str, Any], body: bytes) -> None:
        """See `Orders`. What is done again was told before."""
        async with self._news:
            order = self._orders.get(number)
            if order is None or number in self._results:
                return
            self._results[number] = found, body
            if order["what"] == STATE and body:
                self._state, self._at = body, number + 1
                # A worker may be behind by orders that need no other worker, never by a step.
                self._orders = {
                    one: what for one, what in self._orders.items() if one > number or what["what"] == STATE
                }
            self._news.notify_all()

    async def result(self, number: int) -> Result:
        """What an order has come to, once; it is forgotten here then."""
        async with self._news:
            await self._news.wait_for(lambda: number in self._results)
            found, _ = result = self._results[number]
            self._results[number] = found, b""
            return result


def is_here(address: str) -> bool:
    """Whether an address leads to no other machine."""
    return ip_address(address).is_loopback


def is_named(address: str, named: Sequence[str]) -> bool:
    """Whether people's words may go there."""
    return is_here(address) or address in named


def refuse_clear(machines: Sequence[str], encrypted: bool) -> None:
    """Raise TrainingError where words would go to another machine in clear."""
    for address in machines:
        if not (encrypted or is_here(address)):
            clear = (
                "The cluster has the machine {address}, and Ray would send questions and rated answers "
                "there in clear: set RAY_USE_TLS=1 and Ray's certificates in goodbot's environment."
            )
            raise TrainingError(Worded(clear, address=address), kind="forbidden")


def refuse_others(machines: Sequence[str], named: Sequence[str]) -> None:
    """Raise TrainingError unless each is this machine or one that an owner has named."""
    for address in machines:
        if not is_named(address, named):
            other = (
                "The cluster has the machine {address}, and nobody has allowed that questions and rated "
                "answers go there. If you do, add it to hosts under [training.remote]."
            )
            raise TrainingError(Worded(other, address=address), kind="forbidden")
