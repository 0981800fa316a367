# SPDX-License-Identifier: Apache-2.0
"""A hub on loopback, as `huggingface_hub` 2 asks it; it can cut, damage, delay and refuse.

    async with FakeHub(models={"acme/tiny-chat": directory}) as hub:   # or plain `with`
        environment = {"HF_ENDPOINT": hub.url, "HF_HOME": ...}

`hub.cut` ends each answer with weights after so many bytes, `hub.broken` is how many answers with
weights come with wrong bytes, `hub.delay` is seconds a piece, `hub.refuse` is a status for all
files, `hub.token` is the one token that may read gated models. `hub.sent` tells who got what.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.core.inference.models.background import BackgroundServer

PIECE = 65536


@dataclass(frozen=True)
class Sent:
    """One answer with (a part of) a file."""

    file: str
    start: int
    bytes: int


class FakeHub(BackgroundServer):
    """Serves the files of model directories, pinned to a commit that is made from their bytes."""

    def __init__(
        self,
        models: Mapping[str, Path],
        *,
        licence: str = "apache-2.0",
        gated: bool = False,
        extra: Mapping[str, bytes] | None = None,
    ) -> None:
        super().__init__()
        self.models = {
            name: {**{p.name: p.read_bytes() for p in sorted(path.iterdir()) if p.is_file()}, **(extra or {})}
            for name, path in models.items()
        }
        self.licence, self.gated = licence, gated
        self.token = "hf_right"
        self.cut: int | None = None
        self.broken = 0
        self.delay = 0.0
        self.refuse = 0
        self.more = 0
        """Bytes by which it says that weights are larger than they are."""
        self.status = 0
        """A status for every question about a model."""
        self.sent: list[Sent] = []
        self.tokens: list[str] = []
        self.asked: list[str] = []

    def commit(self, name: str) -> str:
        data = b"".join(self.models[name].values())
        return hashlib.sha1(data, usedforsecurity=False).hexdigest()

    def bytes_of(self, file: str) -> int:
        """How many bytes of a file went out."""
        return sum(sent.bytes for sent in self.sent if sent.file == file)

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/api/models/{owner}/{name}", self._info)
        app.router.add_get("/api/models/{owner}/{name}/revision/{revision}", self._info)
        app.router.add_get("/{owner}/{name}/resolve/{revision}/{file}", self._resolve)
        app.router.add_get("/cdn/{owner}/{name}/{file}", self._file)
        return app

    async def _info(self, request: web.Request) -> web.Response:
        self._note(request)
        name = self._name(request)
        if self.status:
            return web.json_response({"error": "no"}, status=self.status)
        revision = request.match_info.get("revision", "main")
        if name not in self.models:
            return self._error(401, "RepoNotFound", "Repository not found")
        if revision not in ("main", self.commit(name)):
            return self._error(404, "RevisionNotFound", "Invalid rev id")
        siblings = [self._sibling(file, data) for file, data in self.models[name].items()]
        return web.json_response(
            {
                "id": name,
                "sha": self.commit(name),
                "private": False,
                "siblings": siblings,
                "gated": "manual" if self.gated else False,
                "tags": [],
                "downloads": 1,
                "likes": 0,
                "cardData": {"license": self.licence},
            }
        )

    def _sibling(self, file: str, data: bytes) -> dict[str, Any]:
        blob = hashlib.sha1(f"blob {len(data)}\0".encode() + data, usedforsecurity=False)
        found: dict[str, Any] = {"rfilename": file, "size": len(data), "blobId": blob.hexdigest()}
        if file.endswith((".safetensors", ".bin")):
            found["size"] += self.more
            digest = hashlib.sha256(data).hexdigest()
            found["lfs"] = {"sha256": digest, "size": found["size"], "pointerSize": 135}
        return found

    async def _resolve(self, request: web.Request) -> web.StreamResponse:
        self._note(request)
        name, file = self._name(request), request.match_info["file"]
        if self.refuse:
            return web.Response(status=self.refuse)
        if self.gated:
            given = request.headers.get("Authorization", "")
            if given != f"Bearer {self.token}":
                return self._error(403 if given else 401, "GatedRepo", "Access is restricted")
        if name not in self.models or file not in self.models[name]:
            return self._error(404, "EntryNotFound", "Entry not found")
        if file.endswith(".safetensors"):  # large files lie elsewhere
            raise web.HTTPFound(f"/cdn/{name}/{file}")
        return await self._file(request)

    async def _file(self, request: web.Request) -> web.StreamResponse:
        name, file = self._name(request), request.match_info["file"]
        data = self.models[name][file]
        weights = file.endswith(".safetensors")
        if weights and self.broken:
            self.broken -= 1
            data = data[:-1] + bytes([data[-1] ^ 1])
        start = 0
        if request.headers.get("Range", "").startswith("bytes="):
            start = int(request.headers["Range"].removeprefix("bytes=").split("-")[0])
        response = web.StreamResponse(status=206 if start else 200)
        response.content_length = len(data) - start
        if start:
            response.headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        response.headers["ETag"] = f'"{hashlib.sha256(data).hexdigest()}"'
        await response.prepare(request)
        end = len(data) if self.cut is None or not weights else min(len(data), start + self.cut)
        at = start
        with contextlib.suppress(ConnectionError):  # the other side has gone
            while at < end:
                piece = data[at : min(end, at + PIECE)]
                await response.write(piece)
                at += len(piece)
                if self.delay:
                    await asyncio.sleep(self.delay)
        self.sent.append(Sent(file, start, at - start))
        if at < len(data) and request.transport is not None:
            request.transport.close()
        return response

    def _note(self, request: web.Request) -> None:
        self.asked.append(request.path)
        self.tokens.append(request.headers.get("Authorization", ""))

    @staticmethod
    def _name(request: web.Request) -> str:
        return f"{request.match_info['owner']}/{request.match_info['name']}"

    @staticmethod
    def _error(status: int, code: str, message: str) -> web.Response:
        headers = {"X-Error-Code": code, "X-Error-Message": message}
        return web.json_response({"error": message}, status=status, headers=headers)
