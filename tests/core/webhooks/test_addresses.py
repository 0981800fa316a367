# SPDX-License-Identifier: Apache-2.0
"""Nobody gets a request into one's own network by a webhook, however the address is written."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from goodbot.base.addresses import is_here, may_reach
from goodbot.base.errors import ConfigError
from goodbot.base.outward import UndeliveredError
from goodbot.base.proxies import VARIABLES
from goodbot.config.toml import Where, section
from goodbot.features.webhooks.plugin import Receiver, WebhooksSettings
from goodbot.features.webhooks.sending import post

from tests.core.webhooks.receiving import Got, receiver

CLOUD = "169.254.169.254"
CLOUDS = ("100.100.100.200", "fd00:ec2::254", "fd20:ce::254", "168.63.129.16", "::ffff:100.100.100.200")
PRIVATE = ("127.0.0.1", "127.9.9.9", "10.1.2.3", "172.31.0.1", "192.168.1.1", "100.64.0.1", "::1", "fd00::1")
NEVER = (
    *CLOUDS,
    *(CLOUD, "0.0.0.0", "255.255.255.255", "224.0.0.1", "240.0.0.1", "192.0.2.1", "fe80::1", "fe80::1%eth0"),
    *("::", "ff02::1", "fec0::1", "2001:db8::1", f"::ffff:{CLOUD}", "64:ff9b::a9fe:a9fe", "::7f00:1"),
    *(
        "2002:7f00:1::",
        "2001:0:7f00:1::",
        "64:ff9b:1::7f00:1",
        "2130706433",
        "127.1",
        "0x7f.1",
        "localhost",
        "",
    ),
)
PUBLIC = ("8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808")


def test_what_is_this_machine() -> None:
    for host in ("localhost", "127.0.0.1", "127.9.9.9", "::1"):
        assert is_here(host), host
    for host in ("", "localhost.example", "0.0.0.0", "127.1", "10.1.2.3", "::ffff:8.8.8.8", "[::1]"):
        assert not is_here(host), host


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("local", [False, True])
def test_which_addresses_may_be_reached(local: bool) -> None:
    assert [one for one in PUBLIC if not may_reach(one, local=local)] == []
    assert [one for one in NEVER if may_reach(one, local=local)] == []
    assert {may_reach(one, local=local) for one in PRIVATE} == {local}
    assert may_reach("::ffff:127.0.0.1", local=local) == local
    assert may_reach("64:ff9b::7f00:1", local=local) == local


@pytest.mark.parametrize("address", ["127.0.0.1", CLOUD, "::1", "::ffff:7f00:1", "10.0.0.8"])
async def test_a_name_that_leads_inside_gets_no_connection(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was answered before: what counts is the address that is connected to."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    asked: list[Any] = []

    def resolve(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        asked.append(host)
        tail = (0, 0) if ":" in address else ()
        return [(family, socket.SOCK_STREAM, 6, "", (address, port, *tail))]

    async with receiver() as got:
        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        with pytest.raises(UndeliveredError, match="no address that I may send to"):
            await post(Receiver(url=f"https://hooks.example:{got.port}/"), "id", b"{}", "t=1,v1=0")
        assert asked == ["hooks.example"]
        assert got.bodies == []


async def test_behind_a_proxy_a_name_that_leads_inside_is_refused_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (CLOUD, 443))]
    async with receiver() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")

        def resolve(*_: Any, **__: Any) -> list[Any]:
            return found

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        with pytest.raises(UndeliveredError, match=CLOUD):
            await post(Receiver(url="https://hooks.example/"), "id", b"{}", "t=1,v1=0")
        assert proxy.headers == []


@pytest.mark.parametrize("local", [False, True])
async def test_behind_a_proxy_a_name_that_only_it_knows_is_for_ones_own_network_alone(
    local: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    scheme = "http" if local else "https"
    to = Receiver(url=f"{scheme}://hooks.example/", local=local)
    async with receiver() as proxy:
        monkeypatch.setenv(f"{scheme.upper()}_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setattr(socket, "getaddrinfo", unknown)
        if local:
            await post(to, "id", b"{}", "t=1,v1=0")
        else:
            with pytest.raises(UndeliveredError, match=r"does not know hooks\.example"):
                await post(to, "id", b"{}", "t=1,v1=0")
        assert len(proxy.headers) == local


async def test_no_redirect_is_followed() -> None:
    async with receiver(got=Got(0, answers=[302, 307])) as got:
        for status in (302, 307):
            with pytest.raises(UndeliveredError, match=f"answers {status} and sends me elsewhere"):
                await post(Receiver(url=got.url, local=True), "id", b"{}", "t=1,v1=0")
        assert len(got.bodies) == 2


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "write it as https://HOST/PATH"),
        ({"url": "ftp://a.example"}, "write it as https://HOST/PATH"),
        ({"url": "https://[::1"}, "write it as https://HOST/PATH"),
        ({"url": "https://a.example:99999"}, "write it as https://HOST/PATH"),
        ({"url": "http://a.example"}, "set local = true"),
        ({"url": "https://me:pass@a.example"}, "take it out"),
        *(
            ({"url": f"https://{host}/"}, "set local = true")
            for host in ("127.0.0.1", "[::1]", "2130706433", "0x7f.1", "127.1", "017700000001", "10.0.0.1")
        ),
        ({"url": f"http://{CLOUD}/", "local": True}, "no request goes there"),
        ({"url": "https://a.example", "events": []}, "name some of"),
        ({"url": "https://a.example", "events": ["ratings"]}, '"rating"'),
        ({"url": "https://a.example", "secret": "x"}, "unknown key 'secret'"),
    ],
)
def test_a_wrong_section_is_told_in_a_sentence_with_its_line(table: dict[str, Any], said: str) -> None:
    source = "[features.webhooks.to.crm]\n" + "".join(f"{name} = 0\n" for name in table)
    where = Where(Path("config.toml"), source, "features.webhooks")
    with pytest.raises(ConfigError) as raised:
        section(WebhooksSettings, {"to": {"crm": table}}, where)
    assert said in str(raised.value)
    assert not table or str(raised.value).startswith("config.toml:")


@pytest.mark.parametrize(
    ("to", "said"),
    [({"my hook": {"url": "https://a.example"}}, "name"), ({"crm": "https://a.example"}, "section")],
)
def test_a_wrong_name_or_no_section_at_all_too(to: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        section(WebhooksSettings, {"to": to}, Where(None, "", "features.webhooks"))
