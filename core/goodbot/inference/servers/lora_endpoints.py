# SPDX-License-Identifier: Apache-2.0
"""What vLLM and SGLang share: adapters that are loaded over HTTP by a path, and why they refuse one."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
from abc import abstractmethod
from collections.abc import AsyncGenerator, Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

from goodbot.api.chat_answers import Completion
from goodbot.api.server import GenerateRequest, ServerParts
from goodbot.base.errors import AdapterError, GoodbotError, ServerError
from goodbot.base.sampling import Filters
from goodbot.base.thoughts import Thought, options
from goodbot.base.worded import Worded
from goodbot.inference.servers import chat, listing, temperature
from goodbot.inference.servers.remote import RemoteServer
from goodbot.inference.servers.upstream import StatusError, UpstreamResponse

logger = logging.getLogger(__name__)

_LOAD_SECONDS = 300.0
NEVER = "{place} takes no adapters: start it as `goodbot doctor serving` prints it"
NOT_NOW = "{place} takes no adapters while it runs: start it as `goodbot doctor serving` prints it"
_BUSY = (429, 502, 503, 504)
_UNSEEN = ("no adapter found", "no such file", "not a directory", "does not exist", "repo id")
"""What servers say of a path that leads nowhere; SGLang takes such a one for a name in the hub."""
_IN_USE: set[tuple[str, str]] = set()
"""Address and name of what drivers of this process have loaded: a model switch tries another beside it."""
_FORBIDDEN = ("permission denied", "not permitted")
_FULL = ("maximum number of loaded lora", "evict lru lora", "max loaded loras", "lora slots")
"""What servers say that have no room: SGLang up to 0.4, or with pinned ones only; engines like vLLM's."""
_SLOTS = 2
"""Adapters that answer at the same time while one version takes the place of another."""


