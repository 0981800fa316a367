# SPDX-License-Identifier: Apache-2.0
"""T27: what the proxy is not: an open relay, a way to an upstream's other routes, a leak of tokens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from goodbot.api.completions import CompletionRequest
from goodbot.api.server import Generated
from goodbot_connectors.api.proxy import waiters
from goodbot_connectors.api.proxy.waiters import EACH
from goodbot_connectors.kit.bridge import clients
from goodbot_connectors.kit.bridge.refused import HttpError
from yarl import URL

from tests.connectors.api.proxy import requests
from tests.connectors.api.proxy.ground import Ground, Scripted, far_side, proxied
from tests.connectors.api.proxy.upstream import Upstream
from tests.core.builders import until

FORBIDDEN = [
    ("POST", "/v1/load_lora_adapter"),
    ("POST", "/v1/unload_lora_adapter"),
    ("POST", "/load_lora_adapter"),
    ("POST", "/api/create"),
    ("POST", "/api/pull"),
    ("DELETE", "/api/delete"),
    ("POST", "/api/chat"),
    ("POST", "/sleep"),
    ("POST", "/lora-adapters"),
    ("POST", "/v1/files"),
    ("DELETE", "/v1/models/m"),
    ("GET", "/v1/chat/completions"),
    ("PUT", "/v1/responses"),
    ("GET", "/v1/responses/resp_1"),
    ("POST", "/v1/chat/completions/"),
    ("POST", "/v1/chat/completions/../../api/pull"),
    ("POST", "/v1//messages"),
    ("POST", "/v1/messages/batches"),
    ("POST", "/v1/chat%2Fcompletions"),
    ("GET", "/v1/models/../api/tags"),
    ("GET", "/v1/models/a/b"),
    ("HEAD", "/v1/models"),
    ("POST", "/v1/models"),
    ("OPTIONS", "/v1/chat/completions"),
    ("GET", "/metrics"),
]


@pytest.mark.parametrize(("method", "path"), FORBIDDEN, ids=lambda one: one)
async def test_proxy_route_allowlist(
    ground: Ground, fake: Upstream, web: aiohttp.ClientSession, method: str, path: str
) -> None:
    url = URL(ground.url + path, encoded=True)
    async with web.request(method, url, json=requests.CHAT, headers=ground.bearer) as response:
        assert response.status in (404, 405), await response.text()
    assert fake.got == []


class Slow(Scripted):
    """A model that answers nobody yet."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on, self.waiting = asyncio.Event(), 0

    async def answer(self, question: CompletionRequest) -> AsyncGenerator[str | Generated, None]:
        self.waiting += 1
        await self.goes_on.wait()
        yield Generated(text="Good.", version=3, finish="stop")


async def test_b6_who_waits_for_the_model_shuts_nobody_else_out(
    tmp_path: Path, web: aiohttp.ClientSession
) -> None:
    """Each client has so many places for that; the list of models, a rating, a page comes all the same."""
    model = Slow()
    async with proxied(tmp_path, model=model) as ground:
        url = f"{ground.url}/v1/chat/completions"

        async def asked(token: str, **options: Any) -> tuple[int, str]:
            headers = {"Authorization": f"Bearer {token}"}
            async with web.post(url, headers=headers, **options) as response:
                return response.status, response.headers.get("Retry-After", "")

        others = [clients.create(tmp_path, "api", name, admin=True) for name in ("bob", "eve")]
        many = [
            asyncio.create_task(asked(token, json=requests.CHAT))
            for token in (ground.token, others[0])
            for _ in range(EACH)
        ]
        await until(lambda: model.waiting == 2 * EACH)
        assert await asked(ground.token, json=requests.CHAT) == (429, "5"), "32 of hers wait"
        assert await asked(others[1], json=requests.CHAT) == (503, "5")
        async with web.get(f"{ground.url}/v1/models", headers=ground.bearer) as response:
            assert response.status == 200
        model.goes_on.set()
        assert {status for status, _ in await asyncio.gather(*many)} == {200}
        assert (await asked(others[1], json=requests.CHAT))[0] == 200


async def test_b6_bodies_that_wait_have_a_limit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiters, "BYTES", 100)
    counted = waiters.Waiters()

    def sized(size: int | None) -> Any:
        return SimpleNamespace(content_length=size, protocol=None)

    def status(client: str, size: int = 1) -> int:
        try:
            with counted.place(sized(size), client, 64):
                return 200
        except HttpError as error:
            return error.status

    with counted.place(sized(200), "ada", 64):  # one alone is taken whatever it has
        assert (status("ada"), status("eve")) == (429, 503)
    with counted.place(sized(None), "ada", 50) as came, counted.place(sized(50), "bob", 64):
        assert (status("ada"), status("eve")) == (429, 503)
        came(10)  # it had said nothing, and was shorter
        assert (status("ada", 40), status("ada", 41), status("eve", 40)) == (200, 429, 200)
    assert status("eve") == 200


async def test_a_models_name_stays_one_segment(
    ground: Ground, fake: Upstream, web: aiohttp.ClientSession
) -> None:
    for name in ("m-1", "..%2F..%2Fapi%2Ftags", "org%2Fm", "%2e%2e"):
        url = URL(f"{ground.url}/v1/models/{name}", encoded=True)
        async with web.get(url, headers=ground.bearer) as response:
            assert response.status in (200, 404)
    assert {got.path for got in fake.got} <= {
        "/v1/models/m-1",
        "/v1/models/..%2F..%2Fapi%2Ftags",
        "/v1/models/org%2Fm",
    }


