# SPDX-License-Identifier: Apache-2.0
"""What listens, and the service that keeps goodbot running."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence

from goodbot.api.connector import Capability
from goodbot.api.setup import Check, Examined, Probe, fail, ok, warn
from goodbot.api.texts.terminal import phrase
from goodbot.base.addresses import is_here
from goodbot.base.errors import GoodbotError
from goodbot.config.lock import holder
from goodbot.config.sections import PORT, PUBLISHED


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
        return [ok("ports", phrase("doc_no_port"))]
    if moved := (examined.daemon or {}).get("moved"):
        return [warn("ports", str(moved), phrase("doc_port_moved", port=port))]
    place = f"{http.host}:{port}"
    checks: list[Check] = []
    if http.url and http.url == os.environ.get(PUBLISHED):
        checks.append(ok("ports", phrase("doc_port_container", place=place, url=http.url)))
    elif not is_here(http.host):
        if _has_routes(examined) and not http.url:
            text, fix = phrase("doc_port_open_off", place=place), phrase("doc_port_open_or")
            return [fail("ports", text, fix, exit_code=2)]
        checks.append(warn("ports", phrase("doc_port_open", place=place), phrase("doc_port_open_fix")))
    line = await _ask(http.host, port)
    found = _before_start(examined, place, line) if examined.daemon is None else _running(place, line)
    return [*checks, found]


def _before_start(examined: Examined, place: str, line: str | None) -> Check:
    """Whether goodbot can have the port; `line` is what answers there, None: nothing."""
    if line is None:
        return ok("ports", phrase("doc_port_free", place=place))
    if holder(examined.config.home)[0] and " 200 " in f"{line} ":
        return ok("ports", phrase("doc_port_starts", place=place))
    if not examined.config.http.port:
        return warn("ports", phrase("doc_port_next", place=place), phrase("doc_port_next_fix"))
    return fail("ports", phrase("doc_port_other", place=place), phrase("doc_port_fix"), exit_code=2)


def _running(place: str, line: str | None) -> Check:
    if line is None:
        return fail("ports", phrase("doc_port_silent", place=place), phrase("doc_port_silent_fix"))
    if " 200 " not in f"{line} ":
        return warn("ports", phrase("doc_port_odd", place=place, line=repr(line)))
    return ok("ports", phrase("doc_port_well", place=place))


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
        return [ok("service", phrase("doc_no_manager"))]
    if not found.installed:
        return [ok("service", phrase("doc_no_service"))]
    text = f"{found.manager}: {found.state or phrase('doc_service_unknown')}"
    if not found.active:
        return [fail("service", text, found.log or "goodbot service status")]
    if not found.enabled:
        return [warn("service", phrase("doc_service_once", service=text), "goodbot service install")]
    return [ok("service", phrase("doc_service_well", service=text))]


PROBES = (Probe(name="ports", run=ports), Probe(name="service", run=service, seconds=35.0))
