# SPDX-License-Identifier: Apache-2.0
"""What an archive says of itself, in the sentence that refuses it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from goodbot.api.adapters.manifest import CONFIG, WEIGHTS, AdapterManifest
from goodbot.api.model import ResolvedModel
from goodbot.base.errors import AdapterError
from goodbot.learning.adapters import archive, importing


async def test_a_foreign_name_reaches_no_terminal_as_it_is(tmp_path: Path) -> None:
    adapter, model = tmp_path / "adapter", tmp_path / "model"
    for directory in (adapter, model):
        directory.mkdir()
    for name in (CONFIG, WEIGHTS):
        (adapter / name).write_bytes(b"{}")
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    digest = hashlib.sha256(b"{}").hexdigest()
    told = AdapterManifest(
        version=1,
        parent=0,
        run=None,
        model="\x1b[2Jowner/model\n",
        revision="\x1b]0;x\x07" * 2,
        files={CONFIG: digest, WEIGHTS: digest},
    )
    archive.write(tmp_path / "x.tar", adapter, told, now=0.0)
    here = ResolvedModel(name="owner/model", path=model)
    with pytest.raises(AdapterError, match=r"v1 was trained on other weights of .*model") as caught:
        async with importing.prepared(tmp_path / "x.tar", tmp_path / "home", here, lambda *_: None):
            pass
    assert str(caught.value).isprintable()
