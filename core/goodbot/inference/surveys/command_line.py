# SPDX-License-Identifier: Apache-2.0
"""What a line to start a server again is made of; names come from the server, and may be anything."""

from __future__ import annotations

from goodbot.api.survey import FoundServer

_RANKS = (8, 16, 32, 64, 128, 256)
"""That vLLM can be told; the next one up is taken."""


def rank(least: int) -> int:
    """For the servers that want it told when they start."""
    return next((one for one in _RANKS if one >= least), _RANKS[-1])


def model(found: FoundServer) -> str:
    """Where the base model's weights are."""
    base = found.base
    return _plain(base.root or base.name, "MODEL") if base else "MODEL"


def called(found: FoundServer) -> str:
    """The name that the server has for the base model, where it was given one: clients use it."""
    base = found.base
    if base is None or base.root in ("", base.name):
        return ""
    return f" --served-model-name {_plain(base.name, 'NAME')}"


def port(found: FoundServer, usual: int) -> str:
    """`--port`, where it is not the usual one."""
    number = found.url.rpartition(":")[2]
    return "" if number == str(usual) else f" --port {number}"


def _plain(name: str, otherwise: str) -> str:
    """A name that a shell would read otherwise is left to the person."""
    plain = name.isascii() and name and all(c.isalnum() or c in "/._-" for c in name)
    return name if plain else otherwise
