# SPDX-License-Identifier: Apache-2.0
"""A few rows times a matrix on a processor, plain and laid out once by oneDNN; and answers written so.

One thread. Products: the least of several; answers: by turns, medians of tokens per processor second.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from goodbot.api.backend import LoraSettings
from goodbot.api.sampler import SampleRequest

from tests.benchmarks.serving_contenders import make
from tests.benchmarks.shapes import CPU
from tests.benchmarks.table import row

MATRICES = ((1024, 256), (4096, 1024), (32000, 1024))
ROWS = (1, 2, 8, 32)
CHATS = (1, 8, 32)
_DEEP = CPU["4M Llama"] | {
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 8,
    "head_dim": 64,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
}
MODELS: dict[str, tuple[dict[str, Any], int, int]] = {
    "4M Llama": (CPU["4M Llama"], 2048, 64),
    "133M Llama": (_DEEP, 32000, 24),
}
"""Shape, words, and tokens of an answer."""


def main(arguments: Sequence[str] = ()) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_products")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=("products", *MODELS))
    options = parser.parse_args(arguments)
    import torch

    torch.set_num_threads(1)
    if options.only in (None, "products"):
        row("matrix", "rows", "plain, µs", "laid out once, µs", "faster by", head=True)
        for shape in MATRICES:
            for rows in ROWS:
                plain, packed = products(shape, rows, options.repeats)
                size = " × ".join(f"{side:,}" for side in shape)
                row(size, rows, f"{plain:,.0f}", f"{packed:,.0f}", f"{plain / packed:.2f}")
    names = [name for name in MODELS if options.only in (None, name)]
    if names:
        row("model", "chats", "plain, tokens/CPU-s", "laid out once", "faster by", head=True)
    for name in names:
        for chats, plain, packed in answers(*MODELS[name], options.repeats):
            row(name, chats, f"{plain:,.0f}", f"{packed:,.0f}", f"{packed / plain:.2f}")


def products(shape: tuple[int, int], rows: int, repeats: int) -> tuple[float, float]:
    """Microseconds of both."""
    import torch
    from goodbot_training.backends.torch.prepacked import prepacked

    linear = torch.nn.Linear(shape[1], shape[0], bias=False).requires_grad_(False)
    packed = prepacked(linear)
    assert packed, "this PyTorch has no oneDNN"
    x = torch.randn(rows, shape[1])
    times = max(3, int(1e8 / linear.weight.numel() / rows))

    def least(product: Callable[[Any], Any]) -> float:
        found: list[float] = []
        for _ in range(repeats):
            began = time.perf_counter()
            for _ in range(times):
                product(x)
            found.append((time.perf_counter() - began) / times * 1e6)
        return min(found)

    return least(linear), least(packed)


def answers(shape: dict[str, Any], words: int, length: int, repeats: int) -> list[tuple[int, float, float]]:
    """Chats, and tokens per processor second of both."""
    from goodbot_training.backends.torch.trainer import TorchBackend

    with tempfile.TemporaryDirectory() as place:
        model = make(Path(place) / "model", shape, words)
        samplers: list[Any] = []
        for optimized in (False, True):
            backend = TorchBackend()
            backend.load(model, lora=LoraSettings())
            if optimized:
                backend.optimize_for_inference()
            samplers.append(backend.sampler())
            samplers[-1].activate(0)
    rows: list[tuple[int, float, float]] = []
    for chats in CHATS:
        found: list[list[float]] = [[], []]
        for turn in range(repeats + 1):
            for sampler, rates in zip(samplers, found, strict=True):
                rate = _written(sampler, chats, length)
                if turn:
                    rates.append(rate)
        rows.append((chats, median(found[0]), median(found[1])))
    return rows


def _written(sampler: Any, chats: int, length: int) -> float:
    began, tokens = time.process_time(), 0
    for seed in range(chats):
        messages = [{"role": "user", "content": f"Why is river {seed} blue?"}]
        request = SampleRequest(messages=messages, max_tokens=length, temperature=1.0, seed=seed)
        sampler.start(seed, request, 0)
    while sampler.writes():
        tokens += sum(len(answer.tokens) for _, answer in sampler.step())
    return tokens / (time.process_time() - began)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
