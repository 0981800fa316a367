# SPDX-License-Identifier: Apache-2.0
"""Ollama's own API, as far as it is needed here.

After https://docs.ollama.com/api and Ollama's sources, 0.30 to 0.34. Answers are newline-delimited JSON;
nothing in them is trusted.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from goodbot.api.chat_answers import Completion, Reader, as_list, as_object, tops
from goodbot.api.completions import without_tools
from goodbot.api.manners import said
from goodbot.api.server import GenerateRequest
from goodbot.base.errors import ServerError
from goodbot.base.sampling import LOOK_BACK, Filters, checked
from goodbot.base.thoughts import Thought, ThoughtTags
from goodbot.base.worded import Worded
from goodbot.inference.servers.upstream import StatusError, Unreachable, Upstream, UpstreamResponse

_QUICK_SECONDS = 30.0
_UPLOAD_SECONDS = 3600.0
LOAD_SECONDS = 600.0
"""Ollama may read a large model from a slow disk before it answers."""
_LONGEST_LINE = 4 * 1024 * 1024
_OPTIONS = {"top_k": "top_k", "top_p": "top_p", "min_p": "min_p", "repeat_penalty": "repetition_penalty"}
"""Filters by their names there."""
_OLLAMAS = Filters(top_k=40, top_p=0.9, repetition_penalty=1.1)
"""Those of a model that has no parameters."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelInfo:
    """What Ollama tells of one model."""

    form: str
    """`gguf`, or `safetensors`: that runs with MLX."""
    remote: bool
    """It runs in Ollama's cloud."""
    modelfile: str
    thinks: bool = False
    """It can be told to think first."""
    filters: Filters
    """What it draws through where a request says nothing of that."""


