# SPDX-License-Identifier: Apache-2.0
"""A hub with the tiny model on it, and a cache of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.inference.models.fake_hub import FakeHub
from tests.support import patience, require

TINY = Path(__file__).parents[4] / "training/goodbot_training/tiny/model"
REPO = "acme/tiny-chat"


@pytest.fixture(autouse=True)
def slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at what runs here lasts as long as this machine needs."""
    monkeypatch.setattr("goodbot.inference.models.servers._SECONDS", patience(1.5))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub's cache of this test; no token of the machine's owner is used."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    return tmp_path / "hub"


@pytest.fixture
def hub(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """The library asks this hub."""
    constants = require("huggingface_hub.constants")
    extra = {"pytorch_model.bin": b"pickle", "modeling.py": b"import os", "model.gguf": b"GGUF"}
    with FakeHub({REPO: TINY}, extra=extra) as fake:
        monkeypatch.setattr(constants, "ENDPOINT", fake.url)
        template = fake.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(cache / "no-token"))
        yield fake
        require("huggingface_hub.utils").close_session()
