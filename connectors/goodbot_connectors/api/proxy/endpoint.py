# SPDX-License-Identifier: Apache-2.0
"""The routes that programs know from OpenAI and Anthropic, and who answers them.

What is here is all there is: no other path, and no other method, of an upstream can be reached.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from aiohttp import hdrs, web
from multidict import CIMultiDict, CIMultiDictProxy

from goodbot_connectors.api.proxy import config, errors, headers, listening
from goodbot_connectors.api.proxy.capture import Capture, ProxyRequest
from goodbot_connectors.api.proxy.config import ANTHROPIC, OPENAI, OWN, ProxySettings
from goodbot_connectors.api.proxy.dialects import chat, completions, messages, responses
from goodbot_connectors.api.proxy.dialects.shapes import ChatRequest, ResponseReader
from goodbot_connectors.api.proxy.far import Far, base
from goodbot_connectors.api.proxy.hangup import GoneError, Hangups
from goodbot_connectors.api.proxy.listening import ResponseTap
from goodbot_connectors.api.proxy.own.endpoint import OwnDoor
from goodbot_connectors.api.proxy.pictures import Pictures
from goodbot_connectors.api.proxy.relay import relay
from goodbot_connectors.api.proxy.waiters import Waiters
from goodbot_connectors.kit.bridge import guard
from goodbot_connectors.kit.bridge.body import HttpError, parsed, pieces, read
from goodbot_connectors.kit.bridge.clients import ApiClient
from goodbot_connectors.kit.bridge.encoded import Undone, coding, undone
from goodbot_connectors.kit.bridge.local import LocalConnector

logger = logging.getLogger(__name__)

LARGEST = 64 << 20
"""Bytes of a request. Agents send the whole conversation again, with all its pictures."""
READ = 8 << 20
"""Bytes of one that our own model reads, without pictures and files."""
_TOKEN_HEADER = "X-Goodbot-Token"  # noqa: S105  a header's name


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiDialect:
    """One of the APIs: how its requests and answers are read. Without `answer` nothing is captured."""

    dialect: str
    asked: Callable[[Mapping[str, Any]], ChatRequest] | None = None
    answer: Callable[[], ResponseReader] | None = None
    chat: bool = True


POSTS: Mapping[str, ApiDialect] = {
    "/v1/chat/completions": ApiDialect(dialect=OPENAI, asked=chat.asked, answer=chat.ChatAnswer),
    "/v1/responses": ApiDialect(dialect=OPENAI, asked=responses.asked, answer=responses.ResponseAnswer),
    "/v1/completions": ApiDialect(
        dialect=OPENAI, asked=completions.asked, answer=completions.CompletionAnswer, chat=False
    ),
    "/v1/embeddings": ApiDialect(dialect=OPENAI),
    "/v1/messages": ApiDialect(dialect=ANTHROPIC, asked=messages.asked, answer=messages.MessageAnswer),
    "/v1/messages/count_tokens": ApiDialect(dialect=ANTHROPIC, asked=messages.asked),
}
MODELS = "/v1/models"


class Proxy:
    """What connector `api` answers in the place of OpenAI and Anthropic."""

    def __init__(self, connector: LocalConnector, settings: ProxySettings) -> None:
        self._connector, self._settings = connector, settings
        self._capture = Capture(connector, settings.session_seconds, on=settings.capture)
        self._hangups = Hangups(connector.host.clock)
        self._fars: dict[str, Far] = {}
        self._own = OwnDoor(connector, self._capture)
        self._unread: set[str] = set()
        self._waiters, self._lookers = Waiters(), Waiters()

    def routes(self) -> Sequence[web.AbstractRouteDef]:
        """All that is answered, each behind the guard."""
        return (
            *(web.post(path, self._guarded(self._posted, api)) for path, api in POSTS.items()),
            web.get(MODELS, self._listed_guarded(), allow_head=False),
            web.get(f"{MODELS}/{{model}}", self._listed_guarded(), allow_head=False),
        )

    async def close(self) -> None:
        """Hang up everywhere; idempotent."""
        await self._hangups.close()
        for far in self._fars.values():
            await far.close()
        await self._own.close()

    # who is let in

    def _guarded(self, handler: _Handler, api: ApiDialect) -> _Wrapped:
        async def answered(request: web.Request, client: ApiClient) -> web.StreamResponse:
            try:
                async with self._hangups.watched(request):
                    return await handler(request, client, api)
            except GoneError:
                return web.Response(status=499)  # nobody reads it

        shape = errors.refusal(api.dialect)
        return guard.guarded(answered, self._connector.clients, largest=LARGEST, refused=shape)

    def _listed_guarded(self) -> _Wrapped:
        """The list of models is at the same path in both APIs; Anthropic's clients say who they are."""
        by = {one: self._guarded(self._listed, ApiDialect(dialect=one)) for one in (OPENAI, ANTHROPIC)}

        async def listed(request: web.Request) -> web.StreamResponse:
            return await by[ANTHROPIC if "anthropic-version" in request.headers else OPENAI](request)

        return listed

    # what is done

    async def _posted(self, request: web.Request, client: ApiClient, api: ApiDialect) -> web.StreamResponse:
        with self._waiters.place(request, client.name, LARGEST) as came:
            return await self._passed_on(request, client, api, came)

    async def _passed_on(
        self, request: web.Request, client: ApiClient, api: ApiDialect, came: Callable[[int], None]
    ) -> web.StreamResponse:
        upstream, key = self._upstream(api.dialect)
        if upstream == OWN:
            body = await read(request, READ, came=LARGEST, thinned=Pictures())
            came(len(body))
            self._admit(client)  # before anything is made of it
            asked = await asyncio.to_thread(parsed, body)  # a large one takes longer than others wait
            return await self._own.answer(request, self._call(request, client, api), asked)
        body = b"".join([piece async for piece in pieces(request, LARGEST)])
        came(len(body))
        self._admit(client)  # whose rights were taken away does not spend the owner's key
        far, url = self._far(upstream, api.dialect)
        async with far.ask(
            hdrs.METH_POST, url + _rest(request), self._onwards(request, api.dialect, key), body
        ) as response:
            return await self._back(request, client, api, body, response)

    def _admit(self, client: ApiClient) -> None:
        user, channel = self._connector.user(client.name), self._connector.channel(client.name)
        if not self._connector.host.model.admit(user, channel):
            raise HttpError(403, f"{client.name} may not talk to goodbot: see `goodbot people`.")

    async def _back(
        self, request: web.Request, client: ApiClient, api: ApiDialect, body: bytes, response: Any
    ) -> web.StreamResponse:
        call = self._call(request, client, api)
        if api.asked is None or api.answer is None:
            return await relay(request, response, listener=None, turn="", heard=_nothing)
        packed = self._coding(response.headers, "answers")
        if packed is None:
            return await relay(request, response, listener=None, turn="", heard=_nothing)
        stream = response.content_type == "text/event-stream"
        listener = ResponseTap(api.answer(), stream=stream, coding=packed)
        turn, sent = self._capture.turn(call), self._coding(request.headers, "requests")
        if not turn or sent is None:
            return await relay(request, response, listener=listener, turn="", heard=_nothing)
        read_request, encoding = api.asked, sent
        done = False

        async def heard(listener: ResponseTap) -> str:
            nonlocal done
            if done:
                return ""
            said = listener.said() if listener.over else listener.end()
            if not said.finish or listener.failed:
                return ""
            done = True
            asked = await asyncio.to_thread(lambda: read_request(_again(body, encoding)))
            session = await self._capture.session(call, asked)
            return await self._capture.keep(call, session, asked, said)

        return await relay(request, response, listener=listener, turn=turn, heard=heard)

    def _coding(self, headers: CIMultiDictProxy[str], what: str) -> str | None:
        """What they are compressed with; None for what cannot be undone here, which the log says once."""
        given = headers.getall(hdrs.CONTENT_ENCODING, [])
        try:
            name = coding(given)
            Undone(name, 0)
            return name
        except HttpError as error:
            if what not in self._unread:  # the coding's name is a stranger's word
                self._unread.add(what)
                logger.warning("compressed %s are passed on, and not kept: %s", what, error)
            return None

    async def _listed(self, request: web.Request, client: ApiClient, api: ApiDialect) -> web.StreamResponse:
        model = request.match_info.get("model", "")
        if model in (".", ".."):  # a way to somewhere else, where the upstream tidies paths up
            raise HttpError(404, "There is no such model.")
        upstream, key = self._upstream(api.dialect)
        if upstream == OWN:
            return await self._own.models(api.dialect, model)
        with self._lookers.place(request, client.name, 0):  # an upstream may take its time
            return await self._listed_there(request, api, upstream, key, model)

    async def _listed_there(
        self, request: web.Request, api: ApiDialect, upstream: str, key: str, model: str
    ) -> web.StreamResponse:
        far, url = self._far(upstream, api.dialect)
        path = "/models" + (f"/{quote(model, safe='')}" if model else "") + _query(request)
        async with far.ask(
            hdrs.METH_GET, url + path, self._onwards(request, api.dialect, key), None
        ) as response:
            return await relay(request, response, listener=None, turn="", heard=_nothing)

    # helpers

    def _upstream(self, dialect: str) -> tuple[str, str]:
        found = self._settings.upstream_for(dialect)
        if not found[0]:
            other = ANTHROPIC if dialect == OPENAI else OPENAI
            raise HttpError(
                404,
                f"No upstream speaks this API: [connectors.api] upstream speaks {other}'s. Set "
                "upstream_dialect or upstream_anthropic there.",
            )
        return found

    def _far(self, upstream: str, dialect: str) -> tuple[Far, str]:
        root, url = base(upstream, self._settings.upstream_hosts, dialect)
        if root not in self._fars:
            self._fars[root] = Far(root, self._connector.host.clock)
        return self._fars[root], url

    def _onwards(self, request: web.Request, dialect: str, key: str) -> CIMultiDict[str]:
        passed = self._settings.pass_credentials
        token = guard.token_of(request)
        if passed and not request.headers.get(_TOKEN_HEADER):
            raise HttpError(
                401,
                "[connectors.api] pass_credentials is on: send our token in the header "
                f"{_TOKEN_HEADER}, and the upstream's own where it expects it.",
            )
        return headers.onwards(
            request.headers.items(),
            dialect=dialect,
            key=self._connector.host.secrets.get(key),
            passed=passed,
            token=token,
        )

    def _call(self, request: web.Request, client: ApiClient, api: ApiDialect) -> ProxyRequest:
        low = {name.lower(): value for name, value in request.headers.items()}
        return ProxyRequest(client=client, headers=low, chat=api.chat)


_Handler = Callable[[web.Request, ApiClient, ApiDialect], Any]
_Wrapped = Callable[[web.Request], Any]


def _again(body: bytes, encoding: str) -> dict[str, Any]:
    """The request that went on, as JSON; an empty one for what is none."""
    try:
        return listening.parsed(undone(body, encoding, LARGEST))
    except HttpError:
        return {}


async def _nothing(_: ResponseTap) -> str:
    return ""


def _rest(request: web.Request) -> str:
    """What follows `/v1`; its path is one of ours, so it cannot lead elsewhere."""
    return request.path.removeprefix("/v1") + _query(request)


def _query(request: web.Request) -> str:
    query = request.rel_url.raw_query_string
    return f"?{query}" if query else ""


__all__ = ["LARGEST", "MODELS", "POSTS", "ApiDialect", "Proxy", "config"]
