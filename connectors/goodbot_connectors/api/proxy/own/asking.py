# SPDX-License-Identifier: Apache-2.0
"""Our model on a server of the owner's that speaks chat completions: what it is asked, and told by it."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from typing import Any

import aiohttp
from goodbot.api.chat_answers import BROKEN_OFF, is_failure
from goodbot.api.completions import FarSide, with_tools, without_tools
from goodbot.api.marks import broken, whole
from goodbot.base.errors import ServerError
from goodbot.base.sampling import Filters, merged
from goodbot.base.sse import EventStream
from multidict import CIMultiDict

from goodbot_connectors.api.proxy import listening
from goodbot_connectors.api.proxy.dialects.chat import ChatAnswer
from goodbot_connectors.api.proxy.dialects.shapes import ChatRequest, ChatResponse, count, objects
from goodbot_connectors.api.proxy.dialects.tools import InTurn
from goodbot_connectors.api.proxy.own.apart import reader_of, told_apart
from goodbot_connectors.api.proxy.own.deltas import Delta, End
from goodbot_connectors.api.proxy.own.history import seen
from goodbot_connectors.kit.bridge.body import HttpError
from goodbot_connectors.kit.fields import Json, string, sub

PASSED = frozenset(
    {
        "temperature",
        "top_p",
        "n",
        "stop",
        "max_tokens",
        "max_completion_tokens",
        "presence_penalty",
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "top_logprobs",
        "seed",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "response_format",
        "stream",
        "stream_options",
        "top_k",
        "min_p",
        "repetition_penalty",
        "reasoning_effort",
        "chat_template_kwargs",
        "min_tokens",
        "messages",
        "functions",
        "function_call",
        "prompt",
        "suffix",
        "echo",
        "best_of",
        "input",
        "dimensions",
        "encoding_format",
        "structured_outputs",
        "guided_json",
        "guided_regex",
        "guided_choice",
        "guided_grammar",
    }
)
"""What a program may say of its request. Anything else could name another adapter, or a file, there."""
_OURS = ("messages", "tools", "max_tokens", "seed")
"""Fields of the driver that a program's own take the place of, or that are left out with them."""
_TELLING = ("logprobs", "return_token_ids", "return_input_ids_in_sglext", "return_output_ids_in_sglext")
_DRAWN = ("frequency_penalty", "presence_penalty", "logit_bias", "seed", "min_tokens")
"""What chat completions have, too, under the same name."""
_SAYING = ("messages", "tools", "functions")
"""Fields that the template there makes a prompt of. Who sends a `prompt` has made it itself."""
_BYTES_A_TOKEN = 4
_LIMITS = {"content_filter": "stop", "function_call": "tool_calls"}


def headers(far: FarSide) -> CIMultiDict[str]:
    """What goes with a request there."""
    found = CIMultiDict({"Content-Type": "application/json", "Accept-Encoding": "identity"})
    if key := far.key.reveal():
        found["Authorization"] = f"Bearer {key}"
    return found


def same(far: FarSide, body: Mapping[str, Any], asked: ChatRequest) -> dict[str, Any]:
    """A program's own request, as that server gets it."""
    fields = {name: value for name, value in far.fields.items() if name not in _OURS}
    if not tells(far, asked):
        fields = {name: value for name, value in fields.items() if name not in _TELLING}
    given = {name: value for name, value in body.items() if name in PASSED and value is not None}
    if "messages" in given:
        given["messages"] = [seen(one) for one in objects(body["messages"])]
    made = {**fields, **given, "model": far.fields["model"]}
    if tells(far, asked):
        made["logprobs"] = True
    return made


def guarded(far: FarSide, made: Mapping[str, Any]) -> dict[str, Any]:
    """A request without marks of the template in what anybody says: that server makes the prompt."""
    return {name: broken(value, far.marks) if name in _SAYING else value for name, value in made.items()}


def translated(far: FarSide, asked: ChatRequest, body: Json) -> dict[str, Any]:
    """A request of another API, as chat completions."""
    messages, _ = without_tools(asked.messages)
    made = {name: value for name, value in far.fields.items() if name not in _OURS}
    if not tells(far, asked):
        made = {name: value for name, value in made.items() if name not in _TELLING}
    made |= {"messages": messages, "stream": True, "stream_options": {"include_usage": True}}
    if asked.tools:
        made["tools"] = list(asked.tools)
    if asked.max_tokens:
        made["max_tokens"] = asked.max_tokens
    if asked.stops:
        made["stop"] = list(asked.stops)
    if (choice := _choice(body)) is not None and asked.tools:
        made["tool_choice"] = choice
    if asked.one_call and asked.tools:
        made["parallel_tool_calls"] = False
    if (form := _form(body)) is not None:
        made["response_format"] = form
    for name in _DRAWN:
        if body.get(name) is not None:
            made[name] = body[name]
    return made


def tells(far: FarSide, asked: ChatRequest) -> bool:
    """Whether token ids and log-probs are asked for: not where it is not known what they were drawn from."""
    return far.tells and not asked.narrowed


def theirs(asked: ChatRequest, body: Json) -> frozenset[str]:
    """Fields of chat completions whose values are the program's own."""
    others = {"max_tokens": asked.max_tokens, "stop": asked.stops, "parallel_tool_calls": asked.one_call}
    return frozenset({*body, *(name for name, value in others.items() if value)})


def lifts(far: FarSide, said: ChatResponse, asked: ChatRequest | None = None) -> tuple[float, ...]:
    """What its filters added to the log-probs that it tells, where that is known."""
    return (0.0,) * len(said.logprobs) if far.own and filters(far, asked) else ()


