"""`goodbot doctor serving`: model servers on their usual ports, and how goodbot can answer through each.

It only asks. The one request that is no GET goes to a vLLM that has said it is one, and is empty,
so that it can load nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from goodbot.api.setup import Check, Examined, Probe
from goodbot.cli.doctor import model_server
from goodbot.cli.doctor.checks import ok, warn
from goodbot.inference.models import servers
from goodbot.inference.models import serving as settings
from goodbot.inference.models.servers import FoundServer, ListedModel
from goodbot.inference.servers import address

if TYPE_CHECKING:
    from aiohttp import ClientSession

SGLANG = "http://127.0.0.1:30000"
"""Its usual place; `goodbot.inference.models.servers` knows the others'."""
_SECONDS = 5.0
_LONGEST = 1_000_000
_RANKS = (8, 16, 32, 64, 128, 256)
"""That vLLM can be told; the next one up is taken."""


async def serving(examined: Examined, urls: Sequence[str] = ()) -> Sequence[Check]:
    """A line for each server that is found on this machine."""
    import aiohttp

    urls = urls or [*dict.fromkeys((*servers.usual(), SGLANG, *_configured(examined)))]
    found = {server.url: server for server in await asyncio.to_thread(servers.discover, urls)}
    rank = next((r for r in _RANKS if r >= _rank(examined)), _RANKS[-1])
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as http:
        looks = [
            _look(http, found[url], rank) if url in found else _locked(http, url, examined) for url in urls
        ]
        checks = [check for check in await asyncio.gather(*looks) if check is not None]
    places = ", ".join(url.rpartition(":")[2] for url in urls)
    nothing = ok("serving", f"no model server on ports {places}; goodbot serves the model itself")
    return checks or [nothing]


def _configured(examined: Examined) -> list[str]:
    """Where `[serving] url` says that the server is, if that can be asked."""
    try:
        url = examined.config.serving.url
        return [address.checked(url, examined.config.serving.hosts)] if url else []
    except ValueError:
        return []


def _rank(examined: Examined) -> int:
    rank = examined.config.training.settings.get("rank", 8)
    return rank if isinstance(rank, int) else 8


async def _locked(http: ClientSession, url: str, examined: Examined) -> Check | None:
    """A server that answers nobody without a key. The configured one is asked with it, no other is."""
    code, _ = await _ask(http, url, "/v1/models")
    if code not in (401, 403):
        return None
    if url in _configured(examined) and (checks := await model_server.look(examined)):
        return replace(checks[0], part=_part(url))
    return warn(_part(url), "a model server that asks for a key: it cannot be looked at")


async def _look(http: ClientSession, found: FoundServer, rank: int) -> Check:
    if found.kind == "vllm":
        return await _vllm(http, found, rank)
    if found.kind == "llamacpp":
        return await _llama(http, found)
    if found.kind == "ollama":
        return _ollama(found)
    if found.kind == "lmstudio":
        text = (
            "LM Studio takes no adapters at all: let goodbot serve the model itself, or give it a "
            "version that you export"
        )
        line = "goodbot adapters export VERSION --format gguf-model --out MODEL.gguf"
        return warn(_part(found.url), text, line)
    if found.kind == "mlx":
        return _mlx(found)
    for path in ("/server_info", "/get_server_info"):
        code, info = await _ask(http, found.url, path)
        if code == 200 and "model_path" in info:
            return _sglang(found, info, rank)
    text = (
        f"{found.title}: it can answer with a model of its own, which learns nothing: "
        f"{_line('openai', found)}"
    )
    return warn(_part(found.url), text)


async def _vllm(http: ClientSession, found: FoundServer, rank: int) -> Check:
    _, said = await _ask(http, found.url, "/version")
    version = f"vLLM {said.get('version', '')}".strip()
    code, _ = await _ask(http, found.url, "/v1/load_lora_adapter", body="{}")
    if code in (401, 403):
        return warn(_part(found.url), f"{version} asks for a key: it cannot be looked at")
    if code in (400, 422):
        text = f"{version} takes adapters while it runs: {_line('vllm', found)}"
        return ok(_part(found.url), text)
    line = (
        f"VLLM_ALLOW_RUNTIME_LORA_UPDATING=True vllm serve {_model(found)} --enable-lora "
        f"--max-lora-rank {rank} --max-loras 2 --logprobs-mode processed_logprobs"
        f"{_called(found)}{_port(found, 8000)}"
    )
    return warn(_part(found.url), f"{version} takes no adapters while it runs", line)


