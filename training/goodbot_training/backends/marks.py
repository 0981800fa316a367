# SPDX-License-Identifier: Apache-2.0
"""What people write is text for the model, and never one of the template's own marks.

A tokenizer finds its added tokens (`<|im_end|>`, `<think>`, `[INST]`) wherever their names stand. Here they
have other names, which nobody can know: what a template writes is renamed before it is encoded, and what
a person writes is not. So the same characters reach the model, in the tokens of plain text. A mark that the
tokenizer does not know (Llama 2's `[INST]`, Vicuna's `USER:`) is plain text itself: in what people write
it is broken.
"""

# pyright: standard
# (tokenizers ships no complete types)

from __future__ import annotations

import json
import re
import secrets
from typing import Any

from goodbot.api.marks import broken, either, is_mark, mapped, pattern, written

_FIRST = 0xE000
_SIGNS = 6400
"""Characters for private use, which no text means anything by."""
_SECRET = 8
_NEVER = -1e5
"""A log-probability: every other way to spell it is likelier."""
_BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))


class AddedTokens:
    """The added tokens of one tokenizer."""

    def __init__(self, backend: Any, template: str = "") -> None:
        """`backend` is the `tokenizers.Tokenizer` that the model came with."""
        from tokenizers import Tokenizer

        described: dict[str, Any] = json.loads(backend.to_str())
        added = described["added_tokens"]
        names = [token["content"] for token in added if token["content"] and is_mark(token)]
        real, quoted = _secret(), _secret()
        self._aliases = {name: real + _numbered(at) for at, name in enumerate(names)}
        self._quotes = {name: quoted + _numbered(at) for at, name in enumerate(names)}
        self._named = {quote: name for name, quote in self._quotes.items()}
        self._written = re.compile(either(names))
        self._quoted = re.compile(f"{quoted}[{chr(_FIRST)}-{chr(_FIRST + _SIGNS - 1)}]{{2}}")
        signs, headings = written(template)
        self._plain = pattern(set(signs) - set(names), headings)
        self._special = {backend.token_to_id(t["content"]) for t in added if t["special"]}
        renamed = {name: self._aliases.get(name, name) for name in (token["content"] for token in added)}
        for token in added:
            token["content"] = renamed[token["content"]]
        if described["model"]["type"] == "Unigram":  # it would take their names for words of its own
            _unlikely(described["model"]["vocab"], {*names, *_BYTES})
        parts = {"added_tokens": added, "post_processor": None, "truncation": None, "padding": None}
        self._renamed: Any = Tokenizer.from_str(json.dumps(described | parts))
        self._ids = {  # of the others, too: they are numbered anew
            self._renamed.token_to_id(alias): backend.token_to_id(name) for name, alias in renamed.items()
        }
        self._controls = {backend.token_to_id(name): name for name in names}

    def is_special(self, token: int) -> bool:
        """Whether decoding leaves it out."""
        return token in self._special

    def quote(self, value: Any) -> Any:
        """The same words for a template, with a stand-in for each mark, however deep they lie."""
        return broken(mapped(value, self._stood_in), self._plain)

    def _stood_in(self, text: str) -> str:
        return self._written.sub(lambda found: self._quotes[found[0]], text)

    def encode(self, rendered: str) -> list[int]:
        """Token ids of what a template has made of quoted words."""
        rendered = self._written.sub(lambda found: self._aliases[found[0]], rendered)
        return self.words(self._quoted.sub(lambda found: self._named.get(found[0], found[0]), rendered))

    def words(self, text: str) -> list[int]:
        """Token ids of text; only what `encode` has renamed is a mark."""
        found: list[int] = []
        for token in self._renamed.encode(text, add_special_tokens=False).ids:
            if token in self._ids:
                found.append(self._ids[token])
            elif (name := self._controls.get(token)) is not None:
                # A vocabulary may hold the name among its words, too: in halves it does not.
                found += [*self._half(name[: len(name) // 2]), *self._half(name[len(name) // 2 :])]
            else:
                found.append(token)
        return found

    def _half(self, text: str) -> list[int]:
        ids = self._renamed.encode(text, add_special_tokens=False).ids
        return [token for token in (self._ids.get(one, one) for one in ids) if token not in self._controls]


def byte_ids(backend: Any) -> dict[int, int]:
    """Token → the byte that it stands for, where a tokenizer spells what it has no word for in bytes."""
    ids = [backend.token_to_id(name) for name in _BYTES]
    if None in ids or backend.decode([ids[ord("A")]]) != "A":
        return {}
    return {token: byte for byte, token in enumerate(ids)}


def _unlikely(vocabulary: list[list[Any]], names: set[str]) -> None:
    for word in vocabulary:
        if word[0] in names:
            word[1] = _NEVER


def _numbered(at: int) -> str:
    return "".join(chr(_FIRST + sign) for sign in divmod(at, _SIGNS))


def _secret() -> str:
    return "".join(chr(_FIRST + secrets.randbelow(_SIGNS)) for _ in range(_SECRET))
