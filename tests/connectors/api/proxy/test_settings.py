# SPDX-License-Identifier: Apache-2.0
"""`[connectors.api]`: where an upstream may be, and what it speaks."""

from __future__ import annotations

import pytest
from goodbot_connectors.api.proxy.config import ANTHROPIC, ANTHROPIC_KEY, KEY, OPENAI, OWN, ProxySettings
from goodbot_connectors.api.proxy.far import base


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://api.openai.com/v1", "upstream_hosts"),
        ("http://169.254.169.254/", "upstream_hosts"),
        ("http://127.0.0.1@evil.example/", "name or a key"),
        ("file:///etc/passwd", "http"),
        ("http://127.1:80", "no host"),
        ("", "address"),
        ("gopher://x", "http"),
    ],
)
def test_other_machines_only_where_the_owner_lists_them(url: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as error:
        ProxySettings(upstream=url)
    assert "[serving]" not in str(error.value)
    with pytest.raises(ValueError, match=r"upstream_anthropic|http"):
        ProxySettings(upstream_anthropic=url or "x")


def test_upstreams_by_dialect() -> None:
    hosts = ("api.openai.com", "api.anthropic.com")
    assert ProxySettings().upstream_for(OPENAI) == (OWN, "")
    assert ProxySettings().upstream_for(ANTHROPIC) == (OWN, "")
    cloud = ProxySettings(upstream="https://api.openai.com/v1", upstream_hosts=hosts)
    assert cloud.upstream_for(OPENAI) == (cloud.upstream, KEY)
    assert cloud.upstream_for(ANTHROPIC) == ("", "")
    other = ProxySettings(upstream="https://api.anthropic.com", upstream_hosts=hosts)
    assert other.upstream_for(ANTHROPIC) == (other.upstream, KEY)
    assert other.upstream_for(OPENAI) == ("", "")
    two = ProxySettings(
        upstream="https://api.openai.com/v1",
        upstream_anthropic="https://api.anthropic.com",
        upstream_hosts=hosts,
    )
    assert two.upstream_for(ANTHROPIC) == ("https://api.anthropic.com", ANTHROPIC_KEY)
    both = ProxySettings(upstream="http://127.0.0.1:4000", upstream_dialect="both")
    assert both.upstream_for(ANTHROPIC) == both.upstream_for(OPENAI)
    with pytest.raises(ValueError, match="upstream_dialect"):
        ProxySettings(upstream_dialect="cohere")
    with pytest.raises(ValueError, match="session_seconds"):
        ProxySettings(session_seconds=0)


@pytest.mark.parametrize(
    ("url", "dialect", "expected"),
    [
        ("http://127.0.0.1:8000", OPENAI, "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/v1/", OPENAI, "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/backend-api/codex", OPENAI, "http://127.0.0.1:8000/backend-api/codex"),
        ("http://127.0.0.1:8000/api/v1", OPENAI, "http://127.0.0.1:8000/api/v1"),
        ("http://127.0.0.1:8000/anthropic", ANTHROPIC, "http://127.0.0.1:8000/anthropic/v1"),
        ("http://127.0.0.1:8000/v1", ANTHROPIC, "http://127.0.0.1:8000/v1"),
    ],
)
def test_an_address_is_what_clients_call_their_base_url(url: str, dialect: str, expected: str) -> None:
    assert base(url, (), dialect)[1] == expected
