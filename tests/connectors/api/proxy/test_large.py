# SPDX-License-Identifier: Apache-2.0
"""Requests that are compressed or large, or say another type: passed on as they came, read within bounds."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from goodbot_connectors.api.proxy.pictures import Pictures
from goodbot_connectors.kit.bridge import encoded

from tests.connectors.api.proxy import requests
from tests.connectors.api.proxy.ground import Ground, Scripted, proxied
from tests.connectors.api.proxy.upstream import TEXT, Upstream
from tests.support import within

JSON = {"Content-Type": "application/json"}
PATHS = list(requests.BODIES)


def zstd(data: bytes) -> bytes:
    if encoded.zstd is None:
        pytest.skip("zstd needs Python 3.14 or the extra `zstd`")
    return encoded.zstd.compress(data)


def packed(data: bytes) -> bytes:
    """The same bytes at any time: gzip says when it was made."""
    return gzip.compress(data, mtime=0)


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": packed,
    "x-gzip": packed,
    "deflate": zlib.compress,
    "zstd": zstd,
    "identity": bytes,
}


async def sent(
    web: aiohttp.ClientSession, ground: Ground, path: str, data: Any, **headers: str
) -> tuple[int, dict[str, Any]]:
    """Status and JSON; `data` goes as it is, with these headers."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = io.BytesIO(data) if len(data) > 1 << 20 else data
    async with web.post(ground.url + path, data=body, headers={**ground.bearer, **JSON, **named}) as response:
        return response.status, json.loads(await response.read())


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", PACKED)
async def test_our_own_model_reads_what_is_compressed(
    tmp_path: Path, web: aiohttp.ClientSession, path: str, name: str
) -> None:
    model = Scripted()
    async with proxied(tmp_path, model=model) as ground:
        body = PACKED[name](json.dumps(requests.BODIES[path]).encode())
        status, _ = await sent(web, ground, path, body, Content_Encoding=name)
        assert status == 200
        [plain], [kept] = model.asked[-1].messages[-1:], await ground.captured()
        assert plain == kept.messages[-1]
        assert plain["role"] == "user"
        assert plain["content"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", PACKED)
async def test_an_upstream_gets_it_as_it_came_and_it_is_kept(
    ground: Ground, fake: Upstream, web: aiohttp.ClientSession, path: str, name: str
) -> None:
    plain = json.dumps(requests.BODIES[path]).encode()
    status, _ = await sent(web, ground, path, PACKED[name](plain), Content_Encoding=name)
    assert status == 200
    [got] = fake.got
    assert (got.body, got.headers["Content-Encoding"]) == (PACKED[name](plain), name)
    [kept] = await ground.captured()
    assert (kept.response, kept.messages[-1]["role"]) == (TEXT, "user")


@pytest.mark.parametrize("name", ["br", "gzip, gzip", "compress"])
async def test_what_cannot_be_undone_is_passed_on_and_told_for_our_own(
    ground: Ground,
    fake: Upstream,
    web: aiohttp.ClientSession,
    tmp_path: Path,
    name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for _ in range(2):
        status, _ = await sent(web, ground, "/v1/chat/completions", b"\x00packed", Content_Encoding=name)
        assert status == 200
    assert (fake.got[0].body, fake.got[0].headers["Content-Encoding"]) == (b"\x00packed", name)
    assert ground.host.events == []
    await sent(web, ground, "/v1/embeddings", b"\x00packed", Content_Encoding=name)
    for n in range(3):  # each name is a stranger's word
        await sent(web, ground, "/v1/responses", b"\x00packed", Content_Encoding=f"x{n}")
    assert caplog.text.count("compressed requests are passed on, and not kept") == 1
    async with proxied(tmp_path / "own", model=Scripted()) as own:
        for path in PATHS:
            status, said = await sent(web, own, path, b"\x00packed", Content_Encoding=name)
            assert status == 415
            assert "The body" in said["error"]["message"] or "the body" in said["error"]["message"]


async def test_another_type_is_the_upstream_s_affair(
    ground: Ground, fake: Upstream, web: aiohttp.ClientSession, tmp_path: Path
) -> None:
    data = json.dumps(requests.CHAT).encode()
    for type_ in ("text/plain", "application/json; charset=utf-8", "application/vnd.x+json"):
        status, _ = await sent(web, ground, "/v1/chat/completions", data, Content_Type=type_)
        assert (status, fake.got[-1].headers["Content-Type"]) == (200, type_)
        assert fake.got[-1].body == data
    assert len(await ground.captured(3)) == 3
    async with proxied(tmp_path / "own", model=Scripted()) as own:
        status, said = await sent(web, own, "/v1/chat/completions", data, Content_Type="text/plain")
        assert status == 415
        assert "Content-Type: application/json" in said["error"]["message"]


@pytest.mark.parametrize("name", ["gzip", "deflate", "zstd"])
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_comes_compressed_is_kept(
    ground: Ground, fake: Upstream, web: aiohttp.ClientSession, name: str, stream: bool
) -> None:
    fake.packs = (name, PACKED[name])  # though nobody asked for it
    body = {**requests.CHAT, "stream": stream}
    async with web.post(ground.url + "/v1/chat/completions", json=body, headers=ground.bearer) as response:
        data = await response.read()
        assert response.headers["Content-Encoding"] == name
        assert response.headers["X-Goodbot-Turn"]
    assert data == fake.sent[0]
    [kept] = await ground.captured()
    assert kept.response == TEXT


@pytest.mark.parametrize("path", PATHS)
async def test_sixty_four_mebibytes_go_on(
    ground: Ground, fake: Upstream, web: aiohttp.ClientSession, path: str
) -> None:
    def of(size: int) -> bytes:
        frame = json.dumps({**requests.BODIES[path], "user": ""}).encode()
        return frame[:-2] + b"a" * (size - len(frame)) + frame[-2:]

    status, _ = await sent(web, ground, path, of(64 << 20))
    assert (status, len(fake.got[0].body)) == (200, 64 << 20)
    assert (await ground.captured())[0].response == TEXT

    async def chunked(data: bytes) -> AsyncIterator[bytes]:
        for at in range(0, len(data), 1 << 20):
            yield data[at : at + (1 << 20)]

    large = of((64 << 20) + 1)
    for body in (io.BytesIO(large), chunked(large)):
        headers = {**ground.bearer, **JSON}
        async with web.post(ground.url + path, data=body, headers=headers) as response:
            said = json.loads(await response.read())
            assert response.status == 413
        assert "at most 64 MiB" in said["error"]["message"]
        kind = "request_too_large" if path == "/v1/messages" else "invalid_request_error"
        assert said["error"]["type"] == kind
    assert len(fake.got) == 1


PIXELS = "iVBORw0KGgo" + "A/+b" * 3_000_000
"""12 MB of a picture."""
DATA = f"data:image/png;base64,{PIXELS}"
WORDS = "What colour is it?"
WITH_PICTURE: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": DATA, "detail": "low"}},
                    {"type": "text", "text": WORDS},
                ],
            }
        ]
    },
    "/v1/responses": {
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_image", "image_url": DATA},
                    {"type": "input_text", "text": WORDS},
                    {"type": "input_file", "filename": "a.pdf", "file_data": DATA},
                ],
            }
        ]
    },
    "/v1/messages": {
        "max_tokens": 20,
        "messages": [
            {
                "role": "user",
                "content": [
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": PIXELS},
                    },
                    {"type": "text", "text": WORDS},
                ],
            }
        ],
    },
}


