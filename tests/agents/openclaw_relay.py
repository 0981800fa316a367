# SPDX-License-Identifier: Apache-2.0
"""Between the plugin and goodbot: what goes each way, kept as it was, for the recorded payloads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, web


class Relay:
    """Passes every call on to `target`; `calls` has the events and the receipts of each."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.calls: list[dict[str, Any]] = []
        self.pings: list[int] = []
        self.url = ""

    async def __aenter__(self) -> Relay:
        self._session = ClientSession()
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/{path:.*}", self._pass)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _pass(self, request: web.Request) -> web.Response:
        body = await request.read()
        headers = {
            name: request.headers[name]
            for name in ("Authorization", "Content-Type")
            if name in request.headers
        }
        try:
            async with self._session.request(
                request.method, self.target + request.path, data=body or None, headers=headers
            ) as answer:
                data, status = await answer.read(), answer.status
        except OSError:
            return web.Response(status=502, text="{}")
        if request.method == "GET":
            self.pings.append(status)
        else:
            self.calls.append({"status": status, **json.loads(body), **json.loads(data)})
        return web.Response(status=status, body=data, content_type="application/json")

    def sent(self, type_: str) -> list[dict[str, Any]]:
        """The events of a type that were taken."""
        return [
            event
            for call in self.calls
            if call["status"] == 200
            for event in call["events"]
            if event["type"] == type_
        ]

    def write(self, folder: Path) -> None:
        """One file for each type of event, with the receipts; nothing in them is of this machine."""
        folder.mkdir(parents=True, exist_ok=True)
        kinds: dict[str, list[dict[str, Any]]] = {}
        for call in self.calls:
            receipts = {one["id"]: one for one in call.get("receipts", [])}
            for event in call["events"]:
                kinds.setdefault(event["type"], []).append(
                    {"event": event, "receipt": receipts.get(event["id"])}
                )
        for type_, found in kinds.items():
            text = json.dumps(found, ensure_ascii=False, indent=1)
            (folder / f"{type_}.json").write_text(text + "\n", encoding="utf-8")
