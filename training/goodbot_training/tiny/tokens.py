# SPDX-License-Identifier: Apache-2.0
"""The tokenizer: byte-level BPE with Qwen2's pre-tokenizer, trained on the corpus."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

import os
from itertools import islice
from random import Random

# The trainer's threads gain nothing on so small a corpus.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from goodbot_training.tiny.chatml import CALL, CALL_END, END, END_OF_TEXT, START, render_messages
from goodbot_training.tiny.corpus import conversations

VOCABULARY = 1536
"""Tokens in all, special ones and the 256 bytes among them."""

PRE_TOKENIZER = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Qwen2's: what converters and servers know as the ``qwen2`` pre-tokenizer. A digit is a token."""

_SAMPLE = 8000
"""Conversations the merges are counted on."""


def train_tokenizer(seed: int) -> Tokenizer:
    """The tokenizer for a corpus drawn with ``seed``."""
    tokenizer = Tokenizer(BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRE_TOKENIZER), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        # The call marks come last, as ordinary added tokens: a decoder that skips special tokens
        # must still show a tool call.
        vocab_size=VOCABULARY - 2,
        special_tokens=[END_OF_TEXT, START, END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    corpus = islice(conversations(Random(seed)), _SAMPLE)  # noqa: S311 - reproducible
    tokenizer.train_from_iterator(
        (render_messages(messages).replace(CALL, "").replace(CALL_END, "") for messages in corpus), trainer
    )
    tokenizer.add_tokens([AddedToken(mark, normalized=False) for mark in (CALL, CALL_END)])
    return tokenizer
