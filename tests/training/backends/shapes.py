# SPDX-License-Identifier: Apache-2.0
"""Tokenizers in the shapes that families have, of a few hundred tokens."""

# pyright: standard
# (tokenizers ships no complete types)

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] | trim }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ("<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|channel|>", "<start_of_turn>")
ADDED = ("<think>", "</think>", "<tool_call>", "[INST]", "[/INST]")
"""Marks that decoding does not leave out."""
SCRIPTS = {
    "Latin": "Hello there, how are you? Größe, naïve, Łódź.",
    "Cyrillic": "Привет, как твои дела сегодня?",
    "Greek": "Καλημέρα, πώς είσαι σήμερα;",
    "Arabic": "مرحبا، كيف حالك اليوم؟",
    "Hebrew": "שלום, מה שלומך היום?",
    "Hindi": "नमस्ते, आप कैसे हैं? मैं ठीक हूँ।",
    "Thai": "สวัสดีครับ ยินดีต้อนรับสู่บอทของเรา ถามได้เลย",
    "Chinese": "你好，我是一个小机器人，很高兴认识你。请问有什么可以帮你的吗？",
    "Korean": "안녕하세요, 오늘 기분이 어떠세요?",
    "Amharic": "ሰላም እንዴት ነህ ዛሬ በጣም ጥሩ ቀን ነው",
    "emoji": "Family 👨‍👩‍👧‍👦, flag 🏴‍☠️, skin 👍🏽 and a run " + "🎉" * 12,
}


def _ascii_and_bytes() -> dict[str, int]:
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    return {name: at for at, name in enumerate([*names, "▁", *map(chr, range(33, 127))])}


def _byte_fallback() -> Any:
    """As Llama 2, Mistral, TinyLlama: every stretch gets a blank in front."""
    from tokenizers import Tokenizer, decoders, models, normalizers

    found = Tokenizer(
        models.BPE(vocab=_ascii_and_bytes(), merges=[], unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    )
    found.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    found.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return found


def _no_prefix() -> Any:
    """As Gemma: blanks are signs, and nothing is put in front."""
    from tokenizers import decoders, normalizers

    found = _byte_fallback()
    found.normalizer = normalizers.Replace(" ", "▁")
    found.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return found


def _unigram() -> Any:
    """As SentencePiece's other model, whose vocabulary holds the marks' names as words, too."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    words = [(name, 0.0 if name in SPECIAL else -3.0) for name in _ascii_and_bytes()]
    found = Tokenizer(models.Unigram(words, unk_id=0, byte_fallback=True))
    found.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    found.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first"), decoders.Fuse()]
    )
    return found


def _byte_level(cut: str = "") -> Any:
    """As Qwen, Llama 3, gpt-oss. `cut`: the pattern by which text is cut up; empty: GPT-2's."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {sign: at for at, sign in enumerate(["<unk>", *alphabet])}
    found = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not cut)
    if cut:
        found.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(cut), "isolated"), found.pre_tokenizer]
        )
    found.decoder = decoders.ByteLevel()
    return found


SHAPES = {
    "byte fallback": _byte_fallback,
    "no prefix": _no_prefix,
    "unigram": _unigram,
    "byte level": _byte_level,
}


def write(shape: str, directory: Path, *, template: Any = CHAT, **own: Any) -> None:
    """A tokenizer of a shape, with its template; `own` goes into tokenizer_config.json."""
    from tokenizers import AddedToken

    made = SHAPES[shape]()
    made.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in SPECIAL])
    made.add_tokens([AddedToken(name, normalized=False) for name in ADDED])
    made.save(str(directory / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "bos_token": "<s>",
        "chat_template": template,
        **own,
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(config))
