# SPDX-License-Identifier: Apache-2.0
"""Conversions of the tiny model's adapter: read back, refused in sentences, and nothing half left."""

from __future__ import annotations

import json
import shutil
from collections import namedtuple
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from goodbot.base.errors import AdapterError, MissingExtraError, TrainingError
from goodbot_training.backends import adapters
from goodbot_training.formats import checkpoint, gguf_names, jobs, proof, reference
from goodbot_training.formats.checkpoint import Checkpoint
from safetensors import safe_open

from tests.core.inference.servers import tiny
from tests.support import require

IDS = np.array([5, 300, 17, 42, 42, 7])


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.adapter(tmp_path_factory.mktemp("adapters") / "one", 1)


def convert(to: str, source: Path | None, output: Path, model: Path | None = None) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    job = jobs.ConversionJob(to=to, model=model or tiny.model(), source=source, output=output, name="tiny")
    jobs.run(job, events.append)
    return events


def answers(directory: Path, adapter: Path | None = None) -> np.ndarray:
    base = Checkpoint(directory)
    decoder = reference.decoder(base.config)
    assert decoder is not None
    weights = adapters.read_adapter(adapter) if adapter else None
    return reference.logits(decoder, proof.merged(base, weights), IDS)


def test_an_adapter_that_goes_to_mlx_and_back_is_the_same(source: Path, tmp_path: Path) -> None:
    convert("mlx", source, tmp_path / "mlx")
    [done] = convert("peft", tmp_path / "mlx", tmp_path / "back")
    assert done["proof"]["apart"] == 0.0
    before, after = adapters.read_adapter(source), adapters.read_adapter(tmp_path / "back")
    assert before.pairs.keys() == after.pairs.keys()
    assert after.scale == before.scale
    for path, (a, b) in before.pairs.items():
        assert np.array_equal(after.pairs[path][0], a)
        assert np.array_equal(after.pairs[path][1], b)


def test_unequal_ranks_are_filled_up_for_mlx(source: Path, tmp_path: Path) -> None:
    weights = adapters.read_adapter(source)
    pairs = dict(weights.pairs)
    first = sorted(pairs)[0]
    a, b = pairs[first]
    pairs[first] = (np.concatenate([a, a]), np.concatenate([b, b], axis=1))
    mixed = adapters.AdapterWeights(rank=weights.rank, alpha=weights.alpha, scale=weights.scale, pairs=pairs)
    adapters.write_adapter(tmp_path / "mixed", mixed)
    for to, output in (("mlx", "mlx"), ("gguf", "a.gguf")):
        if to == "gguf":
            require("gguf")
        [done] = convert(to, tmp_path / "mixed", tmp_path / output)
        assert done["proof"]["compared"] == "logits"
        assert done["proof"]["apart"] <= 1e-3


@pytest.mark.parametrize(("to", "dtype"), [("fused", "F16"), ("fused-f32", "F32")])
def test_a_fused_model_needs_no_adapter(source: Path, tmp_path: Path, to: str, dtype: str) -> None:
    events = convert(to, source, tmp_path / "whole")
    assert events[-1]["proof"]["apart"] <= events[-1]["proof"]["allowed"]
    assert [e["done"] for e in events if e["event"] == "progress"][-1] == Checkpoint(tiny.model()).bytes
    made = Checkpoint(tmp_path / "whole")
    assert {tensor.dtype for tensor in made.tensors.values()} == {dtype}
    expected, found = answers(tiny.model(), source), answers(tmp_path / "whole")
    assert np.abs(found - expected).max() <= (1e-3 if dtype == "F32" else 0.05)
    assert np.abs(answers(tiny.model()) - expected).max() > 1
    names = {path.name for path in (tmp_path / "whole").iterdir()}
    assert {"config.json", "tokenizer.json", "tokenizer_config.json"} <= names
    with safe_open(tmp_path / "whole" / "model.safetensors", "np") as file:  # others can read it
        assert len(list(file.keys())) == len(made.tensors)


def test_a_fused_model_in_several_files_keeps_them(source: Path, tmp_path: Path) -> None:
    base, shards = Checkpoint(tiny.model()), tmp_path / "shards"
    shutil.copytree(tiny.model(), shards)
    (shards / "model.safetensors").unlink()
    names, where = sorted(base.tensors), {}
    for number, part in enumerate((names[:20], names[20:])):
        file = f"model-{number}.safetensors"
        shapes = {name: ("BF16", base.tensors[name].shape) for name in part}
        checkpoint.write(
            shards / file, shapes, lambda n: checkpoint.narrowed(base.read(n), "BF16"), lambda _: None
        )
        where |= dict.fromkeys(part, file)
    (shards / checkpoint.INDEX).write_text(json.dumps({"weight_map": where}))
    events = convert("fused", source, tmp_path / "whole", shards)
    assert events[-1]["proof"]["compared"] == "logits"
    made = Checkpoint(tmp_path / "whole")
    assert [file.name for file in made.files] == ["model-0.safetensors", "model-1.safetensors"]
    assert {tensor.dtype for tensor in made.tensors.values()} == {"BF16"}


