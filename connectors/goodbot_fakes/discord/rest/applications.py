# SPDX-License-Identifier: Apache-2.0
"""The bot itself: its user, its application, its commands, where its gateway is."""

from __future__ import annotations

from goodbot_fakes.discord import payloads
from goodbot_fakes.discord.errors import invalid_form, missing_access, unknown
from goodbot_fakes.discord.rest.routing import Answer, ApiCall, route
from goodbot_fakes.discord.state import State

_SETTABLE = ("description", "install_params", "integration_types_config", "tags", "custom_install_url")
_GLOBAL = "/applications/{application_id}/commands"
_OF_GUILD = "/applications/{application_id}/guilds/{guild_id}/commands"


@route("GET", "/gateway/bot")
def get_gateway(state: State, call: ApiCall) -> Answer:
    limit = {"total": 1000, "remaining": 999, "reset_after": 86_400_000, "max_concurrency": 1}
    return {"url": state.gateway.url, "shards": 1, "session_start_limit": limit}


@route("GET", "/users/@me")
def get_me(state: State, call: ApiCall) -> Answer:
    more = {"mfa_enabled": False, "locale": "en-US", "verified": True, "email": None}
    return payloads.user(state.world.bot) | more


@route("GET", "/users/{user_id}")
def get_user(state: State, call: ApiCall) -> Answer:
    if call.params["user_id"] not in state.world.users:
        raise unknown("User")
    return payloads.user(state.world.users[call.params["user_id"]])


@route("GET", "/users/@me/guilds")
def my_guilds(state: State, call: ApiCall) -> Answer:
    return [
        {
            "id": one.id,
            "name": one.name,
            "icon": None,
            "banner": None,
            "owner": False,
            "permissions": str(one.roles[one.members[state.world.bot.id][0]].permissions),
            "features": [],
        }
        for one in state.world.guilds.values()
    ]


@route("POST", "/users/@me/channels")
def create_dm(state: State, call: ApiCall) -> Answer:
    user_id = str(call.fields().get("recipient_id") or "")
    if user_id not in state.world.users:
        raise invalid_form("recipient_id", "INVALID_RECIPIENT", "Invalid Recipient(s)")
    return state.world.channel_json(state.world.direct(user_id))


@route("GET", "/oauth2/applications/@me")
@route("GET", "/applications/@me")
def get_application(state: State, call: ApiCall) -> Answer:
    return state.application.json(len(state.world.guilds))


@route("PATCH", "/applications/@me")
def change_application(state: State, call: ApiCall) -> Answer:
    for name, value in call.fields().items():
        if name in _SETTABLE:
            state.application.settings[name] = value
    return state.application.json(len(state.world.guilds))


# -- commands: the same for all servers and for one


def _place(state: State, call: ApiCall) -> str:
    if call.params["application_id"] != state.application.id:
        raise unknown("Application")
    guild = call.params.get("guild_id", "")
    if guild and guild not in state.world.guilds:
        raise missing_access()
    return guild


@route("GET", _GLOBAL)
@route("GET", _OF_GUILD)
def list_commands(state: State, call: ApiCall) -> Answer:
    found = state.application.commands.all(_place(state, call))
    if call.query.get("with_localizations", "").lower() in ("1", "true"):
        return found
    return [
        {name: value for name, value in one.items() if not name.endswith("localizations")} for one in found
    ]


@route("PUT", _GLOBAL)
@route("PUT", _OF_GUILD)
def overwrite_commands(state: State, call: ApiCall) -> Answer:
    return state.application.commands.overwrite(call.body or [], _place(state, call))


@route("POST", _GLOBAL)
@route("POST", _OF_GUILD)
def create_command(state: State, call: ApiCall) -> Answer:
    return state.application.commands.put(call.fields(), _place(state, call))


@route("PATCH", _GLOBAL + "/{command_id}")
@route("PATCH", _OF_GUILD + "/{command_id}")
def change_command(state: State, call: ApiCall) -> Answer:
    place, id_ = _place(state, call), call.params["command_id"]
    return state.application.commands.change(id_, call.fields(), place)


@route("DELETE", _GLOBAL + "/{command_id}")
@route("DELETE", _OF_GUILD + "/{command_id}")
def delete_command(state: State, call: ApiCall) -> Answer:
    state.application.commands.remove(call.params["command_id"], _place(state, call))
    return None
