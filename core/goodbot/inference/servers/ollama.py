# SPDX-License-Identifier: Apache-2.0
"""Ollama: each version is a model of its own there, and the active one has an alias for other clients.

Up to 0.34.0 Ollama puts an adapter on its own copy of the base; since then, and on a base that it runs with
MLX, it takes nothing but whole models, so it gets the base with the adapter merged in. Before 0.30 it made
models with adapters and did not run them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from goodbot.api.chat_answers import Completion
from goodbot.api.completions import FarSide
from goodbot.api.marks import opened
from goodbot.api.server import BASE, AdapterFormat, GenerateRequest, ServerParts
from goodbot.api.survey import ListedModel
from goodbot.base import sampling
from goodbot.base.errors import AdapterError, ServerError, UsageError
from goodbot.base.sampling import Filters
from goodbot.base.thoughts import Thought
from goodbot.base.worded import Worded, said_by
from goodbot.inference.models import servers
from goodbot.inference.servers import listing
from goodbot.inference.servers.ollama_api import OllamaApi, body, digest_of, parameters
from goodbot.inference.servers.ollama_tags import OllamaSettings, TaggedVersion, Tags, changed, repository
from goodbot.inference.servers.remote import RemoteServer
from goodbot.inference.servers.upstream import StatusError
from goodbot.inference.surveys.ollama import TAKES_WHOLE_MODELS_SINCE, numbered, too_old

logger = logging.getLogger(__name__)

_REFUSED = "no longer supported"
_MOST_TOLD = 20
_ROOM_SECONDS = 60.0
_ALIAS_SECONDS = 10.0
_FREE_SECONDS = 0.25
_FREE_CHECKS = 60
"""So often it is looked whether the memory is free; Ollama waits for the GPU to give it back."""


class OllamaServer(RemoteServer):
    """An Ollama that the owner runs."""

    def __init__(self, settings: OllamaSettings, parts: ServerParts) -> None:
        super().__init__(parts, "Ollama")
        self._settings = settings
        self._api = OllamaApi(self.upstream)
        self._tags = Tags.read(parts.home / "tags.json")
        self._proven: set[tuple[str, str]] = set()
        """Names and questions that were asked for a proof since somebody talked, or something was loaded."""

    # what it is

    async def look(self) -> str:
        await self._api.version()
        offered = await self._api.tags()
        self._proven.clear()
        wanted = self.parts.served_model
        if f"{wanted}:latest" in offered:
            return f"{wanted}:latest"
        bases = self._tags.bases_among(offered, self._settings.name)
        listed = [ListedModel(name=name) for name in bases]
        return listing.base(listed, wanted, self.upstream.place)

    async def heartbeat(self) -> None:
        self.complaint = self._changed(await self._api.tags())

    def _changed(self, offered: Mapping[str, str]) -> str:
        """What has happened to the base, in a sentence that says what to do; empty: nothing."""
        base = self.names.get(BASE, "")
        now, first = offered.get(base, ""), self._settings.digest or self._tags.bases.get(base, "")
        if not now:
            gone = "{place} has no {name} any more: `ollama pull {name}`"
            return Worded(gone, place=self.upstream.place, name=base)
        return "" if now.startswith(first) else changed(base, now[:12], first[:12])

    def takes(self, filters: Filters, *, far: bool = False) -> Filters:
        return super().takes(filters, far=far) if far else filters

    async def offered(self) -> Collection[str]:
        return await self._api.tags()

    # versions

    async def detach(self, name: str) -> None:
        """Out of Ollama's memory; on its disk it stays until `_prune`."""
        again = name in self._left and name in self.names.values()  # loaded while it was to go
        if not again:
            await self._api.free(name)

    async def activate(self, version: int) -> None:
        await super().activate(version)
        await self._point(version)

    async def reload(self, version: int, directory: Path) -> None:
        if (old := self.names.get(version, "")) in self._tags.made:
            self._tags.made[old] = TaggedVersion(version=version, blob="")
        await super().reload(version, directory)
        await self._point(version)

    async def _attached(self, version: int, directory: Path) -> str:
        """Make the tag of a version, and see that it answers."""
        form = await self._takes()
        try:
            name = await self._made(version, directory, form)
        except StatusError as error:
            if _REFUSED not in str(error) or form is AdapterFormat.GGUF_MODEL:
                raise
            name = await self._made(version, directory, AdapterFormat.GGUF_MODEL)
        self._proven.clear()
        return name

    async def _takes(self) -> AdapterFormat:
        """What this Ollama takes a version as. Raises AdapterError where that cannot be."""
        version, base = await self._api.version(), self.names[BASE]
        if too_old(version):
            old = (
                "Ollama {version} makes models with adapters and does not run them: update Ollama to 0.30 "
                "or newer"
            )
            raise AdapterError(Worded(old, version=version))
        shown = await self._api.show(base)
        if shown.remote:
            cloud = (
                "{name} runs in Ollama's cloud, where no adapter goes: set [serving] model to one of this "
                "machine's"
            )
            raise AdapterError(Worded(cloud, name=base))
        await self._pin(base)
        takes_adapters = numbered(version) < TAKES_WHOLE_MODELS_SINCE and shown.form == "gguf"
        return AdapterFormat.GGUF if takes_adapters else AdapterFormat.GGUF_MODEL

    async def _pin(self, base: str) -> None:
        """The base is the one that the first version was made for. Raises AdapterError.

        Whole models too: without a version another model would answer than what they were trained from.
        """
        offered = await self._api.tags()
        if complaint := self._changed(offered):
            raise AdapterError(complaint)
        if base not in self._tags.bases:
            self._tags.bases[base] = offered[base]
            await asyncio.to_thread(self._tags.save)

    async def _made(self, version: int, directory: Path, form: AdapterFormat) -> str:
        file = _one_file(await self.parts.convert(directory, form), directory)
        blob = await asyncio.to_thread(digest_of, file)
        name = self._tags.name_for(
            self._settings.name or repository(self.names[BASE]), version, blob, taken=await self._api.tags()
        )
        self._tags.made[name] = TaggedVersion(version=version, blob=blob)
        await asyncio.to_thread(self._tags.save)
        made: dict[str, Any] = {"files": {"model.gguf": blob}}
        if form is AdapterFormat.GGUF:
            made = {"from": self.names[BASE], "adapters": {"adapter.gguf": blob}}
        drawn = sampling.of(self.parts.model.path, self.parts.drawn_with)
        parts = {**made, "parameters": parameters(drawn.filters)}
        try:
            await self._created(name, parts, blob, file)
        except ServerError:
            if name not in await self._api.tags():
                del self._tags.made[name]
                await asyncio.to_thread(self._tags.save)
            raise
        return name

    async def _created(self, name: str, parts: Mapping[str, Any], blob: str, file: Path) -> None:
        """Upload, make, look at what was made, and let it say a word. Raises ServerError."""
        await self._api.upload(blob, file)
        try:
            await self._api.create(name, parts)
        except StatusError as error:
            if _REFUSED in str(error):
                raise
            logger.warning("Ollama did not make %s (%s): once more", name, error)
            # When it starts, it removes files that no model names.
            await self._api.upload(blob, file)
            await self._api.create(name, parts)
        try:
            modelfile = (await self._api.show(name)).modelfile
        except StatusError as error:
            if error.reply.status != 404:
                raise
            none = Worded("Ollama says that it made {name}, and has no such model", name=name)
            raise ServerError(none) from error
        if modelfile and blob.replace(":", "-") not in modelfile.replace(":", "-"):
            raise ServerError(Worded("Ollama made {name} without the file that it was given", name=name))
        try:
            await self._api.first(body(name, _HELLO))
        except ServerError as error:
            cannot = "Ollama made {name} and cannot run it ({why}): see `ollama ps` for what is in its memory"
            raise ServerError(Worded(cannot, name=name, why=said_by(error))) from error

    async def _point(self, version: int) -> None:
        """The alias for other clients, to a version; and old tags go."""
        name = self.names[version]
        alias = f"{self._settings.name or repository(self.names[BASE])}:latest"
        try:
            async with asyncio.timeout(_ALIAS_SECONDS):
                there = alias in await self._api.tags()
                if there and alias not in self._tags.aliases:
                    raise ServerError("that model is not goodbot's, and stays as it is")
                if there or version != BASE:
                    if not there:
                        self._tags.aliases.add(alias)
                        await asyncio.to_thread(self._tags.save)
                    await self._api.copy(name, alias)
        except (ServerError, TimeoutError) as error:
            logger.warning("%s does not point to v%d: %s", alias, version, error)
        self._later(self._prune())

    async def _prune(self) -> None:
        """Old tags of ours, off Ollama's disk."""
        async with self._loading:
            in_use = set(self.names.values())
            for name in self._tags.old(in_use=in_use, keep=self._settings.keep):
                if not self._in_flight.any(name):
                    await self._api.free(name)
                    await self._api.delete(name)
                    del self._tags.made[name]
                    await asyncio.to_thread(self._tags.save)

    # answers

    def write(self, name: str, request: GenerateRequest) -> AsyncGenerator[str | Thought | Completion]:
        """One answer. Ollama tells no token ids, so its log-probs are not kept: training recomputes them."""
        self._proven.clear()
        begun = opened(self.parts.model.path, thinking=request.thinking)
        return self._api.chat(body(name, request), begun)

    async def first(self, name: str, request: GenerateRequest, top: int) -> Mapping[str, float]:
        """Empty, too, for a question that was asked before and since when nobody talked.

        Asking keeps the model in Ollama's memory, or brings it back, and who is silent needs no proof.
        """
        asked = (name, json.dumps(list(request.messages)))
        if asked in self._proven:
            return {}
        told = await self._api.first(
            {**body(name, request), "logprobs": True, "top_logprobs": min(top, _MOST_TOLD)}
        )
        self._proven.add(asked)
        return told

    async def drawn(self, far: FarSide) -> FarSide:
        """Its `/v1/chat/completions` takes `top_p` alone; else it draws as the model's parameters say."""
        shown = await self._api.show(str(far.fields["model"]))
        filters = replace(shown.filters, top_p=far.filters.top_p)
        template = "" if shown.thinks else far.template  # Ollama tells its thoughts apart by itself
        return replace(far, filters=filters, takes=("top_p",), template=template)

    # memory

    async def make_room(self) -> bool:
        """Only an Ollama of this machine has memory that a training here could use."""
        try:
            servers.checked(self.upstream.url)
        except UsageError:
            return False
        if not await self.quiet(_ROOM_SECONDS):
            return False
        with contextlib.suppress(ServerError):
            names = set(self.names.values())
            for name in names:
                await self._api.free(name)
            for _ in range(_FREE_CHECKS):
                if not names & set(await self._api.running()):
                    return True
                await self.parts.clock.sleep(_FREE_SECONDS)
        await super().come_back()
        return False

    async def come_back(self) -> None:
        await super().come_back()
        with contextlib.suppress(ServerError):
            self._later(self._api.preload(self.name_of(self._active)))


_HELLO = GenerateRequest(
    messages=({"role": "user", "content": "Hello"},), max_tokens=1, temperature=0.0, seed=0
)


def _one_file(found: Path, directory: Path) -> Path:
    """The GGUF file of a conversion. Raises AdapterError."""
    files = sorted(found.glob("*.gguf")) if found.is_dir() else [found]
    if len(files) != 1 or not files[0].is_file():
        none = "{name} was converted for Ollama, and no GGUF file is there"
        raise AdapterError(Worded(none, name=directory.name))
    return files[0]
