"""The model servers that run on this machine, and what they offer.

Every usual port is asked a few harmless questions at the same time; what answers decides what it is.
Whatever listens there is untrusted: answers are bounded, and anything odd is no server.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any, cast
from urllib.parse import urlsplit

from goodbot.base.errors import UsageError

PORTS = (11434, 1234, 8000, 8080)
"""Of Ollama, LM Studio, vLLM, and of llama.cpp and mlx_lm.server, which share one."""
TITLES = {
    "ollama": "Ollama",
    "lmstudio": "LM Studio",
    "vllm": "vLLM",
    "llamacpp": "llama.cpp",
    "mlx": "mlx_lm.server",
    "openai": "a server that speaks OpenAI's API",
}
_QUESTIONS = ("/api/version", "/api/tags", "/api/v0/models", "/v1/models", "/props")
_SECONDS = 0.8
_LARGEST = 1 << 20
_MOST_MODELS = 200
_LONGEST_NAME = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedModel:
    """A model as its server tells of it. All of it is untrusted text."""

    name: str
    root: str = ""
    """The weights that it was loaded from (a name in the hub or a path), where the server says so."""
    parent: str = ""
    """The model that it was derived from, on the same server."""
    note: str = ""
    """Format, quantization, size."""
    bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundServer:
    """A server that answers. `kind` is one of `TITLES`."""

    kind: str
    url: str
    models: tuple[ListedModel, ...]
    version: str = ""
    """Of Ollama."""

    @property
    def title(self) -> str:
        return TITLES[self.kind]


def discover(urls: Sequence[str] | None = None) -> list[FoundServer]:
    """The servers at `urls`, by default on the usual ports of this machine; within a second."""
    return asyncio.run(_discover(usual() if urls is None else urls))


def origin(server: FoundServer, name: str) -> list[str]:
    """Names under which the weights of an Ollama model may be known, from its own metadata."""
    if server.kind != "ollama":
        return []
    told = asyncio.run(_show(server.url, name)).get("model_info")
    info: Mapping[str, Any] = cast("Mapping[str, Any]", told) if isinstance(told, dict) else {}
    names = ("general.basename", "general.size_label", "general.finetune")
    urls = ("general.base_model.0.repo_url", "general.repo_url", "general.source.repo_url")
    found = [urlsplit(_text(info.get(key))).path.strip("/") for key in urls]
    parts = [_text(info.get(key)) for key in names]
    return [name for name in (*found, "-".join(filter(None, parts))) if name]


def usual(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Where servers usually listen. `OLLAMA_HOST` may move Ollama; only this machine is asked.

    `GOODBOT_SERVER_PORTS` (numbers with commas) replaces the ports.
    """
    given = environ.get("GOODBOT_SERVER_PORTS")
    ports = (
        [int(part) for part in given.split(",") if part.strip().isdecimal()]
        if given is not None
        else [*PORTS]
    )
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    if moved := environ.get("OLLAMA_HOST"):
        try:
            parts = urlsplit(moved if "//" in moved else f"http://{moved}")
            host = "127.0.0.1" if parts.hostname in ("0.0.0.0", "::") else parts.hostname or ""  # noqa: S104  a meaning, no bind
            url = f"{parts.scheme}://{_bracketed(host)}:{parts.port or 11434}"
        except ValueError:
            return urls
        if _is_here(host) and url not in urls:
            urls.insert(0, url)
    return urls


