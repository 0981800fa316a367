# SPDX-License-Identifier: Apache-2.0
"""chat.*: messages, ephemeral messages, and messages that grow while an agent writes."""

from __future__ import annotations

from typing import Any

from goodbot_fakes.slack.api import Context, method
from goodbot_fakes.slack.app import own
from goodbot_fakes.slack.blocks import IN_MESSAGES, check
from goodbot_fakes.slack.errors import SlackError
from goodbot_fakes.slack.workspace import Channel, Message

Json = dict[str, Any]
LONGEST_TEXT = 40_000
LONGEST_MARKDOWN = 12_000
_AUTOMATIC = "markdown"


@method("chat.postMessage", "chat:write", required=("channel",))
def post_message(slack: Context, arguments: Json) -> Json:
    channel = _writable(slack, arguments["channel"])
    text, blocks = content(arguments)
    thread = _thread(slack, channel, arguments)
    message = slack.workspace.post(
        channel.id,
        slack.app.user.id,
        text,
        blocks=blocks,
        thread_ts=thread,
        metadata=arguments.get("metadata"),
    )
    slack.workspace.statuses.pop((channel.id, thread), None)
    return {"channel": channel.id, "ts": message.ts, "message": slack.workspace.shape(message)}


@method("chat.update", "chat:write", required=("channel", "ts"))
def update(slack: Context, arguments: Json) -> Json:
    message = _ours(slack, arguments, "cant_update_message")
    if message.streaming == "in_progress":
        raise SlackError("streaming_state_conflict")
    text, blocks = content(arguments)
    if arguments.get("blocks") is None:
        # Blocks that the app sent stay unless it sends others; an empty list removes them.
        blocks += [block for block in message.blocks if block["block_id"] != _AUTOMATIC]
    slack.workspace.edit(message, text, blocks)
    return {
        "channel": message.channel,
        "ts": message.ts,
        "text": message.text,
        "message": slack.workspace.shape(message),
    }


@method("chat.delete", "chat:write", required=("channel", "ts"))
def delete(slack: Context, arguments: Json) -> Json:
    message = _ours(slack, arguments, "cant_delete_message")
    slack.workspace.delete(message)
    return {"channel": message.channel, "ts": message.ts}


@method("chat.postEphemeral", "chat:write", required=("channel", "user"))
def post_ephemeral(slack: Context, arguments: Json) -> Json:
    channel = _writable(slack, arguments["channel"])
    if slack.workspace.user(arguments["user"]).id not in channel.members:
        raise SlackError("user_not_in_channel")
    text, blocks = content(arguments)
    message = slack.workspace.whisper(
        channel.id,
        slack.app.user.id,
        arguments["user"],
        text,
        blocks=blocks,
        thread_ts=_thread(slack, channel, arguments),
    )
    return {"message_ts": message.ts}


@method("chat.startStream", "chat:write", required=("channel",))
def start_stream(slack: Context, arguments: Json) -> Json:
    channel = _writable(slack, arguments["channel"])
    if channel.kind == "im" and not arguments.get("thread_ts"):
        raise SlackError("invalid_thread_ts")
    if channel.kind != "im":
        for name in ("recipient_team_id", "recipient_user_id"):
            if not arguments.get(name):
                raise SlackError(f"missing_{name}")
    thread = _thread(slack, channel, arguments)
    text, blocks = _streamed(arguments)
    message = slack.workspace.post(
        channel.id, slack.app.user.id, "", thread_ts=thread, streaming="in_progress"
    )
    _grow(message, text, blocks)
    slack.workspace.statuses.pop((channel.id, thread), None)
    return {"channel": channel.id, "ts": message.ts}


@method("chat.appendStream", "chat:write", required=("channel", "ts"))
def append_stream(slack: Context, arguments: Json) -> Json:
    message = _growing(slack, arguments)
    text, blocks = _streamed(arguments)
    if not text and not blocks:
        raise SlackError("no_text")
    _grow(message, text, blocks)
    return {"channel": message.channel, "ts": message.ts}


