# SPDX-License-Identifier: Apache-2.0
"""What serving and training take, and what there is: counted once, wherever the server is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from goodbot.api import estimate
from goodbot.api.model_shape import read
from goodbot.base.machine import device as machine
from goodbot.base.machine.device import Device
from goodbot.learning.training import memory_estimate

GB = 10**9
CONFIG = {
    "model_type": "llama",
    "hidden_size": 512,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "intermediate_size": 1536,
    "vocab_size": 32000,
    "tie_word_embeddings": True,
    "max_position_embeddings": 4096,
}
Smi = Callable[..., None]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Weights of 64 MB, of a model of 43 million numbers."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.truncate(64_000_000)
    return tmp_path


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], Device]:
    """Make this machine one with such a device, and so many bytes free."""

    def make(device: str, memory: int) -> Device:
        place = Device(backend="torch", device=device, memory=memory, flops=1e12, bandwidth=1e11, step=1e-3)
        monkeypatch.setattr(memory_estimate, "place", lambda backend, measure=True: place)
        return place

    return make


@pytest.fixture
def smi(monkeypatch: pytest.MonkeyPatch) -> Smi:
    """`nvidia-smi` says this; in MiB."""

    def says(**answers: int) -> None:
        def ask(*words: str) -> str:
            asked = words[3].removeprefix("--query-gpu=").replace(".", "_")
            assert words[:3] == ("nvidia-smi", "-i", "0")
            return f"{answers[asked]}\n"

        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        monkeypatch.setattr(machine, "ask", ask)

    return says


def look(model: Path, *, up: bool = True, **settings: int) -> memory_estimate.Peaks:
    return memory_estimate.look(model, model, settings, "torch", up=up)


def test_what_holds_its_memory_already_is_not_counted_twice(
    model: Path, here: Callable[[str, int], Device]
) -> None:
    here("cpu", 10 * GB)
    up, down = look(model), look(model, up=False)
    assert up.room == 9 * GB
    assert down.room == 9 * GB - down.serving
    assert up.serving == down.serving > 4 * 43_000_000


def test_a_mac_tells_all_its_memory_so_the_model_is_counted_and_much_is_left(
    model: Path, here: Callable[[str, int], Device]
) -> None:
    here("metal", 10 * GB)
    found = look(model)
    assert found.room == 7 * GB - found.serving


def test_a_training_takes_what_the_model_chooser_says_it_does(
    model: Path, here: Callable[[str, int], Device]
) -> None:
    place = here("cpu", 3 * GB)
    least = estimate.estimate(read(CONFIG), place, 64_000_000)
    assert least.tokens == 0, "so that it is of the fewest tokens"
    assert look(model).training == least.training
    assert look(model).serving == least.serving


def test_shorter_turns_a_lower_rank_and_four_bits_take_less(
    model: Path, here: Callable[[str, int], Device]
) -> None:
    here("cpu", 10 * GB)
    usual = look(model).training
    assert look(model, max_sequence_tokens=256).training < usual
    assert look(model, tokens_per_forward=256).training < usual
    assert look(model, rank=2).training < usual
    assert look(model, base_bits=4).training < usual
    assert look(model, max_sequence_tokens=8192).training == usual


def test_a_server_on_the_same_gpu_is_seen_by_what_is_held_there(
    model: Path, here: Callable[[str, int], Device], smi: Smi
) -> None:
    here("cuda", 10 * GB)
    smi(memory_used=5000, count=2)
    assert look(model, up=False).room == 9 * GB
    assert memory_estimate.apart("http://127.0.0.1:8000", model, "torch") == ""
    smi(memory_used=3, count=2)
    assert look(model, up=False).room == 9 * GB - look(model).serving
    assert (
        memory_estimate.apart("http://127.0.0.1:8000", model, "torch") == "the GPU that trains holds no model"
    )


def test_with_one_gpu_an_empty_one_is_no_sign_that_the_model_stays_away(
    model: Path, here: Callable[[str, int], Device], smi: Smi
) -> None:
    """Ollama, say, loads it with the next question."""
    here("cuda", 10 * GB)
    smi(memory_used=3, count=1)
    assert memory_estimate.apart("http://127.0.0.1:11434", model, "torch") == ""


@pytest.mark.parametrize(
    ("url", "apart"),
    [
        ("http://gpu.lan:8000", "http://gpu.lan:8000 is another machine"),
        ("http://192.168.1.7:8000", "http://192.168.1.7:8000 is another machine"),
        ("http://localhost:8000", ""),
        ("http://127.0.0.1:8000", ""),
        ("http://[::1]:8000", ""),
        ("", ""),
    ],
)
def test_another_machine_is_told_by_its_address(
    url: str, apart: str, model: Path, here: Callable[[str, int], Device]
) -> None:
    here("cpu", 10 * GB)
    assert memory_estimate.apart(url, model, "torch") == apart


def test_of_a_model_that_cannot_be_read_nothing_is_known(
    model: Path, here: Callable[[str, int], Device]
) -> None:
    here("cpu", 10 * GB)
    (model / "config.json").write_text('{"model_type": "fake"}')
    assert look(model) == memory_estimate.Peaks(serving=0, training=0, room=0)
    assert memory_estimate.seconds(model, "torch") == 0


def test_the_gpu_that_we_may_use_is_the_one_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def ask(*words: str) -> str:
        asked.append(words)
        return "[N/A]\n"

    monkeypatch.setattr(machine, "ask", ask)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    assert machine.cuda_used() == 0
    assert asked[0][:3] == ("nvidia-smi", "-i", "3")
