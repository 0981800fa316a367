# SPDX-License-Identifier: Apache-2.0
"""One token as text is what the tokenizer's own library makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from goodbot.inference.servers.token_text import decoder

from tests.core.inference.servers import tiny
from tests.support import require

LLAMA = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ],
}
GEMMA = {"type": "Sequence", "decoders": LLAMA["decoders"][:3]}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
TOKENS = ["▁Hello", "Hello", "▁", "▁▁", "a▁b", "<0x0A>", "<0xF0>", "<s>", "é", "Ġworld"]


def test_every_token_of_the_tiny_model() -> None:
    library = require("tokenizers").Tokenizer.from_file(str(tiny.model() / "tokenizer.json"))
    decode = decoder(tiny.model())
    assert decode is not None
    for id_ in range(library.get_vocab_size()):
        expected = library.decode([id_], skip_special_tokens=False)
        assert decode(library.id_to_token(id_)) == expected


@pytest.mark.parametrize(
    "config",
    [
        LLAMA,
        GEMMA,
        METASPACE,
        {**METASPACE, "prepend_scheme": "never"},
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    ],
)
def test_the_alphabets_of_other_families(config: dict[str, Any], tmp_path: Path) -> None:
    tokenizers = require("tokenizers")
    vocabulary = {token: id_ for id_, token in enumerate(TOKENS)}
    blank = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, []))
    whole = json.loads(blank.to_str()) | {"decoder": config}
    library = tokenizers.Tokenizer.from_str(json.dumps(whole))
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole))
    decode = decoder(tmp_path)
    assert decode is not None
    told = {token: decode(token) for token in TOKENS}
    assert told == {token: library.decode([id_]) for token, id_ in vocabulary.items()}


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"decoder": null}', '{"decoder": {"type": "CTC"}}', '{"decoder": {"type": "Strip"}}']
)
def test_where_the_files_do_not_tell_there_is_none(text: str, tmp_path: Path) -> None:
    assert decoder(tmp_path) is None
    (tmp_path / "tokenizer.json").write_text(text)
    assert decoder(tmp_path) is None
