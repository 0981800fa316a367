# SPDX-License-Identifier: Apache-2.0
"""Which directory is a model, and the sentence for one that is none."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from goodbot.api.model import ModelSpec
from goodbot.base.errors import ConfigError
from goodbot.inference.models import check, resolve

from tests.core.builders import Fake


def test_a_directory_is_named_after_itself_and_its_weights(tmp_path: Path) -> None:
    Fake(tmp_path / "mine")
    found = resolve(str(tmp_path / "mine"), {}, demo=False)
    assert re.fullmatch(r"mine@[0-9a-f]{8}", found.name)
    assert (found.path, found.label) == (tmp_path / "mine", "")
    assert resolve(str(tmp_path / "mine"), {}, demo=False).name == found.name


def _name(path: Path, weights: bytes, config: str = "{}") -> str:
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(config.replace("{", '{"model_type": "x"', 1))
    (path / "model.safetensors").write_bytes(weights)
    return resolve(str(path), {}, demo=False).name


def test_two_directories_of_one_name_are_two_models(tmp_path: Path) -> None:
    header = b"{}".ljust(64)
    weights = len(header).to_bytes(8, "little") + header + bytes(500_000)
    first = _name(tmp_path / "a" / "mine", weights)
    assert _name(tmp_path / "b" / "mine", weights) == first, "a copy is the same model"
    for number, at in enumerate((20, 250_036, 500_000)):  # header, the middle, the end
        other = bytearray(weights)
        other[at] ^= 1
        assert _name(tmp_path / str(number) / "mine", bytes(other)) != first
    assert _name(tmp_path / "c" / "mine", weights, '{, "hidden_size": 1}') != first
    assert _name(tmp_path / "d" / "other", weights).partition("@")[2] == first.partition("@")[2]


def test_a_snapshot_is_named_as_in_the_hub_however_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    path = Fake(tmp_path / "models--owner--name" / "snapshots" / ("a" * 40)).path
    assert resolve(str(path), {}, demo=False).name == "owner/name"
    assert resolve("owner/name", {}, demo=False).path == path, "the only one there is"
    assert resolve(f"owner/name@{'a' * 40}", {}, demo=False).path == path
    with pytest.raises(ConfigError, match="not on this machine"):
        resolve(f"owner/name@{'b' * 40}", {}, demo=False)


def test_a_model_with_a_part_missing_is_refused(tmp_path: Path) -> None:
    model = Fake(tmp_path / "m").path
    (model / "model.safetensors").rename(model / "model-00001-of-00002.safetensors")
    parts = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": parts}))
    with pytest.raises(ConfigError, match=r"model-00002-of-00002\.safetensors is missing"):
        check(model)
    (model / parts["b"]).write_bytes(b"")
    check(model)


def test_a_demo_model_answers_only_when_asked_for_and_says_so(tmp_path: Path) -> None:
    shipped = {"tiny": ModelSpec(name="tiny", path=tmp_path, demo=True)}
    assert resolve("", shipped, demo=True).label == "[demo model] "
    with pytest.raises(ConfigError, match="no model is configured"):
        resolve("", shipped, demo=False)
    with pytest.raises(ConfigError, match="no model is configured"):
        resolve("", {}, demo=True)


def test_what_is_no_model(tmp_path: Path) -> None:
    model = Fake(tmp_path / "m").path
    check(model)
    for content in ("", "[1]", "{}", "null", '{"model_type": "x"', "\udc80", "[" * 10**5):
        (model / "config.json").write_text(content, errors="surrogateescape")
        with pytest.raises(ConfigError, match="config"):
            check(model)
    (model / "config.json").unlink()
    with pytest.raises(ConfigError, match=r"no config\.json"):
        check(model)
    (model / "config.json").write_text('{"model_type": "x"}')
    (model / "model.safetensors").rename(model / "pytorch_model.bin")
    with pytest.raises(ConfigError, match="no other format"):
        check(model)


@pytest.mark.parametrize(
    "name", ["none", "a/b/c", "../x", "owner/..", "owner/name", "http://x/y", "owner/na me", "/none"]
)
def test_a_name_that_is_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(ConfigError):
        resolve(name, {}, demo=False)


def test_a_model_of_the_hubs_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "models--owner--name"
    revision = "0123456789abcdef0123456789abcdef01234567"
    fake = Fake(folder / "snapshots" / revision)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(revision)
    found = resolve("owner/name", {}, demo=False)
    assert (found.name, found.path) == ("owner/name", fake.path)
    for odd in ("../../..", "main", "", revision.upper(), "f" * 40):
        (folder / "refs" / "main").write_text(odd)
        with pytest.raises(ConfigError, match="not on this machine"):
            resolve("owner/name", {}, demo=False)
