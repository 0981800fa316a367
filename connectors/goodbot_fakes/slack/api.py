# SPDX-License-Identifier: Apache-2.0
"""The Web API: who calls, what they may, what the method does, what is answered.

Methods are functions in `methods_*`, registered with `method`. They raise `SlackError`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from goodbot_fakes.slack.app import SlackApp
from goodbot_fakes.slack.errors import SlackError
from goodbot_fakes.slack.workspace import Workspace

if TYPE_CHECKING:
    from goodbot_fakes.slack.people import People

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiCall:
    """One call of the Web API and its answer."""

    method: str
    arguments: Json
    status: int
    response: Json


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a method works on."""

    workspace: Workspace
    app: SlackApp
    people: People
    url: str
    """Where this Slack listens."""
    open_socket: Callable[[], str]
    """A new ticket for Socket Mode."""

    def need(self, *scopes: str) -> None:
        """Refuse unless the bot token has one of these scopes."""
        require(self.app.scopes, scopes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Method:
    """A method of the Web API."""

    run: Callable[[Context, Json], Json]
    scopes: tuple[str, ...] = ()
    """One of these is needed."""
    required: tuple[str, ...] = ()
    app_token: bool = False
    """It takes the app's token, not the bot's."""


METHODS: dict[str, Method] = {}
_JSON = {"attachments", "blocks", "chunks", "metadata", "view", "loading_messages"}
_TRUTH = {
    "as_user",
    "full",
    "inclusive",
    "include_all_metadata",
    "include_disabled",
    "include_locale",
    "include_num_members",
    "link_names",
    "mrkdwn",
    "prevent_creation",
    "reply_broadcast",
    "return_im",
    "unfurl_links",
    "unfurl_media",
}


def method(
    name: str, *scopes: str, required: tuple[str, ...] = (), app_token: bool = False
) -> Callable[[Callable[[Context, Json], Json]], Callable[[Context, Json], Json]]:
    """Register the implementation of a method."""

    def register(run: Callable[[Context, Json], Json]) -> Callable[[Context, Json], Json]:
        METHODS[name] = Method(run=run, scopes=scopes, required=required, app_token=app_token)
        return run

    return register


def require(granted: set[str], scopes: tuple[str, ...]) -> None:
    """`missing_scope`, as Slack words it, unless one of the scopes is granted."""
    if scopes and not granted & set(scopes):
        raise SlackError("missing_scope", needed=",".join(scopes), provided=",".join(sorted(granted)))


def call(context: Context, name: str, token: str, arguments: Json) -> tuple[Json, dict[str, str]]:
    """Answer one call: the JSON, and the headers that say what the token may."""
    headers: dict[str, str] = {}
    try:
        known = METHODS.get(name)
        if known is None:
            raise SlackError("unknown_method", req_method=name)
        granted = _granted(context.app, token, known)
        headers["x-oauth-scopes"] = ",".join(sorted(granted))
        if known.scopes:
            headers["x-accepted-oauth-scopes"] = ",".join(known.scopes)
        require(granted, known.scopes)
        for argument in known.required:
            if arguments.get(argument) in (None, ""):
                raise _missing(argument)
        return {"ok": True, **known.run(context, arguments)}, headers
    except SlackError as error:
        return error.body, headers


def _granted(app: SlackApp, token: str, known: Method) -> set[str]:
    if not token:
        raise SlackError("not_authed")
    if token not in (app.bot_token, app.app_token):
        raise SlackError("invalid_auth")
    if (token == app.app_token) != known.app_token:
        raise SlackError("not_allowed_token_type")
    return app.app_scopes if known.app_token else app.scopes


def _missing(argument: str) -> SlackError:
    known = {"channel": "channel_not_found", "user": "user_not_found", "ts": "message_not_found"}
    if argument in known:
        return SlackError(known[argument])
    messages = [f"[ERROR] missing required field: {argument}"]
    return SlackError("invalid_arguments", response_metadata={"messages": messages})


def decode(fields: Mapping[str, Any]) -> Json:
    """Arguments that came in a form or a query, with the types that they have in JSON.

    Empty fields are left out: clients send them for arguments that were not given.
    """
    found: Json = {}
    for name, value in fields.items():
        if name in _JSON and isinstance(value, str):
            try:
                found[name] = json.loads(value)
            except ValueError:
                raise SlackError("invalid_arguments") from None
        elif name in _TRUTH:
            found[name] = value in (True, "1", "true", "True")
        elif name == "limit":
            found[name] = int(value)
        else:
            found[name] = value
    return found
