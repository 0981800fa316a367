# SPDX-License-Identifier: Apache-2.0
"""One decoding step in torch; the loops around it are `goodbot_training.backends.decoding` and `batching`."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from goodbot_training.backends.decoding import Filtered
from goodbot_training.backends.filtering import Cuts, keep, penalize, pick
from goodbot_training.backends.torch.cache import append, copied, empty, trimmed
from goodbot_training.backends.torch.logprobs import Head


class TorchDecoder:
    """A causal LM with the KV cache of the answers that are being written.

    Where rows differ in length, the shorter ones are padded on the left.
    """

    def __init__(self, causal: Any, head: Head | None, device: torch.device) -> None:
        self._causal, self._head, self._device = causal, head, device
        self._cache = empty(causal.config)
        self._lengths: list[int] = []
        self._width = 0  # of the cache, with the padding

    def begin(self, lengths: Sequence[int]) -> None:
        """Rows of these lengths come first; see `Steps`."""
        self._lengths = [length - max(lengths) for length in lengths]  # before them is less than nothing

    @torch.no_grad()
    def read(self, inputs: Any) -> None:
        """Take ids in without drawing; see `Steps`."""
        self._causal.base_model(**self._known(inputs))

    @torch.no_grad()
    def __call__(self, inputs: Any, temperatures: Any, uniforms: Any) -> tuple[list[int], list[float]]:
        """Draw a token a row; see `Steps`."""
        logits, greedy = self._logits(inputs), np.asarray(temperatures) <= 0
        logits.div_(self._column(np.where(greedy, np.float32(1), temperatures)))
        logprobs = logits.log_softmax(-1)
        drawn = self._drawn(logprobs, greedy, uniforms)
        both = torch.cat([drawn.double(), logprobs.gather(1, drawn).double()], 1).tolist()
        return [int(token) for token, _ in both], [logprob for _, logprob in both]

    @torch.no_grad()
    def filtered(
        self, inputs: Any, temperatures: Any, uniforms: Any, rows: Sequence[Filtered]
    ) -> tuple[list[int], list[float], list[float]]:
        """Draw a token a row, some from less than the whole distribution; see `Steps`."""
        logits, greedy = self._logits(inputs), np.asarray(temperatures) <= 0
        logits.div_(self._column(np.where(greedy, np.float32(1), temperatures)))
        own = logprobs = logits.log_softmax(-1)
        if any(row.filters.repetition_penalty != 1 for row in rows):
            for number, row in enumerate(rows):
                if (factor := row.filters.repetition_penalty) != 1:
                    said = torch.as_tensor(row.said, device=self._device)
                    logits[number, said] = penalize(torch, logits[number, said], factor)
            logprobs = logits.log_softmax(-1)
        uniforms = np.asarray(uniforms, np.float32)
        cut = [n for n, row in enumerate(rows) if row.filters.cuts and not greedy[n]]
        if len(cut) == len(rows):  # as usual: all are drawn alike
            drawn, chosen = self._cut(logprobs, rows, uniforms)
        else:
            drawn = self._drawn(logprobs, greedy, uniforms)
            chosen = logprobs.gather(1, drawn)
            if cut:
                drawn[cut], chosen[cut] = self._cut(logprobs[cut], [rows[n] for n in cut], uniforms[cut])
        lifts = chosen - own.gather(1, drawn)
        told = torch.cat([drawn.double(), chosen.double(), lifts.double()], 1).tolist()
        tokens, logprob, lift = zip(*told, strict=True)
        return [int(token) for token in tokens], list(logprob), list(lift)

    def _drawn(self, logprobs: torch.Tensor, greedy: Any, uniforms: Any) -> torch.Tensor:
        """Tokens out of the whole distribution, `(B, 1)`."""
        if greedy.all():
            return logprobs.argmax(-1, keepdim=True)
        mass = logprobs.exp().cumsum_(-1)
        at = self._column(uniforms) * mass[:, -1:]
        drawn = torch.searchsorted(mass, at, right=True).clamp_(max=mass.shape[-1] - 1)
        if greedy.any():
            drawn = torch.where(self._column(greedy), logprobs.argmax(-1, keepdim=True), drawn)
        return drawn

    def _cut(
        self, logprobs: torch.Tensor, rows: Sequence[Filtered], uniforms: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens out of what is kept of each row, and their log-probs there: `(B, 1)` each.

        Only as many are sorted as are needed: to sort a large vocabulary costs more than all else here.
        """
        vocabulary = logprobs.shape[1]
        cuts = Cuts.of([row.filters for row in rows], vocabulary)
        most = cuts.enough(vocabulary)
        k, p, low = (
            torch.as_tensor(each, device=self._device) for each in (cuts.top_k, cuts.top_p, cuts.low)
        )
        while True:
            top, tokens = logprobs.topk(most)
            kept = keep(torch, top, k, p, low)
            if most == vocabulary or not bool((kept[:, -1:] & (k > most)).any()):
                break
            most = min(8 * most, vocabulary)
        place, chosen = pick(torch, top, kept, self._column(uniforms))
        return tokens.gather(1, place), chosen

    @torch.no_grad()
    def likeliest(self, inputs: Any, top: int) -> tuple[list[int], list[float]]:
        """The likeliest next tokens of one row; see `Steps`."""
        logprobs = self._logits(inputs)[0].log_softmax(-1)
        values, places = logprobs.topk(min(top, len(logprobs)))
        return places.tolist(), values.tolist()

    @torch.no_grad()
    def select(self, rows: Sequence[int]) -> None:
        """Go on with these rows; see `Steps`."""
        order: Any = torch.as_tensor(rows, device=self._device)
        self._cache.reorder_cache(order)
        self._lengths = [self._lengths[row] for row in rows]
        self._width -= trimmed(self._cache, self._width - max(self._lengths))

    @torch.no_grad()
    def join(self, other: Any) -> None:
        """Take in another's rows; see `Steps`."""
        append(self._cache, other._cache)  # noqa: SLF001  of the same class
        self._lengths += other._lengths  # noqa: SLF001
        self._width = max(self._width, other._width)  # noqa: SLF001

    def split(self, row: int) -> TorchDecoder:
        """A copy of one row; see `Steps`."""
        alone = TorchDecoder(self._causal, self._head, self._device)
        alone._cache = copied(self._cache)
        alone._lengths, alone._width = self._lengths, self._width
        alone.select([row])
        return alone

    def crop(self, tokens: int) -> bool:
        """Forget the newest tokens; see `Steps`."""
        if not self._cache.is_croppable:
            return False
        try:
            self._cache.crop(-tokens)
        except RuntimeError:  # a sliding window that has slid
            return False
        self._lengths = [length - tokens for length in self._lengths]
        self._width -= tokens
        return True

    def _column(self, numbers: Any) -> torch.Tensor:
        return torch.as_tensor(numbers, device=self._device)[:, None]

    def _logits(self, inputs: Any) -> torch.Tensor:
        """`(B, S)` → `(B, V)`, fp32, as training sees them, in memory of their own."""
        known = self._known(inputs)
        if self._head is None:
            return self._causal(**known, logits_to_keep=1).logits[:, -1].float()
        hidden = self._causal.base_model(**known).last_hidden_state
        return self._head.logits(hidden[:, -1])

    def _known(self, inputs: Any) -> dict[str, Any]:
        known: dict[str, Any] = {
            "input_ids": torch.as_tensor(inputs, device=self._device),
            "past_key_values": self._cache,
            "use_cache": True,
        }
        rows, new = known["input_ids"].shape
        before = self._lengths or [0] * rows
        if min(before) < self._width:
            lengths = torch.tensor(before, device=self._device)[:, None]
            places = torch.arange(self._width + new, device=self._device)
            known["attention_mask"] = (places >= self._width - lengths).long()
            known["position_ids"] = (lengths + places[:new]).clamp(min=0)
        self._lengths = [length + new for length in before]
        self._width += new
        return known
