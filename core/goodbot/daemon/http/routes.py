# SPDX-License-Identifier: Apache-2.0
"""The routes of connectors and features in one application, each shut while its connector does not run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from aiohttp import hdrs, web

from goodbot.base.busy import TurnedAway
from goodbot.base.errors import ConfigError
from goodbot.base.worded import Worded
from goodbot.daemon.http.health import PATHS
from goodbot.daemon.http.unready import SCRIPT_PATH, not_yet

LARGEST = 1 << 20
"""Bytes of a request's body; a message is a few thousand."""

PROGRAMS = "/v1/"
"""What begins so is for programs, and answers them in JSON whatever happens."""

_LATER = (429, 503)
"""Come again later."""
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def application(
    routes: Mapping[str, Sequence[web.AbstractRouteDef]], running: Callable[[str], bool]
) -> web.Application:
    """An application of these routes, by name of the connector, or `features.NAME`.

    Raises ConfigError when two collide.
    """
    whose: dict[web.AbstractRoute, str] = {}

    @web.middleware
    async def gate(request: web.Request, handler: _Handler) -> web.StreamResponse:
        name = whose.get(request.match_info.route)
        if name is not None and not running(name):
            return not_yet(request, f"{name} is not running")
        try:
            return await handler(request)
        except web.HTTPException as error:
            return _failed(request, error)

    made = web.Application(client_max_size=LARGEST, middlewares=[gate])
    made.on_response_prepare.append(_unnamed)
    taken = dict.fromkeys((*PATHS, SCRIPT_PATH), "goodbot itself")
    for name, own in routes.items():
        paths = {one.path for one in own if isinstance(one, web.RouteDef)}
        for path in sorted(paths):
            if path in taken:
                section = name if "." in name else f"connectors.{name}"
                both = (
                    "[{section}] answers at {path}, and so does {other}: leave one of them out of the config"
                )
                raise ConfigError(Worded(both, section=section, path=path, other=taken[path]))
            taken[path] = name
        whose.update(dict.fromkeys(made.router.add_routes(own), name))
    return made


def _failed(request: web.Request, error: web.HTTPException) -> web.StreamResponse:
    """What has no route, or not by that method: to programs in the shape of all that they are told."""
    if not request.path.startswith(PROGRAMS) or error.status < 400:
        raise error
    allow = error.headers.get(hdrs.ALLOW)
    message = (
        f"{request.method} is not done here, only {allow.replace(',', ', ')}."
        if allow
        else f"There is nothing at this address ({error.status})."
    )
    type_ = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}
    return web.json_response(
        {"error": {"message": message, "type": type_.get(error.status, "invalid_request")}},
        status=error.status,
        headers={hdrs.CACHE_CONTROL: "no-store", **({hdrs.ALLOW: allow} if allow else {})},
    )


async def _unnamed(_: web.Request, response: web.StreamResponse) -> None:
    if response.status in _LATER:
        TurnedAway.answered[response.status] += 1
    response.headers.popall(hdrs.SERVER, None)  # which versions we run is nobody's business
