# SPDX-License-Identifier: Apache-2.0
"""`goodbot doctor serving`: model servers on their usual ports, and how goodbot can answer through each.

It only asks. The one request that is no GET goes to a vLLM that has said it is one, and is empty,
so that it can load nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from goodbot.api import address
from goodbot.api.registry import choose_backend
from goodbot.api.server import ServerSpec
from goodbot.api.setup import Check, Examined, Probe, fail, ok, warn
from goodbot.api.survey import MODELS, FoundServer
from goodbot.api.texts import commas
from goodbot.api.texts.terminal import here, phrase
from goodbot.base.errors import GoodbotError, unexpected
from goodbot.cli.doctor import model_server
from goodbot.inference.models import resolve, servers
from goodbot.inference.models import serving as settings
from goodbot.learning.training.settings import training_settings

if TYPE_CHECKING:
    from aiohttp import ClientSession

_SECONDS = 5.0
_USUAL_RANK = 8


async def serving(examined: Examined, urls: Sequence[str] = ()) -> Sequence[Check]:
    """A line for each server that is found on this machine."""
    specs = tuple(examined.plugins.servers().values())
    usual = servers.usual(known=servers.surveys(specs).values())
    urls = urls or [*dict.fromkeys((*usual, *_configured(examined)))]
    found = {server.url: server for server in await asyncio.to_thread(servers.discover, urls, specs)}
    async with servers.session(_SECONDS) as http:
        looks = [
            _look(http, found[url], examined, specs) if url in found else _locked(http, url, examined)
            for url in urls
        ]
        checks = [check for check in await asyncio.gather(*looks) if check is not None]
    return checks or [await _nothing(examined, urls)]


async def _nothing(examined: Examined, urls: Sequence[str]) -> Check:
    """That no server answers, which is in order where none is configured."""
    places = commas(here(), *(url.rpartition(":")[2] for url in urls))
    if checks := await model_server.look(examined):  # one that is somewhere else
        return checks[0]
    return ok("serving", phrase("doc_no_servers", ports=places))


def _configured(examined: Examined) -> list[str]:
    """Where `[serving] url` says that the server is, if that can be asked."""
    try:
        url = examined.config.serving.url
        return [address.checked(url, examined.config.serving.hosts)] if url else []
    except ValueError:
        return []


async def _look(
    http: ClientSession, found: FoundServer, examined: Examined, specs: Sequence[ServerSpec]
) -> Check:
    """What its own kind says of it, with the settings to answer through it."""
    several = "NAME" if len(found.models) > 1 else ""
    line = settings.written(settings.settings(found.kind, found.url, several, specs))
    ask = servers.asking(http, found.url)
    try:
        return await found.survey.examine(ask, found, line, await asyncio.to_thread(_rank, examined))
    except Exception as error:  # a plugin's; the other servers' lines are shown all the same
        return fail(found.part, phrase("doc_not_looked", name=found.title, why=unexpected(error)))


def _rank(examined: Examined) -> int:
    """Of the adapters of the configured model: for a mixture of experts twice the usual."""
    config, plugins = examined.config, examined.plugins
    try:
        spec = choose_backend(plugins.backends(), config.training.backend)
        model = resolve(config.model.path, plugins.models(), demo=examined.demo_model)
        found: Any = training_settings(config, spec, plugins.objectives(), model.path)[0]
    except GoodbotError:  # the lines of the model and of the backend say it
        found = config.training.settings.get("rank")
    rank = getattr(found, "rank", found)
    return rank if isinstance(rank, int) else _USUAL_RANK


async def _locked(http: ClientSession, url: str, examined: Examined) -> Check | None:
    """A server that answers nobody without a key. The configured one is asked with it, no other is."""
    code, _ = await servers.asking(http, url)(MODELS)
    if code not in (401, 403):
        return None
    part = f"port {url.rpartition(':')[2]}"
    if url in _configured(examined) and (checks := await model_server.look(examined)):
        return replace(checks[0], part=part)
    return warn(part, phrase("doc_locked"))


PROBES = (Probe(name="serving", run=serving, seconds=3 * _SECONDS),)