def test_a_whole_gguf_model_says_what_it_is(source: Path, tmp_path: Path) -> None:
    gguf = require("gguf")
    events = convert("gguf-model", source, tmp_path / "m.gguf")
    assert events[-1]["proof"]["rounded"]
    reader = gguf.GGUFReader(tmp_path / "m.gguf")
    assert reader.get_field("general.architecture").contents() == "qwen3"
    assert reader.get_field("tokenizer.ggml.pre").contents() == "qwen2"
    assert reader.get_field("tokenizer.ggml.eos_token_id").contents() == 2
    assert "<|im_start|>" in reader.get_field("tokenizer.chat_template").contents()
    kinds = {tensor.name: tensor.tensor_type.name for tensor in reader.tensors}
    assert kinds["blk.0.attn_q.weight"] == "Q8_0"
    assert kinds["blk.0.attn_norm.weight"] == "F32"
    tokens = reader.get_field("tokenizer.ggml.tokens").contents()
    assert tokens[1] == "<|im_start|>"
    assert len(tokens) == 1536


def test_a_gguf_adapter_says_what_it_is(source: Path, tmp_path: Path) -> None:
    gguf = require("gguf")
    convert("gguf", source, tmp_path / "a.gguf")
    reader = gguf.GGUFReader(tmp_path / "a.gguf")
    said = {key: reader.get_field(key).contents() for key in reader.fields if "." in key}
    assert said["general.type"] == "adapter"
    assert said["adapter.type"] == "lora"
    assert said["adapter.lora.alpha"] == 8.0
    shapes = {tensor.name: tuple(tensor.shape) for tensor in reader.tensors}
    assert shapes["blk.0.ffn_down.weight.lora_a"] == (384, 4)  # GGUF counts from the inside
    assert shapes["blk.0.ffn_down.weight.lora_b"] == (4, 128)


# -- refused


def test_what_is_there_is_never_overwritten(source: Path, tmp_path: Path) -> None:
    for name, to in (("here", "fused"), ("here.gguf", "mlx")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine").write_text("precious")
        with pytest.raises(AdapterError, match="is there already"):
            convert(to, source, tmp_path / name)
        assert (tmp_path / name / "mine").read_text() == "precious"


def test_a_disk_that_is_full_is_noticed_before(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(jobs.shutil, "disk_usage", lambda _: usage(1, 1, 1000))
    with pytest.raises(AdapterError, match="too little is free"):
        convert("fused", source, tmp_path / "whole")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_nothing(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "delta", lambda adapter, pair: 1.1 * adapter.scale * (pair[1] @ pair[0]))
    real = adapters.read_adapter(source)

    def merged(base: Checkpoint, adapter: Any) -> reference.Weights:
        def weights(name: str) -> Any:
            if name not in base.tensors:
                return None
            pair = real.pairs.get(name.removesuffix(".weight")) if adapter else None
            return base.read(name) + (real.scale * (pair[1] @ pair[0]) if pair else 0)

        return weights

    monkeypatch.setattr(proof, "merged", merged)
    with pytest.raises(AdapterError, match="does not give what was trained"):
        convert("fused", source, tmp_path / "whole")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"quantization": {"bits": 4}}, "stored quantized"),
        ({"model_type": "mamba"}, "no GGUF is made for models of the type 'mamba'"),
    ],
)
def test_a_base_that_cannot_be_converted_is_refused(
    source: Path, tmp_path: Path, config: dict[str, Any], words: str
) -> None:
    require("gguf")
    shutil.copytree(tiny.model(), tmp_path / "base")
    told = json.loads((tmp_path / "base" / "config.json").read_text())
    (tmp_path / "base" / "config.json").write_text(json.dumps(told | config))
    with pytest.raises(AdapterError, match=words):
        convert("gguf", source, tmp_path / "a.gguf", tmp_path / "base")


def test_an_adapter_of_another_base_is_refused(source: Path, tmp_path: Path) -> None:
    weights = adapters.read_adapter(source)
    pairs = {path.replace("layers.3", "layers.9"): pair for path, pair in weights.pairs.items()}
    foreign = adapters.AdapterWeights(rank=4, alpha=8.0, scale=2.0, pairs=pairs)
    adapters.write_adapter(tmp_path / "foreign", foreign)
    with pytest.raises(AdapterError, match=r"not for this base model: see 'model\.layers\.9"):
        convert("mlx", tmp_path / "foreign", tmp_path / "mlx")


def test_experts_are_refused(source: Path, tmp_path: Path) -> None:
    pairs = {"model.layers.0.mlp.experts.down_proj": (np.zeros((2, 1, 4)), np.zeros((2, 8, 1)))}
    weights = adapters.AdapterWeights(rank=1, alpha=1.0, scale=1.0, pairs=pairs)
    with pytest.raises(AdapterError, match="embedded, vLLM or SGLang"):
        proof.plain(weights, Checkpoint(tiny.model()))


