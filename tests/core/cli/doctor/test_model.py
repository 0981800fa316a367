# SPDX-License-Identifier: Apache-2.0
"""The model's files, whole and not; the backend, there and not; the memory, enough and not."""

from __future__ import annotations

import json
import shutil
import struct
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from goodbot.api.backend import BackendSpec
from goodbot.api.setup import CheckState
from goodbot.base import spawn
from goodbot.cli.doctor import model, weights
from goodbot_training.tiny.plugin import register_model

from tests.core.cli.doctor.examining import examined, only
from tests.support import patience, require

TINY = register_model().path


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TINY, tmp_path / "model"))


async def look(copy: Path) -> tuple[CheckState, str, str]:
    seen = examined(copy.parent / "home", f'[model]\npath = "{copy}"\n')
    check = await only(model.model(seen))
    return check.state, check.text, check.fix


async def test_a_whole_model(copy: Path) -> None:
    state, text, _ = await look(copy)
    assert (state, "every file is whole" in text) == (CheckState.OK, True)


async def test_weights_that_are_cut_off(copy: Path) -> None:
    file = copy / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1000])
    state, text, fix = await look(copy)
    assert (state, "model.safetensors: it is cut off" in text) == (CheckState.FAIL, True)
    assert fix == f"goodbot model use {copy}"


