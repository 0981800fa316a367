# SPDX-License-Identifier: Apache-2.0
"""T26: a model server is on this machine, or on a host that the owner lists, and nowhere else."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from goodbot.api import address
from goodbot.base.errors import ConfigError, ServerError
from goodbot.config import parse
from goodbot.inference.servers import choice
from goodbot.inference.servers.plugin import SPECS


@pytest.mark.parametrize(
    ("url", "whole"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000"),
        ("http://127.8.9.10", "http://127.8.9.10"),
        ("HTTP://LOCALHOST:8000", "http://localhost:8000"),
        ("http://localhost.:8000", "http://localhost:8000"),
        ("http://127.0.0.1.:8000", "http://127.0.0.1:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("http://[0:0:0:0:0:0:0:1]:8000", "http://[::1]:8000"),
        ("https://127.0.0.1/openai/v1", "https://127.0.0.1/openai"),
        ("http://127.0.0.1:8000/v1/chat/completions", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/v1/chat/completions/", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000//v1/models", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/v1/responses", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/chat/completions", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:11434/api/chat", "http://127.0.0.1:11434"),
        ("http://127.0.0.1:11434/api/generate", "http://127.0.0.1:11434"),
        ("http://127.0.0.1/openai/v1/chat/completions", "http://127.0.0.1/openai"),
        ("http://127.0.0.1/my-models", "http://127.0.0.1/my-models"),
        ("http://127.0.0.1/models", "http://127.0.0.1/models"),
        ("http://127.0.0.1/ai/responses", "http://127.0.0.1/ai/responses"),
        ("http://127.0.0.1/api", "http://127.0.0.1/api"),
    ],
)
def test_this_machine_is_taken_in_one_spelling(url: str, whole: str) -> None:
    assert address.checked(url) == whole


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1@evil.example",
        "http://127.0.0.1:8000@evil.example/",
        "http://key@127.0.0.1:8000",
        "http://evil.example#@127.0.0.1",
        "http://127.0.0.1#evil",
        "http://127.0.0.1?x=1",
        "http://evil.example\\@127.0.0.1",
        "http://127.0.0.1\\.evil.example",
        "http://127.0.0.1\t.evil.example",
        " http://127.0.0.1",
        "http://127.0.0.1\n",
        "http://127.0.0.1%00.evil.example",
        "http://127.0.0.1.evil.example",
        "http://localhost.evil.example",
        "http://evil.example",
        "http://169.254.169.254",
        "http://[fe80::1]",
        "http://[fe80::1%25eth0]",
        "http://[::ffff:169.254.169.254]",
        "http://10.0.0.1",
        "http://0.0.0.0:8000",
        "http://[::]:8000",
        "http://2130706433",
        "http://2852039166",
        "http://0x7f000001",
        "http://0177.0.0.1",
        "http://127.1",
        "http://127.0.0.1..",
        "http://①②⑦.0.0.1",
        "http://ⓛocalhost",
        "http://",
        "http:///v1",
        "http://:8000",
        "http://127.0.0.1:0",
        "http://127.0.0.1:",
        "http://127.0.0.1:65536",
        "http://127.0.0.1:80:80",
        "http://127.0.0.1:8_0",
        "http://127.0.0.1/../secret",
        "http://127.0.0.1/%2e%2e/secret",
        "http://..localhost",
        "file:///etc/passwd",
        "ftp://127.0.0.1",
        "//127.0.0.1",
        "127.0.0.1:8000",
        "javascript:alert(1)",
        "http://" + "a" * 600,
        "",
    ],
)
def test_everything_else_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"must|has|leads"):
        address.checked(url)


@pytest.mark.parametrize("listed", ["gpu.lan", "GPU.LAN", "gpu.lan."])
def test_a_host_that_the_owner_lists_is_taken(listed: str) -> None:
    assert address.checked("http://Gpu.Lan:8000", [listed]) == "http://gpu.lan:8000"
    with pytest.raises(ValueError, match="hosts"):
        address.checked("http://xgpu.lan:8000", [listed])


def test_an_address_that_the_owner_lists_is_taken() -> None:
    assert address.checked("http://10.0.0.7:8000", ["10.0.0.7"]) == "http://10.0.0.7:8000"
    assert address.checked("http://[fd00::2]", ["fd00:0::2"]) == "http://[fd00::2]"
    assert address.checked("http://[fd00::2]", ["[fd00::2]"]) == "http://[fd00::2]"


def test_the_config_says_where_the_address_is_wrong(tmp_path: Any) -> None:
    source = '[serving]\nserver = "vllm"\nurl = "http://gpu.lan:8000"\n'
    specs = {spec.name: spec for spec in SPECS}
    config = parse(source, home=tmp_path, path=tmp_path / "config.toml")
    with pytest.raises(ConfigError, match=r'config.toml:3: url leads to gpu.lan.*hosts = \["gpu.lan"\]'):
        choice.choose(config, specs)
    config = parse(source + 'hosts = ["gpu.lan"]\n', home=tmp_path)
    assert choice.url_of(config, choice.choose(config, specs)) == "http://gpu.lan:8000"


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Names, and what a resolver says of them."""
    known: dict[str, list[str]] = {}

    async def getaddrinfo(_: object, host: str, *__: object, **___: object) -> list[Any]:
        if host not in known:
            raise socket.gaierror(-2, "Name or service not known")
        families = [socket.AF_INET6 if ":" in ip else socket.AF_INET for ip in known[host]]
        return [(f, 0, 0, "", (ip, 0)) for f, ip in zip(families, known[host], strict=True)]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)
    return known


async def test_localhost_is_this_machine_whatever_a_resolver_says(resolver: dict[str, list[str]]) -> None:
    resolver["localhost"] = ["93.184.216.34", "127.0.0.1", "::1"]
    assert [ip for _, ip in await address.pinned("http://localhost:1")] == ["127.0.0.1", "::1"]
    resolver["localhost"] = ["93.184.216.34"]
    with pytest.raises(ServerError, match="localhost"):
        await address.pinned("http://localhost:1")


async def test_a_listed_name_leads_nowhere_that_no_server_is(resolver: dict[str, list[str]]) -> None:
    resolver["gpu.lan"] = [
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "fe80::1%eth0",
        "0.0.0.0",
        "224.0.0.1",
    ]
    with pytest.raises(ServerError, match=r"gpu\.lan leads to an address"):
        await address.pinned("http://gpu.lan:1")
    resolver["gpu.lan"].append("10.0.0.7")
    assert await address.pinned("http://gpu.lan:1") == [(socket.AF_INET, "10.0.0.7")]
    with pytest.raises(ServerError, match=r"named other\.lan"):
        await address.pinned("http://other.lan:1")
