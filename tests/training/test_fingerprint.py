# SPDX-License-Identifier: Apache-2.0
"""How answers begin with an adapter and without, as it lies beside the adapter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.backend import LoraSettings
from goodbot.api.fingerprint import Fingerprint, ServedAs, compare
from goodbot_training.backends import fingerprint

from tests.core.inference.servers import tiny
from tests.support import require


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The tiny model with an adapter of random weights."""
    require("torch"), require("peft")
    from goodbot_training.backends.torch.trainer import TorchBackend

    directory = tiny.adapter(tmp_path_factory.mktemp("adapter"), 1)
    backend = TorchBackend()
    backend.load(tiny.model(), lora=LoraSettings(), adapter=directory)
    return backend


def test_the_prompts_are_ours_and_those_on_which_the_adapter_differs_most(
    backend: Any, tmp_path: Path
) -> None:
    fingerprint.write(backend, tmp_path)
    found = Fingerprint.of(tmp_path)
    assert found is not None
    assert found.top == 20
    assert len(found.prompts) == 4
    asked = [prompt.messages[0]["content"] for prompt in found.prompts]
    assert set(asked) < set(fingerprint._PROMPTS)
    left = set(fingerprint._PROMPTS) - set(asked)
    for text in left:
        other = fingerprint.measure_one(backend, text)
        assert other is not None
        assert fingerprint.apart(other) <= found.prompts[-1].apart + 1e-3


def test_it_tells_the_adapter_from_its_base(backend: Any, tmp_path: Path) -> None:
    fingerprint.write(backend, tmp_path)
    found = Fingerprint.of(tmp_path)
    assert found is not None
    for with_it, verdict in ((True, ServedAs.ADAPTER), (False, ServedAs.BASE)):
        told = [backend.first_tokens(p.messages, top=20, adapter=with_it) for p in found.prompts]
        assert compare(found.prompts, told) is verdict


def test_a_backend_that_cannot_tell_writes_none(tmp_path: Path) -> None:
    class Mute:
        def first_tokens(self, *_: Any, **__: Any) -> dict[str, float]:
            return {}

    mute: Any = Mute()
    fingerprint.write(mute, tmp_path)
    assert not list(tmp_path.iterdir())


def test_it_is_plain_numbers(backend: Any, tmp_path: Path) -> None:
    fingerprint.write(backend, tmp_path)
    [path] = tmp_path.iterdir()
    written = json.loads(path.read_text())
    assert written["format"] == 1
    for prompt in written["prompts"]:
        assert prompt["messages"][0]["role"] == "user"
        for side in ("base", "adapter"):
            assert 0 < len(prompt[side]) <= 20
            assert all(logprob <= 0 for logprob in prompt[side].values())