@pytest.mark.parametrize("path", WITH_PICTURE)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
async def test_our_own_model_leaves_pictures_out_while_it_reads(
    tmp_path: Path, web: aiohttp.ClientSession, path: str, packed: bool
) -> None:
    model = Scripted()
    data = json.dumps({"model": "m", **WITH_PICTURE[path]}).encode()
    if packed:
        data = gzip.compress(data, 1)
    more = {"Content_Encoding": "gzip"} if packed else {}
    async with proxied(tmp_path, model=model) as ground:
        status, said = await sent(web, ground, path, data, **more)
        if packed:  # twelve megabytes of four signs are none that a camera makes
            assert (status, "times its size" in said["error"]["message"]) == (413, True)
            return
        assert status == 200
        assert WORDS in str(model.asked[-1].messages[-1]["content"])
        assert "A/+b" not in str(model.asked[-1].messages)


async def test_what_is_no_picture_stays_bounded(tmp_path: Path, web: aiohttp.ClientSession) -> None:
    async with proxied(tmp_path, model=Scripted()) as ground:
        long = json.dumps({"messages": [{"role": "user", "content": "grass " * 1_500_000}]}).encode()
        status, said = await sent(web, ground, "/v1/chat/completions", long)
        assert status == 413
        assert "at most 8 MiB without pictures" in said["error"]["message"]


