# SPDX-License-Identifier: Apache-2.0
"""One token of a vocabulary as text, without the tokenizer's own library.

A vocabulary spells its tokens in an alphabet of its own: byte-level BPE writes a space as `Ġ`,
SentencePiece as `▁`. How to read it is said by the `decoder` in the model's `tokenizer.json`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Decode = Callable[[str], str]
_MOST_STEPS = 50
"""Real decoders have five at most."""
_LONGEST = 1024
"""Characters that a step may make of a token, and that a step may write."""


def decoder(model: Path) -> Decode | None:
    """What makes text of a token of this model; None where its files do not tell."""
    try:
        tokenizer: Any = json.loads((model / "tokenizer.json").read_bytes())
        steps = _steps(tokenizer["decoder"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    if len(steps) > _MOST_STEPS:
        return None

    def decode(token: str) -> str:
        for step in steps:
            token = step(token)[: max(len(token), _LONGEST)]
        return token

    return decode


def _steps(config: Mapping[str, Any]) -> list[Decode]:
    """The decoder's parts in their order. Raises KeyError for one that is not known."""
    if config["type"] == "Sequence":
        return [step for part in config["decoders"] for step in _steps(part)]
    return [_KINDS[config["type"]](config)]


def _metaspace(config: Mapping[str, Any]) -> Decode:
    """A space is written as `▁`; the one that was put before a text's first word is taken away."""
    sign = _word(config["replacement"])
    prepended = config.get("prepend_scheme", "always") != "never"
    return lambda token: token.replace(sign, "" if prepended else " ")


def _replace(config: Mapping[str, Any]) -> Decode:
    pattern, content = _word(config["pattern"]["String"]), str(config["content"])
    if len(content) > _LONGEST:
        raise ValueError
    return lambda token: token.replace(pattern, content)


def _word(value: object) -> str:
    if not isinstance(value, str) or not value:  # nothing stands everywhere between two characters
        raise ValueError
    return value


def _strip(config: Mapping[str, Any]) -> Decode:
    sign, start, stop = _word(config["content"]), int(config["start"]), int(config["stop"])

    def strip(token: str) -> str:
        for _ in range(min(start, len(token))):
            token = token.removeprefix(sign)
        for _ in range(min(stop, len(token))):
            token = token.removesuffix(sign)
        return token

    return strip


def _byte_fallback(token: str) -> str:
    """A byte that is in no token, `<0x0A>`; half of a character is no text."""
    digits = token.removeprefix("<0x").removesuffix(">")
    if len(token) != 6 or len(digits) != 2 or not set(digits) <= set("0123456789ABCDEFabcdef"):
        return token
    return bytes([int(digits, 16)]).decode("utf-8", "replace")


def _byte_level(token: str) -> str:
    if not all(character in _BYTES for character in token):
        return token  # one that was added to the vocabulary as it is, such as <|im_end|>
    return bytes(_BYTES[character] for character in token).decode("utf-8", "replace")


def _alphabet() -> dict[str, int]:
    """The characters that stand for bytes in byte-level BPE: printable ones for themselves."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {**{chr(byte): byte for byte in plain}, **{chr(256 + n): byte for n, byte in enumerate(others)}}


_BYTES = _alphabet()
_KINDS: Mapping[str, Callable[[Mapping[str, Any]], Decode]] = {
    "ByteLevel": lambda _: _byte_level,
    "ByteFallback": lambda _: _byte_fallback,
    "Fuse": lambda _: lambda token: token,
    "Metaspace": _metaspace,
    "Replace": _replace,
    "Strip": _strip,
}
