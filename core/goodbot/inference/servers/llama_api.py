# SPDX-License-Identifier: Apache-2.0
"""What llama.cpp's server is asked: the prompt as token ids, and an answer token by token.

Its own `/completion` rather than the OpenAI-like one: only there the ids of the prompt are ours to give,
every token's id comes with it, and `post_sampling_probs` makes the probabilities those of the
distribution that was sampled from, at its temperature and after its filters. `samplers` says which those are,
and in what order; with `["temperature"]` it is the whole distribution. A piece of text that ends within a
character is held back together with its tokens; then their number does not fit, and no log-probs are told.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from goodbot.api.chat_answers import Completion, Reader, as_list, as_object, ids, number
from goodbot.api.completions import without_tools
from goodbot.api.events import Message
from goodbot.api.manners import Attempt, Manners, said
from goodbot.api.server import GenerateRequest
from goodbot.base.errors import ServerError
from goodbot.base.sampling import LOOK_BACK, Filters
from goodbot.base.sse import EventStream
from goodbot.base.thoughts import Thought, ThoughtTags, opened_by, options
from goodbot.base.worded import Worded
from goodbot.inference.servers.upstream import StatusError, Upstream

logger = logging.getLogger(__name__)

_FINISH = {"eos": "stop", "word": "stop", "limit": "length"}


__all__ = ["Completion", "PromptTokens", "first", "prompt", "write"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptTokens:
    """A conversation as the model sees it."""

    tokens: tuple[int, ...]
    opened: ThoughtTags | None
    """The thought that it ends within."""
    form: str
    """As in `goodbot.api.server.Generated`."""


async def prompt(upstream: Upstream, messages: Sequence[Message], *, thinking: bool = False) -> PromptTokens:
    """A conversation by the template in the GGUF file. Raises ServerError."""
    plain, tools = without_tools(messages)
    body = {
        "messages": plain,
        "chat_template_kwargs": options(thinking),
        **({"tools": tools} if tools else {}),
    }
    templated, form = await _templated(upstream, body)
    content = {"content": templated.get("prompt"), "add_special": True, "parse_special": True}
    found = ids((await _asked(upstream, "/tokenize", content)).get("tokens"))
    if not found:
        raise ServerError(Worded("{place} made no prompt of the conversation", place=upstream.place))
    return PromptTokens(tokens=found, opened=opened_by(str(templated.get("prompt"))), form=form)


async def write(
    upstream: Upstream, given: PromptTokens, request: GenerateRequest
) -> AsyncGenerator[str | Thought | Completion]:
    """One answer: its pieces, then the whole. Raises ServerError."""
    answer = _Answer(upstream.place, given, request)
    body = {
        "prompt": list(given.tokens),
        "n_predict": request.max_tokens,
        "temperature": request.temperature,
        "seed": request.seed & 0x7FFFFFFF,
        "samplers": samplers(request.filters),
        "n_probs": 1,
        **fields(request.filters),
        "post_sampling_probs": True,
        "cache_prompt": True,
        "stream": True,
    }
    events = EventStream()
    async with upstream.stream("/completion", body) as (_, pieces):
        async for piece in pieces:
            for data in events.feed(piece):
                for text in answer.event(data):
                    yield text
        for data in events.end():
            for text in answer.event(data):
                yield text
    for text in answer.rest():
        yield text
    yield answer.completion()


def samplers(filters: Filters) -> list[str]:
    """Those of llama.cpp that an answer goes through, in our order, which is not its own."""
    penalties = ["penalties"] if filters.repetition_penalty != 1 else []
    cuts = [name for name in ("top_k", "top_p", "min_p") if name in filters.told()]
    return [*penalties, "temperature", *cuts]


def fields(filters: Filters) -> dict[str, float]:
    """Filters as its fields; whatever it has by default is off."""
    return {
        "top_k": filters.top_k,
        "top_p": filters.top_p,
        "min_p": filters.min_p,
        "repeat_penalty": filters.repetition_penalty,
        "repeat_last_n": LOOK_BACK,
    }


async def first(upstream: Upstream, given: tuple[int, ...], top: int) -> dict[str, float]:
    """The likeliest first tokens of an answer, by their text, with log-probs at temperature 1."""
    body = {
        "prompt": list(given),
        "n_predict": 1,
        "temperature": 1.0,
        "samplers": ["temperature"],
        "n_probs": top,
        "post_sampling_probs": False,
        "cache_prompt": True,
        "stream": False,
    }
    told = as_list((await _asked(upstream, "/completion", body)).get("completion_probabilities"))
    place = as_object(told[0]) if told else {}
    found: dict[str, float] = {}
    for entry in map(as_object, as_list(place.get("top_logprobs"))):
        logprob = number(entry.get("logprob"))
        if not math.isfinite(logprob):
            continue
        text = _text(entry) or await _special(upstream, entry.get("id"))
        found[text] = max(logprob, found.get(text, -math.inf))
    return found


async def _special(upstream: Upstream, token: object) -> str:
    """The text of a token that `/completion` shows as nothing: an end of turn, say."""
    reply = await _asked(upstream, "/detokenize", {"tokens": [token]})
    return str(reply.get("content") or "")


def _text(entry: Mapping[str, Any]) -> str:
    """A token's text; a part of a character is what decoding it alone makes of it."""
    octets = as_list(entry.get("bytes"))
    if octets and all(type(octet) is int and 0 <= octet < 256 for octet in octets):
        return bytes(octets).decode("utf-8", "replace")
    return str(entry.get("token") or "")


