# SPDX-License-Identifier: Apache-2.0
"""web: a link that logs in to the browser, once; signing everybody out; a code for its page of settings."""

from __future__ import annotations

from goodbot.access import login
from goodbot.access.authorization import WEB, person
from goodbot.api.commands import Grant
from goodbot.api.events import ChannelKind
from goodbot.api.texts import commas, say
from goodbot.base.errors import GoodbotError
from goodbot.base.suggest import TERMINAL
from goodbot.commands.base import Call, Result, wrong

SIGN_OUT = "sign-out"
ALLOW = "allow"
_LONGEST = 200
"""Characters of a setting's name."""


async def web(call: Call) -> Result:
    """A one-time link: at the machine for one of the web connector's own, in a chat for oneself."""
    local = call.user.connector == TERMINAL
    _require_running(call, local=local)
    if local and call.args == (SIGN_OUT,):
        return await _sign_out(call)
    if local and call.args[:1] == (ALLOW,) and len(call.args) == 2:
        return await _allow(call, call.args[1][:_LONGEST])
    if local:
        return await _link(call, _named(call))
    if call.event.channel.kind is not ChannelKind.PRIVATE:
        raise wrong(call.event, "wrong_web_private")
    if call.args:
        raise wrong(call.event, "wrong_web")
    who = person(call.user)
    return await _link(call, who.removeprefix(f"{WEB}:"))


def _require_running(call: Call, *, local: bool) -> None:
    s = call.services
    if WEB not in s.authorization.connectors:
        raise wrong(call.event, "wrong_web_setup")
    if WEB not in s.connectors.running:
        raise wrong(call.event, "wrong_web_stopped")
    if why := s.connectors.problems.get(WEB):
        key = "web_broken" if local else "web_broken_now"
        raise GoodbotError(say(key, call.user.language, why=why))


def _named(call: Call) -> str:
    """The user id that is meant at the machine: one of the config's, by default its owner."""
    s = call.services
    if len(call.args) > 1:
        raise wrong(call.event, "wrong_web_here")
    owners = s.authorization.connectors[WEB].owners
    if not call.args and len(owners) != 1:
        flags = commas(call.user.language, *(f"--user {owner}" for owner in owners))
        raise wrong(call.event, "wrong_web_who", flags=flags)
    name = call.args[0] if call.args else owners[0]
    if ":" in name or s.authorization.level_of(f"{WEB}:{name}") < Grant.TALK:
        raise wrong(call.event, "wrong_web_nobody", name=name[:40])
    return name


async def _link(call: Call, user: str) -> Result:
    s = call.services
    code = await s.logins.make(user)
    url = f"{s.http.address}/login#{code}"
    lines = [url, "", say("web_once", call.user.language)]
    if not s.config.http.url:
        lines.append(say("web_machine", call.user.language))
    data = {"url": url, "user": user, "seconds": login.SECONDS}
    return Result(text="\n".join(lines), data=data, once=True)


async def _allow(call: Call, key: str) -> Result:
    """With this code an owner's page changes one setting that the page alone may not."""
    code = await call.services.logins.permit(key)
    text = "\n".join([code, "", say("web_allowed", call.user.language, key=key)])
    return Result(text=text, data={"code": code, "key": key, "seconds": login.SECONDS}, once=True)


async def _sign_out(call: Call) -> Result:
    """Nobody is logged in any more, and no link holds."""
    s = call.services
    await s.logins.drop()
    await s.connectors.running[WEB].sign_out()
    return Result(text=say("web_signed_out", call.user.language))
