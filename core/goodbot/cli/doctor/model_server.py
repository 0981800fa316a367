# SPDX-License-Identifier: Apache-2.0
"""The model server that the owner runs, while goodbot does not: would it answer for goodbot?

`daemon` looks at the server of a goodbot that runs; one that goodbot starts itself is not there before.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

from goodbot.api.events import Message
from goodbot.api.registry import choose_backend
from goodbot.api.server import BASE, AdapterFormat, GenerateRequest
from goodbot.api.setup import Check, Examined, Probe, ok, warn
from goodbot.api.texts import reworded
from goodbot.api.texts.terminal import here, phrase
from goodbot.base.clock import SystemClock
from goodbot.base.errors import AdapterError, GoodbotError, ServerError
from goodbot.base.sampling import Filters
from goodbot.base.spawn import child_environment
from goodbot.cli.doctor.checks import failed
from goodbot.inference.models import resolve
from goodbot.inference.servers import choice
from goodbot.inference.servers.remote import RemoteServer

_SECONDS = 30.0
_TOKENS = 16
_QUESTION: Sequence[Message] = (
    {"role": "system", "content": "Say yes."},
    {"role": "user", "content": "Are you there?"},
)


async def server(examined: Examined) -> Sequence[Check]:
    """Asked as it will be: with its key, and by its driver."""
    return await look(examined) if examined.daemon is None else []


async def look(examined: Examined) -> list[Check]:
    """Nothing where goodbot would serve the model itself, or cannot yet: other lines say why."""
    try:
        driver, takes_adapters = _driver(examined)
    except GoodbotError:
        return []
    if not isinstance(driver, RemoteServer):
        return []
    try:
        await driver.upstream.open()
        name = driver.names[BASE] = await driver.look()
        refused = await _refused(driver)
    except ServerError as error:
        return [failed("server", error)]
    finally:
        await driver.upstream.close()
    if refused:
        text = phrase("doc_answers_but", place=driver.upstream.place, name=name, why=refused)
        return [warn("server", text)]
    if takes_adapters and driver.complaint:
        return [warn("server", reworded(driver.complaint, here()))]
    key = "doc_answers_adapters" if takes_adapters else "doc_answers"
    return [ok("server", phrase(key, place=driver.upstream.place, name=name))]


def takes_adapters(examined: Examined) -> bool:
    """Whether the configured server is one for adapters."""
    try:
        return choice.choose(examined.config, examined.plugins.servers()).adapters is not AdapterFormat.NONE
    except GoodbotError:
        return False


async def _refused(driver: RemoteServer) -> str:
    """What it does not take of a short question like those of chats; empty too where it takes long."""
    request = GenerateRequest(
        messages=_QUESTION,
        max_tokens=_TOKENS,
        temperature=1.0,
        seed=1,
        filters=driver.takes(Filters(top_p=0.9)),
    )
    with contextlib.suppress(ServerError, TimeoutError):
        async with asyncio.timeout(_SECONDS / 3):
            async with contextlib.aclosing(driver.write(driver.names[BASE], request)) as pieces:
                async for _ in pieces:
                    pass
    return driver.upstream.manners.told()


def _driver(examined: Examined) -> tuple[object, bool]:
    """The configured one, not started, and whether it is one for adapters."""
    config, plugins = examined.config, examined.plugins
    spec = choice.choose(config, plugins.servers())
    if not spec.url:
        return None, False
    made = choice.make(
        spec,
        config,
        clock=SystemClock(),
        environ=child_environment(),
        convert=_convert,
        model=resolve(config.model.path, plugins.models(), demo=examined.demo_model),
        backend=choose_backend(plugins.backends(), config.training.backend),
    )
    return made, spec.adapters is not AdapterFormat.NONE


async def _convert(directory: Path, to: AdapterFormat) -> Path:
    raise AdapterError(f"nothing is made here: not {to.value} of {directory}")


PROBES = (Probe(name="server", run=server, seconds=_SECONDS),)
