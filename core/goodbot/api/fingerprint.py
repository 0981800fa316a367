# SPDX-License-Identifier: Apache-2.0
"""Whether a server really serves an adapter: its first tokens laid beside the trainer's fingerprint.

A fingerprint holds, for a few prompts, how likely each first token of an answer is with the adapter
and without. What the server tells must lie nearer to the first. So a server that ignores adapters,
answers out of a cache of another version or has forgotten one in a restart is found out, whatever
it says of itself.

Distances are squared ones between the roots of probabilities (Hellinger): a token that is unlikely
on both sides counts little, and whatever is not told is only known to be less likely than all that is.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from goodbot.api.events import Message
from goodbot.api.server import Server
from goodbot.base.errors import AdapterError

FILE = "fingerprint.json"
_FORMAT = 1
_MAX_BYTES = 1 << 20
_MAX_PROMPTS = 8
_MAX_TOLD = 100
"""Tokens that are believed of one answer."""
_APART = 0.002
"""Adapter and base must differ by so much a prompt: half-precision weights alone make a tenth of it."""
_LEAN = 0.25
"""So much nearer to one than to the other, of how far the two are apart."""

Told = Mapping[str, float]
"""Text of a first token → its log-prob at temperature 1."""


class ServedAs(StrEnum):
    """What the server turned out to answer like."""

    ADAPTER = "adapter"
    BASE = "base"
    NEITHER = "neither"
    UNTOLD = "untold"
    TOO_CLOSE = "too_close"


@dataclass(frozen=True, kw_only=True, slots=True)
class FingerprintProbe:
    """How answers to one conversation begin, with the adapter and without."""

    messages: Sequence[Message]
    base: Told
    adapter: Told

    @property
    def apart(self) -> float:
        """How far the adapter moves this one."""
        return distance(self.adapter, self.base)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fingerprint:
    """What the trainer measured; the most telling prompt first."""

    prompts: tuple[FingerprintProbe, ...]
    top: int
    """So many tokens were measured of each."""

    @classmethod
    def of(cls, directory: Path) -> Fingerprint | None:
        """That of a verified adapter; None where its trainer could make none. Raises AdapterError."""
        try:
            with (directory / FILE).open("rb") as file:
                text = file.read(_MAX_BYTES + 1)
        except FileNotFoundError:
            return None
        try:
            if len(text) > _MAX_BYTES:
                raise ValueError(f"it is larger than {_MAX_BYTES} bytes")
            given = json.loads(text)
            if given["format"] != _FORMAT:
                raise ValueError(f"its format is {given['format']!r}")
            prompts = [_prompt(one) for one in given["prompts"][:_MAX_PROMPTS]]
            top = min(_MAX_TOLD, max(1, int(given["top"])))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise AdapterError(f"{directory.name}/{FILE} cannot be read: {error}") from error
        prompts.sort(key=lambda prompt: -prompt.apart)
        return cls(prompts=tuple(prompts), top=top)


def _prompt(given: Any) -> FingerprintProbe:
    messages: list[Message] = [
        {"role": str(one["role"]), "content": str(one["content"])} for one in given["messages"]
    ]  # type: ignore[typeddict-item]
    return FingerprintProbe(messages=messages, base=_told(given["base"]), adapter=_told(given["adapter"]))


def _told(given: Any) -> dict[str, float]:
    """What can be believed of it. Pieces of a character are left out: several tokens look like one."""
    found = cast("Mapping[str, Any]", given)
    likely = {
        token: float(logprob)
        for token, logprob in itertools.islice(found.items(), _MAX_TOLD)
        if "\ufffd" not in token and math.isfinite(logprob) and logprob < 0.01
    }
    return dict(sorted(likely.items(), key=lambda item: -item[1]))


def distance(one: Told, other: Told) -> float:
    """From 0 (the same, as far as is told) to 2 (nothing in common)."""
    return sum(_gap(one, other, token) ** 2 for token in one.keys() | other.keys())


def _gap(one: Told, other: Told, token: str) -> float:
    """Between the roots of a token's probabilities, at least: one that is not told has a bound."""
    if token in one and token in other:
        return math.exp(one[token] / 2) - math.exp(other[token] / 2)
    there, elsewhere = (one, other) if token in one else (other, one)
    bound = min(elsewhere.values(), default=0.0)
    return max(0.0, math.exp(there[token] / 2) - math.exp(bound / 2))


def compare(prompts: Sequence[FingerprintProbe], answers: Sequence[Told]) -> ServedAs:
    """What these answers of a server, one a prompt, are like; an empty one tells nothing."""
    told = [(prompt, answer) for prompt, answer in zip(prompts, answers, strict=True) if answer]
    if not told:
        return ServedAs.UNTOLD
    apart = sum(prompt.apart for prompt, _ in told)
    if apart < _APART * len(told):
        return ServedAs.TOO_CLOSE
    adapter = sum(distance(answer, prompt.adapter) for prompt, answer in told)
    base = sum(distance(answer, prompt.base) for prompt, answer in told)
    lean = (base - adapter) / apart  # 1 at the adapter, -1 at the base, little for whatever else
    if lean > _LEAN and adapter <= 2 * apart:
        return ServedAs.ADAPTER
    # Taking a good version away needs more evidence than leaving it there.
    return ServedAs.BASE if lean < -_LEAN and base <= apart else ServedAs.NEITHER


async def prove(server: Server, version: int, fingerprint: Fingerprint, most: int) -> ServedAs:
    """Ask a server which version it really answers with.

    Args:
        server: The server to ask.
        version: The version that should answer.
        fingerprint: Prompts that the version and the base model begin to answer differently.
        most: Ask so many of them.

    Returns:
        Whether it is the version, the base model, neither, or not to be told.

    Raises:
        ServerError: The server refused, failed or died.
    """
    prompts = fingerprint.prompts[:most]
    if sum(prompt.apart for prompt in prompts) < _APART * len(prompts):
        return ServedAs.TOO_CLOSE
    answers = [
        _told(await server.first_tokens(prompt.messages, version=version, top=fingerprint.top))
        for prompt in prompts
    ]
    return compare(prompts, answers)
