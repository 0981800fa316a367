# SPDX-License-Identifier: Apache-2.0
"""Replies → activities. Pure: values in, JSON out.

Teams reads Markdown. What would act by itself is switched off in what a model writes: mentions,
images (a client's fetch of an address that a model made up can carry words of the chat away), tags,
bidirectional overrides. Code stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from goodbot.api.actions import THUMBS
from goodbot.api.events import Button, ChannelKind, ChannelRef, Reply
from goodbot.api.texts import say
from goodbot.base.text import one_way, split

from goodbot_connectors.kit.code import markdown
from goodbot_connectors.kit.inert import JOINER, inserted, is_markup, outside, settled
from goodbot_connectors.teams import SPEC, cards
from goodbot_connectors.teams.config import DEFAULT
from goodbot_connectors.teams.presses import AnswerRef

_SUMMARY = 200
_AI_LABEL = {
    "type": "https://schema.org/Message",
    "@type": "Message",
    "@context": "https://schema.org",
    "@id": "",
    "additionalType": ["AIGeneratedContent"],
}
"""Shows “AI generated” beside our name."""
_THUMBS = frozenset(button.action for button in THUMBS)
# An image, and tags: <at>Bob</at> among them. A bare @ names nobody: mentions are entities of a message.
_ACTS = re.compile(r"!(?=\[)|<(?=[A-Za-z/!?])")
_LINE_END = re.compile(r"(?<=\S)\n")


def answers(
    channel: ChannelRef, reply: Reply, *, feedback: str = DEFAULT, group_buttons: bool = False
) -> tuple[dict[str, Any], ...]:
    """The activity of each message that `reply` becomes; one unless it is long.

    Buttons go under the last one, in personal chats and, with `group_buttons`, in groups: 👍 and 👎
    as Teams's own `feedback` controls, others in a card, which is a message of its own.
    """
    parts = split(one_way(reply.text), SPEC.message_limit) or (say("no_words"),)
    found = [message(part, answer=bool(reply.turn)) for part in parts]
    if channel.kind is ChannelKind.PRIVATE or group_buttons:
        rest = [button for button in reply.buttons if button.action not in _THUMBS]
        if len(rest) < len(reply.buttons):
            found[-1]["channelData"] = {"feedbackLoop": {"type": feedback}}
        if rest:
            row = cards.card(AnswerRef(reply.turn), buttons=rest)
            found.append({"type": "message", "attachments": [row]})
    return tuple(found)


def message(text: str, *, answer: bool = False) -> dict[str, Any]:
    """An activity with a text; an `answer` is marked as an AI's."""
    activity: dict[str, Any] = {"type": "message", "textFormat": "markdown", "text": inert(text)}
    return activity | {"entities": [_AI_LABEL]} if answer else activity


def card(about: AnswerRef, text: str, offer: Sequence[Button] = ()) -> dict[str, Any]:
    """An activity that is a card: what one person is told, and may press."""
    return {
        "type": "message",
        "summary": one_way(text)[:_SUMMARY],
        "attachments": [cards.card(about, notice=text, offer=offer)],
    }


def pressed(activity: dict[str, Any]) -> dict[str, Any]:
    """A card of ours when something on it has been pressed: nothing more can be."""
    [now] = activity["attachments"]
    return activity | {"attachments": [cards.card(AnswerRef(), notice=cards.notice(now))]}


def beginning(text: str) -> str:
    """What can be shown of an answer that is being written, such that more text only adds to it.

    That is the first message of it, up to what may yet become code or a tag.
    """
    text = one_way(text)
    parts = split(text[: settled(text, markdown(text))], SPEC.message_limit)
    return inert(parts[0]) if parts else ""


def stream(kind: str, text: str, *, stream_id: str = "", sequence: int = 0) -> dict[str, Any]:
    """A piece of a streamed answer: `informative` or `streaming`, with all there is until now.

    The first one has no id yet; its answer gives it. Sequences count up from 1.
    """
    info: dict[str, Any] = {"type": "streaminfo", "streamType": kind, "streamSequence": sequence}
    if stream_id:
        info["streamId"] = stream_id
    return {"type": "typing", "textFormat": "markdown", "text": text, "entities": [info]}


def final(activity: dict[str, Any], stream_id: str) -> dict[str, Any]:
    """The message that a streamed answer ends as."""
    info = {"type": "streaminfo", "streamType": "final", "streamId": stream_id}
    return activity | {"entities": [*activity.get("entities", ()), info]}


def inert(text: str) -> str:
    """Text in which nothing acts by itself, with line ends that Markdown keeps."""
    text = one_way(text)
    codes = markdown(text).codes
    ends = {found.start(): "  " for found in outside(text, codes, _LINE_END, openings=False)}
    acts = {found.end(): JOINER for found in outside(text, codes, _ACTS) if is_markup(text, found)}
    return inserted(text, ends | acts)
