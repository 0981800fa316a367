"""Which directory is a model, and the sentence for one that is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot.errors import ConfigError
from goodbot.models import ModelSpec, check, resolve

from tests.core.builders import Fake


def test_a_directory_is_named_after_itself(tmp_path: Path) -> None:
    Fake(tmp_path / "mine")
    found = resolve(str(tmp_path / "mine"), {}, demo=False)
    assert (found.name, found.path, found.label) == ("mine", tmp_path / "mine", "")


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
    "name",
    ["none", "a/b/c", "../x", "owner/..", "owner/name", "http://x/y", "owner/na me", "/none"],
)
def test_a_name_that_is_not_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
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
