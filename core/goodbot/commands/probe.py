# SPDX-License-Identifier: Apache-2.0
"""probe: whether the version that should answer really does, asked of the model server itself."""

from __future__ import annotations

import contextlib
import os

from goodbot import __version__
from goodbot.api.sentences import version as version_name
from goodbot.api.server import BASE, Generated, GenerateRequest, Server
from goodbot.api.texts import say
from goodbot.base.errors import ServerError
from goodbot.base.worded import Worded
from goodbot.commands.base import Call, Result

_PROMPTS = ("Hello! Who are you?", "Say one sentence about the weather.")
_TOKENS = 8
_SAME = 1e-4
"""Nats a token: two runs of one version on one machine differ by less."""


async def probe(call: Call) -> Result:
    """Which version the server says that it serves, and whether it answers unlike the base.

    `differing` of `prompts` get another answer than from the base model, or the same one with
    other log-probs; None where there is no adapter to compare.
    """
    registry, server = call.services.registry, call.services.server
    active, wanted = await registry.active(), await registry.wanted()
    served = await server.served()
    differing: int | None = None
    if wanted != BASE and served == wanted:
        differing = sum([await _differs(server, wanted, words) for words in _PROMPTS])
    data = {
        "goodbot": __version__,
        "pid": os.getpid(),
        "active": active,
        "wanted": wanted,
        "served": served,
        "prompts": len(_PROMPTS),
        "differing": differing,
    }
    return Result(text=_text(served, wanted, differing, call.user.language), data=data)


def _text(served: int, wanted: int, differing: int | None, language: str) -> str:
    name = version_name(served, language)
    if served != wanted:
        return say("probe_other", language, served=name, wanted=version_name(wanted, language))
    if differing is None:
        return say("probe_well", language, served=name)
    if differing:
        return say("probe_unlike", language, served=name, differing=differing, prompts=len(_PROMPTS))
    return say("probe_same", language, served=name)


async def _differs(server: Server, version: int, words: str) -> bool:
    ours = await _answer(server, version, words)
    base = await _answer(server, BASE, words)
    if ours.tokens != base.tokens or ours.text != base.text:
        return True
    pairs = zip(ours.logprobs, base.logprobs, strict=False)
    return any(abs(one - other) > _SAME for one, other in pairs)


async def _answer(server: Server, version: int, words: str) -> Generated:
    request = GenerateRequest(
        messages=({"role": "user", "content": words},),
        max_tokens=_TOKENS,
        temperature=0.0,
        seed=0,
        version=version,
    )
    async with contextlib.aclosing(server.generate(request)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Generated):
                return piece
    raise ServerError(Worded("the server ended an answer without saying what it was"))
