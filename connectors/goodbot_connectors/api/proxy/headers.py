# SPDX-License-Identifier: Apache-2.0
"""Which headers go on to an upstream, and which of its answer go back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from goodbot.config.secrets import Secret
from multidict import CIMultiDict

from goodbot_connectors.api.proxy.config import ANTHROPIC

_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "trailers",
        "transfer-encoding",
        "upgrade",
        "expect",
    }
)
"""Those of one connection (RFC 9110, section 7.6.1)."""
_CREDENTIALS = frozenset({"authorization", "x-api-key"})
_OURS = frozenset(
    {
        "host",
        "content-length",
        "accept-encoding",
        "cookie",
        "origin",
        "referer",
        "forwarded",
        "via",
        "api-key",
        "x-turn-type",
        "x-session-id",
        "x-session-done",
    }
)
_OUR_BEGINNINGS = ("x-goodbot-", "x-forwarded-", "sec-", "proxy-")
_THEIRS = frozenset({"set-cookie", "server", "date", "alt-svc", "strict-transport-security", "via"})
_THEIR_BEGINNINGS = ("access-control-", "x-goodbot-", "proxy-")


def onwards(
    headers: Iterable[tuple[str, str]], *, dialect: str, key: Secret, passed: bool, token: str
) -> CIMultiDict[str]:
    """What an upstream gets. `passed`: the program's own credentials; else `key`, if there is one.

    Nothing that holds our `token` goes anywhere, under whatever name it came.
    """
    found: CIMultiDict[str] = CIMultiDict()
    given = list(headers)
    dropped = _named(value for name, value in given if name.lower() == "connection")
    for name, value in given:
        low = name.lower()
        if low in _HOP or low in _OURS or low in dropped or low.startswith(_OUR_BEGINNINGS):
            continue
        if (low in _CREDENTIALS and not passed) or (token and token in value):
            continue
        found.add(name, value)
    if not passed and key:
        if dialect == ANTHROPIC:
            found["x-api-key"] = key.reveal()
        else:
            found["Authorization"] = f"Bearer {key.reveal()}"
    found["Accept-Encoding"] = "identity"  # so that what goes by can be read
    return found


def back(headers: Mapping[str, str], items: Iterable[tuple[str, str]]) -> CIMultiDict[str]:
    """What the program gets of an upstream's `headers`, given as `items` too: some come twice."""
    found: CIMultiDict[str] = CIMultiDict()
    dropped = _named([headers.get("Connection", "")])
    for name, value in items:
        low = name.lower()
        if low in _HOP or low in _THEIRS or low in dropped or low.startswith(_THEIR_BEGINNINGS):
            continue
        found.add(name, value)
    return found


def _named(values: Iterable[str]) -> set[str]:
    """The headers that `Connection` says are for one connection only."""
    return {name.strip().lower() for value in values for name in value.split(",")}
