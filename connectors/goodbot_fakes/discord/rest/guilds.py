# SPDX-License-Identifier: Apache-2.0
"""Servers that the bot is in."""

from __future__ import annotations

from goodbot_fakes.discord import intents, payloads
from goodbot_fakes.discord.errors import missing_access, unknown
from goodbot_fakes.discord.permissions import VIEW_CHANNEL
from goodbot_fakes.discord.records import THREAD, Guild
from goodbot_fakes.discord.rest.routing import Answer, ApiCall, route
from goodbot_fakes.discord.state import State


def _guild(state: State, call: ApiCall) -> Guild:
    guild = state.world.guilds.get(call.params["guild_id"])
    if guild is None or state.world.bot.id not in guild.members:
        raise unknown("Guild")
    return guild


@route("GET", "/guilds/{guild_id}")
def get_guild(state: State, call: ApiCall) -> Answer:
    return payloads.guild(_guild(state, call))


@route("GET", "/guilds/{guild_id}/channels")
def list_channels(state: State, call: ApiCall) -> Answer:
    found = state.world.guild_channels(_guild(state, call))
    return [state.world.channel_json(one) for one in found]


@route("GET", "/guilds/{guild_id}/roles")
def list_roles(state: State, call: ApiCall) -> Answer:
    roles = _guild(state, call).roles.values()
    return [payloads.role(one, n) for n, one in enumerate(roles)]


@route("GET", "/guilds/{guild_id}/threads/active")
def active_threads(state: State, call: ApiCall) -> Answer:
    guild, world = _guild(state, call), state.world
    found = [
        one
        for one in world.channels.values()
        if one.guild_id == guild.id
        and one.kind == THREAD
        and not one.archived
        and world.rights(one) & VIEW_CHANNEL
    ]
    return {"threads": [world.channel_json(one) for one in found], "members": [], "has_more": False}


@route("GET", "/guilds/{guild_id}/members/{user_id}")
def get_member(state: State, call: ApiCall) -> Answer:
    guild, user_id = _guild(state, call), call.params["user_id"]
    if user_id not in guild.members:
        raise unknown("Member")
    return payloads.member(state.world.users[user_id], guild)


@route("GET", "/guilds/{guild_id}/members")
def list_members(state: State, call: ApiCall) -> Answer:
    guild = _guild(state, call)
    if intents.GUILD_MEMBERS not in state.application.privileged:
        raise missing_access()
    after, limit = int(call.query.get("after", "0")), call.number("limit", 1, 1000)
    ids = sorted((id_ for id_ in guild.members if int(id_) > after), key=int)
    return [payloads.member(state.world.users[id_], guild) for id_ in ids[:limit]]
