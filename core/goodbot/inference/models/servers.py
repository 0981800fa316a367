# SPDX-License-Identifier: Apache-2.0
"""The model servers that run on this machine, and what they offer.

Every usual port is asked a few harmless questions at the same time; what answers decides what it is.
Whatever listens there is untrusted: answers are bounded, and anything odd is no server.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from goodbot.api.server import ServerSpec
from goodbot.api.survey import Ask, FoundServer, Survey
from goodbot.base.addresses import is_here
from goodbot.base.errors import ConfigError, UsageError, boundary
from goodbot.base.worded import Worded
from goodbot.inference.servers.plugin import SPECS, WITHOUT_DRIVER

if TYPE_CHECKING:
    import aiohttp

logger = logging.getLogger(__name__)

_SECONDS = 0.8
"""For a look at what may be there."""
_NAMED_SECONDS = 15.0
"""For one at a server that somebody has named: busy, it is slow; where none runs, it is refused at once."""
_LARGEST = 1 << 20


def surveys(specs: Iterable[ServerSpec] = SPECS) -> dict[str, Survey]:
    """What can be found, by kind: the drivers' own surveys, surest first."""
    found: list[Survey] = []
    drivers = {spec.name: spec.survey for spec in specs if spec.survey}
    for kind, place in {**WITHOUT_DRIVER, **drivers}.items():
        module, _, name = place.partition(":")
        with boundary(logger, "%s cannot be looked for", kind):
            found.append(_whole(getattr(import_module(module), name)(), kind))
    found.sort(key=lambda survey: -survey.priority)
    return {survey.kind: survey for survey in found}


def _whole(survey: Any, kind: str) -> Survey:
    """One whose names and ports can be used, of the driver `kind`. Raises ConfigError."""
    title = getattr(survey, "title", None)
    if not isinstance(survey, Survey) or not isinstance(title, str) or getattr(survey, "kind", "") != kind:
        raise ConfigError(f"its survey is a goodbot.api.survey.Survey with a `title`, and {kind!r} as `kind`")
    given: tuple[Any, ...] = (survey.ports, survey.questions)
    if not all(type(one) is tuple for one in given):
        raise ConfigError("its survey's `ports` are a tuple of numbers, its `questions` one of paths")
    moved: Any = survey.moved_by
    if not isinstance(moved, str):
        raise ConfigError("its survey's `moved_by` is the name of a variable")
    return survey


def discover(
    urls: Sequence[str] | None = None, specs: Iterable[ServerSpec] = SPECS, *, named: bool = False
) -> list[FoundServer]:
    """The servers at `urls`, by default on the usual ports of this machine.

    Within a second, or within fifteen for one that is `named`.
    """
    known = list(surveys(specs).values())
    seconds = _NAMED_SECONDS if named else _SECONDS
    return asyncio.run(_discover(usual(known=known) if urls is None else urls, known, seconds))


def origin(server: FoundServer, name: str) -> list[str]:
    """Names under which the weights of a model may be known, from its server's own metadata."""

    async def asked() -> list[str]:
        async with session(_NAMED_SECONDS) as http:
            return await server.survey.origin(asking(http, server.url), server, name)

    return asyncio.run(asked())


def usual(environ: Mapping[str, str] = os.environ, known: Iterable[Survey] = ()) -> list[str]:
    """Where servers usually listen, first those that were moved; only this machine is asked.

    `GOODBOT_SERVER_PORTS` (numbers with commas) replaces the ports.
    """
    known = list(known) or list(surveys().values())
    given = environ.get("GOODBOT_SERVER_PORTS")
    ports = (
        [int(part) for part in given.split(",") if part.strip().isdecimal()]
        if given is not None
        else sorted({port for survey in known for port in survey.ports})
    )
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    moved = [_moved(survey, environ.get(survey.moved_by, "")) for survey in known if survey.moved_by]
    return list(dict.fromkeys((*filter(None, moved), *urls)))


def _moved(survey: Survey, told: str) -> str:
    """Where a server listens that was told so, if that is on this machine."""
    try:
        parts = urlsplit(told if "//" in told else f"http://{told}")
        host = "127.0.0.1" if parts.hostname in ("0.0.0.0", "::") else parts.hostname or ""  # noqa: S104  a meaning, no bind
        port = parts.port or next(iter(survey.ports), 80)
    except ValueError:
        return ""
    return f"{parts.scheme}://{_bracketed(host)}:{port}" if is_here(host) else ""


def checked(url: str) -> str:
    """A server's address as a person gives it, without its path. Raises UsageError.

    Only this machine's: a model name from elsewhere says nothing about what lies here.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        none = "{url} is no server's address; write http://127.0.0.1:PORT"
        raise UsageError(Worded(none, url=repr(url)))
    if not is_here(host):
        elsewhere = "{host} is another machine; goodbot looks for servers on this one only"
        raise UsageError(Worded(elsewhere, host=host))
    default = 443 if parts.scheme == "https" else 80
    return f"{parts.scheme}://{_bracketed(host)}:{port or default}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def session(seconds: float) -> aiohttp.ClientSession:
    """For questions to this machine and no other: no proxy."""
    import aiohttp

    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=seconds), trust_env=False)


async def _discover(urls: Sequence[str], known: Sequence[Survey], seconds: float) -> list[FoundServer]:
    async with session(seconds) as http:
        found = await asyncio.gather(*(_look(asking(http, url), url, known) for url in urls))
    return [server for server in found if server is not None]


async def _look(ask: Ask, url: str, known: Sequence[Survey]) -> FoundServer | None:
    questions = list(dict.fromkeys(path for survey in known for path in survey.questions))
    answers = await asyncio.gather(*map(ask, questions))
    said = {path: body if code == 200 else {} for path, (code, body) in zip(questions, answers, strict=True)}
    for survey in known:
        with boundary(logger, "the survey of %s", survey.kind):
            if found := survey.recognize(url, said):
                return found
    return None


def asking(http: aiohttp.ClientSession, url: str) -> Ask:
    """Asks one server; whatever comes that is no bounded JSON is no answer."""

    async def ask(path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        import aiohttp

        method = "GET" if body is None else "POST"
        try:
            async with http.request(method, url + path, json=body, allow_redirects=False) as response:
                code, data = response.status, b""
                async for piece in response.content.iter_chunked(65536):
                    data += piece
                    if len(data) > _LARGEST:
                        return code, {}
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return 0, {}
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            return code, {}
        return code, cast("dict[str, Any]", found if isinstance(found, dict) else {"": found})

    return ask
