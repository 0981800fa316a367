# SPDX-License-Identifier: Apache-2.0
"""What our model is called: `goodbot` for what is live, `goodbot-v7` for one version."""

from __future__ import annotations

from typing import Any

from goodbot.api.completions import ALIAS, OwnModel

from goodbot_connectors.api.proxy.config import ANTHROPIC
from goodbot_connectors.kit.bridge.body import HttpError

_VERSION = f"{ALIAS}-v"
_DAWN = "1970-01-01T00:00:00Z"


async def version(model: OwnModel, name: str) -> int | None:
    """The version that a name asks for; None: whichever is live. Any other name is ours, too.

    Raises HttpError (404) for one that is not served.
    """
    number = name.removeprefix(_VERSION)
    if number == name or not number.isascii() or not number.isdecimal() or len(number) > 9:
        return None
    if int(number) not in await model.versions():
        raise HttpError(404, f"{name} is not served: ask for {ALIAS}, or see {ALIAS} adapters.")
    return int(number)


async def models(model: OwnModel, dialect: str, name: str) -> dict[str, Any]:
    """The answer to `GET /v1/models`, or, with a name, to that of one model. Raises HttpError (404)."""
    names = [ALIAS, *(f"{_VERSION}{one}" for one in sorted(await model.versions(), reverse=True))]
    listed = [_anthropic(one, model) if dialect == ANTHROPIC else _openai(one) for one in names]
    if name:
        found = [one for one in listed if one["id"] == name]
        if not found:
            raise HttpError(404, f"There is no model named {name[:100]}: ask for {ALIAS}.")
        return found[0]
    if dialect == ANTHROPIC:
        return {"data": listed, "has_more": False, "first_id": names[0], "last_id": names[-1]}
    return {"object": "list", "data": listed}


def _openai(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": ALIAS}


def _anthropic(name: str, model: OwnModel) -> dict[str, Any]:
    title = f"{name} ({model.name})"
    return {"type": "model", "id": name, "display_name": title, "created_at": _DAWN}
