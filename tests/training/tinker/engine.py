# SPDX-License-Identifier: Apache-2.0
"""What a Tinker server computes, with transformers' and peft's own layers: none of our code is in it."""

# pyright: standard

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

ALPHA = 32
"""As SkyRL has it, whatever is asked for."""


class PeftEngine:
    """An `Engine` of `goodbot_fakes.tinker` on a model directory. `mean` as SkyRL's JAX engine."""

    def __init__(self, model: Path, *, mean: bool = False) -> None:
        self._directory, self._mean = model, mean
        self.first: dict[str, Any] | None = None
        """The first fresh adapter's weights, as peft names them, to begin elsewhere with the same."""

    def create(self, rank: int, seed: int) -> Any:
        torch.manual_seed(seed)
        base = AutoModelForCausalLM.from_pretrained(str(self._directory), dtype=torch.float32)
        lora = LoraConfig(r=rank, lora_alpha=ALPHA, target_modules="all-linear")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers by an old name
            model: Any = get_peft_model(base, lora)
        model.eval()
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        model.made = {"weights": weights, "adam": torch.optim.AdamW(weights, lr=0.0), "rows": 0}
        if self.first is None:
            self.first = {n: one.clone() for n, one in get_peft_model_state_dict(model).items()}
        return model

    def logprobs(self, model: Any, data: list[dict[str, Any]]) -> list[list[float]]:
        with torch.no_grad():
            return [_logprobs(model, datum).tolist() for datum in data]

    def backward(self, model: Any, data: list[dict[str, Any]], loss: str) -> list[list[float]]:
        assert loss == "importance_sampling"
        found: list[list[float]] = []
        for datum in data:
            policy = _logprobs(model, datum)
            then, advantages = (_input(datum, name) for name in ("logprobs", "advantages"))
            value = -((policy - then).exp() * advantages).sum()
            (value / len(policy) if self._mean else value).backward()
            found.append(policy.tolist())
        model.made["rows"] += len(data)
        return found

    def step(self, model: Any, adam: Mapping[str, float]) -> float:
        made = model.made
        if self._mean:
            for weight in made["weights"]:
                weight.grad /= made["rows"]
        clip = adam.get("grad_clip_norm") or float("inf")
        norm = float(torch.nn.utils.clip_grad_norm_(made["weights"], clip))
        for group in made["adam"].param_groups:
            group |= {"lr": adam["learning_rate"], "betas": (adam["beta1"], adam["beta2"])}
            group |= {"eps": adam["eps"], "weight_decay": adam["weight_decay"]}
        made["adam"].step()
        made["adam"].zero_grad()
        made["rows"] = 0
        return norm

    def state(self, model: Any) -> Any:
        weights = [weight.detach().clone() for weight in model.made["weights"]]
        return weights, copy.deepcopy(model.made["adam"].state_dict())

    def restore(self, model: Any, state: Any, *, optimizer: bool) -> None:
        weights, adam = copy.deepcopy(state)
        with torch.no_grad():
            for own, kept in zip(model.made["weights"], weights, strict=True):
                own.copy_(kept)
        if optimizer:
            model.made["adam"].load_state_dict(adam)

    def export(self, model: Any, directory: Path, wrong: str = "") -> None:
        model.save_pretrained(str(directory))
        if wrong in SPOILT:
            SPOILT[wrong](directory)

    def begun(self, directory: Path) -> Path:
        """The first fresh adapter, as a directory to load."""
        assert self.first is not None
        model = self.create(next(w.shape[0] for n, w in self.first.items() if "lora_A" in n), 0)
        self.export(model, directory)
        save_file(self.first, str(directory / WEIGHTS))
        config = json.loads((directory / CONFIG).read_text())
        config["base_model_name_or_path"] = ""  # PEFT names the path, which to us is another base
        (directory / CONFIG).write_text(json.dumps(config))
        return directory


WEIGHTS = "adapter_model.safetensors"
CONFIG = "adapter_config.json"


def _logprobs(model: Any, datum: dict[str, Any]) -> torch.Tensor:
    [chunk] = datum["model_input"]["chunks"]
    logits = model(torch.tensor([chunk["tokens"]])).logits[0].float()
    targets = torch.tensor(datum["loss_fn_inputs"]["target_tokens"]["data"])
    return logits.log_softmax(-1).gather(1, targets[:, None])[:, 0]


def _input(datum: dict[str, Any], name: str) -> torch.Tensor:
    return torch.tensor(datum["loss_fn_inputs"][name]["data"], dtype=torch.float32)


def _changed(directory: Path, change: Any) -> None:
    tensors = load_file(str(directory / WEIGHTS))
    save_file({name: part.contiguous() for name, part in change(tensors).items()}, str(directory / WEIGHTS))


def _smaller_rank(directory: Path) -> None:
    _changed(directory, lambda t: {n: p[:1] if "lora_A" in n else p[:, :1] for n, p in t.items()})
    config = json.loads((directory / CONFIG).read_text())
    (directory / CONFIG).write_text(json.dumps({**config, "r": 1}))


def _narrow(directory: Path) -> None:
    _changed(directory, lambda t: {n: p[:, :-1] if "lora_A" in n else p for n, p in t.items()})


def _with_head(directory: Path) -> None:
    def change(tensors: dict[str, Any]) -> dict[str, Any]:
        a = next(part for name, part in tensors.items() if "lora_A" in name)
        b = next(part for name, part in tensors.items() if "lora_B" in name)
        head = "base_model.model.lm_head"
        return {**tensors, f"{head}.lora_A.weight": a.clone(), f"{head}.lora_B.weight": b.clone()}

    _changed(directory, change)


SPOILT: dict[str, Any] = {
    "rank": _smaller_rank,
    "shape": _narrow,
    "head": _with_head,
    "nan": lambda d: _changed(d, lambda t: {n: p * float("nan") for n, p in t.items()}),
    "other": lambda d: _changed(d, lambda t: {n: p + 1.0 for n, p in t.items()}),
    "lies": lambda d: _changed(d, lambda t: {n: p[:1] if "lora_A" in n else p[:, :1] for n, p in t.items()}),
}
"""What may be wrong with an adapter → what makes it so."""
