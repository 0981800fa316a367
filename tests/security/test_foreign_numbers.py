# SPDX-License-Identifier: Apache-2.0
"""Numbers and files of a downloaded model or adapter: bounded before they drive a loop, a wait or a copy."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
from goodbot.api import model_shape
from goodbot.api.adapters.files import MAX_TEXT
from goodbot.api.model import ResolvedModel
from goodbot.base.errors import AdapterError, ConfigError
from goodbot.inference.models.directory import check, read_config
from goodbot.inference.servers import token_text
from goodbot.learning.adapters import importing

from tests.architecture.source import ROOT

TINY = ROOT / "training/goodbot_training/tiny/model"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TINY, tmp_path / "model"))


@pytest.mark.parametrize(
    "change",
    [
        {"num_hidden_layers": 200_000_000},
        {"num_hidden_layers": 2001},
        {"hidden_size": 10**12},
        {"vocab_size": 1 << 26},
        {"num_attention_heads": 10**9},
    ],
    ids=str,
)
def test_s9_no_number_of_a_config_is_gone_through_without_bound(change: dict[str, Any]) -> None:
    config = json.loads((TINY / "config.json").read_bytes()) | change
    with pytest.raises(ConfigError, match=r"config\.json"):
        model_shape.read(config)


@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "README.md", "new"])
@pytest.mark.parametrize("kind", ["pipe", "socket", "link to a device"])
def test_s10_nobody_waits_for_what_is_no_plain_file(model: Path, name: str, kind: str) -> None:
    (model / name).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(model / name)
    elif kind == "socket":
        before = Path.cwd()
        os.chdir(model)  # the name of a socket must be short
        try:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(name)
        finally:
            os.chdir(before)
    else:
        (model / name).symlink_to(os.devnull)
    with pytest.raises(ConfigError, match=f"{name} is no plain file: take it out"):
        check(model)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "note.txt"])
def test_a_link_out_of_a_model_s_directory_is_no_file_of_it(model: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "private").write_text("{}")
    (model / name).unlink(missing_ok=True)
    (model / name).symlink_to(tmp_path / "private")
    with pytest.raises(ConfigError, match=f"{name} is a link out of the model's directory"):
        check(model)


def test_a_snapshot_of_the_hub_s_cache_links_to_its_own_files(model: Path, tmp_path: Path) -> None:
    cache = tmp_path / "models--some--body"
    snapshot = cache / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    model.rename(cache / "blobs")
    for file in (cache / "blobs").iterdir():
        (snapshot / file.name).symlink_to(f"../../blobs/{file.name}")
    check(snapshot)
    (snapshot / "config.json").unlink()
    (snapshot / "config.json").symlink_to("../../../private")
    (tmp_path / "private").write_text("{}")
    with pytest.raises(ConfigError, match="is a link out of"):
        check(snapshot)


def test_s10_a_text_without_end_is_not_read(model: Path) -> None:
    with (model / "tokenizer.json").open("r+b") as file:
        file.truncate(300 << 20)  # a hole: it takes no space
    with pytest.raises(ConfigError, match=r"tokenizer\.json has 300 MB"):
        read_config(model)


def test_s10_a_tokenizer_strips_no_more_than_there_is(tmp_path: Path) -> None:
    steps = {"type": "Strip", "content": "_", "start": 10**12, "stop": 10**12}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"decoder": steps}))
    decode = token_text.decoder(tmp_path)
    assert decode is not None
    assert decode("__a_b__") == "a_b"


@pytest.mark.parametrize("name", ["adapter_model.safetensors", "adapters.safetensors"])
async def test_s11_what_is_too_large_for_this_model_is_not_copied(
    model: Path, tmp_path: Path, name: str
) -> None:
    adapter, home = tmp_path / "adapter", tmp_path / "home"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text("{}")
    with (adapter / name).open("wb") as file:
        file.truncate(3 << 30)
    await _refused(adapter, home, model, "over the limit")


async def test_s11_a_header_is_looked_at_before_the_rest_is_copied(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copy(*_: object) -> None:
        raise AssertionError("it is copied")

    monkeypatch.setattr(importing, "_copy", copy)
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text("{}")
    with (adapter / "adapter_model.safetensors").open("wb") as file:
        file.truncate(MAX_TEXT)
    await _refused(adapter, tmp_path / "home", model, "safetensors")


async def _refused(adapter: Path, home: Path, model: Path, words: str) -> None:
    here = ResolvedModel(name="owner/model", path=model)
    with pytest.raises(AdapterError, match=words):
        async with importing.prepared(adapter, home, here, lambda *_: None):
            pass
    assert not [path for path in home.rglob("*") if path.is_file()]