async def _templated(upstream: Upstream, body: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The prompt, and its form: a conversation that the template refuses is said more plainly."""
    attempt = Attempt(upstream.manners, body)
    while True:
        try:
            found = await _asked(upstream, "/apply-template", attempt.sent)
        except StatusError as error:
            if not attempt.again(error.reply.status, error.reply.words):
                raise
            logger.warning("%s: %s", upstream.place, attempt.manners.told())
        else:
            attempt.taken()
            return found, attempt.manners.form


async def _asked(upstream: Upstream, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    reply = await upstream.ask(path, body)
    if not reply.ok:
        raise upstream.refused(reply)
    return reply.body


class _Answer:
    """Adds up the events of one answer."""

    def __init__(self, place: str, given: PromptTokens, request: GenerateRequest) -> None:
        self._place = place
        self._given, self._form = given.tokens, given.form
        self._reader = Reader(request.messages, given.opened)
        self._sampled = request.temperature > 0
        self._tokens: list[int] = []
        self._logprobs: list[float] = []
        self._finish = ""
        self._predicted = -1

    def event(self, data: str) -> list[str | Thought]:
        """What is new in one event. Raises ServerError."""
        try:
            chunk = as_object(json.loads(data))
        except (ValueError, RecursionError):
            raise ServerError(Worded("{place} sent something that is no answer", place=self._place)) from None
        if chunk.get("error"):
            why = said(chunk) or Worded("it does not say why")
            raise ServerError(Worded("{place} failed: {why}", place=self._place, why=why))
        before = len(self._tokens)
        self._tokens += ids(chunk.get("tokens"))
        for entry in map(as_object, as_list(chunk.get("completion_probabilities"))):
            chance = number(entry.get("prob"))
            self._logprobs.append(math.log(chance) if 0 < chance <= 1.001 else math.nan)
        if chunk.get("stop") is True:
            self._finish = _FINISH.get(str(chunk.get("stop_type")), "stop")
            predicted = chunk.get("tokens_predicted")
            self._predicted = predicted if isinstance(predicted, int) else -1
        one = len(self._tokens) - before <= 1
        return self._reader.delta({"content": chunk.get("content")}, before if one else -1)

    def rest(self) -> list[str | Thought]:
        """What was held back until the end. Raises ServerError if that did not come."""
        if not self._finish:
            raise ServerError(Worded("{place} broke its answer off", place=self._place))
        return self._reader.end(len(self._tokens), cut=self._finish == "length")

    def completion(self) -> Completion:
        """The whole."""
        told = (
            self._sampled
            and len(self._tokens) == len(self._logprobs) == self._predicted
            and all(map(math.isfinite, self._logprobs))
        )
        return self._reader.completed(
            Completion(
                text="",
                finish=self._finish,
                prompt_tokens=self._given,
                tokens=tuple(self._tokens) if told else (),
                logprobs=tuple(min(0.0, n) for n in self._logprobs) if told else (),
                manners=Manners(form=self._form),
            )
        )
