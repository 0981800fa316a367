"""A transformers causal LM with peft LoRA layers on every linear projection but the head."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from goodbot.errors import TrainingError
from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.lora import LoraLayer
from transformers import AutoModelForCausalLM
from transformers.utils import logging as transformers_logging

from goodbot_training.backends.adapters import AdapterWeights
from goodbot_training.backends.packing import Packed
from goodbot_training.backends.torch.sampler import TorchDecoder

_NAME = "default"  # peft's name of the one adapter that we keep in place
_TINY = 10_000_000
Prepared = tuple[AdapterWeights, dict[str, tuple[torch.Tensor, torch.Tensor]]]


class TorchModel:
    """The base in fp32 on a CPU and bf16 on CUDA; LoRA weights and log-probs always in fp32."""

    def __init__(self, directory: Path, config: dict[str, Any], rank: int) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        transformers_logging.disable_progress_bar()
        dtype = torch.bfloat16 if self.device.type == "cuda" else torch.float32
        try:
            causal: Any = AutoModelForCausalLM.from_pretrained(
                str(directory),
                dtype=dtype,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
            )
        except Exception as error:  # safetensors and transformers each raise their own
            if "memory" in str(error):
                raise
            raise TrainingError(f"The model in {directory} cannot be loaded by torch.") from error
        if sum(parameter.numel() for parameter in causal.parameters()) < _TINY:
            # More threads only wait for each other: 2-10 times slower on a busy machine.
            torch.set_num_threads(1)
        lora = LoraConfig(
            r=rank, lora_alpha=rank, target_modules="all-linear", task_type="CAUSAL_LM"
        )
        inject_adapter_in_model(lora, causal)
        self._causal = causal.to(self.device).eval()
        self._layers: dict[str, Any] = {
            path: module for path, module in causal.named_modules() if isinstance(module, LoraLayer)
        }
        for parameter in self.parameters():
            parameter.data = parameter.data.float()
        self.shapes = {
            path: (layer.out_features, layer.in_features) for path, layer in self._layers.items()
        }
        self.vocabulary = int(causal.get_input_embeddings().weight.shape[0])
        self.context = int(config.get("max_position_embeddings") or 1 << 20)
        self._enabled = True
        self._weights = AdapterWeights(rank=rank, alpha=rank, scale=1.0, pairs={})
        self._head_apart = self._probe()

    @property
    def enabled(self) -> bool:
        """Whether the adapter has its effect."""
        return self._enabled

    @enabled.setter
    def enabled(self, value: bool) -> None:
        if value != self._enabled:
            for layer in self._layers.values():
                layer.enable_adapters(value)
            self._enabled = value

    def parameters(self) -> list[torch.nn.Parameter]:
        """The LoRA weights, in the order of their paths."""
        return [
            half[_NAME].weight
            for _, layer in sorted(self._layers.items())
            for half in (layer.lora_A, layer.lora_B)
        ]

    def prepare(self, weights: AdapterWeights) -> Prepared:
        """The adapter as tensors on the model's device."""
        pairs = {
            path: (torch.tensor(a, device=self.device), torch.tensor(b, device=self.device))
            for path, (a, b) in weights.pairs.items()
        }
        return weights, pairs

    @torch.no_grad()
    def assign(self, prepared: Prepared) -> None:
        """Copy weights in; a version of another rank gets parameters of its own size."""
        self._weights, pairs = prepared
        for path, layer in self._layers.items():
            for half, tensor in zip((layer.lora_A, layer.lora_B), pairs[path], strict=True):
                half[_NAME].weight.data = tensor.clone()
            layer.scaling[_NAME] = self._weights.scale

    def extract(self) -> AdapterWeights:
        """The weights in place, as NumPy."""
        pairs = {
            path: (
                layer.lora_A[_NAME].weight.detach().float().cpu().numpy().copy(),
                layer.lora_B[_NAME].weight.detach().float().cpu().numpy().copy(),
            )
            for path, layer in self._layers.items()
        }
        rank, scale = self._weights.rank, self._weights.scale
        return AdapterWeights(rank=rank, alpha=scale * rank, scale=scale, pairs=pairs)

    def logprobs(self, packed: Packed, temperature: Sequence[float]) -> torch.Tensor:
        """fp32 log-probs of the targets, `(B, R)`; the head sees only the response."""
        ids, positions, targets = (
            torch.as_tensor(array, device=self.device)
            for array in (packed.ids, packed.positions, packed.targets)
        )
        if self._head_apart:
            logits = self._causal.get_output_embeddings()(_at(self._hidden(ids), positions))
        else:
            logits = _at(self._causal(input_ids=ids, use_cache=False).logits, positions)
        scale = torch.as_tensor(temperature, dtype=torch.float32, device=self.device)
        logits = logits.float() / scale[:, None, None]
        chosen = logits.gather(2, targets[..., None]).squeeze(2)
        return chosen - logits.logsumexp(2)

    @torch.no_grad()
    def scores(self, packed: Packed, temperature: Sequence[float]) -> Any:
        """As `logprobs`, without gradient, as NumPy."""
        return self.logprobs(packed, temperature).cpu().numpy()

    def decoder(self) -> TorchDecoder:
        """A decoding step with a fresh KV cache."""
        return TorchDecoder(self._causal, self.device)

    def _hidden(self, ids: torch.Tensor) -> torch.Tensor:
        return self._causal.base_model(input_ids=ids, use_cache=False).last_hidden_state

    @torch.no_grad()
    def _probe(self) -> bool:
        """Whether logits are just head(hidden): some families scale or cap them in between."""
        head = self._causal.get_output_embeddings()
        if head is None or self._causal.base_model is self._causal:
            return False
        ids = torch.arange(4, device=self.device)[None] % self.vocabulary
        whole = self._causal(input_ids=ids, use_cache=False).logits
        return torch.allclose(head(self._hidden(ids)), whole, atol=1e-3, rtol=1e-3)


def _at(states: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """`(B, S, D)` at `(B, R)` → `(B, R, D)`."""
    return states.gather(1, positions[..., None].expand(-1, -1, states.shape[-1]))
