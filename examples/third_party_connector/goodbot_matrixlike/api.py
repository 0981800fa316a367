# SPDX-License-Identifier: Apache-2.0
"""The homeserver's HTTP API, as much of it as is needed; its errors as goodbot's.

Paths and fields are those of the Matrix client-server API (spec.matrix.org, v1.11).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import httpx
from goodbot import FatalConnectorError, RetriableError
from goodbot.config.secrets import Secret

from goodbot_matrixlike import TOKEN

_SLACK_SECONDS = 10.0
"""How much longer than the poll itself an answer may take."""


class Api:
    """One access token on one homeserver. Raises RetriableError and FatalConnectorError."""

    def __init__(self, homeserver: str, token: Secret) -> None:
        if not token:
            raise FatalConnectorError(f"there is no access token: set {TOKEN}")
        self._http = httpx.AsyncClient(
            base_url=f"{homeserver}/_matrix/client",
            headers={"Authorization": f"Bearer {token.reveal()}"},
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def whoami(self) -> str:
        return str((await self._call("GET", "/v3/account/whoami"))["user_id"])

    async def joined_rooms(self) -> list[str]:
        return [str(room) for room in (await self._call("GET", "/v3/joined_rooms"))["joined_rooms"]]

    async def sync(self, since: str, seconds: float) -> dict[str, Any]:
        """What has happened since `since`; waits up to `seconds` until something has."""
        params = {"timeout": str(int(seconds * 1000)), **({"since": since} if since else {})}
        return await self._call("GET", "/v3/sync", params=params, seconds=seconds)

    async def send(self, room: str, content: Mapping[str, Any]) -> str:
        """Post a message; its event id."""
        path = f"/v3/rooms/{quote(room, safe='')}/send/m.room.message/{uuid.uuid4().hex}"
        return str((await self._call("PUT", path, json=content))["event_id"])

    async def reactions(self, room: str, message: str) -> list[dict[str, Any]]:
        """The reactions that a message has now; redacted ones are not among them."""
        path = f"/v1/rooms/{quote(room, safe='')}/relations/{quote(message, safe='')}"
        found = await self._call("GET", f"{path}/m.annotation/m.reaction", params={"limit": "100"})
        return list(found["chunk"])

    async def encrypted(self, room: str) -> bool:
        path = f"/v3/rooms/{quote(room, safe='')}/state/m.room.encryption"
        return "algorithm" in await self._call("GET", path)

    async def members(self, room: str) -> int:
        path = f"/v3/rooms/{quote(room, safe='')}/joined_members"
        return len((await self._call("GET", path))["joined"])

    async def _call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        json: Any = None,
        seconds: float = 0.0,
    ) -> dict[str, Any]:
        """One request. A thing that is not there is an empty answer."""
        try:
            response = await self._http.request(
                method, path, params=params, json=json, timeout=seconds + _SLACK_SECONDS
            )
        except httpx.HTTPError as error:
            raise RetriableError(f"the homeserver cannot be reached: {error!r}") from None
        if response.status_code == 401:
            raise FatalConnectorError(f"the homeserver refuses the access token: check {TOKEN}")
        if response.status_code == 404:
            return {}
        if response.status_code >= 400:
            wait = float(response.headers.get("Retry-After", 1.0))
            raise RetriableError(f"the homeserver says {response.status_code}", retry_after=wait)
        return response.json()
