# SPDX-License-Identifier: Apache-2.0
"""Every route of the API in one table: what is served, checked and published is what stands here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from goodbot.api.commands import Grant, of

from goodbot_connectors.api import schemas
from goodbot_connectors.api.schemas import Schema

_OPEN = sorted(of("api", old=True), key=lambda command: command.name)
EVERYBODY = tuple(one.name for one in _OPEN if one.grant is not Grant.ADMINISTER)
"""Commands that every client may pass on."""
ADMIN = tuple(one.name for one in _OPEN if one.grant is Grant.ADMINISTER)
"""Those that a client made with `--admin` may, whose person is an owner. Who may come in, and ratings
that name no answer, are in neither: the machine itself, and `/v1/feedback`, are the places for those."""
LONGEST_KEY = 255
SPEAKS_FOR = "X-Goodbot-User"
"""The header by which a program with many people behind it says for whom it speaks."""
LONGEST_NAME = 128
_GUARD = (400, 401, 403, 429, 500, 503)
_BODY = (408, 413, 415, 422, 507)


@dataclass(frozen=True, kw_only=True, slots=True)
class Route:
    """One method of one path; `handler` is a method of `Handlers`."""

    method: str
    path: str
    handler: str
    summary: str
    status: int
    answer: Schema
    body: Schema | None = None
    refusals: tuple[int, ...] = ()
    """Statuses beside those of the guard (and of a body), whose body is an error."""
    keyed: bool = False
    """Whether an `Idempotency-Key` counts."""
    tags: tuple[str, ...] = field(default=("goodbot",))

    @property
    def all_refusals(self) -> tuple[int, ...]:
        """Every status but `status`."""
        more = _BODY if self.body else ()
        return tuple(sorted({*_GUARD, *more, *self.refusals, *((409,) if self.keyed else ())}))


ROUTES: tuple[Route, ...] = (
    Route(
        method="POST",
        path="/v1/turns",
        handler="capture",
        keyed=True,
        status=201,
        summary="Keep an answer that your program has given, so that it can be rated and learnt from.",
        body=schemas.TURN,
        answer=schemas.TURN_TAKEN,
    ),
    Route(
        method="GET",
        path="/v1/turns/{turn}",
        handler="turn",
        status=200,
        refusals=(404,),
        summary="An answer of this client's, and what it said of it.",
        answer=schemas.SHOWN,
    ),
    Route(
        method="POST",
        path="/v1/feedback",
        handler="feedback",
        keyed=True,
        status=200,
        refusals=(404,),
        body=schemas.FEEDBACK,
        answer=schemas.RATED,
        summary="Say how good one answer was: a score, words, a better answer.",
    ),
    Route(
        method="DELETE",
        path="/v1/feedback/{turn}",
        handler="undo",
        keyed=True,
        status=200,
        refusals=(404, 422, 507),
        answer=schemas.RATED,
        summary="Take back all that this client has said of one answer.",
    ),
    Route(
        method="POST",
        path="/v1/commands",
        handler="command",
        keyed=True,
        status=200,
        body=schemas.COMMAND,
        answer=schemas.DONE,
        summary=f"Do what `/rl NAME ARGS` does: {', '.join(EVERYBODY)}; for admin clients also "
        f"{', '.join(ADMIN)}.",
    ),
    Route(
        method="GET",
        path="/v1/status",
        handler="status",
        status=200,
        answer=schemas.STATUS,
        refusals=(422, 507),
        summary="What answers, and how far the next training is.",
    ),
    Route(
        method="GET",
        path="/v1/openapi.json",
        handler="document",
        status=200,
        answer={"type": "object"},
        summary="This document.",
    ),
)

_SAID: Mapping[int, str] = {
    400: "The request is no JSON object within the limits, or names two tokens.",
    401: "There is no token, or one that opens nothing.",
    403: "It comes from a web page, or this client may not do that.",
    404: "This client has no such answer.",
    408: "The body did not come within ten seconds.",
    409: "The Idempotency-Key was used before for something else.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    422: "The body is not what the schema says, or cannot be stored; the message says what is wrong.",
    429: "Too many wrong tokens, or too much at once: wait as long as Retry-After says.",
    500: "goodbot failed; its log says why.",
    503: "Nothing was stored: try again.",
    507: "The disk is full; nothing was stored.",
}


def document(address: str, version: str) -> Schema:
    """The OpenAPI 3.1 document of the API at `address`."""
    paths: dict[str, Schema] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "goodbot",
            "version": version,
            "description": "Answers of your programs, and what became of them. A body is one JSON object in "
            "UTF-8, of at most 1 MiB, 128 levels, and integers of at most 64 bits; as gzip or deflate, too.",
        },
        "servers": [{"url": address}],
        "security": [{"bearer": []}, {"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
            "schemas": {"Error": schemas.ERROR},
        },
    }


def _operation(route: Route) -> Schema:
    parameters: list[Schema] = []
    if "{turn}" in route.path:
        turn = {"type": "string", "minLength": 1, "maxLength": 64}
        parameters.append({"name": "turn", "in": "path", "required": True, "schema": turn})
    if route.keyed:
        parameters += [
            _header(
                "Idempotency-Key",
                LONGEST_KEY,
                "The same key and request again: the same answer, and nothing is done twice. "
                "A key counts for one client and one route.",
            ),
            _header(
                SPEAKS_FOR,
                LONGEST_NAME,
                "For whom of the people behind this client it speaks, by any name that stays the same: "
                "what one person may say in a day is counted for each. It is not kept.",
            ),
        ]
    made: Schema = {
        "operationId": route.handler,
        "summary": route.summary,
        "tags": list(route.tags),
        "responses": {
            str(route.status): {"description": "Done.", "content": _json(route.answer)},
            **{
                str(status): {
                    "description": _SAID[status],
                    "content": _json({"$ref": "#/components/schemas/Error"}),
                }
                for status in route.all_refusals
            },
        },
    }
    if parameters:
        made["parameters"] = parameters
    if route.body:
        made["requestBody"] = {"required": True, "content": _json(route.body)}
    return made


def _header(name: str, longest: int, about: str) -> Schema:
    schema = {"type": "string", "minLength": 1, "maxLength": longest, "pattern": "^[!-~]+$"}
    return {"name": name, "in": "header", "required": False, "description": about, "schema": schema}


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}
