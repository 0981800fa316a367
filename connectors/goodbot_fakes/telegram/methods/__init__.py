# SPDX-License-Identifier: Apache-2.0
"""The Bot API's methods. Each is a function of the account and of its parameters, by keyword."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from goodbot_fakes.telegram.account import BotAccount
from goodbot_fakes.telegram.errors import Json, bad_request
from goodbot_fakes.telegram.methods import chats, messages, profile, receiving

Method = Callable[..., Any]


def _name(function: Method) -> str:
    first, *rest = function.__name__.split("_")
    return first + "".join(part.title() for part in rest)


METHODS: Mapping[str, Method] = {
    _name(function): function
    for module in (messages, chats, profile, receiving)
    for function in module.METHODS
}
_NAMES = {name.casefold(): name for name in METHODS}
_PARAMETERS = {
    name: {
        parameter.name: parameter.annotation
        for parameter in inspect.signature(function, eval_str=True).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    for name, function in METHODS.items()
}


def find(name: str) -> str | None:
    """A method as it is spelled; names are case-insensitive."""
    return _NAMES.get(name.casefold())


def decode(method: str, raw: Mapping[str, Any]) -> Json:
    """Parameters as JSON, out of JSON, a form or a query; unknown ones as they are."""
    kinds = _PARAMETERS[method]
    return {name: _decoded(name, value, kinds.get(name)) for name, value in raw.items()}


async def call(account: BotAccount, method: str, params: Json) -> Any:
    """The result of a call. Raises `BotApiError`. Telegram ignores parameters that it does not know."""
    known = {name: params[name] for name in _PARAMETERS[method] if name in params}
    result: Any = METHODS[method](account, **known)
    return await result if inspect.isawaitable(result) else result


def _decoded(name: str, value: Any, kind: Any) -> Any:
    if kind is str:
        return str(value)
    if not isinstance(value, str):
        return value
    if kind is int or kind == int | str:
        number = value.removeprefix("-").isdecimal()
        if kind is int and not number:
            raise bad_request(f"invalid {name} specified")
        return int(value) if number else value
    if kind is bool:
        return value.casefold() in ("true", "yes", "1")
    if kind is None:
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise bad_request(f"can't parse {name} JSON") from None