def form(far: FarSide) -> str:
    """In which form the server wants a conversation."""
    return far.manners.form if far.manners else ""


def temperature(far: FarSide) -> float | None:
    """That of its answer, where it is not the one that was asked for."""
    return far.manners.temperature if far.manners else None


def filters(far: FarSide, asked: ChatRequest | None = None) -> Filters:
    """What an answer is drawn through, of what the program asks for, too."""
    named = {one: value for one, value in asked.filters.items() if one in far.takes} if asked else {}
    found = merged(far.filters, named)
    return far.manners.left(found) if far.manners else found


async def answer(
    far: FarSide, response: aiohttp.ClientResponse, asked: ChatRequest, *, mend: bool = False
) -> AsyncGenerator[Delta]:
    """A stream of chat completions, an answer to `asked`, piece by piece. Raises ServerError where it breaks
    off.

    `mend`: marks were broken in the question, and the model may repeat them so.
    """
    listener = ChatAnswer()
    reader, in_turn = reader_of(far, far.fields, asked), InTurn(listener.calls)
    counts = (0, 0)
    async for heard, part in _chunks(far, response):
        chunk = whole(heard) if mend else heard
        (listener.event if part == "delta" else listener.whole)(chunk)
        if usage := sub(chunk, "usage"):
            counts = (count(usage, "prompt_tokens"), count(usage, "completion_tokens"))
        for choice in objects(chunk.get("choices")):
            for delta in reader.delta(sub(choice, part), 0):
                yield delta
        for called in in_turn.feed(listener.parts):
            yield called
    said = listener.said()
    if said.finish in ("", *BROKEN_OFF):  # what is held back may be the beginning of a thought
        raise ServerError(f"{far.title} broke its answer off")
    for delta in (*reader.end(0, cut=said.finish == "length"), *in_turn.end()):
        yield delta
    said = told_apart(reader, said)
    finish = "tool_calls" if said.calls else _LIMITS.get(said.finish, said.finish)
    yield End(
        said=replace(said, finish=finish, lifts=lifts(far, said)),
        version=far.version,
        filters=filters(far),
        form=form(far),
        temperature=temperature(far),
        prompt_count=counts[0] or len(said.prompt_tokens),
        count=counts[1] or len(said.tokens),
    )


async def _chunks(far: FarSide, response: aiohttp.ClientResponse) -> AsyncGenerator[tuple[Json, str]]:
    """The objects of an answer, and where in their choices is what was said."""
    if response.content_type == "application/json":  # it does not stream, whatever was asked
        data = b"".join([piece async for piece in _pieces(far, response)])
        yield _chunk(far, data.decode("utf-8", "replace")), "message"
        return
    events = EventStream()
    async for piece in _pieces(far, response):
        for data in events.feed(piece):
            if data.strip() != "[DONE]":
                yield _chunk(far, data), "delta"
    for data in events.end():
        if data.strip() != "[DONE]":
            yield _chunk(far, data), "delta"


async def _pieces(far: FarSide, response: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
    try:
        async for piece in listening.pieces(far.title, response):
            yield piece
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ServerError(f"{far.title} broke its answer off") from error


def _chunk(far: FarSide, data: str) -> Json:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise ServerError(f"{far.title} sent something that is no answer") from None
    if not isinstance(found, dict):
        raise ServerError(f"{far.title} sent something that is no answer")
    chunk: dict[str, Any] = found  # pyright: ignore[reportUnknownVariableType]
    if is_failure(chunk):
        raise ServerError(f"{far.title} failed in the middle of an answer")
    return chunk


def _form(body: Json) -> Any:
    """`response_format` of chat completions, for the schema that an answer of another API must fit."""
    form = sub(body, "text", "format") or sub(body, "output_config", "format")
    form = form or sub(body, "output_format")
    if string(form, "type") == "json_object":
        return {"type": "json_object"}
    if string(form, "type") != "json_schema":
        return None
    strict = {"strict": form["strict"]} if isinstance(form.get("strict"), bool) else {}
    named = string(form, "name") or "answer"
    return {"type": "json_schema", "json_schema": {"name": named, "schema": form.get("schema"), **strict}}


def _choice(body: Json) -> Any:
    """`tool_choice` of another API as chat completions have it; None: as it is by default."""
    choice = body.get("tool_choice")
    if choice in ("auto", "none", "required"):
        return choice
    kind, name = string(sub(body, "tool_choice"), "type"), string(sub(body, "tool_choice"), "name")
    if name:
        return {"type": "function", "function": {"name": name}}
    return {"any": "required", "none": "none", "auto": "auto"}.get(kind)


def refused(far: FarSide, status: int, words: str) -> HttpError:
    """What a server of ours says, with its status, unless that is about our key for it."""
    if status in (401, 403):
        return HttpError(503, f"{far.title} refuses our key: see GOODBOT_SERVER_KEY.")
    return HttpError(status, f"{far.title} answers with {status}{f': {words}' if words else ''}.")


def drawn(asked: ChatRequest, temperature: float | None) -> ChatRequest:
    """What was asked for, with the temperature that was applied in its place."""
    return asked if temperature is None else replace(asked, temperature=temperature)


def estimated(asked: ChatRequest) -> int:
    """Tokens of a prompt, by its bytes: the daemon has no tokenizer."""
    whole = with_tools(asked.messages, asked.tools)
    size = sum(len(json.dumps(one, ensure_ascii=False).encode("utf-8", "replace")) for one in whole)
    return math.ceil(size / _BYTES_A_TOKEN)
