# SPDX-License-Identifier: Apache-2.0
"""The server that computes a training's steps: who allowed it, and the only way there.

A trainer's child reads foreign weights in a cage without a network. What it wants to ask comes to us as a
line of its protocol, and goes to the one server of `[training.remote]`, with a key that the child never
sees. Paths, sizes and hosts are checked here, since a child may be anybody's by then.
"""

from __future__ import annotations

import base64
import json
import string
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from goodbot.api import address
from goodbot.api.adapters.files import MAX_WEIGHTS
from goodbot.api.backend import BackendSpec
from goodbot.base.errors import ServerError
from goodbot.base.worded import Worded, said_by
from goodbot.config import Config
from goodbot.config.remote import KEY, RemoteConfig
from goodbot.config.secrets import Secret, Secrets, SecretStore
from goodbot.learning.training import cluster
from goodbot.learning.training.cluster import SECTION, Cluster, unanswered

if TYPE_CHECKING:
    import aiohttp

_IN_PATHS = frozenset(string.ascii_letters + string.digits + "/_.-")
_LONGEST_PATH = 400
_SILENT_SECONDS = 660.0
"""A server that is asked for a result may wait with its answer for minutes."""
_LONGEST_SECONDS = 3600.0
_LARGEST = 64 << 20
"""Bytes of an answer that is no file."""
_PART = 1 << 20


class _ForbiddenError(ServerError):
    """Asking again would not help: we do not do that."""