async def test_no_token_leak_upstream(ground: Ground, fake: Upstream, web: aiohttp.ClientSession) -> None:
    """Our token goes nowhere, under whatever name; the upstream's key goes there, and no other header of
    ours or of a browser."""
    own = {
        "Cookie": f"a={ground.token}",
        "X-Odd": f"see {ground.token}",
        "X-Forwarded-For": "10.0.0.1",
        "X-Goodbot-Token": ground.token,
        "api-key": "other",
        "X-Turn-Type": "main",
        "Via": "1.1 x",
        "Connection": "X-Hop",
        "X-Hop": "1",
        "Proxy-Authorization": "Basic eA==",
        "TE": "trailers",
        "X-Kept": "yes",
    }
    for path, body in requests.BODIES.items():
        for headers in (ground.bearer, {"x-api-key": ground.token}):
            async with web.post(ground.url + path, json=body, headers={**own, **headers}) as response:
                assert response.status == 200
                assert ground.token not in str(response.headers)
    assert len(fake.got) == 8
    for got in fake.got:
        assert ground.token not in str(got.headers)
        assert ground.token.encode() not in got.body
        names = {name.lower() for name in got.headers}
        assert not names & {
            "cookie",
            "x-odd",
            "x-forwarded-for",
            "x-goodbot-token",
            "api-key",
            "x-turn-type",
            "via",
            "x-hop",
            "proxy-authorization",
            "te",
            "origin",
        }
        assert got.headers["X-Kept"] == "yes"
        key = "x-api-key" if got.path.startswith("/v1/messages") else "Authorization"
        assert got.headers[key].removeprefix("Bearer ") == "sk-upstream"


async def test_credentials_of_a_program_pass_only_where_the_owner_says_so(
    tmp_path: Path, fake: Upstream, web: aiohttp.ClientSession
) -> None:
    environ = {"UPSTREAM_API_KEY": "sk-upstream"}
    theirs = {"Authorization": "Bearer sk-ant-oat01-theirs", "x-api-key": "theirs"}
    async with proxied(
        tmp_path, upstream=fake.url, upstream_dialect="both", pass_credentials=True, environ=environ
    ) as ground:
        headers = {**theirs, "X-Goodbot-Token": ground.token}
        async with web.post(ground.url + "/v1/messages", json=requests.MESSAGES, headers=headers) as response:
            assert response.status == 200
        [got] = fake.got
        assert got.headers["Authorization"] == theirs["Authorization"]
        assert got.headers["x-api-key"] == "theirs"
        assert "sk-upstream" not in str(got.headers)
        async with web.post(
            ground.url + "/v1/messages", json=requests.MESSAGES, headers=ground.bearer
        ) as response:  # our own token must not be taken for the upstream's
            assert response.status == 401
            assert "X-Goodbot-Token" in (await response.json())["error"]["message"]
        assert len(fake.got) == 1


@pytest.mark.parametrize("path", [*requests.BODIES, "/v1/embeddings", "/v1/messages/count_tokens"])
async def test_nothing_happens_without_a_token(
    ground: Ground, fake: Upstream, web: aiohttp.ClientSession, path: str
) -> None:
    body = requests.BODIES.get(path, requests.MESSAGES)
    for headers in ({}, {"Authorization": "Bearer sk-upstream"}, {"x-api-key": "gb_" + "a" * 43}):
        async with web.post(ground.url + path, json=body, headers=headers) as response:
            assert response.status in (401, 429)
            assert "error" in await response.json()
    page = {**ground.bearer, "Origin": "http://evil.example"}
    async with web.post(ground.url + path, json=body, headers=page) as response:
        assert response.status == 403
    assert fake.got == []


async def test_what_cannot_be_read_is_passed_and_not_kept(
    ground: Ground, fake: Upstream, web: aiohttp.ClientSession
) -> None:
    deep = b'{"model": "m", "messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    headers = {**ground.bearer, "Content-Type": "application/json"}
    async with web.post(ground.url + "/v1/chat/completions", data=deep, headers=headers) as response:
        assert response.status in (200, 500)  # as the upstream says
    assert ground.host.events == []


async def test_an_upstream_leads_nobody_elsewhere(
    tmp_path: Path, web: aiohttp.ClientSession, fake: Upstream
) -> None:
    fake.status = 307
    async with (
        proxied(tmp_path, upstream=fake.url) as ground,
        web.post(
            ground.url + "/v1/chat/completions",
            json=requests.CHAT,
            headers=ground.bearer,
            allow_redirects=False,
        ) as response,
    ):
        assert response.status == 502
        assert "elsewhere" in (await response.json())["error"]["message"]


async def test_no_field_names_another_adapter_on_our_server(
    tmp_path: Path, fake: Upstream, web: aiohttp.ClientSession
) -> None:
    body = {
        **requests.CHAT,
        "model": "somebody-elses",
        "adapters": "/etc",
        "lora_path": "x",
        "lora": [],
        "cache_salt": "s",
        "return_token_ids": False,
        "top_p": 0.9,
    }
    model = Scripted(far=far_side(fake.url, key="srv"))
    async with (
        proxied(tmp_path, model=model) as ground,
        web.post(ground.url + "/v1/chat/completions", json=body, headers=ground.bearer) as response,
    ):
        assert (await response.json())["model"] == "somebody-elses"
    [got] = fake.got
    assert got.json["model"] == "goodbot-v3"
    assert not {"adapters", "lora_path", "lora", "cache_salt"} & set(got.json)
    assert got.headers["Authorization"] == "Bearer srv"
    assert ground.token not in str(got.headers)
