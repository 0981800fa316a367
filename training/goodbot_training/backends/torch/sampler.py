"""One decoding step in torch; the loop around it is `goodbot_training.backends.decoding`."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import DynamicCache

from goodbot_training.backends.torch.logprobs import Head


class TorchDecoder:
    """A causal LM with the KV cache of the answers that are being written."""

    def __init__(self, causal: Any, head: Head | None, device: torch.device) -> None:
        self._causal, self._head, self._device = causal, head, device
        self._cache = DynamicCache(config=causal.config)

    @torch.no_grad()
    def read(self, inputs: Any, rows: Sequence[int]) -> None:
        """Take a prompt in once for several rows; see `Steps.read`."""
        self._causal.base_model(**self._known(inputs))
        order: Any = torch.as_tensor(rows, device=self._device)
        self._cache.reorder_cache(order)

    def _known(self, inputs: Any) -> dict[str, Any]:
        return {
            "input_ids": torch.as_tensor(inputs, device=self._device),
            "past_key_values": self._cache,
            "use_cache": True,
        }

    @torch.no_grad()
    def __call__(
        self, inputs: Any, temperatures: Any, uniforms: Any
    ) -> tuple[list[int], list[float]]:
        """Draw a token a row; see `Steps`."""
        known = self._known(inputs)
        if self._head is None:
            logits = self._causal(**known, logits_to_keep=1).logits[:, -1].float()
        else:  # fp32 logits, as training sees them
            hidden = self._causal.base_model(**known).last_hidden_state
            logits = self._head.logits(hidden[:, -1])
        temperature = torch.as_tensor(temperatures, device=self._device)[:, None]
        greedy = temperature <= 0
        logits = logits / torch.where(greedy, 1.0, temperature)
        logprobs = logits.log_softmax(-1)
        mass = logprobs.exp().cumsum(-1)
        at = torch.as_tensor(uniforms, device=self._device)[:, None] * mass[:, -1:]
        drawn = (mass <= at).sum(-1, keepdim=True).clamp(max=mass.shape[-1] - 1)
        drawn = torch.where(greedy, logits.argmax(-1, keepdim=True), drawn)
        both = torch.cat([drawn.double(), logprobs.gather(1, drawn).double()], 1).tolist()
        return [int(token) for token, _ in both], [logprob for _, logprob in both]
