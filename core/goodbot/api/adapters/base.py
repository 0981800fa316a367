# SPDX-License-Identifier: Apache-2.0
"""What an adapter was trained on, as hashes: the base's weights, its tokenizer, its chat template.

An adapter means something with these only. Each is compared where an adapter is used, and what has
changed is said with the way back.
"""

from __future__ import annotations

import hashlib
import json
import string
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from goodbot.api.model import ResolvedModel, digest

_TOKENIZER = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "merges.txt",
    "added_tokens.json",
    "special_tokens_map.json",
)
_TEMPLATE = "chat_template"


@dataclass(frozen=True, kw_only=True, slots=True)
class Base:
    """One base model on this disk. Hashes are sha256, in hexadecimal; empty: there is no such file."""

    model: str
    """Its name (`ResolvedModel.name`)."""
    revision: str
    """The hub's commit of 40 digits, else `sha256:` and a digest of its config and its weights' headers,
    sizes and samples."""
    tokenizer: str
    chat_template: str

    @classmethod
    def of(cls, model: ResolvedModel) -> Base:
        """Reads the model's small files. Raises OSError."""
        path = model.path
        settings = _settings(path)
        template = settings.pop(_TEMPLATE, None)
        return cls(
            model=model.name,
            revision=_commit(path) or f"sha256:{digest(path)}",
            tokenizer=_tokenizer(path, settings),
            chat_template=_template(path, template),
        )


def _settings(path: Path) -> dict[str, Any]:
    try:
        found = json.loads((path / "tokenizer_config.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _tokenizer(path: Path, settings: dict[str, Any]) -> str:
    found = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    there = [name for name in _TOKENIZER if (path / name).is_file()]
    for name in there:
        found.update(f"\0{name}\0".encode())
        with (path / name).open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest() if there or settings else ""


def _commit(path: Path) -> str:
    """The commit of a snapshot in the hub's cache; empty for any other directory."""
    here = path.parent.name == "snapshots" and path.parent.parent.name.startswith("models--")
    commit = len(path.name) == 40 and set(path.name) <= set(string.hexdigits.lower())
    return path.name if here and commit else ""


def _template(path: Path, configured: Any) -> str:
    """As tokenizers read it: a file of its own comes before the entry in the tokenizer's config."""
    for name in ("chat_template.jinja", "chat_template.json"):
        if (path / name).is_file():
            return hashlib.sha256((path / name).read_bytes()).hexdigest()
    if not configured:
        return ""
    text = configured if isinstance(configured, str) else json.dumps(configured, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
