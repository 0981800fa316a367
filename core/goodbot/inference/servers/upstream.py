# SPDX-License-Identifier: Apache-2.0
"""One server that is asked over HTTP: one session, one origin, bounded answers, clear errors.

No redirects, no proxies, no cookies; the key goes to this origin alone. What answers is not trusted:
sizes are limited, and of its own words only one short, printable line gets into an error.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from typing import IO, Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from goodbot.api import address
from goodbot.api.manners import REFUSALS, Manners, parsed, said, short
from goodbot.base.errors import ServerError
from goodbot.base.worded import Worded
from goodbot.config.secrets import Secret

CONNECT_SECONDS = 30.0
"""A machine that trains may take seconds to say yes. One without a server says no at once."""
SILENT_SECONDS = 300.0
"""A server that says nothing for so long hangs. Reading a long prompt on a slow machine is silent."""
LONGEST_SECONDS = 3600.0
"""A streamed answer takes no longer, whatever comes: a server may send signs of life for ever."""
_LARGEST_ANSWER = 16 * 1024 * 1024
_LARGEST_STREAM = 256 * 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class UpstreamResponse:
    """A whole answer: its status, and its JSON (`{}` for an empty or unreadable one, or another text)."""

    status: int
    body: dict[str, Any]
    text: str = ""

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def words(self) -> str:
        """What the server says of an error, in one line that is fit for a terminal; may be empty.

        JSON of another shape is left out: some servers put the request into it, with what people wrote.
        """
        structured = self.text.lstrip().startswith(("{", "["))
        return said(self.body) or ("" if structured else short(self.text))


class Upstream:
    """Requests to one server. `title` names it in sentences ("vLLM")."""

    def __init__(
        self,
        title: str,
        url: str,
        key: Secret,
        manners: Manners | None = None,
        *,
        section: str = "serving",
        key_name: str = "GOODBOT_SERVER_KEY",
    ) -> None:
        """`url` is one that `address.checked` has made; `manners`: what is known of the server already.

        `section` of the config has its address, `key_name` is the secret that its key lies in.
        """
        self._section, self._key_name = section, key_name
        self.title = title
        self.url = url
        self._key = key
        self._session: aiohttp.ClientSession | None = None
        self.manners = manners or Manners()

    @property
    def place(self) -> str:
        """How sentences name it: `vLLM at http://127.0.0.1:8000`."""
        return Worded("{title} at {url}", title=self.title, url=self.url)

    @property
    def key(self) -> Secret:
        return self._key

    @property
    def is_open(self) -> bool:
        return self._session is not None

    async def open(self) -> None:
        """Resolve its address, for as long as this session lasts; idempotent. Raises ServerError."""
        if self._session is not None:
            return
        ways = await address.pinned(self.url, section=self._section)
        headers = {"Accept-Encoding": "identity", "User-Agent": "goodbot"}
        if key := self._key.reveal():
            if not key.isascii() or not key.isprintable():
                odd = "{name} is no key: it has signs that no header may have"
                raise ServerError(Worded(odd, name=self._key_name))
            headers["Authorization"] = f"Bearer {key}"
        self._session = aiohttp.ClientSession(
            # A connection that is kept is one that the server may end just when it is used again.
            connector=aiohttp.TCPConnector(resolver=PinnedResolver(ways), limit=0, force_close=True),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENT_SECONDS),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )

    async def close(self) -> None:
        """Idempotent. Requests under way are cut off."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def ask(
        self,
        path: str,
        body: Mapping[str, Any] | IO[bytes] | None = None,
        *,
        method: str = "",
        seconds: float = SILENT_SECONDS,
    ) -> UpstreamResponse:
        """One question, with `GET` or, with a body (JSON, or an open file as it is), `POST`.

        Raises ServerError if no whole answer comes.
        """
        method = method or ("GET" if body is None else "POST")
        async with self._request(method, path, body, seconds) as response:
            return await self._reply(response)

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, body: Mapping[str, Any]
    ) -> AsyncGenerator[tuple[str, AsyncIterator[bytes]]]:
        """An answer as it comes: its content type, and its pieces. Leaving the block early hangs up.

        Raises ServerError, also for a status that is an error (`StatusError`).
        """
        async with self._request("POST", path, body, None) as response:
            if response.status != 200:
                raise self.refused(await self._reply(response))
            yield response.content_type, self._pieces(response, _LARGEST_STREAM)

    async def _reply(self, response: aiohttp.ClientResponse) -> UpstreamResponse:
        pieces = [piece async for piece in self._pieces(response, _LARGEST_ANSWER)]
        text = b"".join(pieces).decode("utf-8", "replace")
        return UpstreamResponse(status=response.status, body=parsed(text), text=text)

    async def _pieces(self, response: aiohttp.ClientResponse, largest: int) -> AsyncGenerator[bytes]:
        size = 0
        try:
            async for piece in response.content.iter_any():
                size += len(piece)
                if size > largest:
                    raise ServerError(
                        Worded("{place} does not come to an end with its answer", place=self.place)
                    )
                yield piece
        except RuntimeError as error:  # aiohttp's word for a session that was closed meanwhile
            left = Worded("{place} was left in the middle of an answer", place=self.place)
            raise Unreachable(left) from error

    def refused(self, reply: UpstreamResponse) -> StatusError:
        """An error status, as a sentence that says what to do."""
        if reply.status in (401, 403):
            key = "{place} refuses the key: put the one that it was started with into {name}"
            return StatusError(Worded(key, place=self.place, name=self._key_name), reply)
        said = Worded("{place} answers with status {status}", place=self.place, status=reply.status)
        return StatusError(
            Worded("{what}: {why}", what=said, why=reply.words) if reply.words else said, reply
        )

    @contextlib.asynccontextmanager
    async def _request(
        self, method: str, path: str, body: Mapping[str, Any] | IO[bytes] | None, seconds: float | None
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        session = self._session
        if session is None:
            raise ServerError(Worded("{place} is not connected", place=self.place))
        timeout = aiohttp.ClientTimeout(
            total=seconds or LONGEST_SECONDS,
            sock_connect=CONNECT_SECONDS,
            sock_read=seconds or SILENT_SECONDS,
        )
        response: aiohttp.ClientResponse | None = None
        given: dict[str, Any] = {"json": body} if isinstance(body, Mapping) else {"data": body}
        given |= {"timeout": timeout, "allow_redirects": False}
        try:
            response = await session.request(method, self.url + path, **given)
            if 300 <= response.status < 400:
                elsewhere = "{place} sends us elsewhere: set [{section}] url to where it really is"
                raise ServerError(Worded(elsewhere, place=self.place, section=self._section))
            yield response
        except aiohttp.ClientConnectorError as error:
            raise self._silent() from error
        except TimeoutError as error:
            if response is None and isinstance(error, aiohttp.ConnectionTimeoutError):
                raise self._silent() from error
            silent = "{place} said nothing for {seconds} s: it hangs, or is far too busy"
            waited = round(seconds or SILENT_SECONDS)
            raise ServerError(Worded(silent, place=self.place, seconds=waited)) from error
        except (aiohttp.ClientError, ConnectionError) as error:
            hung_up = Worded("{place} hung up in the middle of an answer", place=self.place)
            raise Unreachable(hung_up) from error
        finally:
            if response is not None:
                response.close()  # what was not read to its end ends the connection, and so the work

    def _silent(self) -> Unreachable:
        away = "{place} does not answer: start it, or set [{section}] url"
        return Unreachable(Worded(away, place=self.place, section=self._section))


class StatusError(ServerError):
    """The server answered, with an error. `reply` is what it said."""

    def __init__(self, message: str, reply: UpstreamResponse) -> None:
        self.reply = reply
        super().__init__(message)
        self.refused = reply.status in REFUSALS


class Unreachable(ServerError):  # noqa: N818  a state of the server's, as `except Unreachable` reads
    """Nobody answers there, or not any more."""


class PinnedResolver(AbstractResolver):
    """Every name is where we looked once."""

    def __init__(self, ways: list[tuple[int, str]]) -> None:
        self._ways = ways

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=ip, port=port, family=way, proto=0, flags=socket.AI_NUMERICHOST)
            for way, ip in self._ways
            if family in (socket.AF_UNSPEC, way)
        ]

    async def close(self) -> None:
        return
