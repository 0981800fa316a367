# SPDX-License-Identifier: Apache-2.0
"""mlx_lm.server, which takes the adapter's directory with every request (`adapters`).

It holds one model at a time. A request with another adapter waits until the answers under way are done,
then the whole model is loaded anew; so a swap takes as long as a start, and versions that answer side by
side (`[serving] canary`) take turns. It does that by the path as it is spelt, and keeps its caches by it.
Read from mlx_lm/server.py of 0.32.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from goodbot.api.chat_answers import as_list, as_object, tops
from goodbot.api.server import AdapterFormat, GenerateRequest, ServerParts
from goodbot.base.errors import AdapterError, ServerError
from goodbot.base.sampling import Filters
from goodbot.base.thoughts import options
from goodbot.base.worded import Worded
from goodbot.inference.servers import chat
from goodbot.inference.servers.remote import RemoteServer
from goodbot.inference.servers.token_text import decoder
from goodbot.inference.servers.upstream import StatusError, UpstreamResponse

_OLDEST = (0, 32, 2)
"""Before it, an adapter could be left out without a word (ml-explore/mlx-lm#1745)."""
_MOST_TOP = 11
"""Likeliest tokens that it tells at most."""
_WHOLE = 1 << 20
"""Tokens that a repetition penalty looks back on: all."""
_NO_SUCH_PATH = "adapter path does not exist"


class MlxServer(RemoteServer):
    """One mlx_lm.server of the owner's."""

    def __init__(self, settings: object, parts: ServerParts) -> None:
        super().__init__(parts, "mlx_lm.server")
        self._base = ""
        self._paths: dict[str, str] = {}
        """Our name of an adapter → its path, as it is sent."""
        self._spelt: Counter[str] = Counter()
        self._text = decoder(parts.model.path)

    async def look(self) -> str:
        self._base = self.parts.served_model or self._offered_model(await self.models())
        reply = await self._one_token(self.names.get(self._active, ""))
        told = str(reply.body.get("system_fingerprint", "")) if reply.ok else ""
        if not reply.ok:
            cannot = (
                "{place} cannot answer with the model {name} ({why}): set [serving] model to what it was "
                "started with (--model)"
            )
            why = reply.words or reply.status
            raise ServerError(Worded(cannot, place=self.upstream.place, name=repr(self._base), why=why))
        parts = told.partition("-")[0].split(".")[:3]
        if len(parts) < 3 or not all(part.isdecimal() and len(part) < 6 for part in parts):
            other = "{place} does not say that it is mlx_lm.server; for another one set [serving] server"
            raise ServerError(Worded(other, place=self.upstream.place))
        if tuple(map(int, parts)) < _OLDEST:
            oldest = ".".join(map(str, _OLDEST))
            old = (
                "{place} is version {version}, which may leave adapters out without a word: pip install -U "
                "'mlx-lm>={oldest}' where it runs, and start it again"
            )
            raise ServerError(Worded(old, place=self.upstream.place, version=".".join(parts), oldest=oldest))
        return self._base

    def _offered_model(self, models: Sequence[Any]) -> str:
        """What `--model` was, as far as it tells: a directory, or else the one model in its cache."""
        names = [model.name for model in models]
        here = [name for name in names if name.startswith("/")] or names
        if len(here) != 1:
            none = (
                "{place} does not tell which model it was started with: set [serving] model to that (--model)"
            )
            several = (
                "{place} does not tell which model it was started with (it offers {choice}): set [serving] "
                "model to that (--model)"
            )
            if not here:
                raise ServerError(Worded(none, place=self.upstream.place))
            raise ServerError(Worded(several, place=self.upstream.place, choice=", ".join(here[:10])))
        return here[0]

    async def offered(self) -> Collection[str]:
        await self.heartbeat()
        return set(self.names.values())  # it keeps none: each request brings its own

    async def heartbeat(self) -> None:
        reply = await self.upstream.ask("/health", seconds=30.0)
        if not reply.ok:
            failed = "{place} has failed: see its log, and start it again"
            raise ServerError(Worded(failed, place=self.upstream.place))

    async def attach(self, name: str, directory: Path) -> None:
        converted = await self.parts.convert(directory, AdapterFormat.MLX)
        path = self._seen_by_server(converted, directory.parent)
        # Spelt anew each time, so that it reads the files again and takes nothing out of a cache.
        self._paths[name] = path + "/." * self._spelt[path]
        self._spelt[path] += 1
        try:
            await self._awake.wait()
            reply = await self._one_token(name)
            if not reply.ok:
                raise self._unusable(reply, path)
        except BaseException:
            del self._paths[name]
            raise

    async def detach(self, name: str) -> None:
        self._paths.pop(name, None)

    def body(self, name: str, request: GenerateRequest) -> dict[str, Any]:
        body = {
            **super().body(name, request),
            **self._model(name),
            "top_k": request.filters.top_k,
            "min_p": request.filters.min_p,
            "chat_template_kwargs": options(request.thinking),
        }
        if (penalty := request.filters.repetition_penalty) != 1:
            body |= {"repetition_penalty": penalty, "repetition_context_size": _WHOLE}
        del body["seed"]  # a request with one is answered alone, all others wait
        return body

    def takes(self, filters: Filters, *, far: bool = False) -> Filters:
        return filters

    def forgotten(self, error: StatusError) -> bool:
        return _NO_SUCH_PATH in error.reply.words  # whatever goes wrong there is a 404

    async def first(self, name: str, request: GenerateRequest, top: int) -> Mapping[str, float]:
        if self._text is None:
            return {}
        body = self.body(name, request) | {
            "logprobs": True,
            "top_logprobs": min(top, _MOST_TOP),
            "temperature": 0.0,
        }
        reply = await self.upstream.ask(chat.PATH, body)  # a stream of it leaves them out
        if not reply.ok:
            raise self.upstream.refused(reply)
        choice = as_object(next(iter(as_list(reply.body.get("choices"))), None))
        content = as_list(as_object(choice.get("logprobs")).get("content"))
        told = tops(as_object(next(iter(content), None)).get("top_logprobs"))
        return {self._text(token): logprob for token, logprob in told.items()}

    def _model(self, name: str) -> dict[str, str]:
        # By its own name: `default_model` stands for the adapter of the command line, too, and whatever
        # `adapters` says is left out then.
        path = self._paths.get(name)
        return {"model": self._base, **({"adapters": path} if path else {})}

    async def _one_token(self, name: str) -> UpstreamResponse:
        """The shortest answer there is: it loads the model, if need be."""
        return await self.upstream.ask(
            chat.PATH, {**self._model(name), "messages": [{"role": "user", "content": "."}], "max_tokens": 1}
        )

    def _seen_by_server(self, path: Path, root: Path) -> str:
        """`path` under our adapters' directory, as the server sees it."""
        mapped = self.parts.path_on_server.rstrip("/")
        return f"{mapped}/{path.relative_to(root)}" if mapped else str(path)

    def _unusable(self, reply: UpstreamResponse, path: str) -> Exception:
        if _NO_SUCH_PATH in reply.words:
            unseen = (
                "{place} does not see {path}: set [adapters] path_on_server to where our adapters' directory "
                "is for it"
            )
            return ServerError(Worded(unseen, place=self.upstream.place, path=path))
        if reply.status == 404:
            cannot = "{place} cannot load the adapter: {why}"
            return AdapterError(Worded(cannot, place=self.upstream.place, why=reply.words))
        return self.upstream.refused(reply)
