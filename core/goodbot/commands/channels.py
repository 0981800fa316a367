# SPDX-License-Identifier: Apache-2.0
"""channels, enable, disable: where the bot answers everybody."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from goodbot.access.authorization import person
from goodbot.api.events import ChannelKind, ChannelRef
from goodbot.api.texts import pauses, say
from goodbot.api.texts.terminal import instead
from goodbot.base.errors import UsageError
from goodbot.base.worded import Worded
from goodbot.commands.base import Call, Result, wrong
from goodbot.store import channels


async def list_or_switch(call: Call) -> Result:
    match call.args:
        case () | ("list",):
            return await _list(call)
        case ("enable", name):
            return await _enable(call, await _named(call, name))
        case ("disable", name):
            return await _disable(call, await _named(call, name))
        case _:
            raise wrong(call.event, "wrong_channels")


async def enable(call: Call) -> Result:
    return await _enable(call, _here(call))


async def disable(call: Call) -> Result:
    return await _disable(call, _here(call))


async def _list(call: Call) -> Result:
    rows, language = await call.services.store.read(channels.everywhere), call.user.language
    met = {(row.connector, row.channel) for row in rows}
    by_config = say("given_config", language)
    lines = [
        f"{row.connector}:{row.channel}  "
        + pauses(
            language,
            say("channel_on", language, day=_day(row.enabled_at), who=row.enabled_by),
            "" if row.noticed_at else say("channel_notice", language),
        )
        for row in rows
    ]
    lines += [  # not running yet
        f"{name}:{id_}  {by_config}"
        for name, grants in call.services.authorization.connectors.items()
        for id_ in grants.channels
        if (name, id_) not in met
    ]
    return Result(
        text="\n".join(lines) or say("channels_none", language),
        data={"channels": [asdict(row) for row in rows]},
    )


async def _enable(call: Call, channel: ChannelRef) -> Result:
    s = call.services
    fresh = await s.store.write(lambda db: channels.enable(db, channel, person(call.user), s.clock.now()))
    if not fresh:
        return Result(text=say("channel_on_already", call.user.language))
    await s.notices.post()
    return Result(text=say("channel_enabled", call.user.language))


async def _disable(call: Call, channel: ChannelRef) -> Result:
    s = call.services
    if s.authorization.configured(channel):
        where = s.config.where(f"connectors.{channel.connector}")
        on = Worded("the config switches {channel} on: take it out here", channel=channel.id)
        raise where.error("channels", on)
    done = await s.store.write(lambda db: channels.disable(db, channel, s.clock.now()))
    return Result(text=say("channel_disabled" if done else "channel_off_already", call.user.language))


def _here(call: Call) -> ChannelRef:
    if call.event.channel.kind is not ChannelKind.SHARED:
        raise wrong(call.event, "wrong_channel_here")
    return call.event.channel


async def _named(call: Call, name: str) -> ChannelRef:
    """The channel `CONNECTOR:ID`. Its account is known while the connector runs, or from before."""
    s = call.services
    connector, colon, id_ = name.partition(":")
    if not (colon and id_ and id_.isprintable()):
        raise wrong(call.event, "wrong_channels")
    known = s.authorization.connectors
    if connector not in known:
        language, near = call.user.language, instead(connector, known, call.user.language)
        raise UsageError(say("no_connector", language, name=repr(connector[:40]), instead=near))
    running = s.connectors.running.get(connector)
    account = running.account if running else ""
    account = account or await s.store.read(lambda db: channels.known_account(db, connector, id_))
    return ChannelRef(connector=connector, account=account, id=id_, kind=ChannelKind.SHARED)


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).date().isoformat()  # noqa: DTZ006  the owner's clock
