# SPDX-License-Identifier: Apache-2.0
"""channels, enable, disable: where the bot answers everybody."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from goodbot.access.authorization import person
from goodbot.api.events import ChannelKind, ChannelRef
from goodbot.base.errors import UsageError
from goodbot.base.suggest import instead
from goodbot.commands.base import Call, Result
from goodbot.store import channels

_USAGE = "type `channels`, `channels enable CONNECTOR:ID` or `channels disable CONNECTOR:ID`"


async def list_or_switch(call: Call) -> Result:
    match call.args:
        case () | ("list",):
            return await _list(call)
        case ("enable", name):
            return await _enable(call, await _named(call, name))
        case ("disable", name):
            return await _disable(call, await _named(call, name))
        case _:
            raise UsageError(_USAGE)


async def enable(call: Call) -> Result:
    return await _enable(call, _here(call))


async def disable(call: Call) -> Result:
    return await _disable(call, _here(call))


async def _list(call: Call) -> Result:
    rows = await call.services.store.read(channels.everywhere)
    met = {(row.connector, row.channel) for row in rows}
    lines = [
        f"{row.connector}:{row.channel}  since {_day(row.enabled_at)}, by {row.enabled_by}"
        + ("" if row.noticed_at else "; its notice is posted as soon as the bot can")
        for row in rows
    ]
    lines += [  # not running yet
        f"{name}:{id_}  by the config"
        for name, grants in call.services.authorization.connectors.items()
        for id_ in grants.channels
        if (name, id_) not in met
    ]
    return Result(
        text="\n".join(lines) or "I am on in no channel: `/rl enable` in one switches me on there",
        data={"channels": [asdict(row) for row in rows]},
    )


async def _enable(call: Call, channel: ChannelRef) -> Result:
    s = call.services
    fresh = await s.store.write(lambda db: channels.enable(db, channel, person(call.user), s.clock.now()))
    if not fresh:
        return Result(text="I am on there already.")
    await s.notices.post()
    return Result(
        text="I answer here from now on, when I am mentioned or replied to. What you rate in private "
        "goes on teaching me: `/rl share off` keeps your private chats out."
    )


async def _disable(call: Call, channel: ChannelRef) -> Result:
    s = call.services
    if s.authorization.configured(channel):
        where = s.config.where(f"connectors.{channel.connector}")
        raise where.error("channels", f"the config switches {channel.id} on: take it out here")
    done = await s.store.write(lambda db: channels.disable(db, channel, s.clock.now()))
    return Result(text="I am off there." if done else "I was not on there.")


def _here(call: Call) -> ChannelRef:
    if call.event.channel.kind is not ChannelKind.SHARED:
        raise UsageError(
            "only a group or a channel is switched on or off: type it there, or name it with "
            "`channels`; a person is let in with `people grant`"
        )
    return call.event.channel


async def _named(call: Call, name: str) -> ChannelRef:
    """The channel `CONNECTOR:ID`. Its account is known while the connector runs, or from before."""
    s = call.services
    connector, colon, id_ = name.partition(":")
    if not (colon and id_ and id_.isprintable()):
        raise UsageError(_USAGE)
    known = s.authorization.connectors
    if connector not in known:
        raise UsageError(f"there is no connector {connector[:40]!r}; {instead(connector, known)}")
    running = s.connectors.running.get(connector)
    account = running.account if running else ""
    account = account or await s.store.read(lambda db: channels.known_account(db, connector, id_))
    return ChannelRef(connector=connector, account=account, id=id_, kind=ChannelKind.SHARED)


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).date().isoformat()  # noqa: DTZ006  the owner's clock