@dataclass(frozen=True, kw_only=True)
class Remote:
    """A server that an owner has named, and what it is asked."""

    config: RemoteConfig
    url: str
    """Checked."""
    key: Secret = field(default=Secret(""), repr=False)
    traffic: Counter[str] = field(default_factory=Counter[str], compare=False)
    """`bytes_sent` and `bytes_received`, of what was asked and answered, for the run's metrics."""

    @property
    def host(self) -> str:
        """The machine, as the owner has named it."""
        return urlsplit(self.url).hostname or ""

    def told(self, model: str) -> dict[str, Any]:
        """What the child must know of it; `model` is the base's name here."""
        return {"host": self.host, "model": self.config.model or model, "loss": self.config.loss}

    async def close(self) -> None:
        """Nothing is held open for it."""

    async def answer(self, asked: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        """The lines that answer a child's `ask`: parts of a file, then the status, or why there is none."""
        import aiohttp

        try:
            async for line in self._lines(asked):
                yield line
        except ServerError as error:
            yield unanswered(said_by(error), forbidden=isinstance(error, _ForbiddenError))
        except TimeoutError:
            late = "{host} did not answer within {minutes} minutes"
            yield unanswered(Worded(late, host=self.host, minutes=f"{_SILENT_SECONDS / 60:g}"))
        except aiohttp.ClientConnectorError:
            yield unanswered(Worded("{host} cannot be reached", host=self.host), unsent=True)
        except (aiohttp.ClientError, OSError):
            yield unanswered(Worded("{place} hung up in the middle of an answer", place=self.host))

    async def _lines(self, asked: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        method, path, file = asked.get("method"), asked.get("path"), bool(asked.get("file"))
        if method not in ("GET", "POST") or not isinstance(path, str) or not _is_path(path):
            raise _ForbiddenError("the trainer asks for something that is no part of the protocol")
        where, headers = self.url + path, self._headers()
        body = None if asked.get("body") is None else json.dumps(asked["body"]).encode()
        self.traffic["bytes_sent"] += len(body or b"")
        async with _asked(method, where, headers, body) as response:
            moved = response.headers.get("Location", "") if response.status // 100 == 3 else ""
            if not (file and moved):
                async for line in self._told(response, file=file):
                    yield line
                return
        place = self._elsewhere(urljoin(where, moved))
        async with _asked("GET", place, headers if _origin(place) == _origin(where) else {}) as response:
            async for line in self._told(response, file=True):
                yield line

    async def _told(self, response: aiohttp.ClientResponse, *, file: bool) -> AsyncGenerator[dict[str, Any]]:
        """The lines for the child. Raises ServerError for an answer without an end."""
        last = {"status": response.status, "retry_after": response.headers.get("Retry-After", "")}
        whole, size, largest = bytearray(), 0, MAX_WEIGHTS if file else _LARGEST
        async for part in response.content.iter_chunked(_PART):
            size += len(part)
            self.traffic["bytes_received"] += len(part)
            if size > largest:
                raise _ForbiddenError(
                    Worded("{host} does not come to an end with its answer", host=self.host)
                )
            if file and response.status == 200:
                yield {"part": base64.b64encode(part).decode()}
            else:
                whole += part
        yield {**last, "text": whole.decode("utf-8", "replace")}

    def _headers(self) -> dict[str, str]:
        if not (key := self.key.reveal()):
            return {}
        if not key.isascii() or not key.isprintable():
            odd = "{name} is no key: it has signs that no header may have"
            raise _ForbiddenError(Worded(odd, name=KEY))
        return {"X-API-Key": key, "Authorization": f"Bearer {key}"}

    def _elsewhere(self, place: str) -> str:
        """Where a file is said to be, if we may go there. Raises ServerError."""
        parts = urlsplit(place)
        host = (parts.hostname or "")[:80]
        named = parts.scheme == "https" and host in self.config.hosts
        if not (named or _origin(place) == _origin(self.url)):
            other = (
                "{host} has put the adapter on {other}: if goodbot may get it there, "
                "name that machine in hosts of [{section}], too"
            )
            raise _ForbiddenError(Worded(other, host=self.host, other=host or "?", section=SECTION))
        return place


def allowed(config: Config, backend: BackendSpec) -> Remote | Cluster | None:
    """The server or the cluster for a backend that computes elsewhere; None for any other backend.

    Raises ConfigError unless an owner has named the machine: what people write here is sent there.
    """
    if not backend.remote:
        return None
    if backend.driver:
        return cluster.allowed(config, backend)
    remote, where = config.training.remote, config.where(SECTION)
    if not remote.url:
        unset = "the {name} backend computes elsewhere: set url under [{section}]"
        raise where.error("url", Worded(unset, name=backend.name, section=SECTION))
    try:
        parts, here = urlsplit(remote.url), address.is_here(remote.url)
        host = (parts.hostname or "").removesuffix(".")[:80]
        named = here or not host or host in remote.hosts
        url = address.checked(remote.url, (*remote.hosts, host), section=SECTION, key=KEY)
    except ValueError as error:
        raise where.error("url", Worded("{name} {what}", name="url", what=said_by(error))) from error
    if not named:
        forbidden = (
            "questions and rated answers would go to {host}, and nobody has allowed that: if you do, "
            'put hosts = ["{host}"] under [{section}]'
        )
        raise where.error("hosts", Worded(forbidden, host=host, section=SECTION))
    if parts.scheme != "https" and not here:
        clear = Worded("url must begin with https://: on the way nobody else may read it")
        raise where.error("url", clear)
    key = Secrets((KEY,), SecretStore(config.home).environment([KEY])).get(KEY)
    return Remote(config=remote, url=url, key=key)


def _is_path(path: str) -> bool:
    inside = path.startswith("/api/v1/") and len(path) <= _LONGEST_PATH and set(path) <= _IN_PATHS
    return inside and not {"", ".", ".."} & set(path[1:].split("/"))


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port


@asynccontextmanager
async def _asked(
    method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
) -> AsyncGenerator[aiohttp.ClientResponse]:
    """One request, to the address that its name leads to now; no proxy, no cookie, no way on."""
    import aiohttp

    from goodbot.inference.servers.upstream import CONNECT_SECONDS, PinnedResolver

    ways = await address.pinned(url, section=SECTION)
    given: dict[str, Any] = {} if body is None else {"data": body}
    kind = {} if body is None else {"Content-Type": "application/json"}
    async with (
        aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(resolver=PinnedResolver(ways), force_close=True),
            timeout=aiohttp.ClientTimeout(
                total=_LONGEST_SECONDS, sock_connect=CONNECT_SECONDS, sock_read=_SILENT_SECONDS
            ),
            headers={"Accept-Encoding": "identity", "User-Agent": "goodbot", **kind, **headers},
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        ) as session,
        session.request(method, url, allow_redirects=False, **given) as response,
    ):
        yield response
