# SPDX-License-Identifier: Apache-2.0
"""Reasons and better answers: a question that a person answers by typing, in the private chat.

Telegram has no dialogue windows for bots. A message that forces a reply is the next best: clients
open the keyboard at once, and what is typed then names the message that it answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from goodbot.api.connector import ConnectorHost
from goodbot.api.events import ChannelKind, Event, MessageEvent, RatingEvent, RatingKind
from goodbot.api.texts import LANGUAGES, say

from goodbot_connectors.kit.state import StateTexts
from goodbot_connectors.telegram import callback, render
from goodbot_connectors.telegram.api import Api
from goodbot_connectors.telegram.normalize import TypingPrompt

_QUESTIONS = {RatingKind.COMMENT: "ask_wrong", RatingKind.BETTER: "ask_better"}
"""What we ask; with `_short` what stands in the empty input field."""


@cache
def _kinds() -> Mapping[str, str]:
    """The kind by the question's words, in whichever language it was asked."""
    return {say(key, language): kind.value for kind, key in _QUESTIONS.items() for language in LANGUAGES}


class Prompts:
    """The questions that are open, by chat and message: they outlive a restart.

    A person may be faster than Telegram's answer to our sendMessage, and that may be lost. So what
    is asked is noted before, by chat and kind, and found by the words of the question.
    """

    def __init__(self, host: ConnectorHost) -> None:
        self._open = StateTexts(host, "prompts")

    async def load(self) -> None:
        """Read what an earlier process has kept."""
        await self._open.load()

    @property
    def kept(self) -> Sequence[StateTexts]:
        """What outlives a restart."""
        return (self._open,)

    async def ask(self, api: Api, prompt: TypingPrompt) -> None:
        """Ask for the words that a pressed button promised."""
        kind = callback.TYPED[prompt.action]
        language = prompt.user.language
        text = say(_QUESTIONS[kind], language)
        placeholder = say(f"{_QUESTIONS[kind]}_short", language)
        message = render.prompt(prompt.channel, text, placeholder, prompt.message_id)
        asked = f"{kind.value} {prompt.turn}"
        await self._open.put(f"{prompt.channel.id}:{kind.value}", asked)
        sent = await api.send(message)
        await self._open.put(f"{sent.chat_id}:{sent.message_id}", asked)

    def read(self, event: Event, quoted: str = "") -> Event:
        """The event, or the rating that it is when it answers one of our questions.

        `quoted` is the text of our message that it answers. A question stays open: whoever answers
        it twice has changed their mind.
        """
        if not isinstance(event, MessageEvent) or event.channel.kind is not ChannelKind.PRIVATE:
            return event
        known = self._open.get(f"{event.channel.id}:{event.reply_to}", "")
        known = known or self._open.get(f"{event.channel.id}:{_kinds().get(quoted, '?')}", "")
        kind, _, turn = known.partition(" ")
        if not turn or not event.text.strip():
            return event
        return RatingEvent(
            event_id=event.event_id,
            order=event.order,
            user=event.user,
            channel=event.channel,
            kind=RatingKind(kind),
            turn=turn,
            source="reply",
            text=event.text,
        )
