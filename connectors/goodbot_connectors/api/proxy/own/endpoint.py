# SPDX-License-Identifier: Apache-2.0
"""Who answers a program that asks our own model, and how it gets there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from typing import Any

import aiohttp
from aiohttp import hdrs, web
from goodbot.api.completions import ALIAS, CompletionRequest, FarSide, with_tools
from goodbot.api.sentences import sentence
from goodbot.base.errors import GoodbotError, ServerError
from goodbot.base.sampling import Filters, merged
from goodbot.base.thoughts import Thought

from goodbot_connectors.api.proxy import errors, listening
from goodbot_connectors.api.proxy.capture import TURN, Capture, ProxyRequest
from goodbot_connectors.api.proxy.dialects import chat, completions, messages, responses
from goodbot_connectors.api.proxy.dialects.shapes import ChatRequest, ResponseReader
from goodbot_connectors.api.proxy.own import asking, embedded, listing, wishes
from goodbot_connectors.api.proxy.own.apart import ThoughtEditor
from goodbot_connectors.api.proxy.own.deltas import AnswerWriter, Delta, End, ResponseHead
from goodbot_connectors.api.proxy.own.edited import ResponseEditor
from goodbot_connectors.api.proxy.own.far_sides import EMBEDDINGS, Fars
from goodbot_connectors.api.proxy.own.write_chat import ChatWriter, CompletionWriter
from goodbot_connectors.api.proxy.own.write_messages import MessageWriter
from goodbot_connectors.api.proxy.own.write_responses import ResponseWriter
from goodbot_connectors.api.proxy.sessions import ProxySession
from goodbot_connectors.kit.bridge.body import HttpError
from goodbot_connectors.kit.bridge.guard import answer as json_answer
from goodbot_connectors.kit.bridge.local import LocalConnector
from goodbot_connectors.kit.fields import Json

CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
MESSAGES, COUNT = "/v1/messages", "/v1/messages/count_tokens"
_READ: Mapping[str, Callable[[Json], ChatRequest]] = {
    CHAT: chat.asked,
    COMPLETIONS: completions.asked,
    RESPONSES: responses.asked,
    MESSAGES: messages.asked,
    COUNT: messages.asked,
}
_WRITE: Mapping[str, Callable[[ResponseHead], AnswerWriter]] = {
    CHAT: ChatWriter,
    COMPLETIONS: CompletionWriter,
    RESPONSES: ResponseWriter,
    MESSAGES: MessageWriter,
}
_SAME: Mapping[str, Callable[[], ResponseReader]] = {
    CHAT: chat.ChatAnswer,
    COMPLETIONS: completions.CompletionAnswer,
}
"""APIs that a server of the owner's speaks itself."""
_STREAM = {hdrs.CONTENT_TYPE: "text/event-stream; charset=utf-8", hdrs.CACHE_CONTROL: "no-cache"}
_ALIVE = b": thinking\n\n"
"""A comment of a stream: who did not ask for thoughts waits all the same."""


