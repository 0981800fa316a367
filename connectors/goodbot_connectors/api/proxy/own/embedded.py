# SPDX-License-Identifier: Apache-2.0
"""Our model, asked through the core."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence

from goodbot.api.completions import CompletionRequest, OwnModel
from goodbot.api.server import Generated
from goodbot.base.errors import ServerError
from goodbot.base.thoughts import Thought

from goodbot_connectors.api.proxy.dialects.shapes import ChatRequest, ChatResponse, narrowing
from goodbot_connectors.api.proxy.own.calls import CallReader
from goodbot_connectors.api.proxy.own.deltas import Delta, End
from goodbot_connectors.kit.bridge.body import HttpError
from goodbot_connectors.kit.fields import Json, string, sub

_FINISH = {"stop": "stop", "length": "length"}


async def check(model: OwnModel, asked: ChatRequest, body: Json) -> None:
    """Refuse what our sampler cannot do, rather than answer something else. Raises HttpError (400)."""
    if asked.tools and not await model.calls_tools():
        raise HttpError(
            400,
            "This model's chat template has no tools, or writes their calls in a way of its own: leave "
            "tools out, or serve it with vLLM or llama.cpp ([serving] server).",
        )
    choice = body.get("tool_choice")
    forced = string(sub(body, "tool_choice"), "type") if isinstance(choice, dict) else choice
    if asked.tools and forced not in (None, "auto", "none"):
        raise HttpError(400, "This model cannot be made to call a tool: set tool_choice to auto.")
    if asked.machine:
        raise HttpError(400, "goodbot's own sampler cannot hold an answer to a schema: ask for text.")
    if body.get("n") not in (None, 1) or body.get("logprobs") or body.get("top_logprobs"):
        raise HttpError(
            400, "goodbot's own sampler gives one answer, without log-probs: leave n and logprobs out."
        )

    if name := narrowing(body):
        raise HttpError(
            400,
            f"goodbot's own sampler has no {name}: leave it out (it has top_p, top_k, min_p and "
            "repetition_penalty).",
        )
    if body.get("echo"):
        raise HttpError(400, "goodbot's own sampler repeats no prompt: leave echo out.")


async def answer(model: OwnModel, question: CompletionRequest, asked: ChatRequest) -> AsyncGenerator[Delta]:
    """Pieces of an answer as they come, then its end. What a program gets whole comes at its end, and begins
    anew where the model ended under it. So does an answer of which it has seen only that somebody thinks.
    """
    unseen: asyncio.Queue[Thought | None] = asyncio.Queue()

    async def begun() -> tuple[AsyncGenerator[Delta], list[Delta]]:
        deltas, taken = _deltas(model, question, asked), list[Delta]()
        async for delta in deltas:
            if asked.stream and not asked.thinks and isinstance(delta, Thought):
                if unseen.empty():  # it is told no more than that somebody is there
                    unseen.put_nowait(delta)
                continue
            taken.append(delta)
            if asked.stream:
                break
        return deltas, taken

    async def first() -> tuple[AsyncGenerator[Delta], list[Delta]]:
        try:
            return await model.until_answered(begun)
        finally:
            unseen.put_nowait(None)

    beginning = asyncio.create_task(first(), name="an answer begins")
    try:
        while (thought := await unseen.get()) is not None:
            yield thought
        deltas, taken = await beginning
        async with contextlib.aclosing(deltas):
            for delta in taken:
                yield delta
            async for delta in deltas:
                yield delta
    finally:
        await _hung_up(beginning)


async def _hung_up(beginning: asyncio.Task[tuple[AsyncGenerator[Delta], list[Delta]]]) -> None:
    """Nothing is written for who went away while it began."""
    beginning.cancel()
    [found] = await asyncio.gather(beginning, return_exceptions=True)
    if not isinstance(found, BaseException):
        await found[0].aclose()


async def _deltas(model: OwnModel, question: CompletionRequest, asked: ChatRequest) -> AsyncGenerator[Delta]:
    reader = CallReader([_name(tool) for tool in asked.tools])
    stops = _Stops(asked.stops)
    one = asked.one_call
    generated: Generated | None = None
    async with contextlib.aclosing(model.answer(question)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Generated):
                generated = piece
                break
            if isinstance(piece, Thought):
                yield piece
                continue
            for delta in reader.feed(stops.feed(piece)):
                yield delta
            if stops.met or (one and reader.calls):
                break
        else:
            raise ServerError("the model ended an answer half way")
    for rest in (reader.feed(stops.end()), reader.end()):
        for delta in rest:
            yield delta
    finish = _FINISH.get(generated.finish, "stop") if generated else "stop"
    said = ChatResponse(
        text=reader.text,
        calls=tuple(reader.calls),
        finish="tool_calls" if reader.calls else finish,
        prompt_tokens=generated.prompt_tokens if generated else (),
        tokens=generated.tokens if generated else (),
        logprobs=generated.logprobs if generated else (),
        thought=generated.thought if generated else "",
        thought_tokens=generated.thought_tokens if generated else 0,
        lifts=generated.lifts if generated else (),
    )
    yield End(
        said=said,
        raw=generated.text if generated else None,
        version=generated.version if generated else None,
        filters=generated.filters if generated else None,
        form=generated.form if generated else "",
        temperature=generated.temperature if generated else None,
        prompt_count=len(said.prompt_tokens),
        count=len(said.tokens),
    )


class _Stops:
    """Ends a text before the first of some words: the sampler knows none of them."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._longest = max(map(len, stops), default=1) - 1
        self._rest = ""
        self.met = False

    def feed(self, piece: str) -> str:
        """What can go out by now."""
        if not self._stops or self.met:
            return "" if self.met else piece
        text = self._rest + piece
        found = [at for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            self.met, self._rest = True, ""
            return text[: min(found)]
        kept = min(self._longest, len(text))
        self._rest = text[len(text) - kept :]
        return text[: len(text) - kept]

    def end(self) -> str:
        """What was held back."""
        rest, self._rest = self._rest, ""
        return rest


def _name(tool: Json) -> str:
    return string(sub(tool, "function"), "name")
