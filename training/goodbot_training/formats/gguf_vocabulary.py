# SPDX-License-Identifier: Apache-2.0
"""A byte-level BPE tokenizer as GGUF has it: tokens, their kinds, merges, and how text is cut up first.

llama.cpp knows the ways of cutting by name only, so they are told by their pattern. SentencePiece
vocabularies are left to llama.cpp's own converter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from goodbot.base.errors import AdapterError
from goodbot.base.worded import Worded

from goodbot_training.formats.gguf_names import package

_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_CUTS = {_ENDINGS + r"\p{N}" + _REST: "qwen2", _ENDINGS + r"\p{N}{1,3}" + _REST: "llama-bpe"}


def add(writer: Any, directory: Path, size: int, end: int) -> None:
    """Put the tokenizer in `directory` into a GGUF file; `size` is the model's vocabulary.

    `end` ends a turn, whatever the files name: llama.cpp stops there, and at the ends that it knows by name.
    Raises AdapterError for one that llama.cpp has no name for.
    """
    gguf = package()
    try:
        tokenizer = cast("dict[str, Any]", json.loads((directory / "tokenizer.json").read_bytes()))
        model = tokenizer["model"]
        if model["type"] != "BPE" or model.get("byte_fallback"):
            other = (
                "the tokenizer is no byte-level BPE: "
                "convert the model with llama.cpp's convert_hf_to_gguf.py instead"
            )
            raise AdapterError(Worded(other))
        cut = _cut(tokenizer.get("pre_tokenizer") or {})
        tokens: list[str] = [f"[PAD{at}]" for at in range(size)]
        kinds: list[int] = [gguf.TokenType.UNUSED] * size
        for text, at in model["vocab"].items():
            tokens[at], kinds[at] = text, gguf.TokenType.NORMAL
        for added in cast("list[dict[str, Any]]", tokenizer.get("added_tokens") or []):
            special = added["special"] or added["content"].startswith("<|")
            kinds[added["id"]] = gguf.TokenType.CONTROL if special else gguf.TokenType.USER_DEFINED
            tokens[added["id"]] = added["content"]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        unread = "the tokenizer of {name} cannot be read ({why})"
        raise AdapterError(Worded(unread, name=directory.name, why=str(error))) from error
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(cut)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    special = gguf.SpecialVocab(directory, load_merges=True, n_vocab=size)
    special.special_token_ids |= {"eos": end, "eot": end}
    special.add_to_gguf(writer, quiet=True)


def _cut(pre: Mapping[str, Any]) -> str:
    """llama.cpp's name for a `pre_tokenizer`. Raises AdapterError."""
    steps: list[Mapping[str, Any]] = list(pre.get("pretokenizers") or [pre])
    kinds = [step.get("type") for step in steps]
    by_words = kinds[-1] == "ByteLevel" and steps[-1].get("use_regex", True)
    if kinds == ["ByteLevel"] and by_words:
        return "gpt-2"
    if kinds == ["Digits", "ByteLevel"] and by_words and steps[0].get("individual_digits"):
        return "smollm"
    if kinds == ["Split", "ByteLevel"] and not by_words and steps[0].get("behavior") == "Isolated":
        pattern = cast("dict[str, Any]", steps[0].get("pattern") or {})
        known = _CUTS.get(str(pattern.get("Regex")))
        if known:
            return known
    other = (
        "the tokenizer cuts text in a way that has no name here: "
        "convert the model with llama.cpp's convert_hf_to_gguf.py instead"
    )
    raise AdapterError(Worded(other))