def checked(url: str) -> str:
    """A server's address as a person gives it, without its path. Raises UsageError.

    Only this machine's: a model name from elsewhere says nothing about what lies here.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError(f"{url!r} is no server's address; write http://127.0.0.1:PORT")
    if not _is_here(host):
        raise UsageError(f"{host} is another machine; goodbot looks for servers on this one only")
    default = 443 if parts.scheme == "https" else 80
    return f"{parts.scheme}://{_bracketed(host)}:{port or default}"


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


async def _discover(urls: Sequence[str]) -> list[FoundServer]:
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    # No proxy and no redirect: this machine is asked and no other.
    async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as session:
        found = await asyncio.gather(*(_look(session, url) for url in urls))
    return [server for server in found if server is not None]


async def _show(url: str, name: str) -> dict[str, Any]:
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as session:
        return await _ask(session, f"{url}/api/show", json={"model": name})


async def _look(session: Any, url: str) -> FoundServer | None:
    answers = await asyncio.gather(*(_ask(session, url + path) for path in _QUESTIONS))
    version, tags, native, openai, props = answers
    if "build_info" in props or "default_generation_settings" in props:
        path = _text(props.get("model_path"))
        models = [_from_openai(entry, root=path) for entry in _list(openai, "data")]
        return _server("llamacpp", url, models)
    if isinstance(tags.get("models"), list) and "version" in version:
        found = _server("ollama", url, [_from_ollama(entry) for entry in _list(tags, "models")])
        return replace(found, version=_text(version["version"]))
    if any("state" in entry or "publisher" in entry for entry in _list(native, "data")):
        chats = [e for e in _list(native, "data") if e.get("type", "llm") in ("llm", "vlm")]
        return _server("lmstudio", url, [_from_lmstudio(entry) for entry in chats])
    if isinstance(openai.get("data"), list):
        entries = _list(openai, "data")
        owners = {_text(entry.get("owned_by")) for entry in entries}
        kind = "openai"
        if "vllm" in owners:
            kind = "vllm"
        elif "llamacpp" in owners:
            kind = "llamacpp"
        elif owners <= {""}:  # it names no owner
            kind = "mlx"
        return _server(kind, url, [_from_openai(entry) for entry in entries])
    return None


async def _ask(session: Any, url: str, **body: Any) -> dict[str, Any]:
    """A JSON object; empty for everything else that may come."""
    import aiohttp

    method = "POST" if body else "GET"
    try:
        async with session.request(method, url, allow_redirects=False, **body) as response:
            if response.status != 200:
                return {}
            data = b""
            async for piece in response.content.iter_chunked(65536):
                data += piece
                if len(data) > _LARGEST:
                    return {}
        found = json.loads(data)
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _server(kind: str, url: str, models: list[ListedModel]) -> FoundServer:
    return FoundServer(kind=kind, url=url, models=tuple(model for model in models if model.name))


def _from_ollama(entry: Mapping[str, Any]) -> ListedModel:
    details = entry.get("details")
    told: Mapping[str, Any] = cast("Mapping[str, Any]", details) if isinstance(details, dict) else {}
    names = ("parameter_size", "quantization_level", "format")
    return ListedModel(
        name=_text(entry.get("name")),
        parent=_text(told.get("parent_model")),
        note=" ".join(filter(None, (_text(told.get(name)) for name in names))),
        bytes=_size(entry.get("size")),
    )


def _from_lmstudio(entry: Mapping[str, Any]) -> ListedModel:
    names = ("quantization", "compatibility_type", "state")
    return ListedModel(
        name=_text(entry.get("id")), note=" ".join(filter(None, (_text(entry.get(name)) for name in names)))
    )


def _from_openai(entry: Mapping[str, Any], root: str = "") -> ListedModel:
    meta = entry.get("meta")
    told: Mapping[str, Any] = cast("Mapping[str, Any]", meta) if isinstance(meta, dict) else {}
    name = _text(entry.get("id"))
    return ListedModel(
        name=name,
        root=_text(entry.get("root")) or root,
        parent=_text(entry.get("parent")),
        bytes=_size(told.get("size")),
    )


def _list(answer: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = answer.get(key)
    entries = cast("list[Any]", found)[:_MOST_MODELS] if isinstance(found, list) else []
    return [cast("dict[str, Any]", entry) for entry in entries if isinstance(entry, dict)]


def _text(value: object) -> str:
    return value[:_LONGEST_NAME] if isinstance(value, str) else ""


def _size(value: object) -> int:
    return value if isinstance(value, int) and 0 < value < 1 << 50 else 0
