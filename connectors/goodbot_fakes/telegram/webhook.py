# SPDX-License-Identifier: Apache-2.0
"""Webhook delivery: POST, the secret's header, an order within each chat, and Telegram's retries.

As the Bot API server does it (github.com/tdlib/telegram-bot-api, WebhookActor): what is not
answered with 2xx is sent again at once, then after 2, 4, 8 … seconds up to about a minute, or after
what `Retry-After` says; later updates of the same chat wait behind it, other chats go on.
"""

from __future__ import annotations

import asyncio

import aiohttp
from goodbot.base.clock import Clock, growing

from goodbot_fakes.telegram.errors import Json, bad_request
from goodbot_fakes.telegram.updates import Pending, UpdateQueue

HEADER = "X-Telegram-Bot-Api-Secret-Token"
_LONGEST = 60.0
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


class Webhook:
    """Where updates are sent to. Without an address they wait to be polled for."""

    def __init__(self, queue: UpdateQueue, clock: Clock) -> None:
        self.url = ""
        self.secret = ""
        self.most = 40
        self.last_error = ""
        self.last_error_date = 0
        self.attempts: list[tuple[int, int]] = []
        """The update id and the HTTP status of each delivery; 0 for no answer."""
        self.routes: dict[str, str] = {}
        """Beginnings of public addresses → where they lead on this machine, as a proxy would."""
        self._queue, self._clock = queue, clock
        self._sender: asyncio.Task[None] | None = None

    def set(self, url: str, secret: str, most: int) -> None:
        """Raises `BotApiError` for what Telegram would not take."""
        if url and not url.startswith(("https://", "http://127.0.0.1", "http://localhost")):
            raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
        if secret and not (len(secret) <= 256 and set(secret) <= _LETTERS):
            raise bad_request("secret token contains unallowed characters")
        self.cancel()
        self.url, self.secret, self.most = url, secret, most or 40
        self.last_error, self.last_error_date = "", 0
        if url:
            self._sender = asyncio.create_task(self._run(), name="webhook delivery")

    def cancel(self) -> None:
        """Send nothing more."""
        if self._sender is not None:
            self._sender.cancel()
        self._sender = None

    async def close(self) -> None:
        """Send nothing more, and wait until what is on its way has been given up."""
        sender = self._sender
        self.cancel()
        if sender is not None:
            await asyncio.wait({sender})

    @property
    def info(self) -> Json:
        """The `WebhookInfo` of the Bot API."""
        found: Json = {
            "url": self.url,
            "has_custom_certificate": False,
            "pending_update_count": len(self._queue.pending),
        }
        if self.url:
            found |= {"max_connections": self.most}
        if self._queue.allowed:
            found |= {"allowed_updates": list(self._queue.allowed)}
        if self.last_error:
            found |= {"last_error_date": self.last_error_date, "last_error_message": self.last_error}
        return found

    async def _run(self) -> None:
        busy: set[int] = set()

        def ready() -> list[Pending]:
            firsts = {one.chat: one for one in reversed(self._queue.pending)}
            waiting = [one for chat, one in firsts.items() if chat not in busy]
            return waiting[: self.most - len(busy)]

        async def deliver(update: Pending) -> None:
            await self._deliver(http, update)
            busy.discard(update.chat)
            self._queue.confirm(update.id)

        async with aiohttp.ClientSession() as http, asyncio.TaskGroup() as group:
            while True:
                await self._queue.until(lambda: bool(ready()))
                for update in ready():
                    busy.add(update.chat)
                    group.create_task(deliver(update))

    async def _deliver(self, http: aiohttp.ClientSession, update: Pending) -> None:
        failures, pauses = 0, 0
        while update in self._queue.pending:
            status, wait = await self._send(http, update)
            self.attempts.append((update.id, status))
            self._queue.told(update.id)
            if 200 <= status < 300:
                break
            if failures and not wait:
                pauses += 1
                wait = growing(pauses, most=_LONGEST)
            failures += 1
            await self._clock.sleep(wait)

    async def _send(self, http: aiohttp.ClientSession, update: Pending) -> tuple[int, float]:
        """The status of one attempt, 0 for no answer, and for how long it asked to be left alone."""
        headers = {HEADER: self.secret} if self.secret else {}
        try:
            async with http.post(
                self._address(), json=update.json, headers=headers, allow_redirects=False
            ) as response:
                if 200 <= response.status < 300:
                    return response.status, 0.0
                said = f"Wrong response from the webhook: {response.status} {response.reason}"
                status, wait = response.status, response.headers.get("Retry-After", "")
        except (aiohttp.ClientError, TimeoutError) as error:
            said, status, wait = f"Connection failed: {type(error).__name__}", 0, ""
        self.last_error, self.last_error_date = said, int(self._clock.now())
        return status, float(wait) if wait.isdecimal() else 0.0

    def _address(self) -> str:
        for public, local in self.routes.items():
            if self.url.startswith(public):
                return local + self.url.removeprefix(public)
        return self.url
