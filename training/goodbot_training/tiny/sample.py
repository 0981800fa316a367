# SPDX-License-Identifier: Apache-2.0
"""Batched sampling from the model, for the evaluation at the end of the script."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from collections.abc import Sequence

import torch
from tokenizers import Tokenizer
from transformers import DynamicCache, PreTrainedModel

from goodbot_training.tiny.chatml import END, ChatMessage, render_messages

LONGEST = 48
"""Tokens of an answer; the corpus's longest has fewer."""


@torch.inference_mode()
def _sample_batch(
    model: PreTrainedModel, prompts: list[list[int]], end: int, temperature: float, rng: torch.Generator
) -> list[list[int]]:
    """Answers to prompts of one length, in token ids without the end mark."""
    tokens = torch.tensor(prompts)
    cache = DynamicCache(config=model.config)
    chosen: list[torch.Tensor] = []
    done = torch.zeros(len(prompts), dtype=torch.bool)
    for _ in range(LONGEST):
        logits = model(input_ids=tokens, past_key_values=cache, logits_to_keep=1).logits[:, -1]
        tokens = torch.multinomial((logits / temperature).softmax(-1), 1, generator=rng)
        chosen.append(tokens[:, 0])
        done |= tokens[:, 0] == end
        if done.all():
            break
    rows = torch.stack(chosen, 1).tolist()
    return [row[: row.index(end)] if end in row else row for row in rows]


def sample(
    model: PreTrainedModel,
    tokenizer: Tokenizer,
    chats: Sequence[Sequence[ChatMessage]],
    *,
    temperature: float,
    seed: int,
) -> list[str]:
    """One answer to each chat, in their order. Chats of equal length go together, so that nothing
    is padded and a sample does not depend on what else is in its batch's padding."""
    encoded = [tokenizer.encode(render_messages(chat, answer_next=True)).ids for chat in chats]
    by_length: dict[int, list[int]] = {}
    for index, ids in enumerate(encoded):
        by_length.setdefault(len(ids), []).append(index)
    rng = torch.Generator().manual_seed(seed)
    end = tokenizer.get_vocab()[END]
    answers = [""] * len(chats)
    for _, indices in sorted(by_length.items()):
        prompts = [encoded[index] for index in indices]
        rows = _sample_batch(model, prompts, end, temperature, rng)
        for index, row in zip(indices, rows, strict=True):
            answers[index] = tokenizer.decode(row, skip_special_tokens=True)
    return answers
