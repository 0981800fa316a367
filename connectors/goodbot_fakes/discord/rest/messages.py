# SPDX-License-Identifier: Apache-2.0
"""Messages and reactions."""

from __future__ import annotations

from typing import Any

from goodbot_fakes.discord import contents, drafts, payloads
from goodbot_fakes.discord.errors import DiscordError, invalid_form, missing_permissions, unknown
from goodbot_fakes.discord.permissions import (
    ADD_REACTIONS,
    MANAGE_MESSAGES,
    READ_MESSAGE_HISTORY,
    require,
    to_send,
)
from goodbot_fakes.discord.records import EPHEMERAL, FORUM, Channel, Message
from goodbot_fakes.discord.rest.channels import visible
from goodbot_fakes.discord.rest.routing import Answer, ApiCall, route
from goodbot_fakes.discord.state import State

Json = dict[str, Any]
_MESSAGES = "/channels/{channel_id}/messages"
_MESSAGE = _MESSAGES + "/{message_id}"
_REACTIONS = _MESSAGE + "/reactions/{emoji_name}"


def _message(state: State, call: ApiCall, *needed: int) -> tuple[Channel, Message]:
    channel = visible(state, call, *needed)
    return channel, state.world.message(channel.id, call.params["message_id"])


def _shown(state: State, channel: Channel, message: Message) -> Json:
    """REST hides words by what is switched on for the application, not by a connection's intents."""
    return contents.readable(
        state.world.message_json(message),
        bot=state.world.bot.id,
        private=channel.private,
        allowed=state.application.reads_content,
    )


@route("GET", _MESSAGES)
def list_messages(state: State, call: ApiCall) -> Answer:
    """Newest first. Without the right to read the history there is none."""
    channel = visible(state, call)
    if not state.world.rights(channel) & READ_MESSAGE_HISTORY:
        return []
    limit, found = call.number("limit", 50, 100), state.world.in_channel(channel.id)
    if "after" in call.query:
        found = [one for one in found if int(one.id) > int(call.query["after"])][:limit]
    elif "before" in call.query:
        found = [one for one in found if int(one.id) < int(call.query["before"])]
    elif "around" in call.query:
        middle = int(call.query["around"])
        below = [one for one in found if int(one.id) < middle][-(limit // 2) :]
        found = below + [one for one in found if int(one.id) >= middle][: limit - len(below)]
    return [_shown(state, channel, one) for one in reversed(found[-limit:])]


@route("GET", _MESSAGE)
def get_message(state: State, call: ApiCall) -> Answer:
    return _shown(state, *_message(state, call, READ_MESSAGE_HISTORY))


@route("POST", _MESSAGES)
def create_message(state: State, call: ApiCall) -> Answer:
    channel, body, world = visible(state, call), call.fields(), state.world
    require(world.rights(channel), to_send(channel))
    if channel.kind == FORUM:
        raise DiscordError(400, 50008, "Cannot send messages in a non-text channel")
    if channel.private and not all(world.users[who].takes_messages for who in channel.recipients):
        raise DiscordError(403, 50007, "Cannot send messages to this user")
    nonce = str(body.get("nonce") or "")
    if nonce and body.get("enforce_nonce"):
        for one in world.in_channel(channel.id)[-20:]:
            if one.nonce == nonce and one.author_id == world.bot.id:
                return world.message_json(one)
    reference: Json = body.get("message_reference") or {}
    reply_to = str(reference.get("message_id") or "")
    if reply_to:
        require(world.rights(channel), READ_MESSAGE_HISTORY)
        answered = world.messages.get(reply_to)
        if answered is None or answered.channel_id != channel.id:
            if reference.get("fail_if_not_exists", True):
                raise invalid_form("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
            reply_to = ""
    made = drafts.draft(world, channel, body)
    made["flags"] &= ~EPHEMERAL
    pings = (body.get("allowed_mentions") or {"replied_user": True}).get("replied_user")
    message = world.post(
        channel, world.bot.id, reply_to=reply_to, nonce=nonce, silent_reply=not pings, **made
    )
    return world.message_json(message)


@route("PATCH", _MESSAGE)
def edit_message(state: State, call: ApiCall) -> Answer:
    channel, message = _message(state, call)
    _not_archived(channel)
    if message.author_id != state.world.bot.id:
        raise DiscordError(403, 50005, "Cannot edit a message authored by another user")
    drafts.change(state.world, message, call.fields())
    return state.world.message_json(message)


@route("DELETE", _MESSAGE)
def delete_message(state: State, call: ApiCall) -> Answer:
    channel, message = _message(state, call)
    if message.author_id != state.world.bot.id:
        if channel.private:
            raise DiscordError(403, 50003, "Cannot execute action on a DM channel")
        require(state.world.rights(channel), MANAGE_MESSAGES)
    state.world.delete(message)
    return None


@route("PUT", _REACTIONS + "/@me")
def add_reaction(state: State, call: ApiCall) -> Answer:
    channel, message = _message(state, call, READ_MESSAGE_HISTORY)
    _not_archived(channel)
    emoji = _emoji(state, call)
    if emoji not in message.reactions:
        require(state.world.rights(channel), ADD_REACTIONS)
    state.world.react(message, state.world.bot.id, emoji)
    return None


@route("DELETE", _REACTIONS + "/@me")
def remove_own_reaction(state: State, call: ApiCall) -> Answer:
    _, message = _message(state, call)
    state.world.unreact(message, state.world.bot.id, _emoji(state, call))
    return None


@route("DELETE", _REACTIONS + "/{user_id}")
def remove_reaction(state: State, call: ApiCall) -> Answer:
    channel, message = _message(state, call)
    if channel.private:
        raise missing_permissions()
    require(state.world.rights(channel), MANAGE_MESSAGES)
    state.world.unreact(message, call.params["user_id"], _emoji(state, call))
    return None


@route("GET", _REACTIONS)
def list_reactions(state: State, call: ApiCall) -> Answer:
    """Who has reacted so, by user id, a page at a time."""
    _, message = _message(state, call, READ_MESSAGE_HISTORY)
    after, limit = int(call.query.get("after", "0")), call.number("limit", 25, 100)
    kind = message.supers if call.query.get("type") == "1" else message.reactions
    users = sorted(kind.get(_emoji(state, call), ()), key=int)
    found = [who for who in users if int(who) > after][:limit]
    return [payloads.user(state.world.users[who]) for who in found]


def _emoji(state: State, call: ApiCall) -> str:
    """`👍`, or `name:id` of a server's own. Raises `DiscordError` 10014."""
    found = call.params["emoji_name"]
    name, _, id_ = found.partition(":")
    own = {known for guild in state.world.guilds.values() for known in guild.emojis}
    if (id_ and id_ not in own) or (not id_ and name.isascii()):
        raise unknown("Emoji")
    return found


def _not_archived(channel: Channel) -> None:
    if channel.archived:
        raise DiscordError(400, 50083, "Thread is archived")
