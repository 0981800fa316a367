# SPDX-License-Identifier: Apache-2.0
"""Chats with a common beginning in one row, so that the beginning is computed once.

A question comes in each style, and chats with tools begin with one declaration: a third of all tokens.
"""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

import torch
from torch import Tensor

Encoded = tuple[list[int], list[bool]]
"""A chat's tokens, and whether each is the assistant's."""
_WORTH = 8
"""Tokens in common that are worth a common row."""
_AT_ONCE = 500
"""Tokens of a batch, with its padding, unless one row has more."""


class PackedRows(NamedTuple):
    """Rows of equal length, `(rows, longest)` unless said otherwise."""

    tokens: Tensor
    positions: Tensor
    mask: Tensor
    """`(rows, 1, longest, longest)`: 0 for what each token sees, else minus infinity."""
    rows: Tensor
    """`(answers' tokens,)`, as the three that follow: the row of each."""
    before: Tensor
    """Where in its row the token before it is."""
    targets: Tensor
    first: Tensor
    """Whether it begins an answer."""


class _Row:
    """One beginning and what follows it, in each of its chats."""

    def __init__(self, chat: Encoded) -> None:
        self.chats = [chat]
        self.common = _unspoken(chat)

    def shared(self, chat: Encoded) -> int:
        """Tokens that it would have in common with this one too."""
        most = min(self.common, _unspoken(chat))
        pairs = zip(self.chats[0][0][:most], chat[0], strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    def __len__(self) -> int:
        return self.common + sum(len(tokens) - self.common for tokens, _ in self.chats)


def _unspoken(chat: Encoded) -> int:
    """Tokens before the first answer."""
    return chat[1].index(True)


def batches(chats: Sequence[Encoded]) -> Iterator[PackedRows]:
    """The chats in rows, and rows of similar lengths together."""
    rows: list[_Row] = []
    for chat in chats:
        row = max(rows, key=lambda row: row.shared(chat), default=None)
        if row is None or (common := row.shared(chat)) < max(_WORTH, row.common // 2):
            rows.append(_Row(chat))
        else:
            row.chats.append(chat)
            row.common = common
    together: list[_Row] = []
    for row in sorted(rows, key=len):
        if together and (len(together) + 1) * len(row) > _AT_ONCE:
            yield _batch(together)
            together = []
        together.append(row)
    yield _batch(together)


def _batch(rows: Sequence[_Row]) -> PackedRows:
    longest = max(map(len, rows))
    tokens = torch.zeros(len(rows), longest, dtype=torch.long)
    positions, parts = torch.zeros_like(tokens), torch.full_like(tokens, -1)
    answers: list[tuple[int, int, int, bool]] = []
    for number, row in enumerate(rows):
        common, end = row.common, row.common
        tokens[number, :common] = torch.tensor(row.chats[0][0][:common])
        positions[number, :common] = torch.arange(common)
        parts[number, :common] = 0
        for part, (own, mine) in enumerate(row.chats, start=1):
            begin, end = end, end + len(own) - common
            tokens[number, begin:end] = torch.tensor(own[common:])
            positions[number, begin:end] = torch.arange(common, len(own))
            parts[number, begin:end] = part
            for at in range(common, len(own)):
                if mine[at]:
                    before = begin + at - common - 1 if at > common else common - 1
                    answers.append((number, before, own[at], not mine[at - 1]))
    seen = (parts[:, None, :] == 0) | (parts[:, None, :] == parts[:, :, None])
    mask = torch.zeros(seen.shape).masked_fill_(~seen.tril(), -torch.inf)
    found = torch.tensor(answers)
    return PackedRows(
        tokens=tokens,
        positions=positions,
        mask=mask[:, None],
        rows=found[:, 0],
        before=found[:, 1],
        targets=found[:, 2],
        first=found[:, 3].bool(),
    )