class LoraServer(RemoteServer):
    """A server that loads adapters while it runs. PEFT directories, read by the server itself."""

    load_path: ClassVar[str]
    unload_path: ClassVar[str]
    rank_option: ClassVar[str] = "--max-lora-rank"
    slots_option: ClassVar[tuple[str, int]]
    """The option that says how many adapters it holds, and how many we advise."""

    def __init__(self, parts: ServerParts, title: str) -> None:
        super().__init__(parts, title)
        self.follows_temperature = False
        """Whether its log-probs are at the temperature of the request."""
        self.follows_filters = False
        """Whether they are those of what filters leave."""
        self._refuses_logprobs = False

    @abstractmethod
    async def lacks(self) -> str:
        """`NEVER` or `NOT_NOW`; empty if it takes them."""

    async def slots(self) -> int | None:
        """How many adapters it holds at a time, if it says so and has a limit."""
        return None

    async def look(self) -> str:
        base = await super().look()
        why = await self.lacks()
        self.complaint = Worded(why, place=self.upstream.place) if why else await self._few()
        # Each time: its owner may have started it anew with other options.
        self.follows_temperature, self.follows_filters = await self._are_followed(base)
        return base

    async def attach(self, name: str, directory: Path) -> None:
        path = self.path_of(directory)
        reply = await self.upstream.ask(
            self.load_path, {"lora_name": name, "lora_path": path}, seconds=_LOAD_SECONDS
        )
        if not reply.ok:
            raise self._refusal(reply, directory, path)
        _IN_USE.add((self.upstream.url, name))
        if name not in await self.offered():
            gone = (
                "{place} says that it has loaded {name}, and does not list it: see its log, and start "
                "it again"
            )
            raise AdapterError(Worded(gone, place=self.upstream.place, name=name))

    async def detach(self, name: str) -> None:
        reply = await self.upstream.ask(self.unload_path, {"lora_name": name}, seconds=_LOAD_SECONDS)
        if not reply.ok and name in await self.offered():
            raise self.upstream.refused(reply)
        _IN_USE.discard((self.upstream.url, name))

    async def leftovers(self, directory: Path) -> Collection[str]:
        found = listing.left_behind(await self.models(), self.path_of(directory))
        return [name for name in found if (self.upstream.url, name) not in _IN_USE]

    async def heartbeat(self) -> None:
        reply = await self.upstream.ask("/health", seconds=30.0)
        if not reply.ok:
            raise self.upstream.refused(reply)

    def tells_logprobs(self, request: GenerateRequest) -> bool:
        """Whether what it tells are the log-probs that the tokens are drawn by, or those of before filters.

        It may tell those of after a penalty, and before tokens are taken out: they are neither.
        """
        if request.filters.repetition_penalty != 1 and not self.follows_filters:
            return False
        drawn_by = self.follows_temperature or temperature.makes_no_difference(request.temperature)
        return drawn_by and not self._refuses_logprobs

    def takes(self, filters: Filters, *, far: bool = False) -> Filters:
        return filters

    def tells_own(self, request: GenerateRequest) -> bool:
        return not self.follows_filters

    async def write(self, name: str, request: GenerateRequest) -> AsyncGenerator[str | Thought | Completion]:
        try:
            async with contextlib.aclosing(super().write(name, request)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        except StatusError as error:  # it is said before the first piece
            if error.reply.status != 400 or "logprob" not in error.reply.words.lower():
                raise
            logger.warning("%s tells no log-probs: %s", self.upstream.place, error.reply.words)
            self._refuses_logprobs = True
        async with contextlib.aclosing(super().write(name, request)) as pieces:
            async for piece in pieces:
                yield piece

    def body(self, name: str, request: GenerateRequest) -> dict[str, Any]:
        filters = request.filters
        body = {
            **super().body(name, request),
            # All of them: else those of the generation_config.json that the server reads would hold.
            "top_k": filters.top_k or -1,
            "min_p": filters.min_p,
            "repetition_penalty": filters.repetition_penalty,
            "chat_template_kwargs": options(request.thinking),
        }
        if self.tells_logprobs(request):
            body["logprobs"] = True
        return body

    async def _are_followed(self, base: str) -> tuple[bool, bool]:
        """Whether its log-probs are of after the temperature, and of after the filters."""
        request = GenerateRequest(
            messages=[{"role": "user", "content": "Hello"}], max_tokens=1, temperature=1.0, seed=0
        )

        async def first(at: float, top_k: int = 0) -> Mapping[str, float]:
            asked = dataclasses.replace(request, filters=Filters(top_k=top_k))
            return await chat.first_tokens(self.upstream, self.body(base, asked), 10, at)

        try:
            followed = await temperature.is_followed(first)
            return followed, temperature.are_filtered(await first(1.0), await first(1.0, top_k=1))
        except ServerError:
            return False, False

    async def _few(self) -> str:
        """What is wrong where it holds fewer adapters than a change of versions needs."""
        slots = await self.slots()
        if slots is None or slots >= _SLOTS:
            return ""
        few = (
            "{place} holds too few adapters at a time ({slots}): old and new versions hinder each other. "
            "Start it with {option} {count} or more"
        )
        option, count = self.slots_option
        return Worded(few, place=self.upstream.place, slots=slots, option=option, count=count)

    def _refusal(self, reply: UpstreamResponse, directory: Path, path: str) -> GoodbotError:
        """Its answer to a load, as a sentence that says what to do."""
        place, words = self.upstream.place, reply.words.lower()
        if reply.status in (401, 403) or reply.status in _BUSY:
            return self.upstream.refused(reply)
        if reply.status in (404, 405) and "adapter" not in words:
            return AdapterError(Worded(NOT_NOW, place=place))
        if _says(words, _FULL):
            full = (
                "{place} has no room for another adapter: start it with {option} {count} or more, "
                "or unload some there"
            )
            option, count = self.slots_option
            return AdapterError(Worded(full, place=place, option=option, count=count))
        if "not enabled" in words:
            without = (
                "{place} was started without --enable-lora: start it as `goodbot doctor serving` prints it"
            )
            return AdapterError(Worded(without, place=place))
        if _says(words, _FORBIDDEN):
            forbidden = (
                "{place} may not read {path}: run it as the user who runs goodbot, or give its user "
                "the right to read there"
            )
            return AdapterError(Worded(forbidden, place=place, path=path))
        if _says(words, _UNSEEN):
            unseen = (
                "{place} does not see {path}: in a container or on another machine, mount {parent} there and "
                "set [adapters] path_on_server to where it is mounted"
            )
            return AdapterError(Worded(unseen, place=place, path=path, parent=directory.parent))
        if "rank" in words:
            rank = _rank(directory)
            small = (
                "{place} does not take an adapter of rank {rank}: start it with {option} {rank} or more, and "
                "for all modules ({why})"
            )
            return AdapterError(
                Worded(small, place=place, rank=rank, option=self.rank_option, why=reply.words)
            )
        said = reply.words or Worded("status {status}", status=reply.status)
        refuses = "{place} refuses the adapter in {path}: {why}"
        return AdapterError(Worded(refuses, place=place, path=path, why=said))


def _says(words: str, signs: Collection[str]) -> bool:
    return any(sign in words for sign in signs)


def _rank(directory: Path) -> int:
    try:
        return int(json.loads((directory / "adapter_config.json").read_bytes())["r"])
    except (OSError, ValueError, LookupError, TypeError):
        return 0
