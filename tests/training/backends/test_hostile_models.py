# SPDX-License-Identifier: Apache-2.0
"""T12: a model directory with code and pickles in it. None of that runs, whatever its files ask for."""

from __future__ import annotations

import contextlib
import importlib
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.backend import LoraSettings
from goodbot.base.errors import TrainingError
from goodbot_training.backends.chat import check_model_directory

from tests.support import require

CLASSES = {"torch": "TorchBackend", "mlx": "MlxBackend"}
MODULES = ("configuration_x.py", "modeling_x.py", "tokenization_x.py")
PICKLES = ("pytorch_model.bin", "adapter_model.bin")
CODE = "from pathlib import Path\nPath({canary!r}).write_text('code has run')\n"


class Canary:
    """What unpickling it does."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return shutil.copy, (__file__, self._path)


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """It is there once anything of the hostile model has run."""
    return tmp_path / "canary"


@pytest.fixture
def hostile(random_model: Path, tmp_path: Path, canary: Path) -> Path:
    """A sound model, with code that its configs refer to, and pickles beside its weights."""
    model = tmp_path / "model"
    shutil.copytree(random_model, model)
    for name in MODULES:
        (model / name).write_text(CODE.format(canary=str(canary)))
    for name in PICKLES:
        (model / name).write_bytes(pickle.dumps({"x": Canary(canary)}, protocol=2))
    change(
        model / "config.json",
        auto_map={"AutoConfig": "configuration_x.X", "AutoModelForCausalLM": "modeling_x.X"},
    )
    change(model / "tokenizer_config.json", auto_map={"AutoTokenizer": ["tokenization_x.X"] * 2})
    return model


def change(file: Path, **fields: Any) -> None:
    before = json.loads(file.read_bytes()) if file.exists() else {}
    file.write_text(json.dumps({**before, **fields}))


def load(backend: str, model: Path) -> Any:
    """By the worker's own way, with nothing of the framework replaced."""
    require({"torch": "peft", "mlx": "mlx_lm"}[backend])
    module = importlib.import_module(f"goodbot_training.backends.{backend}.trainer")
    loaded = getattr(module, CLASSES[backend])()
    loaded.load(model, lora=LoraSettings(rank=2, alpha=4.0))
    return loaded


@pytest.mark.parametrize("name", [*MODULES, *PICKLES])
def test_whoever_runs_one_of_them_is_found_out(hostile: Path, canary: Path, name: str) -> None:
    if name in PICKLES:
        pickle.loads((hostile / name).read_bytes())
    else:
        exec((hostile / name).read_text())
    assert canary.exists()


@pytest.mark.parametrize("backend", CLASSES)
def test_a_known_model_is_made_by_the_framework_s_own_code(backend: str, hostile: Path, canary: Path) -> None:
    loaded = load(backend, hostile)
    turn = loaded.tokenize([{"role": "user", "content": "The capital of France?"}], "Paris.")
    [scores] = loaded.logprobs([turn], temperature=[1.0], adapter=True)
    assert len(scores) == len(turn.response) > 0
    assert loaded._chat.vocabulary == loaded.vocabulary, "no question has other ids"
    assert not canary.exists()


def unknown_model(model: Path) -> None:
    change(model / "config.json", model_type="x", architectures=["X"])


def no_safetensors(model: Path) -> None:
    (model / "model.safetensors").unlink()


def a_pickle_for_safetensors(model: Path) -> None:
    shutil.copy(model / PICKLES[0], model / "model.safetensors")


@pytest.mark.parametrize("backend", CLASSES)
@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (unknown_model, "cannot be loaded by "),
        (no_safetensors, r"there are no model\*\.safetensors files"),
        (a_pickle_for_safetensors, "cannot be loaded by "),
    ],
)
def test_what_only_code_or_a_pickle_could_make_is_refused_in_a_sentence(
    backend: str, spoil: Callable[[Path], None], sentence: str, hostile: Path, canary: Path
) -> None:
    spoil(hostile)
    with pytest.raises(TrainingError, match=sentence):
        load(backend, hostile)
    assert not canary.exists()


def a_module_of_mlx_lm(model: Path) -> None:
    change(model / "config.json", model_file="modeling_x.py")


def weights_named_in_the_config(model: Path) -> None:
    change(model / "config.json", transformers_weights=PICKLES[0])


def weights_named_in_an_index(model: Path) -> None:
    (model / "model.safetensors").rename(model / "model-00001-of-00001.safetensors")
    names = {"model.norm.weight": PICKLES[0]}
    change(model / "model.safetensors.index.json", weight_map=names, metadata={})


def an_adapter_beside_it(model: Path) -> None:
    change(
        model / "adapter_config.json",
        peft_type="LORA",
        r=2,
        lora_alpha=4,
        target_modules=["q_proj"],
        base_model_name_or_path=str(model),
        auto_mapping={"base_model_class": "X", "parent_library": "modeling_x"},
    )


def unknown_tokenizer(model: Path) -> None:
    change(model / "tokenizer_config.json", tokenizer_class="X")


@pytest.mark.parametrize("backend", CLASSES)
@pytest.mark.parametrize(
    "spoil",
    [
        a_module_of_mlx_lm,
        weights_named_in_the_config,
        weights_named_in_an_index,
        an_adapter_beside_it,
        unknown_tokenizer,
    ],
)
def test_what_one_framework_would_follow_is_refused_or_not_looked_at(
    backend: str, spoil: Callable[[Path], None], hostile: Path, canary: Path
) -> None:
    spoil(hostile)
    with contextlib.suppress(TrainingError):
        load(backend, hostile)
    assert not canary.exists()


def test_an_index_of_anything_but_safetensors_is_refused(hostile: Path) -> None:
    weights_named_in_an_index(hostile)
    with pytest.raises(TrainingError, match=rf"names {PICKLES[0]}, which is none of them"):
        check_model_directory(hostile)
