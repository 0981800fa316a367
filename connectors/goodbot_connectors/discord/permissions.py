# SPDX-License-Identifier: Apache-2.0
"""What the bot needs on a server, computed from the REST routes that the code calls.

`Api.call` refuses any other route, so neither the invite link nor the doctor can drift from the code.
Bits as in discord.com/developers/docs/topics/permissions.
"""

from __future__ import annotations

from goodbot.api.setup import Permission

_READ = ("VIEW_CHANNEL", "READ_MESSAGE_HISTORY")
_MESSAGES = "/channels/{channel_id}/messages"
_MESSAGE = f"{_MESSAGES}/{{message_id}}"
_REACTION = f"{_MESSAGE}/reactions/{{emoji}}"
_COMMANDS = "/applications/{application_id}/commands"
_ORIGINAL = "/webhooks/{webhook_id}/{webhook_token}/messages/@original"

ROUTES: dict[str, tuple[str, ...]] = {
    "GET /applications/@me": (),
    f"GET {_COMMANDS}": (),
    f"PUT {_COMMANDS}": (),
    "GET /channels/{channel_id}": ("VIEW_CHANNEL",),
    f"GET {_MESSAGES}": _READ,
    # An answer in a server quotes the question, for which Discord asks for the history.
    f"POST {_MESSAGES}": (*_READ, "SEND_MESSAGES", "SEND_MESSAGES_IN_THREADS"),
    f"GET {_MESSAGE}": _READ,
    f"PATCH {_MESSAGE}": (),
    f"DELETE {_MESSAGE}": (),
    f"GET {_REACTION}": _READ,
    f"PUT {_REACTION}/@me": (*_READ, "ADD_REACTIONS"),
    f"DELETE {_REACTION}/@me": (),
    "POST /channels/{channel_id}/typing": ("SEND_MESSAGES",),
    "GET /gateway/bot": (),
    "GET /guilds/{guild_id}": (),
    "GET /guilds/{guild_id}/members": (),
    "GET /guilds/{guild_id}/members/{user_id}": (),
    "POST /interactions/{webhook_id}/{webhook_token}/callback": (),
    "GET /users/@me": (),
    "POST /users/@me/channels": (),
    "POST /webhooks/{webhook_id}/{webhook_token}": (),
    f"PATCH {_ORIGINAL}": (),
    f"DELETE {_ORIGINAL}": (),
}
"""Each route that is called, and the permissions that it takes in a server."""
BITS = {
    "ADD_REACTIONS": 1 << 6,
    "VIEW_CHANNEL": 1 << 10,
    "SEND_MESSAGES": 1 << 11,
    "READ_MESSAGE_HISTORY": 1 << 16,
    "SEND_MESSAGES_IN_THREADS": 1 << 38,
}
ADMINISTRATOR = 1 << 3
"""Whoever has it may everything."""
WHY = {
    "ADD_REACTIONS": "nods with ✅ for ten seconds when a reaction was counted",
    "VIEW_CHANNEL": "sees the channels that it is to answer in",
    "SEND_MESSAGES": "answers where it is mentioned",
    "READ_MESSAGE_HISTORY": "quotes the question; after an outage reads reactions that it missed",
    "SEND_MESSAGES_IN_THREADS": "answers in threads and forum posts",
}
"""What goodbot does with each, one line each."""
INTENTS = {
    "GUILDS": 1 << 0,
    "GUILD_MESSAGES": 1 << 9,
    "GUILD_MESSAGE_REACTIONS": 1 << 10,
    "DIRECT_MESSAGES": 1 << 12,
    "DIRECT_MESSAGE_REACTIONS": 1 << 13,
}
"""What the gateway is asked to send; none of it is privileged."""
MESSAGE_CONTENT = 1 << 15
"""The privileged intent, asked for with `message_content = true`."""
_INVITE = "https://discord.com/oauth2/authorize"
_SCOPES = "bot+applications.commands"


def needed() -> tuple[str, ...]:
    """The permissions that are needed, in the order of their bits."""
    names = {name for names in ROUTES.values() for name in names}
    return tuple(sorted(names, key=BITS.__getitem__))


def explained() -> tuple[Permission, ...]:
    """The same, each with what it is for."""
    return tuple(Permission(name=name, why=WHY[name]) for name in needed())


def bits() -> int:
    """The same as a number, as Discord's links have it."""
    return sum(BITS[name] for name in needed())


def invite(application: str) -> str:
    """The link with which somebody adds the bot to a server of theirs."""
    return f"{_INVITE}?client_id={application}&scope={_SCOPES}&permissions={bits()}"


def intents(*, message_content: bool) -> int:
    """The intents as a number, as IDENTIFY has it."""
    return sum(INTENTS.values()) | (MESSAGE_CONTENT if message_content else 0)


def missing(has: int) -> tuple[str, ...]:
    """What is missing of what is needed, when a member's permissions are `has`."""
    if has & ADMINISTRATOR:
        return ()
    return tuple(name for name in needed() if not has & BITS[name])