TOOLS = {f"p{number}": {"type": "string"} for number in range(5000)}


def nested(depth: int) -> dict[str, Any]:
    return {"type": "string"} if not depth else {"type": "object", "properties": {"a": nested(depth - 1)}}


@pytest.mark.parametrize("path", requests.TOOLS)
async def test_schemas_of_tools_may_be_large_and_deep(
    tmp_path: Path, web: aiohttp.ClientSession, path: str
) -> None:
    model = Scripted()
    async with proxied(tmp_path, model=model) as ground:
        for schema in ({"type": "object", "properties": TOOLS}, nested(50)):
            body = json.loads(json.dumps(requests.TOOLS[path]))
            tool = body["tools"][0]
            name = "input_schema" if path == "/v1/messages" else "parameters"
            (tool["function"] if path == "/v1/chat/completions" else tool)[name] = schema
            status, said = await sent(web, ground, path, json.dumps(body).encode())
            assert status == 200, said
            asked = model.asked[-1].messages[0]["tools"]
            assert asked[0]["function"]["parameters"] == schema


LONG = "QUJD" * 2000
KEPT: list[tuple[str, str]] = [
    (f'{{"data": "{LONG}"}}', '{"data": ""}'),
    (f'{{"data":"{LONG}==", "b": 1}}', '{"data":"", "b": 1}'),
    ('{"url": "data:image/png;base64,QUJD"}', '{"url": "data:"}'),
    (r'{"image_url": "data:image\/png;base64,\/\/\"x\\"}', '{"image_url": "data:"}'),
    ('{"file_data":\n"data:x"}', '{"file_data":\n"data:"}'),
    (r'{"text": "say \"data\": \"' + LONG + r'\""}', ""),
    (r'{"text": "\\\"url\": \"data:x\""}', ""),
    (f'{{"text": "{LONG}"}}', ""),
    ('{"data": "QUJD"}', ""),
    ('{"url": "https://x/data:y"}', ""),
    (f'{{"data": "words have gaps {LONG}"}}', ""),
    ('{"data": [1, "data:"]}', ""),
    (f'{{"data": "{LONG}", "data": "{LONG}"}}', '{"data": "", "data": ""}'),
]


def test_many_pictures_in_one_piece_are_left_out_in_time() -> None:
    data = b'{"url": "data:image/png;base64,QUJD"},' * 100_000
    with within(5):
        assert len(Pictures().feed(data)) < len(data)


@pytest.mark.parametrize(("text", "left"), KEPT)
@pytest.mark.parametrize("size", [1, 3, 4096, 1 << 20])
@pytest.mark.parametrize("before", [0, 5, 9000])
def test_what_is_left_out(text: str, left: str, size: int, before: int) -> None:
    pad = " " * before
    data = f"{pad}{text}".encode()
    pictures = Pictures()
    found = b"".join(pictures.feed(data[at : at + size]) for at in range(0, len(data), size))
    assert (found + pictures.end()).decode() == pad + (left or text)
