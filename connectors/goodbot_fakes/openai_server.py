# SPDX-License-Identifier: Apache-2.0
"""A loopback server that speaks OpenAI's chat completions, with a deterministic stand-in for the model.

Each next token is drawn from a distribution that depends on the conversation, the base and the bytes of the
adapter. `FakeVllm` and `FakeSglang` build on it. Its faults can be switched on.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from goodbot_fakes.policy import END, WORDS, Policy, Token, at_temperature, cutting

_IDS = {END: 1, **{word: number for number, word in enumerate(WORDS, start=2)}}
_TEXT = 1000
"""The ids of a prompt's bytes begin here."""
_SILENCE = 3600.0


@dataclass(kw_only=True, slots=True)
class Faults:
    """What goes wrong, as it does at real servers. All off."""

    hangs: bool = False
    """Questions are taken, and nothing comes."""
    fails: bool = False
    """Each answer is a 500, as of an engine that has died."""
    breaks_off: bool = False
    """After three tokens the connection ends."""
    no_end: bool = False
    """The stream ends without `[DONE]`."""
    error_in_stream: bool = False
    """An error object after three tokens, as from an engine that has died."""
    ignores_adapters: bool = False
    """An adapter is loaded and listed, and the base answers."""
    loads_nothing: bool = False
    """A load is acknowledged, and nothing is loaded."""
    stale_cache: bool = False
    """What was once loaded under a name answers under it for ever."""
    redirects: str = ""
    """Every answer is a redirect there."""


