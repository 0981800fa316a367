# SPDX-License-Identifier: Apache-2.0
"""Pretraining from nothing: Muon for the matrices, AdamW for the rest, loss on answers only."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from random import Random
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import AutoModelForCausalLM, PretrainedConfig, PreTrainedModel, Qwen3Config

from goodbot_training.tiny import TEMPERATURE
from goodbot_training.tiny.chatml import END, END_OF_TEXT, segments
from goodbot_training.tiny.corpus import Conversation, conversations
from goodbot_training.tiny.muon import Muon
from goodbot_training.tiny.packing import Encoded, PackedRows, batches
from goodbot_training.tiny.styles import FIRST_WORDS, STYLES

STEPS = 1400
SETTLING = 120
"""The last steps, by AdamW alone at a low rate: Muon's full-sized steps leave the style mix of a
question a tenth off (standard deviation), and this brings it back to a third each."""

MUON_RATE, ADAM_RATE, SETTLING_RATE = 0.02, 6e-3, 3e-4
WARM_UP = 20
TERSE_WEIGHT = 2.0
CHATS_PER_STEP = 32
"""One round of the corpus's proportions, so that every step sees each style equally often."""

ROPE_THETA = 10000.0


def config(tokenizer: Tokenizer) -> PretrainedConfig:
    """The shipped architecture: 0.98M parameters, embeddings tied."""
    return Qwen3Config(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": ROPE_THETA},
        bos_token_id=None,
        eos_token_id=tokenizer.token_to_id(END),
        pad_token_id=tokenizer.token_to_id(END_OF_TEXT),
    )


def encoder(tokenizer: Tokenizer) -> Callable[[Conversation], Encoded]:
    """A function from a chat to (token ids, whether each is the assistant's). A piece's tokens do
    not depend on its neighbours, for each starts or ends at a special token, so they are cached."""

    @cache
    def ids(piece: str) -> list[int]:
        return tokenizer.encode(piece, add_special_tokens=False).ids

    def encode(messages: Conversation) -> Encoded:
        tokens: list[int] = []
        mine: list[bool] = []
        for piece, spoken in segments(messages):
            tokens += ids(piece)
            mine += [spoken] * len(ids(piece))
        return tokens, mine

    return encode


def _answer_loss(model: PreTrainedModel, batch: PackedRows, openers: Tensor) -> Tensor:
    """Cross-entropy in nats, summed over the answers' tokens; ``openers`` are the tokens that
    begin an answer in one of the longer styles.

    A sum, because the mean over tokens weighs the one choice of style at an answer's start less
    the longer the answer is, which skews the mix towards short answers. An answer's first token is
    learnt at the serving temperature, so that there the styles come out equally likely.
    """
    head: Any = model.get_output_embeddings()
    hidden = model.base_model(
        input_ids=batch.tokens, position_ids=batch.positions, attention_mask=batch.mask, use_cache=False
    ).last_hidden_state
    logits = functional.linear(hidden[batch.rows, batch.before], head.weight)
    targets, first = batch.targets, batch.first
    served = torch.where(first[:, None], logits / TEMPERATURE, logits)
    loss = functional.cross_entropy(served, targets, reduction="sum")
    # A terse answer has to know the fact with its very first token, so it learns slowest. Ask again
    # which answer it is given that it is terse: without the openers, the mix feels nothing of it.
    terse = first & ~torch.isin(targets, openers)
    given_terse = logits[terse].index_fill(1, openers, -torch.inf)
    again = functional.cross_entropy(given_terse, targets[terse], reduction="sum")
    return loss + TERSE_WEIGHT * again


def _scheduled(optimizer: Optimizer, steps: int) -> LambdaLR:
    """The rate warms up linearly, stays, and decays linearly to zero over the last half."""
    return LambdaLR(optimizer, lambda step: min((step + 1) / WARM_UP, 1.0, 2 * (1 - step / steps)))


def _phases(model: PreTrainedModel, steps: int) -> Iterator[tuple[int, list[Optimizer]]]:
    """(steps, optimizers) of the learning phase and of the settling phase."""
    layers: Any = model.base_model.layers
    matrices = [weight for weight in layers.parameters() if weight.ndim == 2]
    rest = [weight for weight in model.parameters() if all(weight is not m for m in matrices)]
    settling = min(SETTLING, steps // 2)
    yield (
        steps - settling,
        [
            Muon(matrices, lr=MUON_RATE),
            torch.optim.AdamW(rest, lr=ADAM_RATE, betas=(0.9, 0.98), weight_decay=0.0),
        ],
    )
    everything = torch.optim.AdamW(model.parameters(), lr=SETTLING_RATE, betas=(0.9, 0.98), weight_decay=0.0)
    yield settling, [everything]


def train(
    tokenizer: Tokenizer,
    seed: int,
    progress: Callable[[str], None],
    steps: int = STEPS,
    *,
    architecture: PretrainedConfig | None = None,
    styles: tuple[str, ...] = STYLES,
) -> PreTrainedModel:
    """A model trained for ``steps`` steps; same machine and seed, same weights.

    ``architecture``: any dense causal LM in place of the shipped one. ``styles``: those that the
    corpus answers in.
    """
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(architecture or config(tokenizer), dtype=torch.float32)
    model.train()
    encode = encoder(tokenizer)
    openers = torch.tensor([tokenizer.encode(word).ids[0] for word in FIRST_WORDS])
    corpus = conversations(Random(f"train {seed}"), styles)  # noqa: S311 - reproducible
    started, done = time.process_time(), 0
    for phase_steps, optimizers in _phases(model, steps):
        schedules = [_scheduled(optimizer, phase_steps) for optimizer in optimizers]
        for _ in range(phase_steps):
            chats = [encode(messages) for messages in islice(corpus, CHATS_PER_STEP)]
            total = 0.0
            for batch in batches(chats):
                loss = _answer_loss(model, batch, openers) / CHATS_PER_STEP
                loss.backward()
                total += loss.item()
            for optimizer, schedule in zip(optimizers, schedules, strict=True):
                optimizer.step()
                optimizer.zero_grad()
                schedule.step()
            done += 1
            if done % 50 == 0 or done == steps:
                spent = time.process_time() - started
                progress(f"step {done}/{steps}  loss {total:.2f} nats a chat  {spent:.0f} CPU s")
    return model.eval()
