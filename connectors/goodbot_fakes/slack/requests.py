# SPDX-License-Identifier: Apache-2.0
"""HTTP mode: Slack posts signed requests to the app's request URL.

Events are JSON, interactions a form with one field `payload`, commands a form.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import aiohttp
from goodbot.base.clock import Clock

from goodbot_fakes.slack import signing
from goodbot_fakes.slack.app import SlackApp
from goodbot_fakes.slack.delivery import Ack, Delivery

Json = dict[str, Any]
_FORM = "application/x-www-form-urlencoded"


class Requests:
    """Deliveries to one app over HTTP."""

    def __init__(self, app: SlackApp, clock: Clock) -> None:
        self._app = app
        self._clock = clock
        self.statuses: list[int] = []
        """What the app answered, oldest first."""

    async def attempt(self, delivery: Delivery) -> Ack:
        """Post once. Any 2xx acknowledges; a redirect does not."""
        body, kind = encode(delivery)
        extra: dict[str, str] = {}
        if delivery.attempts > 1:
            reason = delivery.reason or "http_timeout"
            extra = {"X-Slack-Retry-Num": str(delivery.attempts - 1), "X-Slack-Retry-Reason": reason}
        try:
            status, headers, text = await self.post(body, kind, extra)
        except (aiohttp.ClientError, OSError):
            return Ack(ok=False, reason="connection_failed")
        if not 200 <= status < 300:
            no_retry = headers.get("X-Slack-No-Retry") == "1"
            return Ack(ok=False, reason="http_error", no_retry=no_retry)
        return Ack(ok=True, payload=_answer(text))

    async def post(
        self,
        body: bytes,
        kind: str = "application/json",
        extra: dict[str, str] | None = None,
        *,
        signed: dict[str, str] | None = None,
    ) -> tuple[int, dict[str, str], str]:
        """Post anything, by default signed as Slack does; status, headers and text of the answer.

        `signed` takes the place of the two signature headers: see `signing.forgeries`.
        """
        if signed is None:
            signed = signing.headers(self._app.signing_secret, self._clock.now(), body)
        agent = {"Content-Type": kind, "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)"}
        async with (
            aiohttp.ClientSession() as http,
            http.post(
                self._app.request_url,
                data=body,
                allow_redirects=False,
                headers={**agent, **signed, **(extra or {})},
            ) as answer,
        ):
            self.statuses.append(answer.status)
            return answer.status, dict(answer.headers), await answer.text()

    async def verify(self, challenge: str = "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P") -> bool:
        """The `url_verification` handshake when a request URL is entered."""
        body = {"token": "deprecated", "challenge": challenge, "type": "url_verification"}
        status, _, text = await self.post(json.dumps(body).encode())
        return status == 200 and challenge in text


def encode(delivery: Delivery) -> tuple[bytes, str]:
    """Body and content type of a delivery."""
    match delivery.kind:
        case "events_api":
            return json.dumps(delivery.payload).encode(), "application/json"
        case "interactive":
            return urlencode({"payload": json.dumps(delivery.payload)}).encode(), _FORM
        case _:
            return urlencode(delivery.payload).encode(), _FORM


def _answer(text: str) -> Json:
    """What came with an acknowledgement; plain words are a command's answer."""
    try:
        found: object = json.loads(text or "{}")
    except ValueError:
        return {"text": text}
    return found if isinstance(found, dict) else {}  # type: ignore[return-value]
