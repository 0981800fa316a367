# SPDX-License-Identifier: Apache-2.0
"""Who is let in, who is not, and what each is told: T08, T17, T19, T29 of the threat list."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from goodbot_connectors.kit.bridge import clients

from tests.connectors.bridge.serving import Served, served


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path) as api:
        yield api


async def test_whoever_has_a_token_is_answered(api: Served) -> None:
    status, said, head = await api.ask(b'{"a": 1}')
    assert (status, said) == (200, {"who": "me", "body": {"a": 1}})
    assert "cache-control: no-store" in head
    assert (await api.ask(b"{}", drop="Authorization", x_api_key=api.token))[0] == 200
    assert (await api.ask(b"{}", x_api_key=api.token))[0] == 200, "one token twice is one token"
    assert (await api.ask(b"{}", Authorization=f"bearer  {api.token}"))[0] == 200
    assert (await api.ask(None, "GET"))[0] == 200
    foreign = {"Authorization": "Bearer sk-somebody-elses", "x_api_key": "sk-another"}
    assert (await api.ask(b"{}", X_Goodbot_Token=api.token, **foreign))[0] == 200
    assert (await api.ask(b"{}", X_Goodbot_Token="sk"))[0] == 401, "then the others do not count"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"drop": "Authorization"}, 401),
        ({"X_Goodbot_Token": ""}, 401),
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer"}, 401),
        ({"Authorization": "Bearer nonsense"}, 401),
        ({"Authorization": "Basic bWU6bWU="}, 401),
        ({"Authorization": "Bearer gb_" + "a" * 43}, 401),
        ({"x_api_key": "gb_" + "b" * 43}, 400),
    ],
)
async def test_nobody_else_is(headers: dict[str, str], status: int, api: Served) -> None:
    found, said, head = await api.ask(b'{"a": 1}', **headers)  # type: ignore[arg-type]
    assert found == status
    assert set(said["error"]) == {"message", "type"}
    assert ("www-authenticate: bearer" in head) is (status == 401)


async def test_a_token_in_the_address_opens_nothing(api: Served) -> None:
    for query in (f"?token={api.token}", f"?api_key={api.token}", f"?access_token={api.token}"):
        assert (await api.ask(None, "GET", f"/v1/echo{query}", drop="Authorization"))[0] == 401


async def test_a_token_that_was_removed_opens_nothing_from_then_on(api: Served, tmp_path: Path) -> None:
    assert (await api.ask())[0] == 200
    clients.remove(tmp_path, "api", "me")
    status, said, _ = await api.ask()
    assert (status, said["error"]["type"]) == (401, "unauthorized")
    assert "goodbot api token list" in said["error"]["message"]


async def test_guessing_has_to_wait_and_a_right_token_does_not(api: Served) -> None:
    wrong = {"Authorization": "Bearer gb_" + "a" * 43}
    assert [(await api.ask(**wrong))[0] for _ in range(10)] == [401] * 10
    status, said, head = await api.ask(**wrong)
    assert (status, said["error"]["type"]) == (429, "too_many_requests")
    assert "retry-after: " in head
    assert (await api.ask())[0] == 200


TYPES = ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data", "application/json"]
ORIGINS = [
    "null",
    "https://evil.example",
    "http://localhost:1",
    "http://127.0.0.1",
    "http://[",
    "x",
    "http://127.0.0.1:{port}/",
    "http://me@127.0.0.1:{port}",
    "http://localhost:{port}",
    "file://",
    "https://127.0.0.1:{port}.evil.example",
    "",
]


async def test_no_page_of_a_strangers_gets_anything_done(api: Served) -> None:
    """T08: origins × content types × with and without what would open."""
    for origin, type_, drop in itertools.product(ORIGINS, TYPES, ("", "Authorization")):
        origin = origin.replace("{port}", str(api.port))
        status, said, _ = await api.ask(b'{"a": 1}', Origin=origin, Content_Type=type_, drop=drop)
        assert (status, said["error"]["type"]) == (403, "forbidden"), (origin, type_, drop)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "Same-Origin", ""])
async def test_what_a_browser_says_of_where_it_comes_from(site: str, api: Served) -> None:
    assert (await api.ask(Sec_Fetch_Site=site))[0] == 403
    assert (await api.ask(Sec_Fetch_Site="same-origin"))[0] == 200
    assert (await api.ask(Sec_Fetch_Site="none"))[0] == 200
    assert (await api.ask(Origin=f"http://127.0.0.1:{api.port}"))[0] == 200


async def test_a_question_before_the_request_is_not_answered(api: Served) -> None:
    """What a browser asks before it sends such a request: no header of ours ever allows it."""
    status, said, head = await api.ask(
        None, "OPTIONS", Origin="https://evil.example", Access_Control_Request_Method="POST"
    )
    assert (status, said["error"]["type"]) == (405, "method_not_allowed")
    assert "allow: get, head, post" in head.lower() or "allow: get" in head
    assert (await api.ask(path="/v1/nothing"))[0] == 404


@pytest.mark.parametrize(
    ("type_", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data", 415),
        ("application/jsonx", 415),
        ("application/json, text/plain", 415),
        ("", 415),
    ],
)
async def test_json_alone_is_taken(type_: str, status: int, api: Served) -> None:
    assert (await api.ask(Content_Type=type_))[0] == status


async def test_a_compressed_body_is_undone_within_the_same_bound(api: Served) -> None:
    packed = gzip.compress(json.dumps({"a": "x" * 1000}).encode())
    assert (await api.ask(packed, Content_Encoding="gzip"))[0] == 200
    assert (await api.ask(packed, Content_Encoding="x-gzip"))[0] == 200
    assert (await api.ask(b"\x1f\x8b", Content_Encoding="gzip"))[0] == 400
    assert (await api.ask(packed, Content_Encoding="gzip, gzip"))[0] == 415
    assert (await api.ask(packed, Content_Encoding="br"))[0] == 415
    large = gzip.compress(json.dumps({"a": "x" * (1 << 20)}).encode())
    assert (await api.ask(large, Content_Encoding="gzip"))[0] == 413


async def test_how_large_a_body_may_be(api: Served) -> None:
    def of(size: int) -> bytes:
        return json.dumps({"a": "x" * (size - 9)}).encode()

    assert len(of(1 << 20)) == 1 << 20
    assert (await api.ask(of(1 << 20)))[0] == 200
    status, said, _ = await api.ask(of((1 << 20) + 1))
    assert (status, said["error"]["type"]) == (413, "too_large")
    assert (await api.ask(of(4 << 20), path="/v1/big"))[0] == 200
    assert (await api.ask(of((4 << 20) + 1), path="/v1/big"))[0] == 413


@pytest.mark.parametrize("more", [0, 1])
async def test_nor_does_one_that_does_not_say_its_length(more: int, api: Served) -> None:
    data = json.dumps({"a": "x" * ((1 << 20) - 9 + more)}).encode()
    chunk = f"{len(data):x}\r\n".encode() + data + b"\r\n0\r\n\r\n"
    status, _, _ = await api.ask(chunk, drop="Content-Length", Transfer_Encoding="chunked")
    assert status == (413 if more else 200)


async def test_a_length_and_chunks_at_once_are_refused(api: Served) -> None:
    assert (await api.ask(b"0\r\n\r\n", Transfer_Encoding="chunked"))[0] == 400


@pytest.mark.parametrize(
    ("fail", "status", "type_"),
    [
        ("usage", 400, "invalid_request"),
        ("store", 503, "unavailable"),
        ("full", 507, "no_space"),
        ("retry", 503, "unavailable"),
        ("fatal", 500, "internal"),
        ("no", 422, "unprocessable"),
    ],
)
async def test_every_failure_is_a_sentence(fail: str, status: int, type_: str, api: Served) -> None:
    found, said, head = await api.ask(json.dumps({"fail": fail}).encode())
    assert (found, said["error"]["type"]) == (status, type_)
    assert said["error"]["message"].endswith((".", "?"))
    assert ("retry-after: 3" in head) is (fail == "retry")


async def test_a_mistake_of_ours_shows_nothing(api: Served, caplog: pytest.LogCaptureFixture) -> None:
    status, said, head = await api.ask(b'{"fail": "bug"}')
    assert status == 500
    assert "canary" not in str(said) + head
    assert "canary" in caplog.text
