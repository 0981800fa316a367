# SPDX-License-Identifier: Apache-2.0
"""Which proxy an address is reached through."""

from __future__ import annotations

import pytest
from goodbot.base.errors import FatalConnectorError
from goodbot.base.proxies import proxy

HTTPS = {"HTTPS_PROXY": "http://one:1"}


@pytest.mark.parametrize(
    ("environ", "address", "found"),
    [
        ({}, "https://slack.com/api/", None),
        (HTTPS, "https://slack.com/api/", ("http://one:1", "HTTPS_PROXY")),
        (HTTPS, "wss://slack.com/", ("http://one:1", "HTTPS_PROXY")),
        (HTTPS, "http://slack.com/", None),
        ({"HTTP_PROXY": "two:2"}, "ws://slack.com/", ("http://two:2", "HTTP_PROXY")),
        ({**HTTPS, "https_proxy": "http://low:1"}, "https://a.b", ("http://low:1", "https_proxy")),
        ({**HTTPS, "ALL_PROXY": "socks5://x:1"}, "https://a.b", ("http://one:1", "HTTPS_PROXY")),
        ({"all_proxy": "http://all:1"}, "https://a.b", ("http://all:1", "all_proxy")),
        ({"HTTPS_PROXY": " "}, "https://a.b", None),
    ],
)
def test_the_variable_that_fits_decides(
    environ: dict[str, str], address: str, found: tuple[str, str] | None
) -> None:
    assert proxy(address, environ) == found


@pytest.mark.parametrize(
    "address",
    [
        "https://localhost:1/",
        "http://127.0.0.1:1",
        "wss://127.9.9.9",
        "https://[::1]:1/",
        "https://[::ffff:127.0.0.1]/",
        "https://a.localhost",
    ],
)
def test_this_machine_is_never_reached_through_one(address: str) -> None:
    everything = {"HTTPS_PROXY": "http://p:1", "HTTP_PROXY": "http://p:1", "ALL_PROXY": "http://p:1"}
    assert proxy(address, everything) is None


@pytest.mark.parametrize(
    ("named", "address", "direct"),
    [
        ("*", "https://slack.com", True),
        ("slack.com", "https://slack.com", True),
        ("slack.com", "https://wss-primary.slack.com", True),
        (".slack.com", "https://a.slack.com", True),
        ("*.slack.com", "https://a.slack.com", True),
        ("slack.com", "https://badslack.com", False),
        ("SLACK.com:443", "https://slack.com", True),
        ("slack.com:8443", "https://slack.com", False),
        ("slack.com:8443", "https://slack.com:8443", True),
        ("a.b,  slack.com", "https://slack.com", True),
        ("a.b c.d", "https://slack.com", False),
        ("10.0.0.0/8", "https://10.1.2.3", True),
        ("10.0.0.0/8", "https://11.1.2.3", False),
        ("10.1.2.3", "https://10.1.2.3:99", True),
        ("[fd00::1]", "https://[fd00::1]/", True),
        ("fd00::/8", "https://[fd00::1]/", True),
        ("", "https://slack.com", False),
        ("/", "https://10.1.2.3", False),
    ],
)
@pytest.mark.parametrize("variable", ["NO_PROXY", "no_proxy"])
def test_no_proxy_names_hosts_domains_addresses_and_networks(
    variable: str, named: str, address: str, direct: bool
) -> None:
    assert (proxy(address, {**HTTPS, variable: named}) is None) == direct


def test_credentials_are_used_and_not_shown() -> None:
    found = proxy("https://slack.com", {"HTTPS_PROXY": "http://ada:hu%40sh@one:1"})
    assert found is not None
    assert found.url == "http://ada:hu%40sh@one:1"
    assert found.shown == "http://***@one:1"


@pytest.mark.parametrize(
    "value", ["socks5://ada:hush@x:1", "socks5h://x:1", "SOCKS4://x:1", "ftp://x:1", "http://x:hush"]
)
def test_what_is_no_http_proxy_is_told_in_a_sentence(value: str) -> None:
    with pytest.raises(FatalConnectorError, match=r"HTTPS_PROXY to http://HOST:PORT.*NO_PROXY") as told:
        proxy("https://slack.com", {"ALL_PROXY": value})
    assert "hush" not in str(told.value)
    assert ("SOCKS" in str(told.value)) == value.casefold().startswith("socks")
    assert proxy("https://slack.com", {"ALL_PROXY": value, "NO_PROXY": "slack.com"}) is None
