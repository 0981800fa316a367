# SPDX-License-Identifier: Apache-2.0
"""A server of the owner's that is asked something beside all conversations, by OpenAI's API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from goodbot.api import marks
from goodbot.api.events import Message
from goodbot.api.judge import KEY
from goodbot.base.errors import ServerError
from goodbot.base.worded import Worded
from goodbot.config.secrets import Secret
from goodbot.inference.servers.upstream import Upstream

_TOKENS = 1024
"""Of an answer: a model may think before it."""
_TEMPERATURE = 0.6


class AskedServer:
    """Asks one model of one server; a connection for each question."""

    def __init__(self, url: str, model: str, key: Secret) -> None:
        """`url` is one that `address.checked` has made."""
        self._url, self._model, self._key = url, model, key

    async def ask(self, messages: Sequence[Message], seed: int, seconds: float) -> str:
        """What it answers, within `seconds`. Raises ServerError."""
        upstream = Upstream("the judge", self._url, self._key, section="judge", key_name=KEY)
        body: dict[str, Any] = {
            "model": self._model,
            "messages": marks.broken(list(messages), marks.ANY),
            "max_tokens": _TOKENS,
            "temperature": _TEMPERATURE,
            "seed": seed,
        }
        await upstream.open()
        try:
            reply = await upstream.ask("/v1/chat/completions", body, seconds=seconds)
        finally:
            await upstream.close()
        if not reply.ok:
            raise upstream.refused(reply)
        try:
            said: Any = reply.body["choices"][0]["message"]["content"]
        except (LookupError, TypeError) as error:
            odd = Worded("{place} gives no answer that can be read", place=upstream.place)
            raise ServerError(odd) from error
        return said if isinstance(said, str) else ""