class OllamaApi:
    """The calls. They raise ServerError: `StatusError` where it refuses, `Unreachable` where it is not."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def version(self) -> str:
        """As `0.33.3`."""
        version = (await self._told("/api/version")).get("version")
        if not isinstance(version, str) or len(version) > 60 or not version.isprintable():
            other = "what answers at {url} is no Ollama: set [serving] url"
            raise ServerError(Worded(other, url=self._upstream.url))
        return version

    async def tags(self) -> dict[str, str]:
        """The models on its disk: digest by name."""
        return await self._named("/api/tags")

    async def running(self) -> dict[str, str]:
        """The models in its memory: digest by the name that they were loaded under."""
        return await self._named("/api/ps")

    async def show(self, name: str) -> ModelInfo:
        told = await self._told("/api/show", {"model": name})
        modelfile, details = told.get("modelfile"), as_object(told.get("details"))
        return ModelInfo(
            form=str(details.get("format", "")),
            remote=bool(told.get("remote_host")),
            modelfile=modelfile if isinstance(modelfile, str) else "",
            thinks="thinking" in as_list(told.get("capabilities")),
            filters=_drawn(told.get("parameters")),
        )

    async def upload(self, blob: str, file: Path) -> None:
        """Put a file there under its digest (`sha256:…`), unless it is there already."""
        path = f"/api/blobs/{blob}"
        if (await self._ask(path, method="HEAD")).ok:
            return
        try:
            with file.open("rb") as opened:
                reply = await self._upstream.ask(path, opened, seconds=_UPLOAD_SECONDS)
        except Unreachable:  # it hangs up on a file that somebody else has just put there
            reply = await self._ask(path, method="HEAD")
        if not reply.ok:
            raise self._upstream.refused(reply)

    async def create(self, name: str, parts: Mapping[str, Any]) -> None:
        """Make a model of a base with adapters (`from`, `adapters`), or of files (`files`)."""
        last: dict[str, Any] = {}
        async for last in self._lines("/api/create", {"model": name, **parts}):
            if last.get("error"):
                words = Worded(
                    "{place} did not make {name}: {why}",
                    place=self._upstream.place,
                    name=name,
                    why=said(last),
                )
                raise StatusError(words, UpstreamResponse(status=400, body=last))
        if last.get("status") != "success":
            broke = "{place} broke off while it made {name}"
            raise ServerError(Worded(broke, place=self._upstream.place, name=name))

    async def copy(self, source: str, destination: str) -> None:
        await self._done("/api/copy", {"source": source, "destination": destination}, "POST")

    async def delete(self, name: str) -> None:
        """What is not there is ignored."""
        try:
            await self._done("/api/delete", {"model": name}, "DELETE")
        except StatusError as error:
            if error.reply.status != 404:
                raise

    async def free(self, name: str) -> None:
        """Out of its memory, if `name` itself is there.

        Asked by another name of the same model file, Ollama would let go whatever has that file in memory:
        the version that is active now.
        """
        running = await self.running()
        if not running:
            return
        digest = (await self.tags()).get(name)
        if name in running or (digest and digest in running.values()):
            await self._done("/api/chat", {"model": name, "messages": [], "keep_alive": 0}, "POST")

    async def preload(self, name: str) -> None:
        """Into its memory."""
        body: dict[str, Any] = {"model": name, "messages": []}
        await self._done("/api/chat", body, "POST", seconds=LOAD_SECONDS)

    async def chat(
        self, body: Mapping[str, Any], opened: ThoughtTags | None = None
    ) -> AsyncGenerator[str | Thought | Completion]:
        """The pieces, then one `Completion`. Closing it early ends the answer there too.

        `opened`: our base's template begins such a thought. A model of which Ollama knows that it thinks has
        its thoughts told apart there; of one that was made of a GGUF file it may not know.
        """
        if body.get("think") or opened:
            if (await self.show(str(body["model"]))).thinks:
                opened = None
            else:
                body = {**body, "think": False}  # it refuses what its template cannot do
        reader = Reader(body.get("messages"), opened)
        async for line in self._lines("/api/chat", body):
            if line.get("error"):
                failed = Worded("{place} failed: {why}", place=self._upstream.place, why=said(line))
                raise ServerError(failed)
            for piece in reader.delta(as_object(line.get("message")), 0):
                yield piece
            if line.get("done") is True:
                finish = "length" if line.get("done_reason") == "length" else "stop"
                for piece in reader.end(0, cut=finish == "length"):
                    yield piece
                whole = reader.completed(Completion(text="", finish=finish))
                if opened and finish == "stop" and whole.thought and not whole.text:
                    yield whole.thought  # the prompt was another there, and it did not think
                    whole = replace(whole, text=whole.thought, thought="")
                yield whole
                return
        raise ServerError(Worded("{place} broke its answer off", place=self._upstream.place))

    async def first(self, body: Mapping[str, Any]) -> dict[str, float]:
        """The likeliest first tokens; llama-server tells them at temperature 1, before any sampler."""
        told = await self._told("/api/chat", {**body, "stream": False}, seconds=LOAD_SECONDS)
        entries = as_list(told.get("logprobs"))
        return tops(as_object(entries[0]).get("top_logprobs")) if entries else {}

    async def _lines(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        rest = b""
        async with self._upstream.stream(path, body) as (_, pieces):
            async for piece in pieces:
                *whole, rest = (rest + piece).split(b"\n")
                if len(rest) > _LONGEST_LINE:
                    endless = Worded("{place} sent a line without end", place=self._upstream.place)
                    raise ServerError(endless)
                for line in whole:
                    if line.strip():
                        yield self._line(line)
            if rest.strip():
                yield self._line(rest)

    def _line(self, line: bytes) -> dict[str, Any]:
        try:
            return as_object(json.loads(line))
        except (ValueError, RecursionError):
            odd = Worded("{place} sent something that is no answer", place=self._upstream.place)
            raise ServerError(odd) from None

    async def _named(self, path: str) -> dict[str, str]:
        models = map(as_object, as_list((await self._told(path)).get("models")))
        return {
            name: digest
            for model in models
            if isinstance(name := model.get("name"), str)
            and name.isprintable()
            and isinstance(digest := model.get("digest"), str)
        }

    async def _done(
        self, path: str, body: Mapping[str, Any], method: str, seconds: float = _QUICK_SECONDS
    ) -> None:
        await self._told(path, body, method=method, seconds=seconds)

    async def _told(
        self,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        method: str = "",
        seconds: float = _QUICK_SECONDS,
    ) -> dict[str, Any]:
        reply = await self._ask(path, body, method=method, seconds=seconds)
        if not reply.ok:
            raise self._upstream.refused(reply)
        return reply.body

    async def _ask(
        self,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        method: str = "",
        seconds: float = _QUICK_SECONDS,
    ) -> UpstreamResponse:
        return await self._upstream.ask(path, body, method=method, seconds=seconds)


def digest_of(file: Path) -> str:
    """`sha256:…` of a file."""
    import hashlib

    with file.open("rb") as opened:
        return f"sha256:{hashlib.file_digest(opened, 'sha256').hexdigest()}"


def parameters(filters: Filters) -> dict[str, float]:
    """Filters, as options of a request or as parameters of a model."""
    return {**{ours: getattr(filters, name) for ours, name in _OPTIONS.items()}, "repeat_last_n": LOOK_BACK}


def _drawn(text: object) -> Filters:
    """What the parameters of a model, in lines, make of Ollama's own filters."""
    found: dict[str, Any] = asdict(_OLLAMAS)
    for line in text.splitlines() if isinstance(text, str) else ():
        ours, _, value = line.strip().partition(" ")
        if name := _OPTIONS.get(ours):
            with contextlib.suppress(ValueError):
                found[name] = checked(name, float(value))
    return Filters(**found)


def body(name: str, request: GenerateRequest) -> dict[str, Any]:
    """For `/api/chat`: the request's filters, whatever the model's own parameters say."""
    messages, tools = without_tools(request.messages)
    return {
        "model": name,
        "messages": messages,
        "think": request.thinking,
        **({"tools": tools} if tools else {}),
        "options": {
            "temperature": request.temperature,
            "seed": request.seed & 0x7FFFFFFF,
            "num_predict": request.max_tokens,
            **parameters(request.filters),
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
        },
    }
