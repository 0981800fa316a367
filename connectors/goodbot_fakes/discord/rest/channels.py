# SPDX-License-Identifier: Apache-2.0
"""Channels and threads."""

from __future__ import annotations

from goodbot_fakes.discord import drafts
from goodbot_fakes.discord.errors import DiscordError
from goodbot_fakes.discord.permissions import CREATE_PUBLIC_THREADS, SEND_MESSAGES, require, to_send
from goodbot_fakes.discord.records import FORUM, Channel
from goodbot_fakes.discord.rest.routing import Answer, ApiCall, route
from goodbot_fakes.discord.state import State


def visible(state: State, call: ApiCall, *needed: int) -> Channel:
    """The channel of a call, where the bot may do what is needed. Raises `DiscordError`."""
    channel = state.world.channel(call.params["channel_id"])
    require(state.world.rights(channel), *needed)
    return channel


@route("GET", "/channels/{channel_id}")
def get_channel(state: State, call: ApiCall) -> Answer:
    return state.world.channel_json(visible(state, call))


@route("POST", "/channels/{channel_id}/typing")
def trigger_typing(state: State, call: ApiCall) -> Answer:
    channel = visible(state, call)
    require(state.world.rights(channel), to_send(channel))
    state.typing.append(channel.id)
    return None


@route("POST", "/channels/{channel_id}/messages/{message_id}/threads")
def thread_of_message(state: State, call: ApiCall) -> Answer:
    channel = visible(state, call, CREATE_PUBLIC_THREADS)
    message = state.world.message(channel.id, call.params["message_id"])
    if message.id in state.world.channels:
        raise DiscordError(400, 160004, "A thread has already been created for this message")
    bot, name = state.world.bot.id, call.fields()["name"]
    thread = state.world.add_thread(name, channel, bot, message.id)
    return state.world.channel_json(thread)


@route("POST", "/channels/{channel_id}/threads")
def create_thread(state: State, call: ApiCall) -> Answer:
    channel, body = visible(state, call, SEND_MESSAGES), call.fields()
    world = state.world
    if channel.kind != FORUM:
        require(world.rights(channel), CREATE_PUBLIC_THREADS)
        return world.channel_json(world.add_thread(body["name"], channel, world.bot.id))
    made = drafts.draft(world, channel, body["message"])
    thread = world.add_thread(body["name"], channel, world.bot.id)
    first = world.post(thread, world.bot.id, id=thread.id, **made)
    return world.channel_json(thread) | {"message": world.message_json(first)}