def header(text: bytes, data: bytes = b"") -> bytes:
    return struct.pack("<Q", len(text)) + text + data


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "its header cannot be read"),
        (b"\x80\x04pickled, and not tensors", "its header is longer"),
        (struct.pack("<Q", 2**60), "longer than the format allows"),
        (header(b"[1]"), "its header cannot be read"),
        (header(b"{}"), "it holds no tensor"),
        (header(b'{"a": 3}'), "its header cannot be read"),
        (header(b"[" * 100_000), "its header cannot be read"),
        (header(b'{"a": {"data_offsets": [0, 8]}}', b"1234567"), "cut off: 7 of 8 bytes"),
        (header(b'{"a": {"data_offsets": [0, 8]}}', b"123456789"), "1 bytes too many"),
        (header(b'{"a": {"data_offsets": [0, 8]}}', b"12345678"), ""),
    ],
)
def test_headers(content: bytes, why: str, tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(content)
    found = weights.damaged(file)
    assert bool(found) == bool(why)
    assert why in found


@pytest.mark.parametrize(
    ("names", "word"),
    [
        (("tokenizer.json", "tokenizer_config.json"), "there is no tokenizer"),
        (("tokenizer_config.json",), "there is no chat template"),
    ],
)
async def test_files_that_are_missing(names: tuple[str, ...], word: str, copy: Path) -> None:
    for name in names:
        (copy / name).unlink()
    state, text, _ = await look(copy)
    assert (state, word in text) == (CheckState.FAIL, True)


async def test_a_part_that_the_index_names(copy: Path) -> None:
    index = {"weight_map": {"a": "model.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (copy / "model.safetensors.index.json").write_text(json.dumps(index))
    state, text, _ = await look(copy)
    assert (state, "model-00002-of-00002.safetensors is missing" in text) == (CheckState.FAIL, True)


async def test_no_model_and_one_that_is_gone(tmp_path: Path) -> None:
    check = await only(model.model(examined(tmp_path)))
    assert (check.state, check.exit_code, check.fix) == (CheckState.FAIL, 2, "goodbot model use auto")
    toml = '[serving]\n[model]\npath = "/no/such"\n'
    check = await only(model.model(examined(tmp_path, toml)))
    assert f"{tmp_path}/config.toml:3: " in check.text


async def test_the_demonstration_model_is_said_to_be_one(tmp_path: Path) -> None:
    check = await only(model.model(examined(tmp_path, demo=True)))
    assert (check.state, "only demonstrates" in check.text) == (CheckState.WARN, True)


async def test_the_backend_is_imported_where_it_cannot_hurt(tmp_path: Path) -> None:
    require("mlx")
    check = await only(model.backend(examined(tmp_path, '[training]\nbackend = "mlx"\n')))
    assert check.state in (CheckState.OK, CheckState.WARN)
    assert check.text.startswith("mlx (as configured) on ")


async def test_a_missing_extra_is_the_exact_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goodbot.api.registry.missing_modules", lambda requires: tuple(requires))
    check = await only(model.backend(examined(tmp_path)))
    assert check.state is CheckState.FAIL
    program, _, rest = check.fix.partition(" install ")
    assert rest.startswith("'mlx-lm")
    assert str(Path(sys.executable).parent) in program


async def test_a_backend_whose_packages_are_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "brokenlib.py").write_text("raise ImportError('libcuda.so.1 is missing')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    spec = BackendSpec(
        name="broken", factory="x:Y", requires=("brokenlib",), extra="torch", settings=dict, priority=99
    )
    monkeypatch.setattr("goodbot.api.plugins.PluginHost.backends", lambda self: {"broken": spec})
    check = await only(model.backend(examined(tmp_path)))
    assert (check.state, "libcuda.so.1 is missing" in check.text) == (CheckState.FAIL, True)
    fine = replace(spec, requires=("json",))
    monkeypatch.setattr("goodbot.api.plugins.PluginHost.backends", lambda self: {"broken": fine})
    assert (await only(model.backend(examined(tmp_path)))).state is CheckState.OK


async def test_a_card_that_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvidia-smi as the driver has it: its own program, found on the path."""
    require("mlx")
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'GPU 0: NVIDIA H200 (UUID: GPU-1)'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    outside = "CPU"

    async def on_cpu(spec: BackendSpec, cage: spawn.Cage | None) -> tuple[str, str]:
        return ("CPU" if cage else outside), ""

    monkeypatch.setattr(model, "_ask", on_cpu)
    check = await only(model.backend(examined(tmp_path)))
    assert (check.state, "GPU 0: NVIDIA H200" in check.text) == (CheckState.WARN, True)
    assert "UUID" not in check.text
    assert "install" in check.fix
    outside = "CUDA, NVIDIA H200"
    check = await only(model.backend(examined(tmp_path)))
    assert "the processes that hold the model cannot use it" in check.text
    assert "report" in check.fix, "another installation would not help"


@pytest.mark.parametrize(
    ("total", "free", "state", "word"),
    [
        (10**11, 10**11, CheckState.OK, "training"),
        (10**11, 10**9, CheckState.WARN, "too little is free"),
        (15 * 10**8, 15 * 10**8, CheckState.WARN, "this machine is small"),
        (10**8, 10**8, CheckState.FAIL, "answering takes"),
    ],
)
async def test_memory(
    total: int, free: int, state: CheckState, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "physical_memory", lambda: total)
    monkeypatch.setattr(model, "available_memory", lambda: free)
    seen = examined(tmp_path, '[training]\nbackend = "mlx"\n', demo=True)
    check = await only(model.room(seen))
    assert (check.state, word in check.text) == (state, True), check.text


async def test_the_memory_that_another_server_has_is_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "physical_memory", lambda: 15 * 10**8)
    monkeypatch.setattr(model, "available_memory", lambda: 15 * 10**8)
    toml = '[training]\nbackend = "mlx"\n[serving]\nserver = "vllm"\n'
    check = await only(model.room(examined(tmp_path, toml, demo=True)))
    assert check.state is CheckState.OK
    assert "; training takes " in check.text
    assert "answering" not in check.text


async def test_an_architecture_that_no_backend_knows(copy: Path) -> None:
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "model_type": "abacus"}))
    state, text, fix = await look(copy)
    assert (state, "abacus" in text, fix) == (CheckState.FAIL, True, "goodbot model use auto")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child imports a framework, which takes minutes beside programs that have the processors."""
    monkeypatch.setattr(model, "_LOOK_SECONDS", patience(model._LOOK_SECONDS))


@pytest.mark.usefixtures("patient")
async def test_a_turn_that_ends_where_no_file_says_so_is_a_warning(copy: Path) -> None:
    require("transformers")
    seen = examined(copy.parent / "home", f'[model]\npath = "{copy}"\n')
    assert await model.template(seen) == []
    for name in ("tokenizer_config.json", "config.json"):
        told = json.loads((copy / name).read_text())
        told |= {"eos_token": "<|endoftext|>"} if "tokenizer" in name else {"eos_token_id": 0}
        (copy / name).write_text(json.dumps(told))
    (copy / "generation_config.json").unlink(missing_ok=True)
    check = await only(model.template(seen))
    assert check.state is CheckState.WARN
    assert "its turns end with <|im_end|>, which none of its files names as an end" in check.text


async def test_a_template_that_nobody_came_to_look_at_is_told(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(weights, "ends", lambda path: ())
    seen = examined(copy.parent / "home", f'[model]\npath = "{copy}"\n')
    check = await only(model.template(seen))
    assert (check.state, "could not be looked at" in check.text) == (CheckState.WARN, True)


@pytest.mark.usefixtures("patient")
async def test_a_template_that_leaves_the_question_out_fails(copy: Path) -> None:
    require("transformers")
    for file in copy.glob("chat_template*"):
        file.unlink()
    told = json.loads((copy / "tokenizer_config.json").read_text())
    told["chat_template"] = "{% for m in messages %}{{ m['words'] }}{% endfor %}"
    (copy / "tokenizer_config.json").write_text(json.dumps(told))
    check = await only(model.template(examined(copy.parent / "home", f'[model]\npath = "{copy}"\n')))
    assert (check.state, "leaves out what is said" in check.text) == (CheckState.FAIL, True)