@method("chat.stopStream", "chat:write", required=("channel", "ts"))
def stop_stream(slack: Context, arguments: Json) -> Json:
    message = _growing(slack, arguments)
    text, blocks = _streamed(arguments)
    added = check(arguments.get("blocks") or [], IN_MESSAGES)
    _grow(message, text, [])
    message.streaming = "completed"
    message.metadata = arguments.get("metadata") or message.metadata
    slack.workspace.edit(message, message.text, [*message.blocks, *blocks, *added])
    message.edited_ts = ""
    return {"channel": message.channel, "ts": message.ts, "message": slack.workspace.shape(message)}


def content(arguments: Json) -> tuple[str, list[Json]]:
    """Text and blocks of a message, within Slack's limits."""
    markdown, text = arguments.get("markdown_text"), arguments.get("text") or ""
    given = arguments.get("blocks")
    if markdown is not None:
        if text or given:
            raise SlackError("markdown_text_conflict")
        if not markdown:
            raise SlackError("no_text")
        return _markdown(markdown), [_automatic(markdown)]
    blocks = check(given, IN_MESSAGES) if given is not None else []
    if not text and not blocks and not arguments.get("attachments"):
        raise SlackError("no_text")
    if len(text) > LONGEST_TEXT:
        raise SlackError("msg_too_long")
    return text, blocks


def _streamed(arguments: Json) -> tuple[str, list[Json]]:
    """What is added to a stream: its text, and blocks that came as chunks."""
    text = _markdown(arguments.get("markdown_text") or "")
    blocks: list[Json] = []
    for chunk in arguments.get("chunks") or ():
        match chunk.get("type"):
            case "markdown_text":
                text += _markdown(chunk["text"])
            case "blocks":
                blocks += check(chunk["blocks"], IN_MESSAGES)
            case "task_update" | "plan_update":
                pass
            case _:
                raise SlackError("invalid_chunks")
    return text, blocks


def _markdown(text: str) -> str:
    if len(text) > LONGEST_MARKDOWN:
        raise SlackError("msg_too_long")
    return text


def _grow(message: Message, text: str, blocks: list[Json]) -> None:
    if len(message.text) + len(text) > LONGEST_MARKDOWN:
        raise SlackError("msg_too_long")
    message.text += text
    kept = [block for block in message.blocks if block["block_id"] != _AUTOMATIC]
    message.blocks = [_automatic(message.text)] * bool(message.text) + kept + blocks


def _automatic(markdown: str) -> Json:
    """The block that Slack makes of markdown text."""
    return {"type": "markdown", "block_id": _AUTOMATIC, "text": markdown}


def _writable(slack: Context, channel_id: str) -> Channel:
    if channel_id.startswith("U"):
        return slack.workspace.direct(slack.app.user.id, slack.workspace.user(channel_id).id)
    channel = slack.workspace.channel(channel_id)
    if slack.app.user.id not in channel.members:
        raise SlackError("channel_not_found" if channel.kind != "channel" else "not_in_channel")
    return channel


def _thread(slack: Context, channel: Channel, arguments: Json) -> str:
    thread = str(arguments.get("thread_ts") or "")
    if thread and (channel.id, thread) not in slack.workspace.messages:
        raise SlackError("thread_not_found" if "." in thread else "invalid_thread_ts")
    return thread


def _ours(slack: Context, arguments: Json, refusal: str) -> Message:
    channel = slack.workspace.channel(arguments["channel"])
    message = slack.workspace.message(channel.id, arguments["ts"])
    if not own(slack.app, message):
        raise SlackError(refusal)
    return message


def _growing(slack: Context, arguments: Json) -> Message:
    message = _ours(slack, arguments, "message_not_owned_by_app")
    if message.streaming != "in_progress":
        raise SlackError("message_not_in_streaming_state")
    return message
