"""What people can type: `/rl NAME` in a chat, `goodbot NAME` in a terminal. One table for both.

`base` defines a command and how its words are read; the other modules hold the commands by
group and list them in a tuple; `TABLE` here is their sum.
"""

from __future__ import annotations

from goodbot.commands import (
    adapters,
    channels,
    compare,
    export,
    links,
    people,
    privacy,
    probe,
    rating,
    status,
    thought,
    training,
    web,
    why,
)
from goodbot.commands.base import Call, Command, Result, Services, find

TABLE: tuple[Command, ...] = (
    *rating.COMMANDS,
    *status.COMMANDS,
    *why.COMMANDS,
    *thought.COMMANDS,
    *compare.COMMANDS,
    *training.COMMANDS,
    *adapters.COMMANDS,
    *export.COMMANDS,
    *people.COMMANDS,
    *channels.COMMANDS,
    *links.COMMANDS,
    *web.COMMANDS,
    *privacy.COMMANDS,
    *probe.COMMANDS,
)

__all__ = ["TABLE", "Call", "Command", "Result", "Services", "find"]
