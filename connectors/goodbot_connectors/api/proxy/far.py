# SPDX-License-Identifier: Apache-2.0
"""One upstream that the owner has named, and the requests that go there."""

from __future__ import annotations

import contextlib
import io
import socket
from collections.abc import AsyncGenerator
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from goodbot.api import address
from goodbot.base.clock import Clock
from goodbot.base.errors import ServerError
from multidict import CIMultiDict
from yarl import URL

from goodbot_connectors.api.proxy.config import ANTHROPIC
from goodbot_connectors.kit.bridge.body import HttpError

CONNECT_SECONDS = 30.0
"""A machine that trains may take seconds to say yes. One without a server says no at once."""
SILENT_SECONDS = 600.0
"""A model that thinks for longer without a word hangs. Most send a sign of life."""
_LARGE = 1 << 20
"""Bytes that are sent piece by piece, so that others get their turn."""
_KEPT_SECONDS = 4.0
"""Between two requests of a connection: model servers end an idle one after five."""
_PINNED_SECONDS = 300.0
"""So long a name leads where it led; clouds move."""


class Far:
    """A session with one upstream, at `url` as `address.checked` has made it."""

    def __init__(self, url: str, clock: Clock, *, reads: bool = False) -> None:
        """`reads`: its answers are read here, not passed on as they are, so they are undone if compressed."""
        self.url = url
        self._clock = clock
        self._reads = reads
        self._session: aiohttp.ClientSession | None = None

    def open(self) -> aiohttp.ClientSession:
        """Idempotent; within a running loop."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    resolver=_Checked(self.url, self._clock),
                    limit=0,
                    keepalive_timeout=_KEPT_SECONDS,
                    use_dns_cache=False,
                ),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENT_SECONDS
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=self._reads,
                skip_auto_headers=("User-Agent", "Content-Type"),
            )
        return self._session

    async def close(self) -> None:
        """Cut off what is under way; idempotent."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    @contextlib.asynccontextmanager
    async def ask(
        self, method: str, url: str, headers: CIMultiDict[str], body: bytes | None
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        """Its answer, whatever the status, once the head is there. Leaving early hangs up.

        Raises HttpError (502, 504) for one that does not come.
        """
        response: aiohttp.ClientResponse | None = None
        data = io.BytesIO(body) if body is not None and len(body) >= _LARGE else body
        try:
            response = await self.open().request(
                method, URL(url, encoded=True), headers=headers, data=data, allow_redirects=False
            )
            if 300 <= response.status < 400 and response.status != 304:
                raise HttpError(
                    502, "The upstream sends us elsewhere: set [connectors.api] upstream to there."
                )
            yield response
        except (aiohttp.ClientConnectorError, ServerError) as error:
            if response is not None:  # it does answer: who reads that says what is wrong with it
                raise
            raise HttpError(
                502, "The upstream does not answer: see [connectors.api] upstream, and whether it runs."
            ) from error
        except TimeoutError as error:
            raise HttpError(504, "The upstream said nothing for too long: try again.") from error
        except aiohttp.ClientError as error:
            raise HttpError(502, "The upstream hung up in the middle of an answer: try again.") from error
        finally:
            if response is not None:
                if response.content.at_eof():
                    response.release()  # the connection can be used again
                else:
                    response.close()


def base(url: str, hosts: tuple[str, ...], dialect: str) -> tuple[str, str]:
    """A configured address, checked: its origin with a path, and what stands in the place of our `/v1`.

    As with the clients of each API: OpenAI's have the whole path in it, Anthropic's add `/v1` themselves.
    """
    root = address.checked(url, hosts)
    versioned = urlsplit(url).path.rstrip("/").endswith("/v1")
    plain = urlsplit(root).path.strip("/") == ""
    return root, f"{root}/v1" if dialect == ANTHROPIC or versioned or plain else root


class _Checked(AbstractResolver):
    """Leads where the name led when it was last looked up, and never where no upstream may be."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._url, self._clock = url, clock
        self._ways: list[tuple[int, str]] = []
        self._looked = 0.0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        now = self._clock.monotonic()
        if not self._ways or now - self._looked > _PINNED_SECONDS:
            self._ways, self._looked = await address.pinned(self._url), now
        return [
            ResolveResult(hostname=host, host=ip, port=port, family=way, proto=0, flags=socket.AI_NUMERICHOST)
            for way, ip in self._ways
            if family in (socket.AF_UNSPEC, way)
        ]

    async def close(self) -> None:
        return
