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
        self.begun = 0
        """How many workers have begun, those that took another's place too."""

    async def begin(self, address: str) -> tuple[int, bytes]:
        """See `Orders`. Raises TrainingError for a machine that nobody has named."""
        refuse_others([address], self._machines)
        self.begun += 1
        return self._at, self._state

    async def give(self, order: dict[str, Any]) -> int:
        """One order more; its number."""
        async with self._news:
            number, self._next = self._next, self._next + 1
            self._orders[number] = order
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


def refuse_others(machines: Sequence[str], named: Sequence[str]) -> None:
    """Raise TrainingError unless each is this machine or one that an owner has named."""
    for address in machines:
        if not ip_address(address).is_loopback and address not in named:
            raise TrainingError(
                f"The cluster has the machine {address}, and nobody has allowed that questions and rated "
                "answers go there: if you do, add it to hosts under [training.remote].",
                kind="forbidden",
            )
