# SPDX-License-Identifier: Apache-2.0
"""What listens, and the service that keeps goodbot running."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence

from goodbot.api.connector import Capability
from goodbot.api.setup import Check, Examined, Probe, fail, ok, warn
from goodbot.base.errors import GoodbotError
from goodbot.config.lock import holder
from goodbot.config.sections import PORT, PUBLISHED

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def http_port(examined: Examined) -> int:
    """Where goodbot's own HTTP server listens by this config; 0: nowhere."""
    return examined.config.http.port or (PORT if _has_routes(examined) else 0)


def _has_routes(examined: Examined) -> bool:
    """Whether a connector or a feature answers there, which takes tokens and texts."""
    config, plugins = examined.config, examined.plugins
    try:
        specs, features = plugins.connectors(), plugins.features()
    except GoodbotError:
        return False  # another probe says why
    return any(
        Capability.ROUTES in specs[name].capabilities for name in config.connectors if name in specs
    ) or any(features[name].answers for name in config.features if name in features)


async def ports(examined: Examined) -> Sequence[Check]:
    """The one port of goodbot's own: free, or its own. Connectors tell of theirs."""
    config = examined.config
    http, port = config.http, http_port(examined)
    if not port:
        return [ok("ports", "goodbot listens on none")]
    if moved := (examined.daemon or {}).get("moved"):
        return [warn("ports", str(moved), f"set [http] port, or stop what holds {port}")]
    place = f"{http.host}:{port}"
    checks: list[Check] = []
    if http.url and http.url == os.environ.get(PUBLISHED):
        checks.append(ok("ports", f"{place} is this container's; people open {http.url}"))
    elif http.host not in LOOPBACK:
        text = f"{place} can be reached from other machines, without encryption"
        fix = 'set [http] host = "127.0.0.1", and put a proxy with TLS before it'
        if _has_routes(examined) and not http.url:
            fix = f"{fix}; or say in [http] url where people open it"
            return [fail("ports", f"{text}, so goodbot does not start there", fix, exit_code=2)]
        checks.append(warn("ports", text, fix))
    line = await _ask(http.host, port)
    found = _before_start(examined, place, line) if examined.daemon is None else _running(place, line)
    return [*checks, found]


def _before_start(examined: Examined, place: str, line: str | None) -> Check:
    """Whether goodbot can have the port; `line` is what answers there, None: nothing."""
    if line is None:
        return ok("ports", f"{place} is free")
    if holder(examined.config.home)[0] and " 200 " in f"{line} ":
        return ok("ports", f"{place} answers /healthz; goodbot is starting")
    text = f"another program listens on {place}"
    if not examined.config.http.port:
        text = f"{text}: goodbot takes the next free port"
        return warn("ports", text, "set [http] port to a free one, if others are to find it there")
    return fail("ports", text, "set [http] port to a free one", exit_code=2)


def _running(place: str, line: str | None) -> Check:
    if line is None:
        return fail("ports", f"nothing listens on {place}", "look at goodbot's log")
    if " 200 " not in f"{line} ":
        return warn("ports", f"{place} answers {line!r} to /healthz")
    return ok("ports", f"{place} answers /healthz")


async def _ask(host: str, port: int) -> str | None:
    """The first line of the answer to a GET of /healthz, None if nothing listens."""
    try:
        reader, writer = await asyncio.open_connection(host, port)
    except OSError:
        return None
    try:
        writer.write(f"GET /healthz HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
        await writer.drain()
        async with asyncio.timeout(3):
            return (await reader.readline()).decode("latin-1").strip()[:60]
    except (OSError, TimeoutError, ValueError):
        return ""
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def service(examined: Examined) -> Sequence[Check]:
    """Whether goodbot is kept running, also after a restart of the machine."""
    from goodbot.cli.service import status

    found = await asyncio.to_thread(status, examined.config.home)
    if not found.manager:
        return [ok("service", "this machine has no service manager that goodbot knows")]
    if not found.installed:
        text = "not installed: goodbot runs as long as the terminal that started it"
        return [ok("service", text)]
    text = f"{found.manager}: {found.state or 'unknown'}"
    if not found.active:
        return [fail("service", text, found.log or "goodbot service status")]
    if not found.enabled:
        text = f"{text}; it does not start by itself after a restart"
        return [warn("service", text, "goodbot service install")]
    return [ok("service", f"{text}, and it starts by itself")]


PROBES = (Probe(name="ports", run=ports), Probe(name="service", run=service, seconds=35.0))
