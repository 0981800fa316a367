# SPDX-License-Identifier: Apache-2.0
"""What the page of settings asks for, and what it changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

from goodbot.api.connector import ConnectorHost
from goodbot.api.events import UserRef
from goodbot.api.sentences import sentence
from goodbot.api.settings_page import SettingValue, SettingWanted
from goodbot.api.texts import reworded
from goodbot.base.errors import GoodbotError, StoreError
from goodbot.base.text import clean

from goodbot_connectors.kit.bridge.refused import HttpError
from goodbot_connectors.kit.fields import Json, string
from goodbot_connectors.web.normalize import MALFORMED

_LONGEST = 200


async def page(host: ConnectorHost, user: UserRef, query: Mapping[str, str]) -> Mapping[str, Any]:
    """All settings, as JSON takes them. Raises HttpError."""
    del query
    try:
        return asdict(await host.settings(user))
    except GoodbotError as error:
        raise HttpError(400, sentence(reworded(error, user.language), user.language)) from None


async def change(host: ConnectorHost, user: UserRef, body: Json) -> Mapping[str, Any]:
    """`{"do": "set" or "default", "key", "value", "before", "code"}`; what came of it. Raises HttpError."""
    if body == {"do": "restart"}:
        return await _restart(host, user)
    do, key = body.get("do"), clean(string(body, "key"))[:_LONGEST]
    value = _value(body.get("value")) if do == "set" else None
    if do not in ("set", "default") or not key or (do == "set" and value is None):
        raise HttpError(400, MALFORMED)
    code = clean(string(body, "code")).strip()[:_LONGEST]
    wanted = SettingWanted(key=key, value=value, before=_value(body.get("before")), code=code)
    try:
        return {"told": await host.change_setting(user, wanted), **await page(host, user, {})}
    except StoreError:
        raise
    except GoodbotError as error:
        raise HttpError(400, sentence(reworded(error, user.language), user.language)) from None


async def _restart(host: ConnectorHost, user: UserRef) -> Mapping[str, Any]:
    try:
        return {"told": await host.begin_anew(user)}
    except StoreError:
        raise
    except GoodbotError as error:
        raise HttpError(400, sentence(str(error))) from None


def _value(said: object) -> SettingValue:
    """A value as a setting may have it. Raises HttpError."""
    if isinstance(said, str):
        return clean(said)
    if said is None or isinstance(said, (bool, int, float)):
        return said
    many = cast("list[object]", said) if isinstance(said, list) else [None]
    texts = [clean(one) for one in many if isinstance(one, str)]
    if len(texts) < len(many):
        raise HttpError(400, MALFORMED)
    return texts