def _sglang(found: FoundServer, info: dict[str, Any], rank: int) -> Check:
    version = f"SGLang {info.get('version', '')}".strip()
    most = info.get("max_lora_rank")
    if info.get("enable_lora") and not (isinstance(most, int) and most < rank):
        text = f"{version} takes adapters while it runs: {_line('sglang', found)}"
        return ok(_part(found.url), text)
    line = (
        f"python -m sglang.launch_server --model-path {_model(found)} --enable-lora "
        f"--max-lora-rank {rank} --lora-target-modules all --max-loras-per-batch 2 "
        f"--max-loaded-loras 3{_port(found, 30000)}"
    )
    lacks = f"adapters only up to rank {most}" if info.get("enable_lora") else "no adapters"
    return warn(_part(found.url), f"{version} takes {lacks} while it runs", line)


async def _llama(http: ClientSession, found: FoundServer) -> Check:
    code, loaded = await _ask(http, found.url, "/lora-adapters")
    count = len(_list(loaded.get("")))
    has = f"{count} from its start" if code == 200 and count else "none now"
    text = (
        f"llama.cpp reads an adapter only when it starts ({has}); goodbot can start one of its own "
        f"for each version: {settings.written({'server': 'llamacpp'})}"
    )
    return ok(_part(found.url), text)


def _mlx(found: FoundServer) -> Check:
    text = (
        "a server like mlx_lm.server: from 0.32.2 on it takes an adapter with a request, and loads "
        f"the whole model again for it ({_line('mlx', found)}); before that it ignored --adapter-path"
    )
    return warn(_part(found.url), text, "pip install --upgrade 'mlx-lm>=0.32.2'")


def _ollama(found: FoundServer) -> Check:
    if settings.too_old(found.version):
        text = f"Ollama {found.version} makes models with adapters and does not run them"
        return warn(_part(found.url), text, "update Ollama to 0.30 or newer")
    whole = settings.numbered(found.version) >= settings.OLLAMA_TAKES_WHOLE_MODELS_SINCE
    takes = "a whole model of its own, with its adapter in it" if whole else "a model of its own"
    text = f"Ollama {found.version} takes each version as {takes}: {_line('ollama', found)}"
    return ok(_part(found.url), text)


def _line(kind: str, found: FoundServer) -> str:
    """The settings with which goodbot answers through it."""
    several = len(found.models) > 1
    return settings.written(settings.settings(kind, found.url, "NAME" if several else ""))


async def _ask(
    http: ClientSession, url: str, path: str, body: str | None = None
) -> tuple[int, dict[str, Any]]:
    """Status and JSON object of an answer; a list is under the empty name; 0 without an answer."""
    import aiohttp

    headers = {"Content-Type": "application/json"}
    try:
        async with http.request(
            "GET" if body is None else "POST", url + path, data=body, headers=headers, allow_redirects=False
        ) as response:
            text = await response.content.read(_LONGEST)
            code = response.status
    except (aiohttp.ClientError, OSError, TimeoutError):
        return 0, {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return code, {}
    return code, cast("dict[str, Any]", value if isinstance(value, dict) else {"": value})


def _list(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [cast("dict[str, Any]", e) for e in cast("list[object]", value) if isinstance(e, dict)]


def _model(found: FoundServer) -> str:
    """Where the base model's weights are."""
    base = _base(found)
    return _plain(base.root or base.name, "MODEL") if base else "MODEL"


def _called(found: FoundServer) -> str:
    """The name that the server has for the base model, where it was given one: clients use it."""
    base = _base(found)
    if base is None or base.root in ("", base.name):
        return ""
    return f" --served-model-name {_plain(base.name, 'NAME')}"


def _base(found: FoundServer) -> ListedModel | None:
    bases = [model for model in found.models if not model.parent] or list(found.models)
    return bases[0] if bases else None


def _plain(name: str, otherwise: str) -> str:
    """A name that a shell would read otherwise is left to the person."""
    plain = name.isascii() and name and all(c.isalnum() or c in "/._-" for c in name)
    return name if plain else otherwise


def _part(url: str) -> str:
    return f"port {url.rpartition(':')[2]}"


def _port(found: FoundServer, usual: int) -> str:
    port = found.url.rpartition(":")[2]
    return "" if port == str(usual) else f" --port {port}"


PROBES = (Probe(name="serving", run=serving, seconds=3 * _SECONDS),)