class FakeOpenAI:
    """Use `async with FakeOpenAI() as server`; `server.url` is where it listens."""

    def __init__(
        self,
        *,
        name: str = "base-model",
        key: str = "",
        port: int = 0,
        delay: float = 0.0,
        piece: int = 0,
        newline: str = "\n",
    ) -> None:
        """`piece` bytes are sent at once (0: an event), `delay` seconds pass between tokens."""
        self.name = name
        self.key = key
        self.faults = Faults()
        self.requests: list[tuple[str, dict[str, Any]]] = []
        """Path and body of every request."""
        self.answering = 0
        self.hung_up = 0
        """Answers that were not waited for."""
        self._port = port
        self._delay = delay
        self._piece = piece
        self._newline = newline
        self._base = hashlib.sha256(b"base").hexdigest()
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> FakeOpenAI:
        await self.up()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.down()

    async def up(self) -> None:
        """Listen, on the same port as before."""
        app = web.Application(middlewares=[self._guard], client_max_size=1 << 24)
        app.add_routes(self.routes())
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]

    async def down(self) -> None:
        """Listen no more; what is under way is cut off."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    def asked(self, path: str) -> list[dict[str, Any]]:
        """The bodies of all requests to `path`."""
        return [body for asked, body in self.requests if asked == path]

    # what servers do differently

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/v1/models", self._models), web.post("/v1/chat/completions", self._chat)]

    def listed(self) -> list[dict[str, Any]]:
        """The entries of `/v1/models`."""
        return [{"id": self.name, "object": "model", "owned_by": "somebody"}]

    def policy(self, body: Mapping[str, Any]) -> Policy | web.Response:
        """Who answers, or why nobody does."""
        if body.get("model") != self.name:
            return self.refused(404, f"The model `{body.get('model')}` does not exist.")
        return Policy(self._base)

    def refused(self, status: int, message: str) -> web.Response:
        error = {"message": message, "type": "BadRequestError", "param": None, "code": status}
        return web.json_response({"error": error}, status=status)

    def unauthorized(self) -> web.Response:
        return web.json_response({"error": "Unauthorized"}, status=401)

    def told(self, body: Mapping[str, Any], token: Token) -> Mapping[str, float]:
        """The log-probs at the place of a token."""
        return at_temperature(token.top, (self.processed(body) and body["temperature"]) or 1.0)

    def processed(self, body: Mapping[str, Any]) -> bool:
        """Whether log-probs are at the temperature of the request."""
        return False

    def extras(self, body: Mapping[str, Any], said: Sequence[Token]) -> list[dict[str, Any]]:
        """Chunks after the last token."""
        return [{"choices": [], "usage": {"completion_tokens": len(said)}}]

    def chunk(self, body: Mapping[str, Any], choice: dict[str, Any], token: Token | None) -> dict[str, Any]:
        """A whole chunk; `token` None is the first one, which says the role."""
        return {"object": "chat.completion.chunk", "model": body["model"], "choices": [choice]}

    def gone(self, body: Mapping[str, Any]) -> bool:
        """Whether what an answer is written by was taken away meanwhile."""
        return False

    # what they all do

    def adapted(self, directory: str) -> Policy:
        """The base with the adapter whose files lie there. Raises OSError."""
        digest = hashlib.sha256()
        for name in ("adapter_config.json", "adapter_model.safetensors"):
            digest.update(Path(directory, name).read_bytes())
        return Policy(self._base, (digest.hexdigest(),))

    def prompt(self, body: Mapping[str, Any]) -> list[int]:
        """Token ids of the conversation."""
        return [_TEXT + byte for byte in json.dumps(body["messages"]).encode()]

    @staticmethod
    def id_of(token: Token) -> int:
        return _IDS[token.text]

    async def ready(self, body: Mapping[str, Any]) -> None:
        """Returns when this answer may begin."""

    async def over(self, body: Mapping[str, Any]) -> None:
        """It has ended, however it did."""

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if self.faults.redirects:
            raise web.HTTPTemporaryRedirect(self.faults.redirects)
        guarded = request.path not in ("/health", "/version")
        if guarded and self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
            return self.unauthorized()
        body: dict[str, Any] = await request.json() if request.can_read_body else {}
        self.requests.append((request.path, body))
        if self.faults.hangs and request.path != "/health":
            await asyncio.sleep(_SILENCE)
        return await handler(request)

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": self.listed()})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if self.faults.fails:
            return self.refused(500, "EngineDeadError: see the log")
        policy = self.policy(body)
        if isinstance(policy, web.Response):
            return policy
        await self.ready(body)
        self.answering += 1
        try:
            if body.get("stream"):
                return await self._streamed(request, body, policy)
            return await self._whole(body, policy)
        except (asyncio.CancelledError, ConnectionError):
            self.hung_up += 1
            raise
        finally:
            self.answering -= 1
            await self.over(body)

    async def _streamed(
        self, request: web.Request, body: Mapping[str, Any], policy: Policy
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        async for event in self._events(body, policy):
            data = f": a comment{self._newline}data: {event}{self._newline * 2}".encode()
            step = self._piece or len(data)
            for start in range(0, len(data), step):
                await response.write(data[start : start + step])
        if self.faults.breaks_off:
            assert request.transport is not None
            request.transport.abort()
        return response

    async def _events(self, body: Mapping[str, Any], policy: Policy) -> AsyncGenerator[str]:
        first = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
        yield json.dumps(self.chunk(body, first, None))
        said: list[Token] = []
        for token in self._tokens(body, policy):
            await asyncio.sleep(self._delay)
            said.append(token)
            over = token.text == END or len(said) >= body["max_tokens"]
            yield json.dumps(
                self.chunk(body, self._choice(body, token, "delta", over), token), ensure_ascii=False
            )
            if len(said) == 3 and self.faults.breaks_off:
                return
            if self.gone(body) or (len(said) == 3 and self.faults.error_in_stream):
                yield json.dumps({"error": {"message": "EngineCore died", "code": 500}})
                break
        for extra in self.extras(body, said):
            yield json.dumps(extra)
        if not self.faults.no_end:
            yield "[DONE]"

    async def _whole(self, body: Mapping[str, Any], policy: Policy) -> web.Response:
        said = [*self._tokens(body, policy)]
        text = "".join(token.text for token in said if token.text != END)
        finish = "stop" if said[-1].text == END else "length"
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return web.json_response({"object": "chat.completion", "choices": [choice]})

    def _tokens(self, body: Mapping[str, Any], policy: Policy) -> Sequence[Token]:
        return [
            *policy.answer(
                body["messages"],
                temperature=body["temperature"],
                seed=body.get("seed", 0),
                most=body["max_tokens"],
                cut=cutting(body),
            )
        ]

    def _choice(self, body: Mapping[str, Any], token: Token, kind: str, over: bool) -> dict[str, Any]:
        finish = ("stop" if token.text == END else "length") if over else None
        text = "" if token.text == END else token.text
        choice: dict[str, Any] = {"index": 0, kind: {"content": text}, "finish_reason": finish}
        if body.get("logprobs"):
            told = self.told(body, token)
            tops = [*told.items()][: body.get("top_logprobs") or 0]
            choice["logprobs"] = {
                "content": [
                    {
                        "token": token.text,
                        "logprob": told[token.text],
                        "bytes": [*token.text.encode()],
                        "top_logprobs": [{"token": text, "logprob": p, "bytes": None} for text, p in tops],
                    }
                ]
            }
        return choice
