# SPDX-License-Identifier: Apache-2.0
"""The libraries' own continuous batching, used directly, for the tasks of `serving_contenders.Generate`.

`together` chats are under way; each asks its next question when it has its answer. Nothing of what ours
keeps besides is asked of them: no seeds, no log-probs, no versions, no pieces of text.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

Task = Callable[[dict[str, Any]], dict[str, float]]
Start = Callable[[str, int], None]
Step = Callable[[], Iterator[list[int]]]


def closed_loop(start: Start, step: Step) -> Task:
    """`start` begins an answer of so many tokens, `step` gives back those that have ended."""

    def work(task: dict[str, Any]) -> dict[str, float]:
        left: list[str] = list(task["questions"])
        written, running, began = 0, 0, time.perf_counter()
        while left or running:
            while left and running < task["together"]:
                start(left.pop(0), task["max_tokens"])
                running += 1
            for tokens in step():
                running -= 1
                written += len(tokens)
        return {"tokens": written, "first": time.perf_counter() - began}

    return work


def batching_in_mlx(model: Path) -> Task:
    """mlx-lm's `BatchGenerator`."""
    if sys.platform == "linux":
        os.environ.setdefault("MLX_DISABLE_COMPILE", "1")  # as ours does
    from mlx_lm.generate import BatchGenerator
    from mlx_lm.sample_utils import make_sampler
    from mlx_lm.utils import load

    found: Any = load(str(model))
    causal, tokenizer = found[:2]
    generator = BatchGenerator(
        causal, sampler=make_sampler(temp=1.0), stop_tokens=[[end] for end in tokenizer.eos_token_ids]
    )
    under_way: dict[int, list[int]] = {}

    def start(question: str, most: int) -> None:
        prompt = tokenizer.apply_chat_template(
            [{"role": "user", "content": question}], add_generation_prompt=True
        )
        under_way[generator.insert([prompt], [most])[0]] = []

    def step() -> Iterator[list[int]]:
        for told in generator.next()[1]:
            under_way[told.uid].append(told.token)
            if told.finish_reason:
                tokenizer.decode(under_way[told.uid])
                yield under_way.pop(told.uid)

    return closed_loop(start, step)


def batching_in_torch(model: Path) -> Task:
    """transformers' continuous batching, without its thread: on one processor that is in the way."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig
    from transformers.generation.configuration_utils import ContinuousBatchingConfig

    torch.set_num_threads(1)  # as ours does for so small a model
    tokenizer: Any = AutoTokenizer.from_pretrained(str(model))
    device, dtype = ("cuda", torch.bfloat16) if torch.cuda.is_available() else ("cpu", torch.float32)
    causal: Any = AutoModelForCausalLM.from_pretrained(str(model), dtype=dtype).to(device).eval()
    manager = causal.init_continuous_batching(
        generation_config=GenerationConfig(
            do_sample=True, temperature=1.0, top_k=0, top_p=1.0, eos_token_id=causal.config.eos_token_id
        ),
        # Left alone, it takes nine tenths of the memory that is free.
        continuous_batching_config=ContinuousBatchingConfig(num_blocks=64, max_batch_tokens=512),
    )
    processor = manager._create_batch_processor()
    ended = manager.output_router.output_queue

    def start(question: str, most: int) -> None:
        prompt: Sequence[int] = tokenizer.apply_chat_template(
            [{"role": "user", "content": question}], add_generation_prompt=True, return_dict=False
        )
        manager.add_request(list(prompt), max_new_tokens=most)

    def step() -> Iterator[list[int]]:
        if processor.prepare_next_batch():
            processor._generation_step(causal)
            processor.update_batch()
        while not ended.empty():
            told = ended.get_nowait()
            if told.error:
                raise RuntimeError(told.error)
            tokenizer.decode(told.generated_tokens)
            yield told.generated_tokens

    return closed_loop(start, step)
