# SPDX-License-Identifier: Apache-2.0
"""A model directory's files, as far as they can be judged without loading them."""

from __future__ import annotations

import contextlib
import json
import os
import struct
from pathlib import Path
from typing import Any, cast

from goodbot.api import marks
from goodbot.api.texts import explained
from goodbot.api.texts.terminal import here, phrase

_MAX_HEADER = 100_000_000
"""Bytes; the format's own limit."""
_MALFORMED = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "tokenizer_config.json")
_TEMPLATES = ("chat_template.jinja", "additional_chat_templates")
"""A chat_template.json is read for processors of pictures alone."""


def damaged(path: Path) -> str:
    """What is wrong with a safetensors file, empty if its header and its length fit."""
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > _MAX_HEADER:
                return phrase("doc_w_header")
            header = json.loads(file.read(length).decode("utf-8"))
            there = os.fstat(file.fileno()).st_size - 8 - length
        tensors = [entry for name, entry in header.items() if name != "__metadata__"]
        needed = max((int(entry["data_offsets"][1]) for entry in tensors), default=0)
    except (*_MALFORMED, struct.error):
        return phrase("doc_w_cut")
    if not tensors:
        return phrase("doc_w_empty")
    if there < needed:
        return phrase("doc_w_short", there=there, needed=needed)
    return phrase("doc_w_long", count=there - needed) if there > needed else ""


def problems(directory: Path) -> list[str]:
    """Everything that keeps a model's files from being loaded, a sentence each."""
    found = [phrase("doc_w_missing", name=name) for name in _absent(directory)]
    for path in sorted(directory.glob("*.safetensors")):
        if why := damaged(path):
            found.append(explained(path.name, why, here()))
    if not any((directory / name).exists() for name in _TOKENIZERS):
        found.append(phrase("doc_w_tokenizer"))
    elif not _template(directory):
        found.append(phrase("doc_w_template"))
    return found


def ends(directory: Path) -> bool:
    """Whether the chat template writes a token that the model's files name as an end."""
    names: set[str] = set()
    ids: set[object] = set()
    for file in ("generation_config.json", "config.json", "tokenizer_config.json"):
        with contextlib.suppress(*_MALFORMED):
            told = _json(directory / file)
            stated: Any = told.get("eos_token_id")
            ids.update(cast("list[object]", stated) if isinstance(stated, list) else [stated])
            token: Any = told.get("eos_token")
            content: Any = cast("Any", token)["content"] if isinstance(token, dict) else token
            names.add(str(content or ""))
    names.update(one["content"] for one in marks.added(directory) if one.get("id") in ids)
    template = marks.chat_template(directory)
    return any(name in template for name in names if name)


def _absent(directory: Path) -> list[str]:
    """Files that the index names and that are not there."""
    index = directory / "model.safetensors.index.json"
    if not index.exists():
        return []
    try:
        names = set(_json(index)["weight_map"].values())
    except _MALFORMED:
        return [phrase("doc_w_index", name=index.name)]
    return sorted(name for name in names if not (directory / Path(str(name)).name).exists())


def _template(directory: Path) -> bool:
    if any((directory / name).exists() for name in _TEMPLATES):
        return True
    try:
        return bool(_json(directory / "tokenizer_config.json").get("chat_template"))
    except _MALFORMED:
        return False


def _json(path: Path) -> dict[str, Any]:
    value = json.loads(path.read_text(encoding="utf-8"))
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