class OwnDoor:
    """Answers with the model that answers in chats."""

    def __init__(self, connector: LocalConnector, capture: Capture) -> None:
        self._connector, self._capture = connector, capture
        self._model = connector.host.model
        self._fars = Fars(connector.host.clock)

    async def close(self) -> None:
        """Hang up; idempotent."""
        await self._fars.close()

    async def models(self, dialect: str, name: str) -> web.StreamResponse:
        """The list of names that the model has, or one of them."""
        return json_answer(await listing.models(self._model, dialect, name))

    async def answer(
        self, request: web.Request, call: ProxyRequest, body: dict[str, Any]
    ) -> web.StreamResponse:
        """One request of somebody who may ask. Raises HttpError, GoodbotError before anything is sent."""
        try:
            if request.path == EMBEDDINGS:
                return await self._embedded(call, body)
            return await self._answered(request, call, body)
        except ServerError as error:
            raise HttpError(503, sentence(str(error)), retry_after=5.0) from error

    async def _answered(
        self, request: web.Request, call: ProxyRequest, body: dict[str, Any]
    ) -> web.StreamResponse:
        path = request.path
        wishes.check_count(body)
        asked = await asyncio.to_thread(_READ[path], body)  # as long as it is, others wait for nothing
        if path == COUNT:
            return json_answer({"input_tokens": await asyncio.to_thread(asking.estimated, asked)})
        if not asked.messages:
            raise HttpError(400, "There is no message to answer.")
        wishes.check(body, asked)
        if not asked.whole:
            raise HttpError(400, "goodbot keeps no responses: send the whole conversation in one input.")
        session = await self._capture.session(call, asked)
        question = await self._question(call, session, asked)
        about = ResponseHead(
            id=call.event_id.rpartition(":")[2],
            model=asked.model or ALIAS,
            created=int(self._connector.host.clock.now()),
            asked=asked,
            body=body,
        )
        async with self._model.far_side(question) as far:
            if far is None:
                await embedded.check(self._model, asked, body)
                if path == COMPLETIONS and body.get("suffix"):
                    raise HttpError(400, "This model fills no gaps: leave suffix out.")
                deltas = embedded.answer(self._model, question, asked)
                return await self._written(request, call, session, about, deltas)
            if path in _SAME:
                return await self._passed(request, call, session, about, far)
            asked_there = asking.translated(far, asked, body)
            kept_out = await asyncio.to_thread(asking.guarded, far, asked_there)
            given = asking.theirs(asked, body)
            async with self._fars.asked(far, CHAT, kept_out, given) as (response, far):
                deltas = asking.answer(far, response, asked, mend=kept_out != asked_there)
                return await self._written(request, call, session, about, deltas)

    async def _question(
        self, call: ProxyRequest, session: ProxySession, asked: ChatRequest
    ) -> CompletionRequest:
        user = self._connector.user(call.client.name)
        channel = self._connector.channel(call.client.name, session.id)
        return CompletionRequest(
            messages=with_tools(asked.messages, asked.tools),
            user=user,
            channel=channel,
            max_tokens=asked.max_tokens,
            temperature=asked.temperature,
            filters=asked.filters,
            seed=asked.seed,
            version=await listing.version(self._model, asked.model),
        )

    # answers that are put together here

    async def _written(
        self,
        request: web.Request,
        call: ProxyRequest,
        session: ProxySession,
        about: ResponseHead,
        deltas: AsyncGenerator[Delta],
    ) -> web.StreamResponse:
        writer = _WRITE[request.path](about)
        async with contextlib.aclosing(deltas):
            if about.asked.stream:
                return await self._streamed(request, call, session, about, deltas, writer)
            async for delta in deltas:
                if isinstance(delta, End):
                    turn = await self._kept(call, session, about.asked, delta)
                    response = web.json_response(writer.whole(_shown(delta, about)))
                    if turn:
                        response.headers[TURN] = turn
                    return response
        raise ServerError("the model ended an answer half way")

    async def _streamed(
        self,
        request: web.Request,
        call: ProxyRequest,
        session: ProxySession,
        about: ResponseHead,
        deltas: AsyncGenerator[Delta],
        writer: AnswerWriter,
    ) -> web.StreamResponse:
        first = await anext(deltas)  # what fails before it is an answer with a status of its own
        response = web.StreamResponse(headers={**_STREAM, **self._named(call)})
        await response.prepare(request)
        begun = writer.start()
        try:
            delta: Delta | None = first
            while delta is not None:
                if isinstance(delta, End):  # who has seen the end may rate it at once
                    await self._kept(call, session, about.asked, delta)
                    await response.write(begun + writer.end(delta))
                    break
                if isinstance(delta, Thought) and not about.asked.thinks:
                    await response.write(begun + _ALIVE)
                else:
                    await response.write(begun + writer.more(delta))
                begun = b""
                delta = await anext(deltas, None)
        except GoodbotError as error:
            await response.write(begun + writer.failed(sentence(str(error))))
        return response

    async def _kept(self, call: ProxyRequest, session: ProxySession, asked: ChatRequest, end: End) -> str:
        return await self._capture.keep(
            call,
            session,
            asking.drawn(asked, end.temperature),
            end.said,
            raw=end.raw,
            version=end.version,
            temperature=self._model.temperature,
            form=end.form,
            filters=self._filters(asked) if end.filters is None else end.filters,
        )

    def _filters(self, asked: ChatRequest) -> Filters:
        return merged(self._model.filters, asked.filters)

    def _named(self, call: ProxyRequest) -> dict[str, str]:
        turn = self._capture.turn(call)
        return {TURN: turn} if turn else {}

    # answers that come in the right words already

    async def _passed(
        self,
        request: web.Request,
        call: ProxyRequest,
        session: ProxySession,
        about: ResponseHead,
        far: FarSide,
    ) -> web.StreamResponse:
        path, asked = request.path, about.asked
        own = await asyncio.to_thread(asking.same, far, about.body, asked)
        made = await asyncio.to_thread(asking.guarded, far, own)
        thoughts = ThoughtEditor(far, made, asked) if path == CHAT else None
        editor = ResponseEditor(_SAME[path](), about, mend=made != own, thoughts=thoughts)
        done = False

        async def kept() -> str:
            nonlocal done
            said = editor.said()
            if done or not said.finish:
                return ""
            done = True
            return await self._capture.keep(
                call,
                session,
                asking.drawn(asked, asking.temperature(far)),
                replace(said, lifts=asking.lifts(far, said, asked)),
                version=far.version,
                temperature=self._model.temperature,
                form=asking.form(far),
                filters=asking.filters(far, asked),
            )

        given = asking.theirs(asked, about.body)
        async with self._fars.asked(far, path, made, given) as (response, far):
            if response.content_type != "text/event-stream":
                body = editor.whole(await listening.at_once(far.title, response))
                turn = await kept()
                named = {TURN: turn} if turn else {}
                return web.Response(body=body, content_type="application/json", headers=named)
            out = web.StreamResponse(headers={**_STREAM, **self._named(call)})
            await out.prepare(request)
            try:
                async for piece in listening.pieces(far.title, response):
                    edited = editor.feed(piece)
                    if editor.over:  # who has seen the end may rate it at once
                        await kept()
                    if edited:
                        await out.write(edited)
                if edited := editor.end():
                    await out.write(edited)
            except (ServerError, aiohttp.ClientError, TimeoutError) as error:
                if isinstance(error, ConnectionResetError):
                    raise
                words = f"{far.title} broke its answer off."
                await out.write(errors.event(path, words))
            finally:
                await kept()
            return out

    async def _embedded(self, call: ProxyRequest, body: dict[str, Any]) -> web.StreamResponse:
        user = self._connector.user(call.client.name)
        channel = self._connector.channel(call.client.name)
        question = CompletionRequest(messages=({"role": "user", "content": ""},), user=user, channel=channel)
        async with self._model.far_side(question) as far:
            if far is None:
                raise HttpError(400, "goodbot's own sampler makes no embeddings: ask a server that does.")
            fields = ("input", "encoding_format", "dimensions")
            given = {name: body[name] for name in fields if name in body}
            made = {**given, "model": far.fields["model"]}
            async with self._fars.asked(far, EMBEDDINGS, made, frozenset(made)) as (response, far):
                data = await listening.at_once(far.title, response)
        return web.Response(body=data, content_type="application/json")


def _shown(end: End, about: ResponseHead) -> End:
    """As the program gets it: what was thought only where it asks for that."""
    return end if about.asked.thinks else replace(end, said=replace(end.said, thought=""))