def coarse(directory: Path) -> Path:
    """The tiny model with weights that 8 bits hold badly: one of each block is far larger than the others."""
    from safetensors.numpy import load_file, save_file

    shutil.copytree(tiny.model(), directory)
    tensors = load_file(directory / "model.safetensors")
    for values in tensors.values():
        if values.ndim == 2:
            values[:, ::32] *= 60
    save_file(tensors, directory / "model.safetensors", {"format": "pt"})
    return directory


@pytest.mark.parametrize(("to", "name"), [("gguf-model", "m.gguf"), ("fused", "whole")])
def test_what_a_number_type_rounds_away_is_no_fault_of_the_file(
    source: Path, tmp_path: Path, to: str, name: str
) -> None:
    """As on a deep model: its logits in 8 bits are far from those in fp32, and the file is right."""
    require("gguf")
    events = convert(to, source, tmp_path / name, coarse(tmp_path / "coarse"))
    found = events[-1]["proof"]
    assert (found["compared"], found["allowed"], found["rounded"]) == ("logits", proof.EXACT, True)
    assert found["apart"] < proof.EXACT


def test_a_small_mistake_is_found_although_the_number_type_rounds(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fiftieth of the adapter is less than what 8 bits round away."""
    require("gguf")
    whole, calls = proof.merged, list[int]()

    def less(base: Checkpoint, adapter: Any) -> Any:
        calls.append(1)
        if adapter is None or len(calls) > 1:  # the first is what is written
            return whole(base, adapter)
        return whole(base, replace(adapter, scale=0.98 * adapter.scale))

    monkeypatch.setattr(proof, "merged", less)
    with pytest.raises(AdapterError, match="does not give what was trained"):
        convert("gguf-model", source, tmp_path / "m.gguf")
    assert not (tmp_path / "m.gguf").exists()


@pytest.mark.parametrize("broken", ["rank", "nan", "name", "scale", "torn", "dora"])
def test_a_broken_mlx_adapter_is_refused(source: Path, tmp_path: Path, broken: str) -> None:
    from safetensors.numpy import load_file, save_file

    convert("mlx", source, tmp_path / "mlx")
    config_path, path = (tmp_path / "mlx" / "adapter_config.json", tmp_path / "mlx" / "adapters.safetensors")
    config, tensors = json.loads(config_path.read_text()), load_file(path)
    name = sorted(tensors)[0]
    if broken == "rank":
        config["lora_parameters"]["rank"] = 3
    elif broken == "scale":
        config["lora_parameters"]["scale"] = "much"
    elif broken == "dora":
        config["fine_tune_type"] = "dora"
    elif broken == "nan":
        tensors[name][0, 0] = np.nan
    elif broken == "name":
        tensors["model/../x.lora_a"] = tensors.pop(name)
    config_path.write_text(json.dumps(config))
    save_file(tensors, path)
    if broken == "torn":
        path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(AdapterError):
        convert("peft", tmp_path / "mlx", tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_an_index_that_points_elsewhere_is_refused(tmp_path: Path) -> None:
    shutil.copytree(tiny.model(), tmp_path / "base")
    index = {"weight_map": {"x": "../../etc/x.safetensors"}}
    (tmp_path / "base" / checkpoint.INDEX).write_text(json.dumps(index))
    with pytest.raises(AdapterError, match="names files elsewhere"):
        Checkpoint(tmp_path / "base")


def test_without_the_package_it_says_what_to_install(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(gguf_names, "importlib", SimpleNamespace(import_module=missing))
    with pytest.raises(MissingExtraError, match="gguf"):
        convert("gguf", source, tmp_path / "a.gguf")


@pytest.mark.parametrize("dtype", ["BF16", "F16", "F32"])
def test_numbers_are_rounded_as_torch_does_it(dtype: str) -> None:
    torch = require("torch")
    values = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    kind = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32}[dtype]
    expected = torch.tensor(values).to(kind).to(torch.float32).numpy()
    assert np.array_equal(checkpoint.widened(checkpoint.narrowed(values, dtype)), expected)


@pytest.mark.parametrize(
    "line",
    [
        [],
        {"protocol": 2, "to": "mlx", "model": "m", "output": "o"},
        {"protocol": 1, "to": "onnx", "model": "m", "output": "o"},
        {"protocol": 1, "to": "mlx", "model": 7, "output": "o"},
    ],
)
def test_a_line_that_asks_for_no_conversion_is_refused(line: Any) -> None:
    with pytest.raises(TrainingError):
        jobs.ConversionJob.parse(line)


def test_a_place_for_it_must_be_there(source: Path, tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match="make it first"):
        convert("mlx", source, tmp_path / "no" / "where")
