# SPDX-License-Identifier: Apache-2.0
"""Answers of `/v1/chat/completions`, as they stream in: pieces of text, and at the end the whole.

The fields are those of OpenAI's API, and those that servers add to it for token ids: vLLM's `token_ids` and
`prompt_token_ids`, SGLang's `sglext`. Nothing of it is trusted: what has another type counts as not said.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from typing import Any

from goodbot.api.chat_answers import (
    BROKEN_OFF,
    Completion,
    Part,
    Reader,
    as_list,
    as_object,
    ids,
    is_failure,
    number,
    tops,
)
from goodbot.api.completions import FarSide, without_tools
from goodbot.api.manners import Attempt, said
from goodbot.api.marks import Pattern
from goodbot.api.server import GenerateRequest
from goodbot.base.errors import ServerError
from goodbot.base.sampling import Filters
from goodbot.base.sse import EventStream
from goodbot.base.thoughts import Thought, ThoughtTags
from goodbot.base.worded import Worded
from goodbot.inference.servers.upstream import StatusError, Upstream

logger = logging.getLogger(__name__)

PATH = "/v1/chat/completions"


def body(name: str, request: GenerateRequest) -> dict[str, Any]:
    """A request for an answer of `name`, cut by `top_p` alone: no other filter is in OpenAI's API."""
    messages, tools = without_tools(request.messages)
    return {
        "model": name,
        "messages": messages,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.filters.top_p,
        "seed": request.seed & 0x7FFFFFFF,
        **({"tools": tools} if tools else {}),
    }


def far_side(
    upstream: Upstream,
    version: int,
    fields: Mapping[str, Any],
    filters: Filters,
    *,
    marks: Pattern,
    template: str = "",
    own: bool = False,
) -> FarSide:
    """Where a program may ask `version` itself, with the fields that our own request would have."""
    return FarSide(
        title=upstream.title,
        url=upstream.url,
        key=upstream.key,
        version=version,
        fields=fields,
        tells="logprobs" in fields,
        filters=filters,
        own=own,
        manners=upstream.manners,
        marks=marks,
        template=template,
    )


async def stream(
    upstream: Upstream, body: Mapping[str, Any], path: str = PATH, opened: ThoughtTags | None = None
) -> AsyncGenerator[Part]:
    """Ask for one answer: its pieces, then one `Completion`. Closing it early hangs up.

    `opened`: the model's template begins such a thought.
    Raises ServerError: `StatusError` for an error status, `Unreachable` where nobody answers.
    """
    attempt = Attempt(upstream.manners, {**body, "stream": True})
    while True:
        try:
            async with contextlib.aclosing(_streamed(upstream, attempt, path, opened)) as parts:
                async for part in parts:
                    yield part
            return
        except StatusError as error:  # it is said before the first piece
            if not attempt.again(error.reply.status, error.reply.words):
                raise
            logger.warning("%s: %s", upstream.place, attempt.manners.told())


async def _streamed(
    upstream: Upstream, attempt: Attempt, path: str, opened: ThoughtTags | None
) -> AsyncGenerator[Part]:
    answer = _Answer(upstream.place, Reader(attempt.sent.get("messages"), opened))
    async with upstream.stream(path, attempt.sent) as (kind, pieces):
        attempt.taken()
        if kind == "application/json":  # it does not stream, whatever was asked
            data = b"".join([piece async for piece in pieces])
            for text in answer.event(data.decode("utf-8", "replace")):
                yield text
        else:
            events = EventStream()
            async for piece in pieces:
                for data in events.feed(piece):
                    for text in answer.event(data):
                        yield text
                if answer.done:
                    break
            else:
                for data in events.end():
                    for text in answer.event(data):
                        yield text
    for text in answer.rest():
        yield text
    yield replace(answer.completion(), manners=attempt.manners)


async def first_tokens(
    upstream: Upstream, body: Mapping[str, Any], top: int, temperature: float = 1.0
) -> dict[str, float]:
    """The likeliest first tokens of an answer; empty where the server tells none."""
    asked = {**body, "max_tokens": 1, "temperature": temperature, "logprobs": True, "top_logprobs": top}
    async for piece in stream(upstream, asked):
        if isinstance(piece, Completion):
            return dict(piece.first)
    return {}


class _Answer:
    """Adds up the chunks of one answer."""

    def __init__(self, place: str, reader: Reader) -> None:
        self.done = False
        self._place = place
        self._reader = reader
        self._finish = ""
        self._prompt: tuple[int, ...] = ()
        self._tokens: list[int] = []
        self._logprobs: list[float] = []
        self._first: dict[str, float] = {}

    def event(self, data: str) -> list[str | Thought]:
        """What is new in one event."""
        if data.strip() == "[DONE]":
            self.done = True
            return []
        try:
            chunk = as_object(json.loads(data))
        except (ValueError, RecursionError):
            raise ServerError(Worded("{place} sent something that is no answer", place=self._place)) from None
        if is_failure(chunk):
            why = said(chunk) or Worded("it does not say why")
            raise ServerError(Worded("{place} failed: {why}", place=self._place, why=why))
        extension = as_object(chunk.get("sglext"))
        before = len(self._tokens)
        self._prompt = self._prompt or ids(chunk.get("prompt_token_ids")) or ids(extension.get("input_ids"))
        for written in as_list(extension.get("output_ids"))[:1]:
            self._tokens += ids(written)
        choices = as_list(chunk.get("choices"))
        return [piece for choice in choices[:1] for piece in self._choice(as_object(choice), before)]

    def rest(self) -> list[str | Thought]:
        """What was held back until the end. Raises ServerError if that did not come."""
        if self._finish in BROKEN_OFF or not (self._finish or self.done):
            raise self._broken()
        return self._reader.end(len(self._tokens), cut=self._finish == "length")

    def _choice(self, choice: Mapping[str, Any], before: int) -> list[str | Thought]:
        self._prompt = self._prompt or ids(choice.get("prompt_token_ids"))
        self._tokens += ids(choice.get("token_ids"))
        self._add_logprobs(as_object(choice.get("logprobs")))
        if isinstance(finish := choice.get("finish_reason"), str):
            self._finish = finish
        delta = as_object(choice.get("delta") or choice.get("message"))
        one = len(self._tokens) - before <= 1  # of several, some may be the thought's
        return self._reader.delta(delta, before if one else -1)

    def _add_logprobs(self, told: Mapping[str, Any]) -> None:
        for entry in map(as_object, as_list(told.get("content"))):
            if not self._logprobs:
                self._first = tops(entry.get("top_logprobs"))
            self._logprobs.append(number(entry.get("logprob")))

    def completion(self) -> Completion:
        """The whole. Raises ServerError where nothing but a thought came, and no reason why it ended."""
        paired = self._prompt and len(self._tokens) == len(self._logprobs)
        told = paired and all(map(math.isfinite, self._logprobs))
        whole = self._reader.completed(
            Completion(
                text="",
                finish=self._finish or "stop",
                prompt_tokens=self._prompt,
                tokens=tuple(self._tokens) if told else (),
                logprobs=tuple(self._logprobs) if told else (),
                first=self._first,
            )
        )
        if not (self._finish or whole.text.strip()):  # somebody else has ended what a server left that died
            raise self._broken()
        return whole

    def _broken(self) -> ServerError:
        return ServerError(Worded("{place} broke its answer off", place=self._place))
