# SPDX-License-Identifier: Apache-2.0
"""Out again without a trace: what goodbot has left where, and how each of it goes.

A `Source` finds one kind of thing. Whatever goodbot, or a new feature of it, puts somewhere outside
its state directory has a source in `SOURCES`; a connector's own traces go through its
`ConnectorSetup.remove`. Finding changes nothing, not even a time stamp, and nothing here prints.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from goodbot.cli.uninstall.data import backups, home, restores
from goodbot.cli.uninstall.machine import daemon, scratch, service, sockets
from goodbot.cli.uninstall.platforms import platforms, tokens
from goodbot.cli.uninstall.trace import Leaving, Trace
from goodbot.cli.uninstall.weights import weights

__all__ = ["SOURCES", "Leaving", "Source", "Trace", "find"]

Source = Callable[[Leaving], Awaitable[Sequence[Trace]]]

SOURCES: tuple[Source, ...] = (
    *(service, daemon, platforms, tokens, sockets, scratch, weights),
    *(restores, backups, home),
)
"""In the order in which things must go: who uses a thing, before the thing."""


async def find(leaving: Leaving) -> list[Trace]:
    """All that is there, in the order in which it must be removed."""
    return [trace for source in SOURCES for trace in await source(leaving)]
